//! Why a graph has no plan.

use warploom_core::{Bytes, Code, Coded, Space};

use super::cycle::Cycle;

/// Why a graph has no plan.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Two stages or resources have one name, or one has none. (WL0801)
    #[error("{what} `{name}` is not a name of its own")]
    Name {
        /// `stage` or `resource`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A stage reads what no stage before it writes. (WL0802)
    #[error("stage `{stage}` reads `{resource}`, which no stage before it writes")]
    Unwritten {
        /// Who reads.
        stage: String,
        /// What.
        resource: String,
    },
    /// The host is to use memory that it cannot see. (WL0803)
    #[error("stage `{stage}` uses `{resource}` on the host, which cannot see {space:?} memory")]
    Unseen {
        /// Who.
        stage: String,
        /// What.
        resource: String,
        /// Where that is.
        space: Space,
    },
    /// Stages would wait for each other for ever. (WL0804)
    #[error("stages wait for each other in a circle: {cycle}")]
    Deadlock {
        /// The circle, in which no generation fits.
        cycle: Cycle,
    },
    /// The device would wait for something the host does later. (WL0805)
    #[error(
        "`{stage}` would wait on the device for `{resource}`, which `{host}` writes on the host after `{stage}` was enqueued"
    )]
    FutureHostAction {
        /// The stage that would wait.
        stage: String,
        /// For what.
        resource: String,
        /// Who writes it.
        host: String,
    },
    /// The budget does not hold the fewest slots that work. (WL0806)
    #[error(
        "{} of {} are needed, {} for `{largest}` alone, and {} are allowed",
        Bytes(*needed), if *is_device { "device memory" } else { "host memory" }, Bytes(*largest_bytes), Bytes(*allowed)
    )]
    Budget {
        /// Is it the device's memory, or the host's?
        is_device: bool,
        /// What the fewest slots take.
        needed: u64,
        /// What there may be.
        allowed: u64,
        /// The resource that takes most.
        largest: String,
        /// How much that takes.
        largest_bytes: u64,
    },
    /// A number of slots that cannot be. (WL0807)
    #[error("`{resource}` with {slots} slots: at least 1 and at most {most} make sense")]
    SlotCount {
        /// Which resource.
        resource: String,
        /// What was asked for.
        slots: u32,
        /// The most.
        most: u32,
    },
    /// There is nothing to plan. (WL0808)
    #[error("the graph has no stage")]
    Empty,
}

impl Coded for PlanError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Name { .. } => 801,
            Self::Unwritten { .. } => 802,
            Self::Unseen { .. } => 803,
            Self::Deadlock { .. } => 804,
            Self::FutureHostAction { .. } => 805,
            Self::Budget { .. } => 806,
            Self::SlotCount { .. } => 807,
            Self::Empty => 808,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Name { what, .. } => format!("give each {what} a name of its own"),
            Self::Unwritten { resource, .. } => format!(
                "add the stage that writes `{resource}` before it, or read what the generation before left"
            ),
            Self::Unseen { resource, .. } => {
                format!("put a copy to pinned memory between `{resource}` and the host")
            }
            Self::Deadlock { cycle } => {
                let names = cycle.stages().join("`, `");
                format!(
                    "give one of `{names}` a queue of its own, or a resource between them more slots"
                )
            }
            Self::FutureHostAction { host, stage, .. } => format!(
                "let the host enqueue `{stage}` after `{host}`: leave out `gated`, and the plan does so"
            ),
            Self::Budget { largest, .. } => {
                format!("allow more, or make `{largest}` smaller")
            }
            Self::SlotCount { .. } => "ask for 2, or let the plan choose".into(),
            Self::Empty => "add a stage".into(),
        };
        Some(text)
    }
}
