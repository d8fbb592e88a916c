//! How a backend gets into a registry.

use crate::backend::{BackendId, GpuBackend};

/// Why a backend could not be loaded. Being absent is normal; being broken is shown to the user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// What it needs is not installed.
    #[error("{reason}")]
    Absent {
        /// What is missing.
        reason: String,
    },
    /// What it needs is installed, and does not work.
    #[error("{reason}")]
    Broken {
        /// What went wrong.
        reason: String,
    },
}

impl LoadError {
    /// Something is not installed.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Absent {
            reason: reason.into(),
        }
    }

    /// Something is installed and does not work.
    pub fn broken(reason: impl Into<String>) -> Self {
        Self::Broken {
            reason: reason.into(),
        }
    }
}

/// The loader of a backend: finds its library, or says why not.
pub type Load = fn() -> Result<Box<dyn GpuBackend>, LoadError>;

/// A backend before it is loaded: a name and a function. Linking it in touches no driver.
#[derive(Clone, Copy, Debug)]
pub struct BackendEntry {
    id: BackendId,
    load: Load,
}

impl BackendEntry {
    /// An entry for the backend called `id`.
    pub const fn new(id: BackendId, load: Load) -> Self {
        Self { id, load }
    }

    /// The backend's name.
    pub fn id(&self) -> BackendId {
        self.id
    }

    /// Looks for the driver. Must not panic, whatever is missing.
    pub fn load(&self) -> Result<Box<dyn GpuBackend>, LoadError> {
        (self.load)()
    }
}

inventory::collect!(BackendEntry);

/// Registers a backend with every program that links the calling crate, and defines
/// `pub const ENTRY` for those who list their backends by hand.
///
/// A crate that is only named in `Cargo.toml` is not linked: the program must also say
/// `use my_backend as _;`. A `staticlib` linked by a foreign linker loses registrations; list the
/// entries with [`Registry::from_entries`](crate::Registry::from_entries) there.
#[macro_export]
macro_rules! register_backend {
    ($id:expr, $load:expr) => {
        /// This backend, for programs that list their backends by hand.
        pub const ENTRY: $crate::BackendEntry = $crate::BackendEntry::new($id, $load);
        $crate::inventory::submit! { ENTRY }
    };
}
