//! What became of records, as plain values.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warploom_core::Coded;
use warploom_watch::Recording;
use warploom_watch::recording::Tally;

/// Why a record has no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The code of the error, where it has one.
    pub code: Option<String>,
    /// What went wrong.
    pub reason: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The last lines that its worker wrote, where one died or hung over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// How often it was tried; 0 when it could not be begun.
    #[serde(default)]
    pub attempts: u32,
}

impl Failure {
    /// A failure without a code, at the first attempt.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            code: None,
            reason: reason.into(),
            help: None,
            log: None,
            attempts: 1,
        }
    }

    /// The failure that an error is, at the first attempt.
    pub fn of(error: &impl Coded) -> Self {
        Self {
            code: Some(error.code().to_string()),
            reason: error.to_string(),
            help: error.help(),
            log: None,
            attempts: 1,
        }
    }
}

/// What became of a record. Every record of a run has exactly one of these (I2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// All its results are written.
    Ok {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// It was done by an earlier run, from the same bytes with the same work.
    Skipped,
    /// It has no result.
    Failed(Failure),
    /// Nobody began it, or it was not finished when the run ended.
    NotStarted,
}

impl Outcome {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok { .. } => "ok",
            Self::Skipped => "skipped",
            Self::Failed(_) => "failed",
            Self::NotStarted => "not-started",
        }
    }
}

/// A record and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// What it is called.
    pub record: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Counts how records ended.
pub(crate) fn tally<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Tally {
    let mut tally = Tally::default();
    for outcome in outcomes {
        *match outcome {
            Outcome::Ok { .. } => &mut tally.ok,
            Outcome::Skipped => &mut tally.skipped,
            Outcome::Failed(_) => &mut tally.failed,
            Outcome::NotStarted => &mut tally.not_started,
        } += 1;
    }
    tally
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The pipeline.
    pub pipeline: String,
    /// The fingerprint of the plan that ran last.
    pub plan: String,
    /// The card it ran on, and the faces of it.
    pub device: String,
    /// The faces of the card that were used.
    pub faces: Vec<String>,
    /// How many records ended how.
    pub tally: Tally,
    /// Was it called off?
    pub interrupted: bool,
    /// From the first record to the last, in seconds.
    pub seconds: f64,
    /// Pixels of records that were worked on, a second, in millions.
    pub mpix_per_second: f64,
    /// Why it ended before every record had an outcome, if it did and was not called off.
    pub error: Option<Failure>,
    /// Why devices were given up, and what took their place.
    pub changes: Vec<String>,
    /// Stages of generations whose uses of slots were checked against all before them; nothing of
    /// worker processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub races_checked: Option<u64>,
    /// The folder with what was noted down of the run: its journal, the logs of its workers.
    pub run: PathBuf,
    /// Every record, in order.
    pub records: Vec<Done>,
    /// What happened when, where it was asked for.
    #[serde(skip)]
    pub recording: Option<Recording>,
}

impl Summary {
    /// Did every record end well?
    pub fn is_ok(&self) -> bool {
        self.tally.failed == 0 && self.tally.not_started == 0
    }
}

/// What is told while a run goes on.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum News {
    /// Work begins: how many records there are, and how many of them are done already.
    Begun {
        /// All records.
        records: u64,
        /// Done by an earlier run.
        skipped: u64,
        /// Where it runs.
        device: String,
    },
    /// A record has ended.
    Ended {
        /// Which, by its place among all.
        index: usize,
        /// What became of it.
        done: Done,
        /// When, from the start.
        at: Duration,
    },
    /// A device was given up, or something else happened that people should know.
    Changed(String),
    /// How several devices get on, some times a second.
    Crew(Vec<DeviceNews>),
}

/// How one of several devices gets on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DeviceNews {
    /// What people call it.
    pub label: String,
    /// `starting`, `working`, `idle`, `ending`, `quarantined`, `given-up` or `done`.
    pub state: String,
    /// Its worker processes.
    pub workers: u64,
    /// Records that it has done in this run.
    pub done: u64,
    /// Records that failed on it in this run.
    #[serde(default)]
    pub failed: u64,
    /// Records that are at it.
    pub under_way: u64,
    /// Records of the latest batch.
    pub batch: Option<u64>,
    /// Records a second, once that is known.
    pub rate: Option<f64>,
    /// How often a worker came to grief on it.
    pub griefs: u64,
    /// How often it got no work for a while.
    pub quarantines: u64,
}
