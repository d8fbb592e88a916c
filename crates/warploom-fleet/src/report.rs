//! What a run tells: outcomes as they come, how far it is, and what became of it.

use std::collections::BTreeMap;

use crate::error::FleetError;
use crate::journal::Torn;
use crate::policy::Counts;
use crate::record::Outcome;

/// The order in which outcomes are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// As they come.
    #[default]
    AsDone,
    /// In the order of the records. What comes early waits in memory.
    OfRecords,
}

/// An outcome, as it is delivered.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The number of the record.
    pub record: u64,
    /// What became of it.
    pub outcome: &'a Outcome,
    /// The whole answer, also when it is too long for the journal.
    pub answer: Option<&'a [u8]>,
}

/// What a run looks like at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// How far it has come.
    pub counts: Counts,
    /// Slot by slot.
    pub slots: Vec<SlotSnapshot>,
    /// How many records have failed in this run, by the device on which each did.
    pub failed: BTreeMap<String, u64>,
    /// What was done about devices since the last snapshot, in its order.
    pub incidents: Vec<Incident>,
}

/// What a slot looks like at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotSnapshot {
    /// Which device it is on.
    pub device: String,
    /// Is there a process?
    pub running: bool,
    /// What it is about.
    pub state: SlotState,
    /// How many records are at it, those that wait their turn there included.
    pub under_way: u64,
    /// How many records its latest batch had, once there was one.
    pub batch: Option<u64>,
    /// How many records it has done in this run.
    pub done: u64,
    /// How many records a second it does, once that is known.
    pub rate: Option<f64>,
}

/// What a slot is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotState {
    /// It waits for its lease or a pause after a mishap, or its process is starting.
    Starting,
    /// Its worker has records.
    Working,
    /// Its worker has none at the moment.
    Idle,
    /// Its worker is ending.
    Ending,
    /// Its device gets no work until a probe has passed.
    Quarantined,
    /// Its device is given up.
    GivenUp,
    /// There is nothing left for it.
    Done,
}

/// What became of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// One outcome per record, in their order.
    pub outcomes: Vec<Outcome>,
    /// How many of each.
    pub counts: Counts,
    /// The largest batch that each model of device has room for, where that had a say.
    pub ceilings: BTreeMap<String, u32>,
    /// How many records each slot did in this run.
    pub per_slot: Vec<u64>,
    /// What was done about devices, in its order.
    pub incidents: Vec<Incident>,
    /// Was the run ended from outside?
    pub interrupted: bool,
    /// What of an earlier journal could not be read.
    pub torn: Option<Torn>,
}

impl Report {
    /// Has every record an outcome that stays?
    pub fn is_complete(&self) -> bool {
        self.counts.waiting == 0
    }
}

/// Something that was done about a device or a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A worker came to grief.
    Grief {
        /// Where.
        device: String,
        /// How.
        how: String,
    },
    /// A device got no more work for a while.
    Quarantined {
        /// Which one.
        device: String,
        /// Why.
        why: String,
    },
    /// A device passed its probe.
    Readmitted {
        /// Which one.
        device: String,
    },
    /// A device was given up.
    GivenUp {
        /// Which one.
        device: String,
        /// Why.
        why: String,
    },
    /// A worker was killed and did not die.
    Undead {
        /// Its process.
        pid: u32,
    },
    /// Batches for a model were made smaller.
    Ceiling {
        /// Which model.
        model: String,
        /// How large they may be now.
        batch: u32,
    },
    /// A device's management reported something.
    Reported {
        /// Which device.
        device: String,
        /// What.
        text: String,
    },
}

/// A run that could not be begun or ended early, and how far it came.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// Why.
    #[source]
    pub error: FleetError,
    /// What became of the records; nothing when none was begun.
    pub report: Option<Box<Report>>,
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        Self {
            error,
            report: None,
        }
    }
}
