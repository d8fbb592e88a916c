//! A value that threads wait on: a mutex, a condition variable, and a count of who is waiting.
//!
//! Waking costs a system call even when nobody sleeps, and almost always nobody does. The count
//! saves it. Everything in this crate that blocks, blocks here.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A value behind a lock, with waiting.
#[derive(Debug, Default)]
pub(crate) struct Monitor<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State<T> {
    value: T,
    waiting: usize,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State { value, waiting: 0 }),
            changed: Condvar::new(),
        }
    }

    // No closure given to a monitor of this crate can leave its value half changed, so a panic in
    // one (only an allocation could cause it) poisons nothing.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the value, or changes it in a way nobody waits for.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.lock().value)
    }

    /// Changes the value and lets every waiter look again.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state.value);
        let waiting = state.waiting > 0;
        // A waiter that wakes while the lock is held would go straight back to sleep.
        drop(state);
        if waiting {
            self.changed.notify_all();
        }
        result
    }

    /// Blocks until `ready` gives something.
    pub(crate) fn wait<R>(&self, mut ready: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut state = self.lock();
        loop {
            if let Some(result) = ready(&mut state.value) {
                return result;
            }
            state.waiting += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Blocks until `ready` gives something, or until `deadline` has passed; it is asked at least
    /// once.
    pub(crate) fn wait_until<R>(
        &self,
        deadline: Instant,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let mut state = self.lock();
        loop {
            if let Some(result) = ready(&mut state.value) {
                return Some(result);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state.waiting += 1;
            (state, _) = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_waiter_sees_a_change() {
        let monitor = Monitor::new(0_u32);
        thread::scope(|scope| {
            let waiters: Vec<_> = (1..=4)
                .map(|goal| {
                    let monitor = &monitor;
                    scope.spawn(move || monitor.wait(|n| (*n >= goal).then_some(*n)))
                })
                .collect();
            for _ in 0..4 {
                monitor.change(|n| *n += 1);
            }
            for (waiter, goal) in waiters.into_iter().zip(1..) {
                assert!(waiter.join().unwrap() >= goal);
            }
        });
        assert_eq!(monitor.lock().waiting, 0);
    }

    #[test]
    fn a_deadline_ends_a_wait_and_not_before() {
        let monitor = Monitor::new(false);
        let start = Instant::now();
        let deadline = start + Duration::from_millis(30);
        assert_eq!(monitor.wait_until(deadline, |v| v.then_some(())), None);
        assert!(start.elapsed() >= Duration::from_millis(30));
        monitor.change(|v| *v = true);
        // The deadline is over, but the value is asked once all the same.
        assert_eq!(monitor.wait_until(deadline, |v| v.then_some(())), Some(()));
    }
}
