//! Markers in queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, Event, Result};

use crate::cl;
use crate::device::Opened;

/// The longest sleep between two looks at an event whose driver should have called back. A driver
/// that forgets to must not hang anybody.
const LOOK: Duration = Duration::from_millis(20);

/// A marker.
#[derive(Debug)]
pub(crate) struct OpenClEvent {
    opened: Arc<Opened>,
    event: cl::Event,
    reached: AtomicBool,
    /// Raised by the driver; made by the first wait with a deadline. `None` inside when the driver
    /// would not promise to call back.
    signal: OnceLock<Option<Arc<cl::Signal>>>,
}

impl OpenClEvent {
    pub(crate) fn new(opened: Arc<Opened>, event: cl::Event) -> Self {
        Self {
            opened,
            event,
            reached: AtomicBool::new(false),
            signal: OnceLock::new(),
        }
    }

    /// The marker, if it can be waited for by queues of `opened`.
    pub(crate) fn of<'e>(event: &'e dyn Event, opened: &Arc<Opened>) -> Option<&'e cl::Event> {
        let event = (event as &dyn std::any::Any).downcast_ref::<Self>()?;
        Arc::ptr_eq(&event.opened, opened).then_some(&event.event)
    }

    fn timeout(&self, waited: Duration) -> DeviceError {
        DeviceError::Timeout {
            device: self.opened.id,
            waited,
        }
    }

    fn signal(&self) -> Option<&Arc<cl::Signal>> {
        let signal = self.signal.get_or_init(|| {
            let signal = Arc::default();
            self.event.notify(&signal).ok().map(|()| signal)
        });
        signal.as_ref()
    }

    fn wait_until(&self, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        let mut nap = Duration::from_micros(50);
        while !self.is_done()? {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(self.timeout(timeout));
            }
            match self.signal() {
                Some(signal) if signal.wait(left.min(LOOK)) => {
                    if !self.is_done()? {
                        // Drivers may call back a moment before the status says the same.
                        std::thread::yield_now();
                    }
                }
                Some(_) => {}
                None => {
                    std::thread::sleep(left.min(nap));
                    nap = (nap * 2).min(LOOK);
                }
            }
        }
        Ok(())
    }
}

impl Event for OpenClEvent {
    fn is_done(&self) -> Result<bool> {
        if self.reached.load(Ordering::Acquire) {
            return Ok(true);
        }
        let done = self.event.is_done().and_then(|done| {
            if done {
                // Looking at the status does not make the work's bytes visible to anybody; the
                // specification wants a wait, which here returns at once.
                self.event.wait()?;
                self.reached.store(true, Ordering::Release);
            }
            Ok(done)
        });
        done.map_err(|failure| failure.on(self.opened.id))
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        match timeout {
            Some(timeout) => self.wait_until(timeout),
            None if self.reached.load(Ordering::Acquire) => Ok(()),
            None => {
                let waited = self.event.wait();
                waited.map_err(|failure| failure.on(self.opened.id))?;
                self.reached.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    fn at(&self) -> Option<Duration> {
        self.event.ended()
    }
}

#[cfg(test)]
impl OpenClEvent {
    /// Ends an event made by hand.
    pub(crate) fn end(&self, status: i32) {
        self.event.end(status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a busy machine, short enough to notice a hang.
    const SOON: Option<Duration> = Some(Duration::from_mins(1));
    const BRIEF: Option<Duration> = Some(Duration::from_millis(30));

    fn by_hand() -> Option<OpenClEvent> {
        let opened = Opened::first()?;
        let event = cl::Event::by_hand(&opened.context);
        Some(OpenClEvent::new(opened, event))
    }

    #[test]
    fn failure_is_told_and_told_again() {
        let Some(event) = by_hand() else { return };
        assert!(!event.is_done().unwrap());
        event.end(-5);
        for _ in 0..2 {
            let text = "queued work failed on opencl:0: CL_OUT_OF_RESOURCES (-5)";
            assert_eq!(event.is_done().unwrap_err().to_string(), text);
            assert_eq!(event.wait(None).unwrap_err().to_string(), text);
            assert_eq!(event.wait(SOON).unwrap_err().to_string(), text);
        }
        assert_eq!(event.at(), None);
    }

    #[test]
    fn a_device_that_goes_away_is_lost() {
        let Some(event) = by_hand() else { return };
        event.end(-2);
        let error = event.wait(SOON).unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
    }

    #[test]
    fn a_waiter_is_woken_by_success_and_by_failure() {
        for status in [0, -5] {
            let Some(event) = by_hand() else { return };
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| event.wait(SOON));
                // Let it fall asleep, so that the callback is what wakes it.
                std::thread::sleep(Duration::from_millis(50));
                event.end(status);
                assert_eq!(waiter.join().unwrap().is_ok(), status == 0);
            });
        }
    }

    #[test]
    fn a_driver_that_does_not_call_back_is_watched() {
        let Some(event) = by_hand() else { return };
        event.signal.set(None).unwrap();
        assert!(event.wait(BRIEF).is_err());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| event.wait(SOON));
            std::thread::sleep(Duration::from_millis(50));
            event.end(0);
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_driver_that_forgets_to_call_back_is_watched() {
        let Some(event) = by_hand() else { return };
        // A signal nobody will ever raise.
        event.signal.set(Some(Arc::default())).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| event.wait(SOON));
            std::thread::sleep(Duration::from_millis(50));
            event.end(0);
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn waiting_many_times_registers_once() {
        let Some(event) = by_hand() else { return };
        for _ in 0..3 {
            assert!(event.wait(Some(Duration::from_millis(1))).is_err());
        }
        let signal = Arc::clone(event.signal().unwrap());
        assert_eq!(
            Arc::strong_count(&signal),
            3,
            "ours, the event's, the driver's"
        );
        event.end(0);
        event.wait(SOON).unwrap();
        assert!(signal.wait(Duration::from_mins(1)));
        drop(event);
        // The driver's thread gives its handle back a moment after raising the signal.
        while Arc::strong_count(&signal) > 1 {
            std::thread::yield_now();
        }
    }
}
