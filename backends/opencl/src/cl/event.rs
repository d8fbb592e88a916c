//! Points in queues.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use opencl3::error_codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
use opencl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END, get_event_info,
    get_event_profiling_info, release_event, set_event_callback, wait_for_events,
};
use opencl3::types::{cl_event, cl_int};

use super::owner;
use crate::error::{Driven, Failure, during};

owner! {
    /// The end of a command.
    Event(cl_event), release_event
}

impl Event {
    /// Is the command done? A failed command is an error, now and for ever.
    pub(crate) fn is_done(&self) -> Driven<bool> {
        let status = get_event_info(self.0, CL_EVENT_COMMAND_EXECUTION_STATUS)
            .map_err(during("clGetEventInfo"))?;
        match status.to_int() {
            CL_COMPLETE => Ok(true),
            code if code < 0 => Err(Failure {
                call: "queued work",
                code,
            }),
            _ => Ok(false),
        }
    }

    /// Blocks until the command is done.
    pub(crate) fn wait(&self) -> Driven<()> {
        match wait_for_events(&[self.0]) {
            Ok(()) => Ok(()),
            // This code only says that the event has one of its own.
            Err(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) => match self.is_done() {
                Err(failure) => Err(failure),
                Ok(_) => Err(during("clWaitForEvents")(
                    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                )),
            },
            Err(code) => Err(during("clWaitForEvents")(code)),
        }
    }

    /// When the command ended, on the device's clock.
    pub(crate) fn ended(&self) -> Option<Duration> {
        let at = get_event_profiling_info(self.0, CL_PROFILING_COMMAND_END).ok()?;
        Some(Duration::from_nanos(at.to_ulong()))
    }

    /// Raises `signal` when the command is done or has failed.
    pub(crate) fn notify(&self, signal: &Arc<Signal>) -> Driven<()> {
        let data = Arc::into_raw(Arc::clone(signal));
        set_event_callback(self.0, CL_COMPLETE, raise, data.cast_mut().cast()).map_err(|code| {
            // SAFETY: `data` is from `into_raw` above, and a callback that was refused is never
            // called, so this takes the handle back once.
            drop(unsafe { Arc::from_raw(data) });
            during("clSetEventCallback")(code)
        })
    }
}

/// Events that tests bring about by hand, to see failures that no driver here produces.
#[cfg(test)]
impl Event {
    pub(crate) fn by_hand(context: &super::Context) -> Self {
        Self(opencl3::event::create_user_event(context.0).expect("a user event"))
    }

    /// Ends the event: 0 is success, a negative code a failure.
    pub(crate) fn end(&self, status: cl_int) {
        opencl3::event::set_user_event_status(self.0, status).expect("the first and only status");
    }
}

/// What the driver calls, once per registration, before it destroys the event.
extern "C" fn raise(_event: cl_event, _status: cl_int, data: *mut c_void) {
    // SAFETY: `data` is from `Arc::<Signal>::into_raw` in `notify`, and the driver calls back once.
    let signal = unsafe { Arc::from_raw(data.cast_const().cast::<Signal>()) };
    signal.raise();
}

/// A flag one can wait for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for the flag, at most `time`; says whether it is raised.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let (raised, _) = self
            .changed
            .wait_timeout_while(raised, time, |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        *raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_raises_the_signal_and_gives_its_handle_back() {
        let signal = Arc::new(Signal::default());
        assert!(!signal.wait(Duration::from_millis(1)));
        let data = Arc::into_raw(Arc::clone(&signal));
        assert_eq!(Arc::strong_count(&signal), 2);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Duration::from_mins(1)));
            raise(std::ptr::null_mut(), 0, data.cast_mut().cast());
            assert!(waiter.join().unwrap());
        });
        assert_eq!(Arc::strong_count(&signal), 1);
    }
}
