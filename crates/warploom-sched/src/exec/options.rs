//! How a plan is run.

use std::time::Duration;

use warploom_core::CancelToken;

/// How a plan is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOptions {
    /// How many records there are; `None` lets the sources say.
    pub records: Option<u64>,
    /// Records of a full batch.
    pub batch: u64,
    /// The longest that nothing may happen; then the run is given up. A host stage on the driver's own
    /// thread is not watched.
    pub patience: Duration,
    /// Is every use of a slot checked against all before it?
    pub check_races: bool,
    /// Is every command kept?
    pub log: bool,
    /// Is it measured where the time goes? It costs two more events for each turn on a queue.
    pub is_metered: bool,
    /// What calls the run off.
    pub cancel: Option<CancelToken>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            records: None,
            batch: 1,
            patience: Duration::from_mins(1),
            check_races: cfg!(debug_assertions),
            log: false,
            is_metered: false,
            cancel: None,
        }
    }
}

impl RunOptions {
    /// This many records, in batches of so many.
    pub fn of(records: u64, batch: u64) -> Self {
        Self {
            records: Some(records),
            batch,
            ..Self::default()
        }
    }

    /// The same, giving up when nothing happens for this long.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same with or without the race detector.
    #[must_use]
    pub fn with_race_check(self, check_races: bool) -> Self {
        Self {
            check_races,
            ..self
        }
    }

    /// The same, keeping every command.
    #[must_use]
    pub fn with_log(self) -> Self {
        Self { log: true, ..self }
    }

    /// The same, measuring where the time of every thread and queue goes
    /// ([`Summary::usages`](super::Summary::usages)).
    #[must_use]
    pub fn metered(self) -> Self {
        Self {
            is_metered: true,
            ..self
        }
    }

    /// The same, called off by this token.
    #[must_use]
    pub fn cancelled_by(self, token: &CancelToken) -> Self {
        Self {
            cancel: Some(token.clone()),
            ..self
        }
    }
}
