//! Why a run did not happen, or ended before its records did.

use std::path::PathBuf;
use std::time::Duration;

use warploom_core::{Code, Coded, DeviceError, LeaseError, RegistryError};
use warploom_io::FileError;
use warploom_io::records::RecordError;
use warploom_plan::Diagnostic;
use warploom_sched::{PlanError, RunError, StageError};

/// Why a run did not happen, or ended before its records did. What is wrong with one record is that
/// record's outcome and not among these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The records were not found.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// A file that all records need cannot be read, or no record can.
    #[error(transparent)]
    File(#[from] FileError),
    /// The pipeline was refused; all reasons are here.
    #[error("the pipeline was refused: {}", first(.0))]
    Refused(Vec<Diagnostic>),
    /// Devices cannot be found or leased.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A device cannot be set up.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The stages cannot be scheduled.
    #[error(transparent)]
    Schedule(#[from] PlanError),
    /// The run broke off.
    #[error(transparent)]
    Broken(#[from] RunError),
    /// Records have axes that no pipeline takes. (WL0841)
    #[error(
        "records like {record} have the extents {shape}, and planes and stacks with or without channels are what pipelines take"
    )]
    Axes {
        /// A record.
        record: String,
        /// Its extents.
        shape: String,
    },
    /// The folder of results cannot be used. (WL0842)
    #[error("results cannot go to {}: {what}", path.display())]
    Output {
        /// The folder.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// Another run writes to the same folder. (WL0843)
    #[error("{} is writing results to {}", holder_text(holder.as_deref()), path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// Which process, if it has said so.
        holder: Option<String>,
    },
    /// A constant is not of the type that the plan was made for. (WL0844)
    #[error("`{name}` is {found} in {}, and the plan was made for {wanted}", path.display())]
    Constant {
        /// Its name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What is wanted.
        wanted: String,
    },
    /// A plan does not agree with this program. (WL0845)
    #[error("the plan was made by another version: {what}")]
    Foreign {
        /// What does not agree.
        what: String,
    },
    /// A file says nothing, before anything runs. (WL0853)
    #[error("{} said nothing for {:.1} s when it was looked at", file_text(path.as_ref()), waited.as_secs_f64())]
    Silent {
        /// Which; nothing where files were only being searched for.
        path: Option<PathBuf>,
        /// How long.
        waited: Duration,
    },
}

fn file_text(path: Option<&PathBuf>) -> String {
    match path {
        Some(path) => path.display().to_string(),
        None => "the folder of the input".to_owned(),
    }
}

fn holder_text(holder: Option<&str>) -> String {
    match holder {
        Some(holder) => format!("another run, {holder},"),
        None => "another run".to_owned(),
    }
}

fn first(findings: &[Diagnostic]) -> String {
    findings
        .first()
        .map_or_else(String::new, |finding| finding.message.clone())
}

#[cfg(all(feature = "fleet", target_os = "linux"))]
impl RunFailure {
    /// Was there no room on a device?
    pub(crate) fn is_lack_of_memory(&self) -> bool {
        use warploom_sched::StageError;
        let error = match self {
            Self::Device(error) => error,
            Self::Broken(RunError::Start { error }) => error,
            Self::Broken(RunError::Stage { error, .. }) => match &**error {
                StageError::Device(error) => error,
                _ => return false,
            },
            _ => return false,
        };
        matches!(error, DeviceError::OutOfMemory { .. })
    }
}

impl RunFailure {
    /// Was it called off, while it ran or while it waited for a device?
    pub fn is_call_off(&self) -> bool {
        matches!(
            self,
            Self::Broken(RunError::Cancelled { .. })
                | Self::Registry(RegistryError::Lease(LeaseError::Cancelled { .. }))
        )
    }

    /// Is it the device's, so that another could do better? A disk that hangs would hang with any.
    pub(crate) fn is_of_device(&self) -> bool {
        match self {
            Self::Device(_) | Self::Registry(_) | Self::Broken(RunError::Start { .. }) => true,
            Self::Broken(RunError::Timeout { chain, .. }) => !chain.ends_with(ON_HOST),
            Self::Broken(RunError::Stage { error, .. }) => {
                matches!(**error, StageError::Device(_))
            }
            _ => false,
        }
    }
}

/// How a chain of waits ends at a stage of the host.
const ON_HOST: &str = "which is running on the host";

impl Coded for RunFailure {
    fn code(&self) -> Code {
        match self {
            Self::Records(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Refused(findings) => findings.first().map_or(Code(845), |one| one.code),
            Self::Registry(error) => error.code(),
            Self::Device(error) => error.code(),
            Self::Schedule(error) => error.code(),
            Self::Broken(error) => error.code(),
            Self::Axes { .. } => Code(841),
            Self::Output { .. } => Code(842),
            Self::Busy { .. } => Code(843),
            Self::Constant { .. } => Code(844),
            Self::Foreign { .. } => Code(845),
            Self::Silent { .. } => Code(853),
        }
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Records(error) => return error.help(),
            Self::File(error) => return error.help(),
            Self::Refused(findings) => return findings.first().and_then(|one| one.help.clone()),
            Self::Registry(error) => return error.help(),
            Self::Device(error) => return error.help(),
            Self::Schedule(error) => return error.help(),
            Self::Broken(error) => return error.help(),
            Self::Axes { .. } => "save planes or stacks, with channels if there are any",
            Self::Output { .. } => {
                "name another folder, one that can be written, with room on its disk"
            }
            Self::Busy { path, .. } => {
                return Some(format!(
                    "wait for it (`warploom status {}` tells how far it is), or write to another folder",
                    path.display()
                ));
            }
            Self::Constant { .. } | Self::Foreign { .. } => "compile the pipeline again",
            Self::Silent { .. } => {
                "see whether its disk is there and what sort of file it is; leave it out, or say a longer `--patience`"
            }
        };
        Some(text.to_owned())
    }
}

/// Why one record has no result, beside what files and devices say.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// It is not like the others. (WL0846)
    #[error("it is {found}, and this run was planned for {wanted}")]
    Differs {
        /// What it is.
        found: String,
        /// What it should be.
        wanted: String,
    },
    /// A table has more rows than there is room for. (WL0847)
    #[error("`{step}` has {rows} rows more than there is room for")]
    Rows {
        /// The step that gives the table.
        step: String,
        /// How many too many.
        rows: u64,
    },
    /// A stage panicked on it. (WL0848)
    #[error("{doing} it panicked")]
    Panicked {
        /// `reading` or `writing`.
        doing: &'static str,
    },
    /// What is done cannot be written down. (WL0849)
    #[error("its results are there and cannot be added to the list of results: {reason}")]
    Unlisted {
        /// What the system says.
        reason: String,
    },
    /// A folder cannot be made. (WL0850)
    #[error("the folder {} cannot be made: {reason}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

impl Coded for RecordFault {
    fn code(&self) -> Code {
        Code(match self {
            Self::Differs { .. } => 846,
            Self::Rows { .. } => 847,
            Self::Panicked { .. } => 848,
            Self::Unlisted { .. } => 849,
            Self::Folder { .. } => 850,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Differs { .. } => "run it apart, with records of its own kind",
            Self::Rows { .. } => "remove small objects first, or use smaller images",
            Self::Panicked { .. } => "this is a defect worth reporting, with the file",
            Self::Unlisted { .. } | Self::Folder { .. } => {
                "make room on the disk, or write to another folder"
            }
        };
        Some(text.to_owned())
    }
}
