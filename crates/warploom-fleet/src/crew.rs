//! What a fleet is made of: a program and devices.

use std::ffi::OsString;
use std::path::PathBuf;

use warploom_core::LeaseRequest;

use crate::mask::Mask;

/// The program that workers are: usually this one, with an argument that makes its `main` call
/// [`serve`](crate::worker::serve).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Program {
    /// A program.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// The program that runs now, found again even if its file has been replaced meanwhile.
    pub fn this() -> Self {
        Self::new("/proc/self/exe")
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a variable to what workers inherit.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

/// A device of a fleet.
#[derive(Clone, Debug)]
pub struct FleetDevice {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) ordinal: Option<u32>,
    pub(crate) mask: Mask,
    pub(crate) workers: usize,
    pub(crate) lease: Option<LeaseRequest>,
}

impl FleetDevice {
    /// A device with one worker, which nothing hides from others.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            model: id.clone(),
            id,
            ordinal: None,
            mask: Mask::open(),
            workers: 1,
            lease: None,
        }
    }

    /// Its model: devices of one model have room for the same batches.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Its place among the devices that a process sees, where no variable hides the others.
    #[must_use]
    pub fn ordinal(mut self, ordinal: u32) -> Self {
        self.ordinal = Some(ordinal);
        self
    }

    /// The variables that show it, and it alone, to its workers.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// How many workers share it.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// What each of its workers has to lease before it is started, of the desk that the fleet is given.
    #[must_use]
    pub fn lease(mut self, request: LeaseRequest) -> Self {
        self.lease = Some(request);
        self
    }
}
