//! Points in a simulated queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, Event, Result};

use super::engine::{Stepped, World};
use crate::fake::Call;

/// A point in a queue, and when it was reached.
#[derive(Debug, Default)]
pub(super) struct Point(Mutex<Option<Result<u64>>>);

impl Point {
    pub(super) fn reach(&self, outcome: Result<u64>) {
        let mut reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reached.get_or_insert(outcome);
    }

    pub(super) fn reached(&self) -> Option<Result<u64>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[derive(Debug)]
pub(super) struct SimEvent {
    pub(super) world: Arc<World>,
    pub(super) point: Arc<Point>,
}

impl Event for SimEvent {
    fn is_done(&self) -> Result<bool> {
        if self.world.is_free_running && self.point.reached().is_none() {
            self.world.step();
        }
        match self.point.reached() {
            None => Ok(false),
            Some(outcome) => outcome.map(|_| true),
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.world.card.enter(Call::EventWait)?;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let begun = self.world.state().now;
        let real = Instant::now();
        let deadline = timeout.map(|timeout| begun.saturating_add(nanos(timeout)));
        let late = |waited| DeviceError::Timeout {
            device: self.world.card.info.id,
            waited,
        };
        loop {
            if let Some(outcome) = self.point.reached() {
                return outcome.map(|_| ());
            }
            let mut state = self.world.state();
            let is_over = |deadline: u64| {
                let next = state.next_end();
                !state.can_begin() && next.is_some_and(|next| next > deadline)
            };
            if let (Some(deadline), Some(timeout)) = (deadline, timeout)
                && is_over(deadline)
            {
                state.now = deadline;
                return Err(late(timeout));
            }
            drop(state);
            if self.world.step() != Stepped::Stuck {
                continue;
            }
            // Nothing can happen unless another thread makes it.
            let mut state = self.world.state();
            if let (Some(deadline), Some(timeout)) = (deadline, timeout)
                && (!self.world.is_free_running || real.elapsed() >= timeout)
            {
                state.now = state.now.max(deadline);
                return Err(late(timeout));
            }
            self.world.sleep(state, Duration::from_millis(1));
        }
    }

    fn at(&self) -> Option<Duration> {
        self.point.reached()?.ok().map(Duration::from_nanos)
    }
}
