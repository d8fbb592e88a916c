//! Why a fleet cannot start or go on. What goes wrong with a record is its outcome, and no error.

use std::fmt;
use std::path::{Path, PathBuf};

use warploom_core::{Code, Coded, LeaseError};

use crate::journal::Holder;
use crate::rundir::Identity;

/// Why a run could not be started or had to end early.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The journal cannot be used. (WL1001)
    #[error("the journal {} cannot be used: {reason}", path.display())]
    Journal {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process is at this run. (WL1002)
    #[error("{} is writing {}", holder_text(holder.as_ref()), path.display())]
    Busy {
        /// The journal that it has locked.
        path: PathBuf,
        /// Which one, if it has said so.
        holder: Option<Holder>,
    },
    /// The folder of a run cannot be used. (WL1003)
    #[error("{} cannot be used for a run: {reason}", path.display())]
    Folder {
        /// Which folder or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder holds a run of something else. (WL1004)
    #[error(
        "{} holds a run of `{}` on {} records (digest {:08x}), not of `{}` on {} (digest {:08x})",
        folder.display(), found.plan, found.records, found.digest,
        asked.plan, asked.records, asked.digest
    )]
    OtherRun {
        /// Which folder.
        folder: PathBuf,
        /// What it holds.
        found: Identity,
        /// What was asked for.
        asked: Identity,
    },
    /// There is nothing to run on, or more than there can be. (WL1005)
    #[error("a fleet was asked for with {what}")]
    Setup {
        /// What is wrong with it.
        what: String,
    },
    /// The system refused something that every fleet needs. (WL1006)
    #[error("{call} failed: {reason}")]
    System {
        /// The call.
        call: &'static str,
        /// The system's words.
        reason: String,
    },
    /// A batch size that the user fixed does not fit. (WL1007)
    #[error(
        "batches of {batch} records were asked for, and {device} ({model}) has no room for that"
    )]
    FixedBatch {
        /// The size that was asked for.
        batch: u32,
        /// The device that refused it.
        device: String,
        /// Its model.
        model: String,
    },
    /// No device is left. (WL1008)
    #[error("no device is left for {left} records; the last one, {device}, was given up: {why}")]
    NoDevice {
        /// How many records have no outcome.
        left: u64,
        /// The device that was given up last.
        device: String,
        /// Why.
        why: String,
    },
    /// A device is not there under the mask that was inherited. (WL1009)
    #[error("{device} cannot be given to a worker: {why}")]
    Mask {
        /// Which device.
        device: String,
        /// What is in the way.
        why: String,
    },
    /// The receiver of the results failed. (WL1010)
    #[error("record {record} was done, but its result could not be taken: {reason}")]
    Sink {
        /// Which record.
        record: u64,
        /// The receiver's words.
        reason: String,
    },
    /// There is no lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

fn holder_text(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => format!("another coordinator, {holder},"),
        None => "another coordinator".to_owned(),
    }
}

impl FleetError {
    pub(crate) fn journal(path: &Path, reason: impl fmt::Display) -> Self {
        Self::Journal {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn system(call: &'static str, reason: impl fmt::Display) -> Self {
        Self::System {
            call,
            reason: reason.to_string(),
        }
    }
}

impl Coded for FleetError {
    fn code(&self) -> Code {
        Code(match self {
            Self::Journal { .. } => 1001,
            Self::Busy { .. } => 1002,
            Self::Folder { .. } => 1003,
            Self::OtherRun { .. } => 1004,
            Self::Setup { .. } => 1005,
            Self::System { .. } => 1006,
            Self::FixedBatch { .. } => 1007,
            Self::NoDevice { .. } => 1008,
            Self::Mask { .. } => 1009,
            Self::Sink { .. } => 1010,
            Self::Lease(error) => return error.code(),
        })
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            Self::Journal { .. } | Self::Folder { .. } => {
                "see to the file, or begin the run in another folder".into()
            }
            Self::Busy { .. } => "wait for it, or end it and resume the run".into(),
            Self::OtherRun { .. } => {
                "give the records and the plan the run began with, or another folder".into()
            }
            Self::Setup { .. } => "name at least one device with at least one worker".into(),
            Self::System { .. } => return None,
            Self::FixedBatch { batch, .. } => format!(
                "resume with at most {} or leave the size to the fleet, which finds it",
                (batch / 2).max(1)
            ),
            Self::NoDevice { .. } => {
                "the logs of the run say what the workers said; resume it when a device works again"
                    .into()
            }
            Self::Mask { .. } => "`warploom detect` lists the devices that may be used".into(),
            Self::Sink { .. } => "mend what takes the results, and resume the run".into(),
            Self::Lease(error) => return error.help(),
        })
    }
}
