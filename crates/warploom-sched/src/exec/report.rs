//! What a run did.

use std::time::Duration;

use crate::model::{EdgeId, How, ResourceId, StageId};

/// What was done to a queue or a host stage, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The queue; `None` is the host.
    pub queue: Option<usize>,
    /// The stage.
    pub stage: StageId,
    /// Its generation.
    pub generation: u64,
    /// How many records are in it.
    pub records: u64,
    /// What it uses and how, and which slot of it.
    pub slots: Vec<(ResourceId, How, usize)>,
    /// What its queue was told to wait for first: stages and their generations.
    pub waits: Vec<(StageId, u64)>,
}

/// Who has time to spend.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Owner {
    /// The thread that decides.
    Driver,
    /// A thread of the host, with its name.
    Thread(String),
    /// A queue of the device, with its name.
    Queue(String),
}

/// What became of an owner's time. The three parts together are the run's
/// [`wall`](Summary::wall), but for what clocks do not agree about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// Whose.
    pub owner: Owner,
    /// How often it had something to do.
    pub turns: u64,
    /// At work.
    pub busy: Duration,
    /// Between turns, waiting for others.
    pub blocked: Duration,
    /// Before the first turn and after the last; of the driver, while nobody let it run.
    pub idle: Duration,
}

impl Usage {
    pub(super) fn new(owner: Owner) -> Self {
        Self {
            owner,
            turns: 0,
            busy: Duration::ZERO,
            blocked: Duration::ZERO,
            idle: Duration::ZERO,
        }
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.busy + self.blocked + self.idle
    }
}

/// What an edge cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EdgeCount {
    /// How often a queue was told to wait, or the host had to know, because of it.
    pub waits: u64,
    /// How long the host had nothing else to do than to wait for it.
    pub blocked: Duration,
}

/// What a run did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Generations that went through all stages.
    pub generations: u64,
    /// Records in them.
    pub records: u64,
    /// From the start to the end.
    pub wall: Duration,
    /// How long the host waited with nothing to do.
    pub blocked: Duration,
    /// Events recorded, beside those that only measure.
    pub recorded: u64,
    /// Stages of generations whose uses of slots the race detector looked at.
    pub checked: u64,
    /// What each edge cost, by its id.
    pub edges: Vec<EdgeCount>,
    /// Every command, where they were asked for.
    pub log: Vec<Command>,
    /// Where the time went, if that was asked for: the driver, then threads, then queues.
    pub usages: Vec<Usage>,
    /// Turns that are missing there: not 0 means that it is incomplete.
    pub lost: u64,
}

impl Summary {
    /// What an edge cost.
    pub fn edge(&self, edge: EdgeId) -> EdgeCount {
        self.edges.get(edge.index()).copied().unwrap_or_default()
    }
}
