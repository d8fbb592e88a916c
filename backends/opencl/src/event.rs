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
                    // Drivers may call back a moment before the status says the same.
                    std::thread::yield_now();
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
