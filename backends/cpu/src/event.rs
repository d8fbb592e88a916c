//! Events: an outcome that arrives once.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, DeviceId, Event, Result};

use crate::monitor::Monitor;

/// A point in a queue.
#[derive(Debug)]
pub(crate) struct CpuEvent {
    device: DeviceId,
    /// When it was reached, or why it never will be.
    outcome: Monitor<Option<Result<Duration>>>,
}

impl CpuEvent {
    /// A point that is not reached yet.
    pub(crate) fn ahead(device: DeviceId) -> Self {
        let outcome = Monitor::new(None);
        Self { device, outcome }
    }

    /// A point of which the outcome is known.
    pub(crate) fn over(device: DeviceId, outcome: Result<Duration>) -> Self {
        let outcome = Monitor::new(Some(outcome));
        Self { device, outcome }
    }

    /// One of ours, seen through the contract.
    pub(crate) fn of(event: &Arc<dyn Event>) -> Option<Arc<Self>> {
        let any: Arc<dyn Any + Send + Sync> = Arc::<dyn Event>::clone(event);
        any.downcast().ok()
    }

    /// Tells everyone who waits.
    pub(crate) fn finish(&self, outcome: Result<Duration>) {
        self.outcome.change(|known| *known = Some(outcome));
    }

    fn known(known: &mut Option<Result<Duration>>) -> Option<Result<()>> {
        known.as_ref().map(|outcome| match outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        })
    }
}

impl Event for CpuEvent {
    fn is_done(&self) -> Result<bool> {
        match self.outcome.with(Self::known) {
            Some(outcome) => outcome.map(|()| true),
            None => Ok(false),
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        // A moment too far ahead to be named will not come either.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (Some(waited), Some(deadline)) = (timeout, deadline) else {
            return self.outcome.wait(Self::known);
        };
        let device = self.device;
        self.outcome
            .wait_until(deadline, Self::known)
            .unwrap_or(Err(DeviceError::Timeout { device, waited }))
    }

    fn at(&self) -> Option<Duration> {
        self.outcome
            .with(|known| known.as_ref().and_then(|outcome| outcome.clone().ok()))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::ID;

    const DEVICE: DeviceId = DeviceId::new(ID, 0);
    const AT: Duration = Duration::from_millis(5);

    #[test]
    fn an_event_is_ahead_then_reached() {
        let event = CpuEvent::ahead(DEVICE);
        assert_eq!((event.is_done(), event.at()), (Ok(false), None));
        event.finish(Ok(AT));
        assert_eq!((event.is_done(), event.at()), (Ok(true), Some(AT)));
        assert_eq!(event.wait(None), Ok(()));
        assert_eq!(event.wait(Some(Duration::ZERO)), Ok(()));
    }

    #[test]
    fn a_timeout_says_how_long_and_the_event_lives_on() {
        let event = CpuEvent::ahead(DEVICE);
        let (device, waited) = (DEVICE, Duration::from_millis(20));
        let start = Instant::now();
        let late = Err(DeviceError::Timeout { device, waited });
        assert_eq!(event.wait(Some(waited)), late);
        assert!(start.elapsed() >= waited);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(event.wait(Some(Duration::MAX)), Ok(())));
            event.finish(Ok(AT));
        });
    }

    #[test]
    fn a_failure_stays() {
        let error = DeviceError::lost(DEVICE, "a test", "on purpose");
        let event = CpuEvent::over(DEVICE, Err(error.clone()));
        for _ in 0..2 {
            assert_eq!(event.is_done(), Err(error.clone()));
            assert_eq!(event.wait(None), Err(error.clone()));
            assert_eq!(event.at(), None);
        }
    }
}
