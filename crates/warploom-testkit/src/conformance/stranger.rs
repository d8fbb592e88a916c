//! Things of another backend.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use warploom_core::{Device, DeviceError, Event, GpuBackend, Result};

use crate::case::Verdict;
use crate::fake::{FakeBackend, FakeDevice};

/// An event no backend knows, reached when told.
#[derive(Debug, Default)]
pub(crate) struct HostEvent {
    reached: Mutex<bool>,
    changed: Condvar,
}

impl HostEvent {
    pub(crate) fn reach(&self) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Event for HostEvent {
    fn is_done(&self) -> Result<bool> {
        Ok(*self.reached.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a limit the case's own is near enough to for ever.
        let waited = timeout.unwrap_or(Duration::from_mins(10));
        let (reached, _) = self
            .changed
            .wait_timeout_while(reached, waited, |reached| !*reached)
            .unwrap_or_else(PoisonError::into_inner);
        if *reached {
            return Ok(());
        }
        let device = warploom_core::DeviceId::new(warploom_core::BackendId::new("stranger"), 0);
        Err(DeviceError::Timeout { device, waited })
    }

    fn at(&self) -> Option<Duration> {
        None
    }
}

/// A device of another backend.
pub(crate) fn stranger() -> Verdict<Arc<dyn Device>> {
    let fakes = FakeBackend::new("stranger").device(FakeDevice::new("a stranger").at_once());
    Ok(fakes.open(0)?)
}
