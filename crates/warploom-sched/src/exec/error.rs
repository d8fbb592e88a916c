//! What can go wrong while a plan runs.

use std::fmt;
use std::time::Duration;

use warploom_core::{Bytes, Code, Coded, DeviceError};

/// What a stage's payload reports.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The stage asked for something it did not declare, or at the wrong time.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The payload's own failure.
    #[error("{0}")]
    Failed(String),
    /// The payload panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
}

impl StageError {
    /// The payload's own failure.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

/// A slot that is not in the state that a stage needs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The stage did not declare this use.
    #[error("`{stage}` did not declare that it {verb} resource {resource}")]
    Undeclared {
        /// Who asked.
        stage: String,
        /// `reads` or `writes`.
        verb: &'static str,
        /// The number of the resource.
        resource: usize,
    },
    /// The slot holds another generation, or is still in use.
    #[error(
        "slot {slot} of `{resource}` was wanted by `{stage}` for generation {wanted}, but {found}"
    )]
    Generation {
        /// Who asked.
        stage: String,
        /// Which resource.
        resource: String,
        /// Which slot.
        slot: usize,
        /// For which generation.
        wanted: u64,
        /// What is there.
        found: String,
    },
    /// Something was enqueued that is about a slot which the turn does not hold, or not for this.
    #[error(
        "`{stage}` {verb} slot {slot} of `{resource}` in generation {generation}, which its turn does not hold for that"
    )]
    Stray {
        /// Who did.
        stage: String,
        /// `reads` or `writes`.
        verb: &'static str,
        /// Which resource.
        resource: String,
        /// Which slot.
        slot: usize,
        /// In which generation.
        generation: u64,
    },
}

/// Two uses of a slot that nothing puts in order.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "nothing orders `{first}` of generation {first_generation} before `{second}` of generation {second_generation}, which both use slot {slot} of `{resource}`"
)]
pub struct Race {
    /// What is used.
    pub resource: String,
    /// Which slot.
    pub slot: usize,
    /// Who should be done.
    pub first: String,
    /// With which generation.
    pub first_generation: u64,
    /// Who comes too early.
    pub second: String,
    /// With which generation.
    pub second_generation: u64,
}

/// Why a run ended early.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A stage failed. (WL0821)
    #[error("stage `{stage}` failed in generation {generation}: {error}")]
    Stage {
        /// Which stage.
        stage: String,
        /// In which generation, from 0.
        generation: u64,
        /// With what.
        error: Box<StageError>,
    },
    /// Nothing happened for too long. (WL0822)
    #[error("nothing happened for {waited:?}: {chain}")]
    Timeout {
        /// How long.
        waited: Duration,
        /// Who waits for whom.
        chain: String,
    },
    /// It was called off. (WL0823)
    #[error("the run was called off after {delivered} generations")]
    Cancelled {
        /// Generations that were finished.
        delivered: u64,
    },
    /// Two uses of a slot are not in order. (WL0824)
    #[error(transparent)]
    Race(#[from] Race),
    /// A stage has no payload, or one for another place. (WL0825)
    #[error("stage `{stage}` runs on {place} and has {payload}")]
    Payload {
        /// Which stage.
        stage: String,
        /// `the host` or `the device`.
        place: &'static str,
        /// What it was given.
        payload: &'static str,
    },
    /// The device could not be set up. (WL0826)
    #[error("the run could not start: {error}")]
    Start {
        /// Why.
        error: Box<DeviceError>,
    },
    /// The device lacks a kind of memory that the plan uses. (WL0827)
    #[error("{device} has no {space:?} memory for `{resource}`")]
    Memory {
        /// Which device.
        device: warploom_core::DeviceId,
        /// What kind.
        space: warploom_core::Space,
        /// For what.
        resource: String,
    },
    /// The system gave no thread. (WL0828)
    #[error("no thread for `{name}`: {reason}")]
    Thread {
        /// Whose.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// A plan takes more memory than it may. (WL0830)
    #[error(
        "{} of {} are needed {}, and {} are allowed",
        Bytes(*needed), if *is_device { "device memory" } else { "host memory" },
        if *is_common { format!("with `{tenant}`") } else { format!("for `{tenant}`") },
        Bytes(*allowed)
    )]
    Budget {
        /// Whose plan it is.
        tenant: String,
        /// Is it the device's memory, or the host's?
        is_device: bool,
        /// What it takes, with all others if it is the common budget.
        needed: u64,
        /// What there may be.
        allowed: u64,
        /// Is it the budget of all tenants together?
        is_common: bool,
    },
    /// Nobody says how many records there are. (WL0829)
    #[error("the plan has no host stage that could say when there are no more records")]
    Endless,
}

impl Coded for RunError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Stage { .. } => 821,
            Self::Timeout { .. } => 822,
            Self::Cancelled { .. } => 823,
            Self::Race(_) => 824,
            Self::Payload { .. } => 825,
            Self::Start { .. } => 826,
            Self::Memory { .. } => 827,
            Self::Thread { .. } => 828,
            Self::Endless => 829,
            Self::Budget { .. } => 830,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Stage { error, .. } => match &**error {
                StageError::Device(error) => return error.help(),
                StageError::Lease(_) => "declare what the stage uses in its graph".into(),
                _ => "everything before that generation was finished".into(),
            },
            Self::Timeout { .. } => {
                "the last of the chain is what hangs; give it more time, or the device up".into()
            }
            Self::Cancelled { .. } => "start again to do the rest".into(),
            Self::Race(_) => "this is a defect of the plan; report it with the graph".into(),
            Self::Payload { .. } => "give every stage a payload for where it runs".into(),
            Self::Start { error } => return error.help(),
            Self::Memory { .. } => "use memory that the device has".into(),
            Self::Thread { .. } => "let stages share threads, or end others".into(),
            Self::Budget { tenant, .. } => {
                format!("plan `{tenant}` with fewer slots, or allow more")
            }
            Self::Endless => "say how many records there are".into(),
        };
        Some(text)
    }
}
