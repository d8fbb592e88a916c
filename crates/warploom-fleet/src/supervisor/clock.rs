//! Time as far as the supervisor was listening.

use std::time::{Duration, Instant};

use crate::policy::Moment;

/// Waits this much longer than planned are the machine's doing, not the workers'.
const LATE: Duration = Duration::from_secs(1);

/// Time since the run began, without the stretches in which nobody listened to workers: whoever could not be
/// heard has not been silent.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    deaf: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            deaf: Duration::ZERO,
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.start.elapsed().saturating_sub(self.deaf)
    }

    /// Does something during which nobody listens.
    pub(super) fn deafly<T>(&mut self, action: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = action();
        self.deaf += begun.elapsed();
        result
    }

    /// A wait that was to last so long at most began at `begun` and is over.
    pub(super) fn waited(&mut self, begun: Instant, planned: Option<Duration>) {
        if let Some(planned) = planned {
            let late = begun.elapsed().saturating_sub(planned);
            if late > LATE {
                self.deaf += late;
            }
        }
    }
}
