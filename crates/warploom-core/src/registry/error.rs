//! What the registry refuses, and what to do about it.

use crate::backend::BackendId;
use crate::device::DeviceId;
use crate::error::{Code, Coded, DeviceError, list};
use crate::lease::LeaseError;
use crate::memory::MemoryKind;
use crate::survey::BackendState;

/// Why a registry could not do what it was asked.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Not one backend is linked in. (WL0101)
    #[error("this program has no backends")]
    NoBackends,
    /// A backend that is not part of this program. (WL0102)
    #[error("backend `{backend}` is not in this build, which has {}", list(linked))]
    NotLinked {
        /// What was asked for.
        backend: String,
        /// What there is.
        linked: Vec<BackendId>,
        /// The one that may have been meant.
        near: Option<String>,
    },
    /// A backend that is linked but did not load. (WL0103)
    #[error("backend `{backend}` is {}: {reason}", state_text(*state))]
    Unavailable {
        /// Which backend.
        backend: BackendId,
        /// How loading ended.
        state: BackendState,
        /// Why.
        reason: String,
    },
    /// A device nobody reported. (WL0104)
    #[error("there is no device `{asked}`; {}", there_are(known))]
    UnknownDevice {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A second initialisation. (WL0105)
    #[error("the registry is already initialised, with {devices} devices")]
    AlreadyInitialized {
        /// What the first one found.
        devices: usize,
    },
    /// A question before initialisation. (WL0106)
    #[error("the registry is not initialised yet{}", if *detecting { "; detection is under way" } else { "" })]
    NotInitialized {
        /// Is a detection running right now?
        detecting: bool,
    },
    /// A setting that makes no sense. (WL0107)
    #[error("{option} = {value} makes no sense: {wanted}")]
    BadOption {
        /// Which setting.
        option: &'static str,
        /// What it was.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// Work for a GPU, and no GPU of that sort. (WL0108)
    #[error("no device for backend `{backend}`: {reason}")]
    NoDevice {
        /// The backend that has none.
        backend: BackendId,
        /// Why it has none.
        reason: String,
    },
    /// A name that is no memory kind and no alias of one. (WL0201)
    #[error("`{asked}` is not a kind of memory; known are {}", list(known))]
    UnknownMemory {
        /// What was asked for.
        asked: String,
        /// Every kind and alias.
        known: Vec<String>,
        /// The one that may have been meant.
        near: Option<String>,
    },
    /// One pipeline bound to two devices of a backend. (WL0211)
    #[error("backend `{}` is bound to {first} already and cannot be bound to {second} as well", first.backend)]
    BoundTwice {
        /// The binding that stands.
        first: DeviceId,
        /// The one refused.
        second: DeviceId,
    },
    /// A binding of memory to a device that does not have it. (WL0212)
    #[error("{kind} memory cannot be bound to {device}")]
    WrongBackend {
        /// Which memory.
        kind: MemoryKind,
        /// Which device.
        device: DeviceId,
    },
    /// A binding that was needed and never made. (WL0213)
    #[error("{kind} memory is not bound to a device")]
    Unbound {
        /// Which memory.
        kind: MemoryKind,
    },
    /// A device said no.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A lease was refused.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() {
        "there is none at all".into()
    } else {
        format!("there are {}", list(known))
    }
}

fn state_text(state: BackendState) -> &'static str {
    match state {
        BackendState::Loaded => "loaded",
        BackendState::Absent => "absent",
        BackendState::Broken => "broken",
    }
}

impl Coded for RegistryError {
    fn code(&self) -> Code {
        Code(match self {
            Self::NoBackends => 101,
            Self::NotLinked { .. } => 102,
            Self::Unavailable { .. } => 103,
            Self::UnknownDevice { .. } => 104,
            Self::AlreadyInitialized { .. } => 105,
            Self::NotInitialized { .. } => 106,
            Self::BadOption { .. } => 107,
            Self::NoDevice { .. } => 108,
            Self::UnknownMemory { .. } => 201,
            Self::BoundTwice { .. } => 211,
            Self::WrongBackend { .. } => 212,
            Self::Unbound { .. } => 213,
            Self::Device(error) => return error.code(),
            Self::Lease(error) => return error.code(),
        })
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            Self::NoBackends => {
                "turn a feature of `warploom` on, or write `use my_backend as _;` so that the \
                 crate is linked; a staticlib linked by a foreign linker loses registrations: \
                 list them with `Registry::from_entries`"
                    .into()
            }
            Self::NotLinked {
                near: Some(near), ..
            }
            | Self::UnknownMemory {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::NotLinked { backend, .. }
                if !["cpu", "cuda", "opencl", "wgpu"].contains(&backend.as_str()) =>
            {
                "link its crate with `use … as _;` in the program; in a staticlib, list it with \
                 `Registry::from_entries`"
                    .into()
            }
            Self::NotLinked { backend, .. } => format!(
                "build with `--features {backend}`, or link its crate with `use … as _;` in the \
                 program; in a staticlib, list it with `Registry::from_entries`"
            ),
            Self::Unavailable {
                state: BackendState::Absent,
                ..
            } => "install what is missing, or leave this backend out".into(),
            Self::Unavailable { .. } | Self::NoDevice { .. } => {
                "`warploom detect` shows what every backend says".into()
            }
            Self::UnknownDevice { .. } => {
                "name a card (`gpu0`) or one of its faces (`cuda:0`); `warploom detect` lists them"
                    .into()
            }
            Self::AlreadyInitialized { .. } => {
                "use `setup`, which may be called any number of times, or `rescan`".into()
            }
            Self::NotInitialized { .. } => "call `setup` or `initialize` first".into(),
            Self::BoundTwice { .. } => {
                "all steps of a pipeline share one card; run two pipelines to use two".into()
            }
            Self::Unbound { kind } => format!("bind it to a device of `{}`", kind.backend()),
            Self::Device(error) => return error.help(),
            Self::Lease(error) => return error.help(),
            Self::BadOption { .. } | Self::UnknownMemory { .. } | Self::WrongBackend { .. } => {
                return None;
            }
        };
        Some(text)
    }
}
