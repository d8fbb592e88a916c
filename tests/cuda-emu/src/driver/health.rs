//! Whether a context still works. The first fault ends it: all later calls answer the same.

use std::sync::{Arc, OnceLock};

use super::device::Device;
use super::journal;
use super::status::{Result, Status};

/// The state of one context, shared with what works for it.
#[derive(Debug)]
pub(crate) struct Health {
    device: Arc<Device>,
    fault: OnceLock<Status>,
}

/// What work did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What calls answer from then on.
    pub(crate) status: Status,
    /// For people.
    pub(crate) text: String,
}

impl Health {
    pub(crate) fn new(device: &Arc<Device>) -> Arc<Self> {
        Arc::new(Self {
            device: Arc::clone(device),
            fault: OnceLock::new(),
        })
    }

    /// The error all calls answer, if there is one.
    pub(crate) fn check(&self) -> Result {
        self.device.check()?;
        self.fault.get().map_or(Ok(()), |status| Err(*status))
    }

    /// The same as a number for callbacks.
    pub(crate) fn status(&self) -> Status {
        self.check().err().unwrap_or(Status::SUCCESS)
    }

    /// Ends the context. Only the first fault is told and kept.
    pub(crate) fn fail(&self, trouble: &Trouble) {
        if self.fault.set(trouble.status).is_ok() {
            let device = self.device.ordinal();
            journal::fault(&format!(
                "device {device}: {}: {}",
                trouble.status, trouble.text
            ));
        }
    }
}
