//! Faults of drivers that we know and cannot mend.

use warploom_core::DeviceInfo;

use crate::case::Outcome;

/// A case that is known to fail on some driver: its failure is expected, and its success is
/// reported, so that the entry does not outlive the fault.
///
/// Empty texts match everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expect {
    /// The backend's name.
    pub backend: &'static str,
    /// A part of the device's name.
    pub device: &'static str,
    /// A part of the driver's version text.
    pub driver: &'static str,
    /// The case, as `group::name`.
    pub case: &'static str,
    /// What the failure says.
    pub text: &'static str,
    /// Whose fault it is, and where that is written down.
    pub reason: &'static str,
}

/// Known faults of the drivers Warploom's own backends meet.
pub(crate) const KNOWN: &[Expect] = &[];

impl Expect {
    /// Is it about this case on this device?
    pub(crate) fn covers(&self, info: &DeviceInfo, case: &str) -> bool {
        let backend = self.backend.is_empty() || info.id.backend.as_str() == self.backend;
        backend
            && info.name.contains(self.device)
            && info.driver.contains(self.driver)
            && self.case == case
    }

    /// What the outcome becomes in the light of this entry.
    pub(crate) fn judge(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Failed { text } if text.contains(self.text) => Outcome::Known {
                text,
                reason: self.reason.to_owned(),
            },
            Outcome::Failed { text } => Outcome::Failed {
                text: format!(
                    "{text}\nthis case is known to fail here, but with `{}` ({})",
                    self.text, self.reason
                ),
            },
            Outcome::Passed => Outcome::Failed {
                text: format!(
                    "passed, although it is known to fail with `{}` ({}): remove the entry",
                    self.text, self.reason
                ),
            },
            other => other,
        }
    }
}
