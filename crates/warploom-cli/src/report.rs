//! Any error as people see it: code, sentence, way out; and the exit code that goes with it.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use warploom::io::FileError;
use warploom::io::records::RecordError;
use warploom::kernels::op::OpError;
use warploom::run::status::StatusError;
use warploom::run::{Failure, RunFailure};
use warploom::{Code, Coded, DeviceError, RegistryError};

/// An error on its way to the terminal.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Option<Code>,
    text: String,
    help: Option<String>,
    exit: u8,
}

impl Problem {
    /// Something was asked for that makes no sense.
    pub(crate) fn usage(text: impl fmt::Display, help: impl Into<String>) -> Self {
        Self {
            code: None,
            text: text.to_string(),
            help: Some(help.into()),
            exit: 2,
        }
    }

    /// Something failed that nobody could foresee.
    pub(crate) fn failure(text: impl fmt::Display) -> Self {
        Self {
            code: None,
            text: text.to_string(),
            help: None,
            exit: 1,
        }
    }

    /// With the page of the operation that was asked for, unless that is named already.
    #[must_use]
    pub(crate) fn about(mut self, op: &str) -> Self {
        let page = format!("see `warploom ops {op}`");
        self.help = Some(match self.help {
            Some(help) if help.contains("`warploom ops ") => help,
            Some(help) => format!("{help}; {page}"),
            None => page,
        });
        self
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        // Names and settings came from the command line; the rest is the machine's doing.
        let exit = match error {
            RegistryError::NotLinked { .. }
            | RegistryError::UnknownDevice { .. }
            | RegistryError::BadOption { .. }
            | RegistryError::UnknownMemory { .. } => 2,
            _ => 1,
        };
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit,
        }
    }
}

impl From<&Failure> for Problem {
    /// What ended a run that had begun.
    fn from(failure: &Failure) -> Self {
        let code = failure.code.as_deref();
        let number = code.and_then(|code| code.strip_prefix("WL")?.parse().ok());
        Self {
            code: number.map(Code),
            text: failure.reason.clone(),
            help: failure.help.clone(),
            exit: 1,
        }
    }
}

impl From<OpError> for Problem {
    /// Operations, parameters and images all came from the command line.
    fn from(error: OpError) -> Self {
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit: 2,
        }
    }
}

impl From<FileError> for Problem {
    /// A file that is not there or makes no sense was named by somebody; a disk that is full was
    /// not.
    fn from(error: FileError) -> Self {
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit: if error.fault.is_about_the_request() {
                2
            } else {
                1
            },
        }
    }
}

impl From<RecordError> for Problem {
    /// Files and patterns were named by somebody.
    fn from(error: RecordError) -> Self {
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit: 2,
        }
    }
}

impl From<DeviceError> for Problem {
    fn from(error: DeviceError) -> Self {
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit: 1,
        }
    }
}

impl From<RunFailure> for Problem {
    fn from(error: RunFailure) -> Self {
        let exit = match &error {
            _ if error.is_call_off() => 130,
            RunFailure::Records(_)
            | RunFailure::Refused(_)
            | RunFailure::Axes { .. }
            | RunFailure::Output { .. }
            | RunFailure::Busy { .. }
            | RunFailure::Silent { .. } => 2,
            RunFailure::File(error) if error.fault.is_about_the_request() => 2,
            _ => 1,
        };
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit,
        }
    }
}

impl From<StatusError> for Problem {
    /// A folder without a run was named by somebody; damage was not.
    fn from(error: StatusError) -> Self {
        Self {
            code: Some(error.code()),
            text: error.to_string(),
            help: error.help(),
            exit: match error {
                StatusError::NoRun { .. } => 2,
                _ => 1,
            },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "error[{code}]: {}", self.text)?,
            None => write!(f, "error: {}", self.text)?,
        }
        match &self.help {
            Some(help) => write!(f, "\n  = help: {help}"),
            None => Ok(()),
        }
    }
}

/// Prints a problem and gives its exit code.
pub(crate) fn print(problem: &Problem) -> ExitCode {
    remark(problem);
    ExitCode::from(problem.exit)
}

/// A line on stderr. If nobody listens there, nothing is to be done about it, and least of all a
/// panic: exit codes are a contract.
pub(crate) fn remark(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
