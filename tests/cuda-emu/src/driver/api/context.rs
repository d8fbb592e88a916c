//! Contexts.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::driver::attributes::PRIORITIES;
use crate::driver::call::{Call, calls};
use crate::driver::context::Context;
use crate::driver::current;
use crate::driver::ffi::{CUdevice, Handle, In, Out};
use crate::driver::status::{Result, Status};

/// Version of the interface that contexts have had since CUDA 3.2.
const API_VERSION: c_uint = 3020;

calls! {
    /// The primary context of a device, made if there is none.
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: CUdevice) |call| {
        let device = call.device(device)?;
        device.check()?;
        context.wanted()?;
        let mut primary = device.primary();
        let found = match &primary.context {
            Some(found) => Arc::clone(found),
            None => Context::open(call.machine()?, device, primary.flags)?,
        };
        context.put(found.handle())?;
        primary.context = Some(found);
        primary.users += 1;
        Ok(())
    }

    /// Lets go of it; the last one ends it.
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) |call| {
        let device = call.device(device)?;
        let mut primary = device.primary();
        if primary.users == 0 {
            return Err(Status::INVALID_CONTEXT);
        }
        primary.users -= 1;
        if primary.users == 0 && let Some(context) = primary.context.take() {
            context.end(call.machine()?);
        }
        Ok(())
    }

    /// Ends it, whoever holds it.
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice) |call| {
        let device = call.device(device)?;
        let mut primary = device.primary();
        primary.users = 0;
        if let Some(context) = primary.context.take() {
            context.end(call.machine()?);
        }
        Ok(())
    }

    /// Flags for the next one.
    fn cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint) |call| {
        let mut primary = call.device(device)?.primary();
        check_flags(flags)?;
        primary.flags = flags;
        Ok(())
    }

    /// Its flags, and whether it exists.
    fn cuDevicePrimaryCtxGetState(
        device: CUdevice,
        flags: Out<c_uint>,
        active: Out<c_int>,
    ) |call| {
        let primary = call.device(device)?.primary();
        flags.put(primary.flags)?;
        active.put(c_int::from(primary.context.is_some()))
    }

    /// Makes a context, and makes it current.
    fn cuCtxCreate_v2(context: Out<Handle>, flags: c_uint, device: CUdevice) |call| {
        create(call, context, flags, device)
    }

    /// The same with a share of the processors, which is not emulated.
    fn cuCtxCreate_v3(
        context: Out<Handle>,
        _affinities: *mut c_void,
        count: c_int,
        flags: c_uint,
        device: CUdevice,
    ) |call| {
        if count != 0 {
            return Err(Status::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(call, context, flags, device)
    }

    /// The same with parameters, which are not emulated.
    fn cuCtxCreate_v4(
        context: Out<Handle>,
        params: In<[usize; 3]>,
        flags: c_uint,
        device: CUdevice,
    ) |call| {
        // A pointer to affinities, their number, and a pointer to what graphics share.
        if !params.is_null() && params.read()? != [0; 3] {
            return Err(Status::NOT_SUPPORTED);
        }
        create(call, context, flags, device)
    }

    /// Ends a context that was made so.
    fn cuCtxDestroy_v2(context: Handle) |call| {
        let machine = call.machine()?;
        let context = machine.contexts.get(context).map_err(|_| Status::INVALID_CONTEXT)?;
        let primary = context.device().primary().context.as_ref().map(Arc::as_ptr);
        if primary == Some(Arc::as_ptr(&context)) {
            let text = format_args!("a primary context is released, not destroyed");
            return Err(call.refuse(Status::INVALID_VALUE, text));
        }
        context.end(machine);
        if current::context().is_some_and(|current| Arc::ptr_eq(&current, &context)) {
            current::pop();
        }
        Ok(())
    }

    /// Makes a context the top of the thread's stack.
    fn cuCtxSetCurrent(context: Handle) |call| {
        let machine = call.machine()?;
        if context == Handle::NULL {
            return current::set(None);
        }
        let context = machine.contexts.get(context).map_err(|_| Status::INVALID_CONTEXT)?;
        current::set(Some(context))
    }

    /// The top of the thread's stack.
    fn cuCtxGetCurrent(context: Out<Handle>) |call| {
        call.machine()?;
        context.put(current::context().map_or(Handle::NULL, |context| context.handle()))
    }

    /// Puts a context on the thread's stack.
    fn cuCtxPushCurrent_v2(context: Handle) |call| {
        let machine = call.machine()?;
        let context = machine.contexts.get(context).map_err(|_| Status::INVALID_CONTEXT)?;
        current::push(context)
    }

    /// Takes one off.
    fn cuCtxPopCurrent_v2(context: Out<Handle>) |call| {
        call.machine()?;
        let popped = current::pop().ok_or(Status::INVALID_CONTEXT)?;
        context.put_if_wanted(popped.handle());
        Ok(())
    }

    /// The device of the current context.
    fn cuCtxGetDevice(device: Out<CUdevice>) |call| {
        let context = call.current()?;
        device.put(ordinal(&context))
    }

    /// The device of a context.
    fn cuCtxGetDevice_v2(device: Out<CUdevice>, context: Handle) |call| {
        let context = given(call, context)?;
        device.put(ordinal(&context))
    }

    /// Its flags.
    fn cuCtxGetFlags(flags: Out<c_uint>) |call| {
        flags.put(call.current()?.flags())
    }

    /// How threads wait, which they do in one way here.
    fn cuCtxSetFlags(flags: c_uint) |call| {
        let context = call.context()?;
        check_flags(flags)?;
        context.set_flags(flags);
        Ok(())
    }

    /// A number for it.
    fn cuCtxGetId(context: Handle, id: Out<u64>) |call| {
        id.put(given(call, context)?.handle().0 as u64)
    }

    /// The version of its interface.
    fn cuCtxGetApiVersion(context: Handle, version: Out<c_uint>) |call| {
        given(call, context)?;
        version.put(API_VERSION)
    }

    /// Waits for all its streams.
    fn cuCtxSynchronize() |call| {
        call.context()?.synchronise()
    }

    /// Waits for all streams of a context.
    fn cuCtxSynchronize_v2(context: Handle) |call| {
        given(call, context)?.synchronise()
    }

    /// A limit for kernels.
    fn cuCtxGetLimit(value: Out<usize>, limit: c_uint) |call| {
        value.put(call.context()?.limit(limit)?)
    }

    /// Sets one.
    fn cuCtxSetLimit(limit: c_uint, value: usize) |call| {
        call.context()?.set_limit(limit, value)
    }

    /// Whether the cache is preferred to shared memory: no preference.
    fn cuCtxGetCacheConfig(config: Out<c_uint>) |call| {
        call.context()?;
        config.put(0)
    }

    /// A hint that changes nothing.
    fn cuCtxSetCacheConfig(config: c_uint) |call| {
        call.context()?;
        if config > 3 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// Priorities of streams.
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) |call| {
        call.context()?;
        least.put_if_wanted(PRIORITIES.0);
        greatest.put_if_wanted(PRIORITIES.1);
        Ok(())
    }
}

/// How to wait, host memory for kernels, and two that change nothing here.
fn check_flags(flags: c_uint) -> Result {
    if flags & !0x1f != 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(())
}

fn create(call: Call, place: Out<Handle>, flags: c_uint, device: CUdevice) -> Result {
    let device = call.device(device)?;
    check_flags(flags)?;
    place.wanted()?;
    let context = Context::open(call.machine()?, device, flags)?;
    place.put(context.handle())?;
    current::push(context)
}

/// A context by handle; null is the current one.
fn given(call: Call, context: Handle) -> Result<Arc<Context>> {
    if context == Handle::NULL {
        return call.current();
    }
    let machine = call.machine()?;
    machine
        .contexts
        .get(context)
        .map_err(|_| Status::INVALID_CONTEXT)
}

fn ordinal(context: &Context) -> CUdevice {
    CUdevice::try_from(context.device().ordinal()).unwrap_or(CUdevice::MAX)
}
