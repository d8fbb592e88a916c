//! What a run did.

use std::time::Duration;

use crate::model::{EdgeId, StageId};

/// What was done to a queue or a host stage, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The stage.
    pub stage: StageId,
    /// Its generation.
    pub generation: u64,
    /// What its queue was told to wait for first: stages and their generations.
    pub waits: Vec<(StageId, u64)>,
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
    /// Events recorded.
    pub recorded: u64,
    /// What each edge cost, by its id.
    pub edges: Vec<EdgeCount>,
    /// Every command, where they were asked for.
    pub log: Vec<Command>,
}

impl Summary {
    /// What an edge cost.
    pub fn edge(&self, edge: EdgeId) -> EdgeCount {
        self.edges.get(edge.index()).copied().unwrap_or_default()
    }
}
