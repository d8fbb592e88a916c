//! Memory in the order of streams.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::memory::owned;
use crate::driver::call::{Call, calls};
use crate::driver::device::Device;
use crate::driver::ffi::{
    CUdevice, CUdeviceptr, Handle, In, MemAccess, MemLocation, MemPoolProps, Out,
};
use crate::driver::handle;
use crate::driver::health::Trouble;
use crate::driver::lane::Job;
use crate::driver::memory::{Home, Origin, Pool, PoolAttribute, State, Where};
use crate::driver::status::{Result, Status};

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_uint = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: c_uint = 1;

calls! {
    /// Memory that is there when the stream comes so far, from the pool of the stream's device.
    fn cuMemAllocAsync(
        address: Out<CUdeviceptr>,
        bytes: usize,
        stream: Handle,
    ) also cuMemAllocAsync_ptsz |call| {
        let pool = call.stream(stream)?.context().device().current_pool();
        allocate(call, address, bytes as u64, &pool, stream)
    }

    /// The same from some pool.
    fn cuMemAllocFromPoolAsync(
        address: Out<CUdeviceptr>,
        bytes: usize,
        pool: Handle,
        stream: Handle,
    ) also cuMemAllocFromPoolAsync_ptsz |call| {
        let pool = call.machine()?.pools.get(pool)?;
        allocate(call, address, bytes as u64, &pool, stream)
    }

    /// Frees memory when the stream comes so far.
    fn cuMemFreeAsync(address: CUdeviceptr, stream: Handle) also cuMemFreeAsync_ptsz |call| {
        let stream = call.stream(stream)?;
        let machine = call.machine()?;
        owned(call, address, "device memory", |home| {
            let from_call = matches!(home, Home::Device { origin: Origin::Call, .. });
            from_call || matches!(home, Home::Device { origin: Origin::Pool(_), .. })
        })?;
        let name = call.name;
        stream.submit(Job::Work(Box::new(move || {
            let freed = machine.end_block(address);
            freed.map(|_| ()).ok_or_else(|| Trouble {
                status: Status::ILLEGAL_ADDRESS,
                text: format!("{name}, when it ran: {address:#x} was freed before"),
            })
        })));
        Ok(())
    }

    /// The pool a device was born with.
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: CUdevice) |call| {
        pool.put(call.device(device)?.default_pool().handle())
    }

    /// The pool stream-ordered memory comes from.
    fn cuDeviceGetMemPool(pool: Out<Handle>, device: CUdevice) |call| {
        pool.put(call.device(device)?.current_pool().handle())
    }

    /// Chooses it.
    fn cuDeviceSetMemPool(device: CUdevice, pool: Handle) |call| {
        let device = call.device(device)?;
        let pool = call.machine()?.pools.get(pool)?;
        if pool.device() != device.index() {
            return Err(Status::INVALID_VALUE);
        }
        device.set_current_pool(&pool);
        Ok(())
    }

    /// A new pool.
    fn cuMemPoolCreate(pool: Out<Handle>, props: In<MemPoolProps>) |call| {
        pool.wanted()?;
        let machine = call.machine()?;
        let props = props.read()?;
        if props.kind != PINNED || props.location.kind != DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        if props.handle_types != 0 {
            return Err(call.refuse(
                Status::NOT_SUPPORTED,
                format_args!("pools that are shared with other processes"),
            ));
        }
        let device = call.device(props.location.id)?;
        let limit = (props.max_size != 0).then_some(props.max_size as u64);
        let made = Pool::new(handle::fresh(), device.index(), device.budget(), limit);
        device.add_pool(&made);
        machine.pools.insert(made.handle(), &made);
        pool.put(made.handle())
    }

    /// Ends a pool; its memory lives until it is freed.
    fn cuMemPoolDestroy(pool: Handle) |call| {
        let machine = call.machine()?;
        let found = machine.pools.get(pool)?;
        let device = device_of(call, &found)?;
        if Arc::ptr_eq(device.default_pool(), &found) {
            let text = format_args!("a default pool cannot be destroyed");
            return Err(call.refuse(Status::INVALID_VALUE, text));
        }
        machine.pools.remove(pool)?;
        device.remove_pool(&found);
        found.end();
        Ok(())
    }

    /// Gives unused memory back, down to so many bytes.
    fn cuMemPoolTrimTo(pool: Handle, keep: usize) |call| {
        call.machine()?.pools.get(pool)?.trim(keep as u64);
        Ok(())
    }

    /// A count or setting of a pool.
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: *mut c_void) |call| {
        let pool = call.machine()?.pools.get(pool)?;
        let attribute = PoolAttribute::parse(attribute)?;
        let found = pool.attribute(attribute);
        if attribute.is_int() {
            return Out::new(value.cast::<c_int>()).put(c_int::from(found != 0));
        }
        Out::new(value.cast::<u64>()).put(found)
    }

    /// Sets one.
    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: *const c_void) |call| {
        let pool = call.machine()?.pools.get(pool)?;
        let attribute = PoolAttribute::parse(attribute)?;
        let value = if attribute.is_int() {
            let value = In::new(value.cast::<c_int>()).read()?;
            u64::try_from(value).map_err(|_| Status::INVALID_VALUE)?
        } else {
            In::new(value.cast::<u64>()).read()?
        };
        pool.set_attribute(attribute, value)
    }

    /// Lets other devices reach the memory of a pool.
    fn cuMemPoolSetAccess(pool: Handle, list: In<MemAccess>, count: usize) |call| {
        let pool = call.machine()?.pools.get(pool)?;
        for i in 0..count {
            let access = list.at(i)?;
            if access.location.kind != DEVICE || !matches!(access.flags, 0 | 1 | 3) {
                return Err(Status::INVALID_VALUE);
            }
            let device = call.device(access.location.id)?;
            pool.set_access(device.index(), access.flags)?;
        }
        Ok(())
    }

    /// What a device may do with it.
    fn cuMemPoolGetAccess(flags: Out<c_uint>, pool: Handle, location: In<MemLocation>) |call| {
        let pool = call.machine()?.pools.get(pool)?;
        let location = location.read()?;
        if location.kind != DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        let device = call.device(location.id)?;
        flags.put(pool.access(device.index()))
    }
}

fn device_of(call: Call, pool: &Pool) -> Result<&'static Arc<Device>> {
    let device = call.machine()?.device_at(pool.device());
    device.ok_or(Status::INVALID_DEVICE)
}

fn allocate(
    call: Call,
    address: Out<CUdeviceptr>,
    bytes: u64,
    pool: &Arc<Pool>,
    stream: Handle,
) -> Result {
    let stream = call.stream(stream)?;
    let machine = call.machine()?;
    address.wanted()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    device_of(call, pool)?.check()?;
    pool.take(bytes)?;
    let home = Home::Device {
        device: pool.device(),
        context: stream.context().handle(),
        origin: Origin::Pool(Arc::clone(pool)),
    };
    let place = Where::Device(pool.device());
    let base = machine.memory.allocate(place, bytes, home, State::Pending);
    let base = base.ok_or_else(|| {
        pool.give(bytes);
        Status::OUT_OF_MEMORY
    })?;
    stream.submit(Job::Work(Box::new(move || {
        machine.memory.arrive(base);
        Ok(())
    })));
    address.put(base)
}
