//! What a journal tells, one event a frame.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::{Answer, Reason, Spans};

/// The number of a batch: unique in its run, resumed ones included.
pub type BatchId = u64;

/// Something that happened, or is about to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A coordinator took the run up.
    Began {
        /// How many had before it.
        earlier: u32,
    },
    /// A batch is about to go to a worker. It is written before the worker gets it, so that records
    /// which take everything down with them are known when the run is resumed.
    Attempt {
        /// Which batch.
        batch: BatchId,
        /// To which slot.
        slot: u32,
        /// With these records.
        records: Spans,
    },
    /// A record was done and delivered.
    Ok {
        /// Which one.
        record: u64,
        /// How often it had been handed to a worker.
        attempts: u32,
        /// What came out.
        result: Answer,
    },
    /// A record is given up.
    Failed {
        /// Which one.
        record: u64,
        /// How often it had been handed to a worker.
        attempts: u32,
        /// Why.
        reason: Reason,
    },
    /// A worker came to grief over a batch, and these records of it were under way.
    Charged {
        /// Which batch.
        batch: BatchId,
        /// How it ended.
        cause: Cause,
        /// The records that had no outcome yet.
        records: Spans,
    },
    /// Records of a batch go back and are not to blame: it had not been begun, or memory ran out.
    Returned {
        /// Which batch.
        batch: BatchId,
        /// The records that had no outcome yet.
        records: Spans,
    },
    /// Batches of this plan fit this model of device up to this size.
    Ceiling {
        /// Which plan.
        plan: String,
        /// Which model of device.
        model: String,
        /// The largest size that is still tried.
        batch: u32,
    },
    /// A device gets no more work.
    Quarantined {
        /// Which one.
        device: String,
        /// Why.
        why: String,
    },
    /// A device passed its probe and works again.
    Readmitted {
        /// Which one.
        device: String,
    },
    /// The coordinator ended in order.
    Ended {
        /// Whether nothing is left to do.
        complete: bool,
    },
    /// A device is given up.
    GivenUp {
        /// Which one.
        device: String,
        /// Why.
        why: String,
    },
    /// The coordinator that has just taken the run up says who it is and what it has.
    Signed {
        /// Who.
        holder: Holder,
        /// The device of each slot.
        slots: Vec<String>,
    },
    /// The run could not go on and ends, for this reason.
    Broken {
        /// In the words of the error.
        why: String,
    },
}

/// The process that writes a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// The machine it runs on; empty where that is not known.
    pub host: String,
}

impl Holder {
    /// This process.
    pub fn this() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            pid: std::process::id(),
            host: host.trim().to_owned(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if self.host.is_empty() {
            return Ok(());
        }
        write!(f, " on {}", self.host)
    }
}

/// How a worker came to grief.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Cause {
    /// It died.
    Crashed {
        /// Of what.
        how: String,
    },
    /// It made no progress.
    Hung {
        /// For so long.
        after: Duration,
    },
    /// Its device was lost.
    DeviceLost {
        /// In the device's words.
        text: String,
    },
    /// It said something that makes no sense.
    Garbage {
        /// What was wrong with it.
        text: String,
    },
    /// It got on, but its batch took longer than a batch may.
    Late {
        /// How long that is.
        limit: Duration,
        /// How many records the batch had.
        records: u64,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed { how } => f.write_str(how),
            Self::Hung { after } => write!(f, "it made no progress for {after:?}"),
            Self::DeviceLost { text } => write!(f, "its device was lost: {text}"),
            Self::Garbage { text } => write!(f, "it broke the protocol: {text}"),
            Self::Late { limit, records: 1 } => {
                write!(f, "its batch of one record took longer than {limit:?}")
            }
            Self::Late { limit, records } => {
                write!(
                    f,
                    "its batch of {records} records took longer than {limit:?}"
                )
            }
        }
    }
}

impl Cause {
    /// The reason for which a record fails that did this alone, too often.
    pub(crate) fn reason(&self, log: String) -> Reason {
        match self {
            Self::Crashed { how } => Reason::Crashed {
                how: how.clone(),
                log,
            },
            Self::Hung { after } => Reason::Hung { after: *after, log },
            Self::DeviceLost { text } => Reason::DeviceLost {
                text: text.clone(),
                log,
            },
            Self::Garbage { text } => Reason::Crashed {
                how: format!("it broke the protocol: {text}"),
                log,
            },
            Self::Late { limit, .. } => Reason::Late { limit: *limit, log },
        }
    }
}

/// An event, and when it happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub event: Event,
}
