//! Streams, and host functions in them.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::attributes::PRIORITIES;
use crate::driver::call::{Call, calls};
use crate::driver::current;
use crate::driver::ffi::{CUdevice, Handle, HostFn, Out, StreamCallback};
use crate::driver::lane::{Job, Kind};
use crate::driver::status::{Result, Status};
use crate::driver::stream::{NON_BLOCKING, Stream};

calls! {
    /// A stream.
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) |call| {
        create(call, stream, flags, 0)
    }

    /// A stream with a priority, which is remembered and changes nothing.
    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) |call| {
        create(call, stream, flags, priority.clamp(PRIORITIES.1, PRIORITIES.0))
    }

    /// Ends a stream when its work is done.
    fn cuStreamDestroy_v2(stream: Handle) |call| {
        let stream = call.machine()?.streams.remove(stream)?;
        stream.context().check()
    }

    /// Waits for its work.
    fn cuStreamSynchronize(stream: Handle) also cuStreamSynchronize_ptsz |call| {
        call.any_stream(stream)?.synchronise()
    }

    /// Whether its work is done.
    fn cuStreamQuery(stream: Handle) also cuStreamQuery_ptsz |call| {
        if !call.stream(stream)?.is_idle() {
            return Err(Status::NOT_READY);
        }
        Ok(())
    }

    /// Makes it wait for what an event marks now.
    fn cuStreamWaitEvent(
        stream: Handle, event: Handle, flags: c_uint
    ) also cuStreamWaitEvent_ptsz |call| {
        let stream = call.stream(stream)?;
        // The one flag matters to captures only.
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        let event = call.machine()?.events.get(event)?;
        event.context().check()?;
        event.hold(&stream);
        Ok(())
    }

    /// Calls a function of the host, unless the context has failed by then.
    fn cuLaunchHostFunc(
        stream: Handle, function: Option<HostFn>, data: *mut c_void
    ) also cuLaunchHostFunc_ptsz |call| {
        let stream = call.stream(stream)?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        let data = data.expose_provenance();
        stream.submit(Job::Work(Box::new(move || {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: the caller vouches that the function can be called with this from a thread of
            // the driver's.
            current::callback(|| unsafe { function(data) });
            Ok(())
        })));
        Ok(())
    }

    /// Calls a function of the host in any case, and tells it how the context is.
    fn cuStreamAddCallback(
        stream: Handle, function: Option<StreamCallback>, data: *mut c_void, flags: c_uint
    ) also cuStreamAddCallback_ptsz |call| {
        let found = call.stream(stream)?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let data = data.expose_provenance();
        found.submit(Job::Always(Box::new(move |status| {
            let data = std::ptr::with_exposed_provenance_mut(data);
            // SAFETY: as above; the stream is told as it was given.
            current::callback(|| unsafe { function(stream, status.code(), data) });
        })));
        Ok(())
    }

    /// Its flags.
    fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) also cuStreamGetFlags_ptsz |call| {
        flags.put(call.stream(stream)?.flags())
    }

    /// Its priority.
    fn cuStreamGetPriority(
        stream: Handle, priority: Out<c_int>
    ) also cuStreamGetPriority_ptsz |call| {
        priority.put(call.stream(stream)?.priority())
    }

    /// Its context.
    fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) also cuStreamGetCtx_ptsz |call| {
        context.put(call.stream(stream)?.context().handle())
    }

    /// Its device.
    fn cuStreamGetDevice(stream: Handle, device: Out<CUdevice>) also cuStreamGetDevice_ptsz |call| {
        let ordinal = call.stream(stream)?.context().device().ordinal();
        device.put(CUdevice::try_from(ordinal).unwrap_or(CUdevice::MAX))
    }

    /// A number for it.
    fn cuStreamGetId(stream: Handle, id: Out<u64>) also cuStreamGetId_ptsz |call| {
        id.put(call.stream(stream)?.handle().0 as u64)
    }

    /// Whether its work is captured instead of done: it never is.
    fn cuStreamIsCapturing(
        stream: Handle, status: Out<c_uint>
    ) also cuStreamIsCapturing_ptsz |call| {
        call.stream(stream)?;
        status.put(0)
    }
}

fn create(call: Call, place: Out<Handle>, flags: c_uint, priority: c_int) -> Result {
    let context = call.context()?;
    place.wanted()?;
    let kind = match flags {
        0 => Kind::Blocking,
        NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(Status::INVALID_VALUE),
    };
    let stream = Stream::new(&context, kind, priority);
    call.machine()?.streams.insert(stream.handle(), &stream);
    place.put(stream.handle())
}
