//! How a waiting thread is woken: by whoever grants, releases or cancels.

use std::time::Instant;

use super::sync::{Condvar, Mutex, lock};

/// A bell for one waiting thread. Ringing before the wait is not lost: the next wait returns at
/// once.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    rung: Mutex<bool>,
    bell: Condvar,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Somebody rang.
    Rung,
    /// The time is over and nobody rang.
    Expired,
}

impl Signal {
    /// Wakes the waiting thread, or the next one to wait.
    pub(crate) fn ring(&self) {
        *lock(&self.rung) = true;
        self.bell.notify_one();
    }

    /// Sleeps until somebody rings or the clock reaches `until`, never less.
    #[cfg(not(warploom_shuttle))]
    pub(crate) fn wait(&self, until: Option<Instant>) -> Woken {
        use std::sync::PoisonError;
        let mut rung = lock(&self.rung);
        while !*rung {
            rung = if let Some(until) = until {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Woken::Expired;
                }
                self.bell
                    .wait_timeout(rung, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            } else {
                self.bell.wait(rung).unwrap_or_else(PoisonError::into_inner)
            };
        }
        *rung = false;
        Woken::Rung
    }

    /// Shuttle has no clock, so a deadline may strike at any moment: a coin decides whether this
    /// wait is one that expires. That is harsher than any clock.
    #[cfg(warploom_shuttle)]
    pub(crate) fn wait(&self, until: Option<Instant>) -> Woken {
        use shuttle::rand::Rng as _;
        let mut rung = lock(&self.rung);
        if until.is_some() && shuttle::rand::thread_rng().gen_bool(0.5) {
            drop(rung);
            shuttle::thread::yield_now();
            rung = lock(&self.rung);
            if !*rung {
                return Woken::Expired;
            }
        }
        while !*rung {
            rung = self
                .bell
                .wait(rung)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *rung = false;
        Woken::Rung
    }
}

#[cfg(all(test, not(warploom_shuttle)))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_kept_once() {
        let signal = Signal::default();
        signal.ring();
        signal.ring();
        assert_eq!(signal.wait(None), Woken::Rung);
        let start = Instant::now();
        let until = start + Duration::from_millis(20);
        assert_eq!(signal.wait(Some(until)), Woken::Expired);
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}
