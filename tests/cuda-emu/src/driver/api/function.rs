//! Kernels: properties, occupancy, launches.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;

use crate::driver::call::{Call, calls};
use crate::driver::device::PROCESSORS;
use crate::driver::ffi::{Handle, In, LaunchConfig, Out};
use crate::driver::function::Function;
use crate::driver::launch::{self, Shape};
use crate::driver::status::{Result, Status};

/// Shared memory of a block of some size, as a caller computes it.
type SharedOfBlock = unsafe extern "C" fn(c_int) -> usize;

calls! {
    /// A property.
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_uint, function: Handle) |call| {
        value.put(given(call, function)?.attribute(attribute)?)
    }

    /// Sets one.
    fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) |call| {
        given(call, function)?.set_attribute(attribute, value)
    }

    /// A hint that changes nothing.
    fn cuFuncSetCacheConfig(function: Handle, config: c_uint) |call| {
        given(call, function)?;
        if config > 3 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// The module it is in.
    fn cuFuncGetModule(module: Out<Handle>, function: Handle) |call| {
        module.put(given(call, function)?.module().handle())
    }

    /// Its name, which lives as long as the function.
    fn cuFuncGetName(name: Out<*const c_char>, function: Handle) |call| {
        name.put(given(call, function)?.name().as_ptr())
    }

    /// Place and size of a parameter.
    fn cuFuncGetParamInfo(
        function: Handle,
        index: usize,
        offset: Out<usize>,
        bytes: Out<usize>,
    ) |call| {
        let function = given(call, function)?;
        let param = function.entry().params.get(index).ok_or(Status::INVALID_VALUE)?;
        offset.put(param.offset as usize)?;
        bytes.put_if_wanted(param.size as usize);
        Ok(())
    }

    /// Blocks that fit a processor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared: usize,
    ) |call| {
        blocks.put(occupancy(call, function, threads, shared)?)
    }

    /// The same; the flag is about a cache that is not there.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        function: Handle,
        threads: c_int,
        shared: usize,
        flags: c_uint,
    ) |call| {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        blocks.put(occupancy(call, function, threads, shared)?)
    }

    /// A block size that fills a processor, and the blocks that fill the device.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_of: Option<SharedOfBlock>,
        shared: usize,
        limit: c_int,
    ) |call| {
        let (blocks, threads) = best_block(call, function, shared_of, shared, limit)?;
        grid.put(blocks)?;
        block.put(threads)
    }

    /// The same; the flag is about a cache that is not there.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_of: Option<SharedOfBlock>,
        shared: usize,
        limit: c_int,
        flags: c_uint,
    ) |call| {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        let (blocks, threads) = best_block(call, function, shared_of, shared, limit)?;
        grid.put(blocks)?;
        block.put(threads)
    }

    /// Dynamic shared memory a block may have when so many shall fit a processor.
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>,
        function: Handle,
        blocks: c_int,
        threads: c_int,
    ) |call| {
        let function = given(call, function)?;
        let wanted = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0);
        let wanted = wanted.ok_or(Status::INVALID_VALUE)?;
        let threads = u32::try_from(threads).map_err(|_| Status::INVALID_VALUE)?;
        if function.blocks_per_processor(threads, 0) < wanted {
            return Err(Status::INVALID_VALUE);
        }
        let share = crate::driver::attributes::PROCESSOR_SHARED / wanted;
        let free = share.saturating_sub(function.entry().static_shared);
        bytes.put(free.min(function.max_dynamic_shared()) as usize)
    }

    /// Launches a kernel.
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle,
        params: In<In<u8>>, extra: In<usize>,
    ) also cuLaunchKernel_ptsz |call| {
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
        };
        start(call, function, shape, stream, params, extra)
    }

    /// Launches a kernel with attributes, of which only hints are taken.
    fn cuLaunchKernelEx(
        config: In<LaunchConfig>,
        function: Handle,
        params: In<In<u8>>,
        extra: In<usize>,
    ) also cuLaunchKernelEx_ptsz |call| {
        let config = config.read()?;
        for i in 0..config.attribute_count as usize {
            let attribute = config.attributes.at(i)?;
            // None, a window of the cache, how to wait, a priority, domains of barriers, and the
            // division of on-chip memory.
            if !matches!(attribute.id, 0 | 1 | 3 | 8 | 9 | 10 | 14) {
                let text = format_args!("launch attribute {}", attribute.id);
                return Err(call.refuse(Status::NOT_SUPPORTED, text));
            }
        }
        let shape = Shape {
            grid: config.grid,
            block: config.block,
            shared: config.shared,
        };
        start(call, function, shape, config.stream, params, extra)
    }
}

/// A function, or a kernel of a library in the current context.
fn given(call: Call, function: Handle) -> Result<Arc<Function>> {
    let context = call.context()?;
    let machine = call.machine()?;
    let found = match machine.functions.get(function) {
        Ok(found) => found,
        Err(_) => machine.kernels.get(function)?.function(machine, &context)?,
    };
    found.module().context().check()?;
    Ok(found)
}

fn occupancy(call: Call, function: Handle, threads: c_int, shared: usize) -> Result<c_int> {
    let threads = u32::try_from(threads).map_err(|_| Status::INVALID_VALUE)?;
    let blocks = given(call, function)?.blocks_per_processor(threads, shared);
    Ok(c_int::try_from(blocks).unwrap_or(c_int::MAX))
}

/// The largest block with the most threads on a processor.
fn best_block(
    call: Call,
    function: Handle,
    shared_of: Option<SharedOfBlock>,
    shared: usize,
    limit: c_int,
) -> Result<(c_int, c_int)> {
    let function = given(call, function)?;
    let most = function.max_threads();
    let most = u32::try_from(limit)
        .ok()
        .filter(|limit| *limit > 0)
        .map_or(most, |l| l.min(most));
    let mut best = (0, 0, 0);
    for threads in (1..=most)
        .rev()
        .filter(|threads| *threads == most || threads % 32 == 0)
    {
        let size = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the caller vouches that the function can be called with any block size.
        let shared = shared_of.map_or(shared, |shared_of| unsafe { shared_of(size) });
        let blocks = function.blocks_per_processor(threads, shared);
        if blocks * threads > best.0 {
            best = (blocks * threads, blocks, threads);
        }
    }
    let (_, blocks, threads) = best;
    let number = |value: u32| c_int::try_from(value).unwrap_or(c_int::MAX);
    Ok((number(blocks * PROCESSORS), number(threads)))
}

fn start(
    call: Call,
    function: Handle,
    shape: Shape,
    stream: Handle,
    params: In<In<u8>>,
    extra: In<usize>,
) -> Result {
    let function = given(call, function)?;
    let stream = call.stream(stream)?;
    if !Arc::ptr_eq(stream.context(), function.module().context()) {
        let text = format_args!("kernel and stream are of different contexts");
        return Err(call.refuse(Status::INVALID_HANDLE, text));
    }
    let named = |(status, why): (Status, String)| {
        let name = function.kernel().name();
        call.refuse(status, format_args!("kernel `{name}`: {why}"))
    };
    launch::check(&function, shape).map_err(named)?;
    let params = launch::params(&function, params, extra).map_err(named)?;
    launch::submit(call.machine()?, &function, &stream, shape, params);
    Ok(())
}
