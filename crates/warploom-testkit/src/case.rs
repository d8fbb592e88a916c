//! One promise of the contract, and what became of it.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warploom_core::{Coded, DeviceError};

use crate::rig::Rig;
use crate::session::Bench;

/// One promise of the contract and the code that checks it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    pub(crate) promise: &'static str,
    pub(crate) alone: bool,
    pub(crate) check: Check,
}

impl Case {
    /// The part of the contract it belongs to: `backend`, `queue`, `event`, …
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// Its name within the group.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the contract promises, in a sentence.
    pub fn promise(&self) -> &'static str {
        self.promise
    }

    /// Does it run once per device? Otherwise it runs once per backend.
    pub fn per_device(&self) -> bool {
        matches!(self.check, Check::Device(_))
    }

    /// The case's name for `subject`, a device or a backend: `opencl:0::queue::copy_in_order`.
    pub fn title(&self, subject: impl fmt::Display) -> String {
        format!("{subject}::{}::{}", self.group, self.name)
    }

    /// The same case, never beside another: it measures the process or fills the device.
    pub(crate) const fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    Backend(fn(&Bench) -> Verdict),
    Device(fn(&Rig) -> Verdict),
}

/// A list of cases from function names and promises.
macro_rules! cases {
    ($check:ident $group:literal: $($(#[$how:ident])? $name:ident = $promise:literal;)*) => {
        pub(crate) const CASES: &[$crate::case::Case] = &[$(
            $crate::case::Case {
                group: $group,
                name: stringify!($name),
                promise: $promise,
                alone: false,
                check: $crate::case::Check::$check($name),
            }$(.$how())?
        ),*];
    };
}
pub(crate) use cases;

/// What a case's code returns.
pub(crate) type Verdict<T = ()> = Result<T, Stop>;

/// Why a case ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It does not apply here.
    Skip(String),
    /// The promise is broken.
    Fail(String),
}

impl Stop {
    pub(crate) fn skip(reason: impl Into<String>) -> Self {
        Self::Skip(reason.into())
    }

    #[track_caller]
    pub(crate) fn fail(text: impl fmt::Display) -> Self {
        let at = Location::caller();
        Self::Fail(format!("{text} ({}:{})", at.file(), at.line()))
    }
}

/// So that a case can say `?` where nothing may go wrong; the place is kept.
impl From<DeviceError> for Stop {
    #[track_caller]
    fn from(error: DeviceError) -> Self {
        Self::fail(format!("unexpected {}: {error}", error.code()))
    }
}

/// Ends the case with a failure unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        // The negation is of the whole, so that a NaN comparison fails too.
        if $condition {} else {
            return Err($crate::case::Stop::fail(format!($($text)+)));
        }
    };
}
pub(crate) use ensure;

/// What became of a case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// The promise is kept.
    Passed,
    /// It does not apply to this device or cannot be checked here.
    Skipped {
        /// Why.
        reason: String,
    },
    /// The promise is broken.
    Failed {
        /// How.
        text: String,
    },
    /// The promise is broken in a way an [`Expect`](crate::Expect) describes.
    Known {
        /// How.
        text: String,
        /// Whose fault it is.
        reason: String,
    },
}

/// One case on one device or backend, after it ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CaseReport {
    /// Its full name, such as `opencl:0::queue::copies_in_order`.
    pub name: String,
    /// What the contract promises.
    pub promise: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What it measured or noticed besides.
    pub notes: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl CaseReport {
    /// Is the promise broken, and nobody knew?
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_serde() {
        let report = CaseReport {
            name: "fake:0::copy::chains".into(),
            promise: "Copies on one queue take effect in order.".into(),
            outcome: Outcome::Known {
                text: "element 3".into(),
                reason: "a known fault".into(),
            },
            notes: vec!["a note".into()],
            took: Duration::from_millis(12),
        };
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains(r#""outcome":"known""#), "{text}");
        assert_eq!(serde_json::from_str::<CaseReport>(&text).unwrap(), report);
    }
}
