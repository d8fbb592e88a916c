//! What is known about an address.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::call::{Call, calls};
use crate::driver::ffi::{CUdeviceptr, In, Out};
use crate::driver::memory::{Block, Home, Origin};
use crate::driver::status::{Result, Status};

calls! {
    /// One property of an address.
    fn cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, address: CUdeviceptr) |call| {
        call.current()?;
        let block = call.machine()?.memory.covering(address, 1);
        let block = block.map_err(|_| Status::INVALID_VALUE)?;
        put(call, data, attribute, address, Some(&block))
    }

    /// Several; an address nobody knows has properties that say so.
    fn cuPointerGetAttributes(
        count: c_uint,
        attributes: In<c_uint>,
        data: In<*mut c_void>,
        address: CUdeviceptr,
    ) |call| {
        call.current()?;
        let block = call.machine()?.memory.covering(address, 1).ok();
        for i in 0..count as usize {
            put(call, data.at(i)?, attributes.at(i)?, address, block.as_ref())?;
        }
        Ok(())
    }
}

/// Writes one property, in the type that it has.
fn put(
    call: Call,
    data: *mut c_void,
    attribute: c_uint,
    address: u64,
    block: Option<&Block>,
) -> Result {
    let number = |value: u64| Out::new(data.cast::<u64>()).put(value);
    let word = |value: u32| Out::new(data.cast::<u32>()).put(value);
    let on_device = block.is_some_and(|block| block.device().is_some());
    let pool = block.and_then(|block| match &block.home {
        Home::Device {
            origin: Origin::Pool(pool),
            ..
        } => Some(pool.handle().0 as u64),
        _ => None,
    });
    match attribute {
        // The context, as a handle.
        1 => number(block.map_or(0, |block| block.context().0 as u64)),
        // One is the host's memory, two a device's.
        2 => word(match block {
            None => 0,
            Some(_) if on_device => 2,
            Some(_) => 1,
        }),
        // The address for kernels.
        3 => number(block.map_or(0, |_| address)),
        // The address for the host, which cannot see device memory.
        4 if on_device => Err(Status::INVALID_VALUE),
        4 => number(block.map_or(0, |_| address)),
        // A number of the allocation: addresses are not used again for long.
        7 => number(block.map_or(0, |block| block.base)),
        // Synchronous copies, managed memory, use by other processes and other cards: no.
        6 | 8 | 10 | 15 => word(0),
        9 => Out::new(data.cast::<c_int>()).put(ordinal(call, block)?),
        11 => number(block.map_or(0, |block| block.base)),
        12 => number(block.map_or(0, |block| block.bytes)),
        // Mapped, that is usable.
        13 => word(u32::from(block.is_some())),
        14 => number(0),
        16 => word(if block.is_some() { 3 } else { 0 }),
        17 => number(pool.unwrap_or(0)),
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// The device of a block; that of its context for memory of the host.
fn ordinal(call: Call, block: Option<&Block>) -> Result<c_int> {
    let Some(block) = block else {
        // `CU_DEVICE_INVALID`.
        return Ok(-2);
    };
    let machine = call.machine()?;
    let context = machine.contexts.get(block.context()).ok();
    let device = match block.device() {
        Some(index) => machine.device_at(index).map(|device| device.ordinal()),
        None => context.map(|context| context.device().ordinal()),
    };
    Ok(device
        .and_then(|ordinal| c_int::try_from(ordinal).ok())
        .unwrap_or(-2))
}
