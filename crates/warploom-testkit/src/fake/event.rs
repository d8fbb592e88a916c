//! Points in a fake queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, Event, Result};

use super::device::Shared;
use super::fault::Call;
use super::flaw::Flaw;

/// A point in a fake queue.
#[derive(Debug)]
pub(crate) struct FakeEvent {
    shared: Arc<Shared>,
    reached: Mutex<Option<Result<Duration>>>,
    changed: Condvar,
    /// Did anyone wait for it, in time or in vain? Only flawed fakes look.
    waited: AtomicBool,
    gave_up: AtomicBool,
}

impl FakeEvent {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            reached: Mutex::new(None),
            changed: Condvar::new(),
            waited: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
        }
    }

    fn reached(&self) -> MutexGuard<'_, Option<Result<Duration>>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue is there, with what became of the work before it.
    pub(crate) fn reach(&self, outcome: Result<()>) {
        let outcome = match outcome {
            Err(_) if self.shared.has(Flaw::FailuresForgotten) => Ok(()),
            other => other,
        };
        let mut reached = self.reached();
        // The first word stands: what failed stays failed.
        reached.get_or_insert(outcome.map(|()| self.shared.now()));
        self.changed.notify_all();
    }

    /// Waits as the device would, without being counted as a call.
    pub(crate) fn settle(&self, timeout: Option<Duration>) -> Result<()> {
        let begun = Instant::now();
        let mut reached = self.reached();
        loop {
            if let Some(outcome) = &*reached {
                return outcome.clone().map(|_| ());
            }
            reached = match timeout {
                None => self
                    .changed
                    .wait(reached)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let Some(left) = timeout.checked_sub(begun.elapsed()) else {
                        return Err(DeviceError::Timeout {
                            device: self.shared.id(),
                            waited: timeout,
                        });
                    };
                    let (reached, _) = self
                        .changed
                        .wait_timeout(reached, left)
                        .unwrap_or_else(PoisonError::into_inner);
                    reached
                }
            };
        }
    }
}

impl Event for FakeEvent {
    fn is_done(&self) -> Result<bool> {
        if self.shared.has(Flaw::EventsAsleep) && !self.waited.load(Ordering::SeqCst) {
            return Ok(false);
        }
        match &*self.reached() {
            None => Ok(false),
            Some(outcome) => outcome.clone().map(|_| true),
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.shared.card.enter(Call::EventWait)?;
        self.waited.store(true, Ordering::SeqCst);
        let timeout = timeout.filter(|_| !self.shared.has(Flaw::TimeoutDeaf));
        if self.gave_up.load(Ordering::SeqCst) && self.shared.has(Flaw::TimeoutFinal) {
            let (device, waited) = (self.shared.id(), timeout.unwrap_or_default());
            return Err(DeviceError::Timeout { device, waited });
        }
        let outcome = self.settle(timeout);
        let gave_up = matches!(outcome, Err(DeviceError::Timeout { .. }));
        self.gave_up.fetch_or(gave_up, Ordering::SeqCst);
        outcome
    }

    fn at(&self) -> Option<Duration> {
        // Far enough from zero to run backwards from.
        const NOON: Duration = Duration::from_hours(12);
        let reached = match &*self.reached() {
            Some(Ok(at)) => Some(*at),
            _ => None,
        };
        if self.shared.has(Flaw::ClockBackwards) {
            return reached.map(|at| NOON.saturating_sub(at));
        }
        if self.shared.has(Flaw::ClockUnit) {
            return reached.map(|at| at / 1000);
        }
        if self.shared.has(Flaw::ClockEarly) {
            return Some(reached.unwrap_or_else(|| self.shared.now()));
        }
        reached.filter(|_| !self.shared.has(Flaw::ClockSilent))
    }
}
