//! Records and how they ended.

use serde::{Deserialize, Serialize};

use super::item::DeviceNo;

/// How a record ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Outcome {
    /// Its outputs are there.
    Ok,
    /// It could not be done.
    Failed {
        /// Why, in one clause.
        reason: String,
        /// The error's code, such as `WL0401`.
        #[serde(default)]
        code: Option<String>,
    },
    /// Its outputs were there already.
    Skipped,
    /// The run ended before its turn came.
    #[default]
    NotStarted,
}

impl Outcome {
    /// `ok`, `failed`, `skipped`, `not-started`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed { .. } => "failed",
            Self::Skipped => "skipped",
            Self::NotStarted => "not-started",
        }
    }
}

/// One record of the input.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// What it is called.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: u32,
    /// When the last attempt began, in nanoseconds since the run began.
    #[serde(default)]
    pub begin: Option<u64>,
    /// When it ended.
    #[serde(default)]
    pub end: Option<u64>,
    /// Where it was tried last.
    #[serde(default)]
    pub device: Option<DeviceNo>,
}

impl Record {
    /// A record whose turn has not come.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Done at the first attempt.
    #[must_use]
    pub fn done_at(mut self, begin: u64, end: u64) -> Self {
        self.outcome = Outcome::Ok;
        self.attempts = 1;
        (self.begin, self.end) = (Some(begin), Some(end));
        self
    }

    /// Failed at the first attempt.
    #[must_use]
    pub fn failed_at(mut self, begin: u64, end: u64, reason: impl Into<String>) -> Self {
        self.outcome = Outcome::Failed {
            reason: reason.into(),
            code: None,
        };
        self.attempts = 1;
        (self.begin, self.end) = (Some(begin), Some(end));
        self
    }

    /// On this device.
    #[must_use]
    pub fn on(mut self, device: DeviceNo) -> Self {
        self.device = Some(device);
        self
    }
}

/// How many records ended how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Outputs are there.
    pub ok: u64,
    /// Could not be done.
    pub failed: u64,
    /// Outputs were there already.
    pub skipped: u64,
    /// Never begun.
    pub not_started: u64,
}

impl Tally {
    /// Counts.
    pub fn of(records: &[Record]) -> Self {
        let mut tally = Self::default();
        for record in records {
            let count = match record.outcome {
                Outcome::Ok => &mut tally.ok,
                Outcome::Failed { .. } => &mut tally.failed,
                Outcome::Skipped => &mut tally.skipped,
                Outcome::NotStarted => &mut tally.not_started,
            };
            *count += 1;
        }
        tally
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.ok + self.failed + self.skipped + self.not_started
    }
}
