//! How a job is run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use warploom_core::CancelToken;
use warploom_plan::Options;

use crate::course::Listener;

/// How a job is run.
#[derive(Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    /// What the compiler is told: devices, budget, depth.
    pub plan: Options,
    /// Units of a generation; small ones go several at a time if nothing is said.
    pub batch: Option<u64>,
    /// Leave out records that an earlier run has done.
    pub resume: bool,
    /// Go on with another device when one is lost, where the results are the same bits.
    pub failover: bool,
    /// The longest that nothing may happen.
    pub patience: Duration,
    /// The longest that a batch may take on one of several devices, whether or not it gets on.
    pub batch_limit: Option<Duration>,
    /// The longest to wait for a device that others use.
    pub lease: Duration,
    /// Where it is kept how many records at once devices have room for, if anywhere: what a run found out, those after
    /// it begin with.
    pub ceilings: Option<PathBuf>,
    /// The most threads that read images before their turn, beside the one that reads; if nothing is said,
    /// those that the machine has cores for, up to four.
    pub readers: Option<usize>,
    /// Look at every use of every slot.
    pub check_races: bool,
    /// Keep what happened when, for a trace or a report.
    pub record: bool,
    /// What calls it off: what is begun is finished.
    pub cancel: CancelToken,
    /// What ends workers on several devices at once, whatever they have begun.
    pub stop: CancelToken,
    /// Who wants to know how it goes on.
    pub listener: Listener,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("plan", &self.plan)
            .field("batch", &self.batch)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan: Options::default(),
            batch: None,
            resume: false,
            failover: true,
            patience: Duration::from_mins(10),
            batch_limit: None,
            lease: Duration::from_hours(24),
            ceilings: None,
            readers: None,
            check_races: cfg!(debug_assertions),
            record: false,
            cancel: CancelToken::new(),
            stop: CancelToken::new(),
            listener: Arc::new(|_| {}),
        }
    }
}
