//! What a device's management tells of its health, beside what its workers say.
//!
//! A fleet knows no driver. Whoever has one gives it [`Sentries`]: for a device, somebody who waits for its next
//! [`Sign`]. Management may hang as anything else of a sick device, so each sentry has a thread of its own, and one
//! that does not come back in time is a sign, too.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::crew::FleetDevice;

/// Whose fault it is what a device's management reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The program's: its worker comes to grief over it, and that is all.
    Program,
    /// The hardware's, but it was kept within one worker, which has to be started again.
    Contained,
    /// The hardware's: the device gets no work until it passes a probe.
    Hardware,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "a fault of the program",
            Self::Contained => "a fault of the hardware that was contained",
            Self::Hardware => "a fault of the hardware",
        })
    }
}

/// Whose fault an error is that NVIDIA's drivers number: an Xid.
///
/// A number that is in no list counts as the program's. Drivers invent new ones, most of them are about programs, and a
/// device that is put aside over each is what people complain of; one that is ill in truth loses its workers, which
/// puts it aside as well.
pub fn classify(xid: u64) -> Fault {
    match xid {
        // Double bit errors, page retirement and row remapping, NVLink, fallen off the bus, errors that were not
        // contained, the device's own processor that does not answer.
        48 | 63 | 64 | 74 | 79 | 95 | 119 | 120 => Fault::Hardware,
        94 => Fault::Contained,
        // Exceptions and page faults of kernels, channels that were reset over them, contexts that were switched too
        // late: 13, 31, 43, 45, 68, 109, and all others.
        _ => Fault::Program,
    }
}

/// Something that a device's management reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sign {
    /// Whose fault it is.
    pub fault: Fault,
    /// In its words.
    pub text: String,
}

impl Sign {
    /// What an Xid says.
    pub fn of_xid(xid: u64) -> Self {
        let fault = classify(xid);
        Self {
            fault,
            text: format!("Xid {xid}, {fault}"),
        }
    }
}

/// Waits for what the management of one device reports.
pub trait Sentry: Send {
    /// The next sign, if there is one within this time. It may come back late, and never if the management hangs.
    ///
    /// # Errors
    /// Why there is nothing more to be heard, which says nothing about the device.
    fn wait(&mut self, within: Duration) -> Result<Option<Sign>, String>;
}

/// Posts sentries.
#[derive(Clone)]
pub struct Sentries(Arc<Post>);

type Post = dyn Fn(&FleetDevice) -> Option<Box<dyn Sentry>> + Send + Sync;

impl Sentries {
    /// By this function, which is called once for each device, on the thread of its sentry: it may hang as well.
    /// There is none for devices without management.
    pub fn new(
        post: impl Fn(&FleetDevice) -> Option<Box<dyn Sentry>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(post))
    }

    pub(crate) fn post(&self, device: &FleetDevice) -> Option<Box<dyn Sentry>> {
        (self.0)(device)
    }
}

impl fmt::Debug for Sentries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sentries")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::program(&[13, 31, 43, 45, 68, 109], Fault::Program)]
    #[case::hardware(&[48, 63, 64, 74, 79, 95, 119, 120], Fault::Hardware)]
    #[case::contained(&[94], Fault::Contained)]
    #[case::unknown(&[0, 1, 47, 96, 121, 999, u64::MAX], Fault::Program)]
    fn errors_are_told_apart(#[case] xids: &[u64], #[case] expected: Fault) {
        for &xid in xids {
            assert_eq!(classify(xid), expected, "Xid {xid}");
            assert_eq!(Sign::of_xid(xid).fault, expected);
        }
    }

    #[test]
    fn a_sign_has_the_number() {
        let text = Sign::of_xid(79).text;
        assert_eq!(text, "Xid 79, a fault of the hardware");
    }
}
