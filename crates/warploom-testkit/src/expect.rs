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
    /// Does it fail only now and then? Then a pass is no news.
    pub sometimes: bool,
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
            Outcome::Passed if !self.sometimes => Outcome::Failed {
                text: format!(
                    "passed, although it is known to fail with `{}` ({}): remove the entry",
                    self.text, self.reason
                ),
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use warploom_core::GpuBackend;

    use super::*;
    use crate::{CaseReport, FakeBackend, FakeDevice, Flaw, Options, run};

    const SHORT: Expect = Expect {
        backend: "fake",
        device: "1000",
        driver: "fake 1",
        case: "copy::leaves_neighbours_alone",
        text: "1 are wrong",
        reason: "copies lack their last byte, by order",
        sometimes: false,
    };

    /// What becomes of the case on a fake with or without that fault.
    fn outcome(flaw: Option<Flaw>, expect: Expect) -> Outcome {
        let mut fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake 1000"));
        if let Some(flaw) = flaw {
            fakes = fakes.flawed(flaw);
        }
        let fakes: Arc<dyn GpuBackend> = Arc::new(fakes);
        let options = Options {
            limit: Duration::from_secs(20),
            known: vec![expect],
            only: vec!["copy::leaves_neighbours_alone".to_owned()],
        };
        let mut reports: Vec<CaseReport> = run(&fakes, &options);
        assert_eq!(reports.len(), 1);
        reports.remove(0).outcome
    }

    #[test]
    fn a_known_failure_is_known() {
        let outcome = outcome(Some(Flaw::CopyShort), SHORT);
        assert!(
            matches!(&outcome, Outcome::Known { reason, .. } if reason == SHORT.reason),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_known_failure_that_is_gone_is_a_failure() {
        let outcome = outcome(None, SHORT);
        assert!(
            matches!(&outcome, Outcome::Failed { text } if text.contains("remove the entry")),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_fault_that_comes_and_goes_may_be_gone() {
        let fickle = Expect {
            sometimes: true,
            ..SHORT
        };
        assert_eq!(outcome(None, fickle), Outcome::Passed);
        let failed = outcome(Some(Flaw::CopyShort), fickle);
        assert!(matches!(failed, Outcome::Known { .. }), "{failed:?}");
    }

    #[test]
    fn another_failure_is_not_the_known_one() {
        let other = Expect {
            text: "the bus is full",
            ..SHORT
        };
        let outcome = outcome(Some(Flaw::CopyShort), other);
        assert!(
            matches!(&outcome, Outcome::Failed { text } if text.contains("the bus is full")),
            "{outcome:?}"
        );
    }

    #[test]
    fn another_device_has_no_excuse() {
        for other in [
            Expect {
                backend: "real",
                ..SHORT
            },
            Expect {
                device: "2000",
                ..SHORT
            },
            Expect {
                driver: "fake 2",
                ..SHORT
            },
            Expect {
                case: "copy::chains",
                ..SHORT
            },
        ] {
            let outcome = outcome(Some(Flaw::CopyShort), other);
            assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
        }
    }
}
