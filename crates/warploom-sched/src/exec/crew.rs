//! Who does the host's part: threads, and the waiting for devices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use warploom_core::{DeviceError, Event};

use super::error::{RunError, StageError};
use super::payload::{Fill, HostWork};
use super::pool::Pool;
use super::threads::DRIVER;
use super::turn::{Batch, HostTurn};
use crate::model::StageId;

/// A host stage to be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Which stage.
    pub stage: StageId,
    /// On which records.
    pub batch: Batch,
    /// Is it wanted when it ran?
    pub is_timed: bool,
}

/// An event that the host has to see.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The stage whose end it marks.
    pub stage: StageId,
    /// The number of its queue; events of one queue are reached in the order they are watched.
    pub queue: usize,
    /// Of which generation.
    pub generation: u64,
    /// The event.
    pub event: Arc<dyn Event>,
}

/// What became of something.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// A host stage has run.
    Ran(Result<Fill, StageError>),
    /// A host stage was not run, because it failed or ended before.
    Skipped,
    /// An event was reached.
    Seen(Result<(), DeviceError>),
}

/// News for the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// About which stage.
    pub stage: StageId,
    /// In which generation.
    pub generation: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// When a host stage began and ended, by the crew's own time, if its job asked for that.
    pub span: Option<(Duration, Duration)>,
}

/// A host stage with its payload, as a crew gets it.
pub struct Post {
    /// What the crew calls it.
    stage: StageId,
    /// What its plan calls it.
    own: StageId,
    thread: String,
    work: Box<dyn HostWork>,
    pool: Arc<Pool>,
    closed: bool,
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post")
            .field("stage", &self.stage)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl Post {
    pub(crate) fn new(
        stage: StageId,
        thread: String,
        work: Box<dyn HostWork>,
        pool: Arc<Pool>,
    ) -> Self {
        Self {
            stage,
            own: stage,
            thread,
            work,
            pool,
            closed: false,
        }
    }

    /// The same in a crew that works for several plans: by another number, on threads of this
    /// tenant's own.
    pub(crate) fn moved(self, stage: StageId, tenant: &str) -> Self {
        let thread = if self.thread == DRIVER {
            self.thread
        } else {
            format!("{tenant}: {}", self.thread)
        };
        Self {
            stage,
            thread,
            ..self
        }
    }

    /// Its stage, by the number under which it is started and told of.
    pub fn stage(&self) -> StageId {
        self.stage
    }

    /// The thread it is to run on.
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Runs the stage on a batch, holding its slots. After a failure, a panic or the end of a
    /// source it does not run again: what comes later would be out of order.
    pub fn perform(&mut self, batch: Batch) -> Outcome {
        if self.closed {
            return Outcome::Skipped;
        }
        let ran = self.attempt(batch);
        self.closed = !matches!(ran, Ok(Fill::Full));
        Outcome::Ran(ran)
    }

    fn attempt(&mut self, batch: Batch) -> Result<Fill, StageError> {
        let hold = self.pool.hold(self.own, batch.generation)?;
        let mut turn = HostTurn { hold: &hold, batch };
        let work = &mut self.work;
        // The payload is not run again after a panic, so nobody sees what it left half done.
        catch_unwind(AssertUnwindSafe(|| work.run(&mut turn)))
            .unwrap_or_else(|panic| Err(StageError::Panicked(panic_text(&*panic))))
    }
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").to_owned()
}

/// Whoever runs host stages and waits for events. [`Threads`](super::Threads) is the one for real
/// devices; a simulation brings its own, with its own time.
pub trait Crew {
    /// The time.
    fn now(&self) -> Duration;

    /// Takes over host stages, before any of them is started.
    fn adopt(&mut self, posts: Vec<Post>) -> Result<(), RunError>;

    /// Runs a host stage. Stages of one thread run in the order they are started.
    fn start(&mut self, job: Job);

    /// Tells when an event is reached.
    fn watch(&mut self, watch: Watch);

    /// News, if there is any.
    fn poll(&mut self) -> Option<Note>;

    /// Waits until there may be news, at most `timeout`. It sleeps; it does not spin.
    fn rest(&mut self, timeout: Duration);

    /// A host stage took too long, and nobody waits for it any more: not for its news, and not when
    /// the crew is dismissed. Whatever it uses stays alive until it returns.
    fn abandon(&mut self, stage: StageId);

    /// Waits for what is running on the host, forgets all watches, and ends.
    fn dismiss(&mut self);
}
