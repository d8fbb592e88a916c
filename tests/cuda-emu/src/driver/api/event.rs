//! Events.

use std::ffi::c_uint;

use crate::driver::call::{Call, calls};
use crate::driver::event::{DISABLE_TIMING, Event};
use crate::driver::ffi::{Handle, Out};
use crate::driver::status::{Result, Status};

/// The flag of events for other processes.
const INTERPROCESS: c_uint = 4;

calls! {
    /// An event, reached until it is recorded.
    fn cuEventCreate(event: Out<Handle>, flags: c_uint) |call| {
        let context = call.context()?;
        event.wanted()?;
        if flags > 7 || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            let text = format_args!("events for other processes");
            return Err(call.refuse(Status::NOT_SUPPORTED, text));
        }
        let made = Event::new(&context, flags);
        call.machine()?.events.insert(made.handle(), &made);
        event.put(made.handle())
    }

    /// Ends an event; who waits for it still does.
    fn cuEventDestroy_v2(event: Handle) |call| {
        let event = call.machine()?.events.remove(event)?;
        event.context().check()
    }

    /// Marks what a stream has so far.
    fn cuEventRecord(event: Handle, stream: Handle) also cuEventRecord_ptsz |call| {
        record(call, event, stream)
    }

    /// The same; the one flag matters to captures only.
    fn cuEventRecordWithFlags(
        event: Handle, stream: Handle, flags: c_uint
    ) also cuEventRecordWithFlags_ptsz |call| {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        record(call, event, stream)
    }

    /// Whether what it marks is done.
    fn cuEventQuery(event: Handle) |call| {
        let event = call.machine()?.events.get(event)?;
        event.context().check()?;
        if !event.is_reached() {
            return Err(Status::NOT_READY);
        }
        // What ended it may have failed meanwhile.
        event.context().check()
    }

    /// Waits for what it marks.
    fn cuEventSynchronize(event: Handle) |call| {
        let event = call.machine()?.events.get(event)?;
        event.wait();
        event.context().settle();
        event.context().check()
    }

    /// Milliseconds between two events.
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) |call| {
        elapsed(call, milliseconds, start, end)
    }

    /// The same.
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) |call| {
        elapsed(call, milliseconds, start, end)
    }
}

fn record(call: Call, event: Handle, stream: Handle) -> Result {
    let event = call.machine()?.events.get(event)?;
    event.record(&*call.stream(stream)?)
}

fn elapsed(call: Call, place: Out<f32>, start: Handle, end: Handle) -> Result {
    let events = &call.machine()?.events;
    let (start, end) = (events.get(start)?, events.get(end)?);
    end.context().check()?;
    place.put(end.since(&start)?)
}
