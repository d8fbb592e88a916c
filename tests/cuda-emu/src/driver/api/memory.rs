//! Memory of devices, and page-locked memory of the host.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::driver::call::{Call, calls};
use crate::driver::context::Context;
use crate::driver::ffi::{CUdeviceptr, Out};
use crate::driver::memory::{Block, Home, Origin, State, Where, charge};
use crate::driver::status::{Result, Status};

/// Rows of pitched memory begin at multiples of this.
const PITCH: usize = 512;

calls! {
    /// Free and total memory.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) |call| {
        let context = call.context()?;
        let budget = context.device().budget();
        free.put(usize::try_from(budget.free()).unwrap_or(usize::MAX))?;
        total.put(usize::try_from(budget.total()).unwrap_or(usize::MAX))
    }

    /// Device memory.
    fn cuMemAlloc_v2(address: Out<CUdeviceptr>, bytes: usize) |call| {
        address.wanted()?;
        address.put(allocate(call, bytes as u64)?)
    }

    /// Device memory for an image, with rows that begin at even places.
    fn cuMemAllocPitch_v2(
        address: Out<CUdeviceptr>,
        pitch: Out<usize>,
        width: usize,
        height: usize,
        element: c_uint,
    ) |call| {
        address.wanted()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Status::OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height).ok_or(Status::OUT_OF_MEMORY)?;
        pitch.put(row)?;
        address.put(allocate(call, bytes as u64)?)
    }

    /// Frees device memory, when all work of its context is done.
    fn cuMemFree_v2(address: CUdeviceptr) |call| {
        let machine = call.machine()?;
        let current = call.current()?;
        let block = owned(call, address, "device memory", |home| {
            let from_call = matches!(home, Home::Device { origin: Origin::Call, .. });
            from_call || matches!(home, Home::Device { origin: Origin::Pool(_), .. })
        })?;
        // Memory of pools is freed without waiting: the caller must have waited.
        if matches!(block.home, Home::Device { origin: Origin::Call, .. })
            && let Ok(context) = machine.contexts.get(block.context())
        {
            context.drain();
        }
        machine.end_block(address).ok_or(Status::INVALID_VALUE)?;
        current.check()
    }

    /// The allocation an address lies in.
    fn cuMemGetAddressRange_v2(
        base: Out<CUdeviceptr>,
        bytes: Out<usize>,
        address: CUdeviceptr,
    ) |call| {
        call.context()?;
        let block = call.machine()?.memory.covering(address, 1);
        let block = block.map_err(|_| Status::NOT_FOUND)?;
        base.put_if_wanted(block.base);
        bytes.put_if_wanted(usize::try_from(block.bytes).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Page-locked memory.
    fn cuMemAllocHost_v2(address: Out<u64>, bytes: usize) |call| {
        address.wanted()?;
        address.put(pin(call, bytes, 0)?)
    }

    /// Page-locked memory.
    fn cuMemHostAlloc(address: Out<u64>, bytes: usize, flags: c_uint) |call| {
        address.wanted()?;
        // For all contexts, for kernels, and write-combined: all of it is all of that, or does not
        // matter here.
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        address.put(pin(call, bytes, flags)?)
    }

    /// Frees page-locked memory at once. A copy that still needs it is at fault.
    fn cuMemFreeHost(address: u64) |call| {
        let current = call.current()?;
        owned(call, address, "page-locked memory", |home| matches!(home, Home::Pinned { .. }))?;
        call.machine()?.end_block(address).ok_or(Status::INVALID_VALUE)?;
        current.check()
    }

    /// Page-locks memory of the caller.
    fn cuMemHostRegister_v2(address: u64, bytes: usize, flags: c_uint) |call| {
        let context = call.context()?;
        // As above, and two sorts of memory that are not told apart here: input/output and
        // read-only.
        if address == 0 || bytes == 0 || flags & !0xf != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let home = Home::Registered { context: context.handle(), flags };
        let registered = call.machine()?.memory.register(address, bytes as u64, home);
        registered.ok_or(Status::HOST_MEMORY_ALREADY_REGISTERED)
    }

    /// And no longer, when all work is done: the caller may give the memory away after that, and
    /// kernels must not find it gone.
    fn cuMemHostUnregister(address: u64) |call| {
        let current = call.current()?;
        let machine = call.machine()?;
        let block = machine.memory.find(address);
        let found = block.filter(|block| {
            block.base == address && matches!(block.home, Home::Registered { .. })
        });
        found.ok_or(Status::HOST_MEMORY_NOT_REGISTERED)?;
        for context in machine.contexts.all() {
            context.drain();
        }
        machine.end_block(address).ok_or(Status::HOST_MEMORY_NOT_REGISTERED)?;
        current.check()
    }

    /// What kernels call page-locked memory: the same.
    fn cuMemHostGetDevicePointer_v2(device: Out<CUdeviceptr>, host: u64, flags: c_uint) |call| {
        call.context()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        host_flags(call, host)?;
        device.put(host)
    }

    /// How it was asked for.
    fn cuMemHostGetFlags(flags: Out<c_uint>, host: u64) |call| {
        call.context()?;
        flags.put(host_flags(call, host)?)
    }
}

fn allocate(call: Call, bytes: u64) -> Result<u64> {
    let context = call.context()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let device = context.device();
    device.budget().take(charge(bytes))?;
    let home = Home::Device {
        device: device.index(),
        context: context.handle(),
        origin: Origin::Call,
    };
    let memory = &call.machine()?.memory;
    let base = memory.allocate(Where::Device(device.index()), bytes, home, State::Live);
    base.ok_or_else(|| {
        device.budget().give(charge(bytes));
        Status::OUT_OF_MEMORY
    })
}

fn pin(call: Call, bytes: usize, flags: c_uint) -> Result<u64> {
    let context: Arc<Context> = call.context()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let home = Home::Pinned {
        context: context.handle(),
        flags,
    };
    let memory = &call.machine()?.memory;
    let base = memory.allocate(Where::Host, bytes as u64, home, State::Live);
    base.ok_or(Status::OUT_OF_MEMORY)
}

/// The block that begins at an address and is of the right sort; otherwise says what is there.
pub(super) fn owned(
    call: Call,
    address: u64,
    sort: &str,
    fits: impl Fn(&Home) -> bool,
) -> Result<Block> {
    let invalid = |why: std::fmt::Arguments<'_>| Err(call.refuse(Status::INVALID_VALUE, why));
    let Some(block) = call.machine()?.memory.find(address) else {
        return invalid(format_args!("nothing was allocated at {address:#x}"));
    };
    if block.state == State::Freed {
        return invalid(format_args!(
            "{address:#x}, in the allocation of {} bytes at {:#x}, was freed before",
            block.bytes, block.base
        ));
    }
    if block.base != address {
        return invalid(format_args!(
            "{address:#x} is inside the allocation of {} bytes at {:#x}",
            block.bytes, block.base
        ));
    }
    if !fits(&block.home) {
        return invalid(format_args!(
            "{address:#x} is no {sort} that can be freed so"
        ));
    }
    Ok(block)
}

fn host_flags(call: Call, host: u64) -> Result<c_uint> {
    let block = call.machine()?.memory.covering(host, 1);
    match block.map_err(|_| Status::INVALID_VALUE)?.home {
        Home::Pinned { flags, .. } | Home::Registered { flags, .. } => Ok(flags),
        Home::Device { .. } => Err(Status::INVALID_VALUE),
    }
}
