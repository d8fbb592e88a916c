//! Why there is no lease.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::status::{Holder, slots_text};
use crate::bytes::Bytes;
use crate::error::{Code, Coded, list};
use crate::name::nearest;

/// Why there is no lease. The first four are refused at once, before anybody waits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// A name nobody knows. (WL0121)
    #[error("there is no device `{asked}` to lease; known: {}", list(known))]
    UnknownDevice {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<String>,
    },
    /// More bytes than the device will ever have. (WL0122)
    #[error(
        "{} were asked of {device}, which leases {} in all",
        Bytes(*asked),
        Bytes(*capacity)
    )]
    TooManyBytes {
        /// The device that comes nearest.
        device: String,
        /// What was asked for.
        asked: u64,
        /// What it has.
        capacity: u64,
        /// Other devices that would do.
        enough: Vec<String>,
    },
    /// More slots than the device will ever have. (WL0123)
    #[error("{} were asked of {device}, which has {capacity}", slots_text(*asked))]
    TooManySlots {
        /// The device that comes nearest.
        device: String,
        /// What was asked for.
        asked: u32,
        /// What it has.
        capacity: u32,
        /// Other devices that would do.
        enough: Vec<String>,
    },
    /// A lease of nothing. (WL0124)
    #[error("a lease of 0 slots was asked for{}", label_text(label))]
    ZeroSlots {
        /// By whom.
        label: String,
    },
    /// The wait was too long. (WL0125)
    #[error(
        "no lease of {} and {} on {} within {within:?}; {} waiting ahead, held by {}",
        slots_text(*slots),
        Bytes(*bytes),
        devices.join(" or "),
        ahead,
        list(holders)
    )]
    Deadline {
        /// How long it was waited for.
        within: Duration,
        /// The slots that were asked for.
        slots: u32,
        /// The bytes that were asked for.
        bytes: u64,
        /// Where.
        devices: Vec<String>,
        /// How many were to be served before, where the queue was shortest.
        ahead: usize,
        /// Who has them.
        holders: Vec<Holder>,
    },
    /// The wait was called off. (WL0126)
    #[error("the wait for a lease on {} was called off", devices.join(" or "))]
    Cancelled {
        /// Where it waited.
        devices: Vec<String>,
    },
    /// The ledger cannot be read or written. (WL0127)
    #[error("the lease ledger {} cannot be used: {reason}", path.display())]
    Ledger {
        /// Which file or directory.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// Somebody keeps the ledger locked. (WL0128)
    #[error("the lease ledger {} was locked by another process for {waited:?}", path.display())]
    LedgerBusy {
        /// Which file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A device that cannot be put up for lease. (WL0129)
    #[error("device `{name}` cannot be leased out: {why}")]
    Device {
        /// Which one.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

fn label_text(label: &str) -> String {
    if label.is_empty() {
        String::new()
    } else {
        format!(" by `{label}`")
    }
}

impl LeaseError {
    pub(crate) fn ledger(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Ledger {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl Coded for LeaseError {
    fn code(&self) -> Code {
        Code(match self {
            Self::UnknownDevice { .. } => 121,
            Self::TooManyBytes { .. } => 122,
            Self::TooManySlots { .. } => 123,
            Self::ZeroSlots { .. } => 124,
            Self::Deadline { .. } => 125,
            Self::Cancelled { .. } => 126,
            Self::Ledger { .. } => 127,
            Self::LedgerBusy { .. } => 128,
            Self::Device { .. } => 129,
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::UnknownDevice { asked, known } => {
                match nearest(asked, known.iter().map(String::as_str)) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "`warploom detect` lists the devices".into(),
                }
            }
            Self::TooManyBytes {
                capacity, enough, ..
            } => instead(
                enough,
                &format!(
                    "ask for at most {}: a smaller tile or depth needs less",
                    Bytes(*capacity)
                ),
            ),
            Self::TooManySlots {
                capacity, enough, ..
            } => instead(
                enough,
                &format!("ask for at most {}", slots_text(*capacity)),
            ),
            Self::ZeroSlots { .. } => "ask for at least 1 slot; 0 bytes are fine".into(),
            Self::Deadline { .. } => {
                "wait longer, ask for less, or end one of the holders; their process ids are above"
                    .into()
            }
            Self::Cancelled { .. } => return None,
            Self::Ledger { path, .. } => format!(
                "name another ledger directory, or, once no warploom process runs on this \
                 machine, delete {}",
                path.display()
            ),
            Self::LedgerBusy { .. } => {
                "a process was stopped while it wrote there: continue it (`kill -CONT`) or end it"
                    .into()
            }
            Self::Device { .. } => "give each device one name and one key of its own".into(),
        };
        Some(text)
    }
}

/// Names the devices that would do, or else what would.
fn instead(enough: &[String], otherwise: &str) -> String {
    if enough.is_empty() {
        otherwise.to_owned()
    } else {
        format!("{} would do; or {otherwise}", enough.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn holder(pid: u32, label: &str) -> Holder {
        Holder {
            pid,
            label: label.into(),
            slots: 2,
            bytes: 3 << 30,
            since: UNIX_EPOCH,
        }
    }

    #[rstest::rstest]
    #[case(
        LeaseError::UnknownDevice { asked: "gpu2".into(), known: vec!["gpu0".into(), "gpu1".into()] },
        "WL0121: there is no device `gpu2` to lease; known: gpu0, gpu1",
        "did you mean `gpu0`?"
    )]
    #[case(
        LeaseError::UnknownDevice { asked: "any".into(), known: vec![] },
        "WL0121: there is no device `any` to lease; known: nothing",
        "`warploom detect` lists the devices"
    )]
    #[case(
        LeaseError::TooManyBytes {
            device: "gpu0".into(), asked: 90 << 30, capacity: 48 << 30, enough: vec![],
        },
        "WL0122: 90.0 GiB were asked of gpu0, which leases 48.0 GiB in all",
        "ask for at most 48.0 GiB: a smaller tile or depth needs less"
    )]
    #[case(
        LeaseError::TooManySlots {
            device: "gpu0".into(), asked: 3, capacity: 1, enough: vec!["gpu1".into(), "gpu2".into()],
        },
        "WL0123: 3 slots were asked of gpu0, which has 1",
        "gpu1 or gpu2 would do; or ask for at most 1 slot"
    )]
    #[case(
        LeaseError::ZeroSlots { label: "denoise".into() },
        "WL0124: a lease of 0 slots was asked for by `denoise`",
        "ask for at least 1 slot; 0 bytes are fine"
    )]
    #[case(
        LeaseError::Deadline {
            within: Duration::from_millis(1500), slots: 1, bytes: 2 << 30,
            devices: vec!["gpu0".into(), "gpu1".into()], ahead: 2,
            holders: vec![holder(4127, "denoise"), holder(9, "")],
        },
        "WL0125: no lease of 1 slot and 2.0 GiB on gpu0 or gpu1 within 1.5s; 2 waiting ahead, \
         held by pid 4127 `denoise` (2 slots, 3.0 GiB), pid 9 (2 slots, 3.0 GiB)",
        "wait longer, ask for less, or end one of the holders; their process ids are above"
    )]
    #[case(
        LeaseError::Cancelled { devices: vec!["gpu0".into()] },
        "WL0126: the wait for a lease on gpu0 was called off",
        "-"
    )]
    #[case(
        LeaseError::ledger(Path::new("ledgers/gpu.ledger"), "No space left on device"),
        "WL0127: the lease ledger ledgers/gpu.ledger cannot be used: No space left on device",
        "name another ledger directory, or, once no warploom process runs on this machine, \
         delete ledgers/gpu.ledger"
    )]
    #[case(
        LeaseError::LedgerBusy { path: "gpu.ledger".into(), waited: Duration::from_secs(2) },
        "WL0128: the lease ledger gpu.ledger was locked by another process for 2s",
        "a process was stopped while it wrote there: continue it (`kill -CONT`) or end it"
    )]
    #[case(
        LeaseError::Device { name: "gpu0".into(), why: "its name is in the list twice".into() },
        "WL0129: device `gpu0` cannot be leased out: its name is in the list twice",
        "give each device one name and one key of its own"
    )]
    fn errors_say_what_and_what_to_do(
        #[case] error: LeaseError,
        #[case] text: &str,
        #[case] help: &str,
    ) {
        assert_eq!(format!("{}: {error}", error.code()), text);
        assert_eq!(error.help().unwrap_or("-".into()), help);
    }
}
