//! The three shapes of a schedule.

use std::fmt;

use super::graph::{How, StageGraph};

/// How far generations run ahead of each other. Chosen once, from what does not change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// The next generation is started before the last is delivered.
    Pipelined,
    /// A generation's dependent part is started when the one before is delivered, because the host
    /// carries something from one to the next.
    DrainBeforeKick,
    /// A generation is delivered before anything of the next begins, because slots are shared with
    /// another plan.
    DrainAfterKick,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pipelined => "pipelined",
            Self::DrainBeforeKick => "drain-before-kick",
            Self::DrainAfterKick => "drain-after-kick",
        })
    }
}

impl Shape {
    /// The shape that a graph needs.
    pub fn select(graph: &StageGraph, shares_slots: bool) -> Self {
        if shares_slots {
            Self::DrainAfterKick
        } else if host_carries(graph) {
            Self::DrainBeforeKick
        } else {
            Self::Pipelined
        }
    }

    /// May a queue take a later generation before an earlier one that waits for the host?
    pub(crate) fn runs_ahead(self) -> bool {
        self == Self::Pipelined
    }
}

/// Does a stage of the device read what a host stage left a generation before?
fn host_carries(graph: &StageGraph) -> bool {
    let written_by_host = |resource| {
        graph.stages.iter().any(|stage| {
            let writes = |access: &super::graph::Access| {
                access.resource == resource && matches!(access.how, How::Write | How::Update)
            };
            stage.is_host() && stage.accesses.iter().any(writes)
        })
    };
    let mut devices = graph.stages.iter().filter(|stage| !stage.is_host());
    devices.any(|stage| {
        let mut accesses = stage.accesses.iter();
        accesses.any(|a| a.how == How::Previous && !a.gated && written_by_host(a.resource))
    })
}
