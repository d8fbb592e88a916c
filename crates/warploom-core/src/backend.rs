//! The outermost trait: code that talks to one driver API.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceInfo};
use crate::error::Result;
use crate::memory::MemoryKind;
use crate::name::{Name, NameError};

/// The name of a backend: `cuda`, `opencl`, `wgpu`, `cpu`, or one of your own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct BackendId(Name);

impl<'de> Deserialize<'de> for BackendId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl BackendId {
    /// The embedded backend that is always there.
    pub const CPU: Self = Self::new("cpu");

    /// A backend's name.
    ///
    /// # Panics
    /// When the text is not a [`Name`]; in a `const` that is a compile error.
    pub const fn new(name: &str) -> Self {
        let name = Name::new(name);
        assert!(
            fits(name),
            "a backend's name has no dot, which parts it from a place, and is not `host`"
        );
        Self(name)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for BackendId {
    type Err = NameError;
    fn from_str(text: &str) -> std::result::Result<Self, NameError> {
        let name: Name = text.parse()?;
        if fits(name) {
            Ok(Self(name))
        } else {
            Err(NameError::of(text))
        }
    }
}

/// Memory kinds are called `backend.place`, and `host` is the place without a backend.
const fn fits(name: Name) -> bool {
    let text = name.as_bytes();
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'.' {
            return false;
        }
        at += 1;
    }
    !matches!(text, b"host")
}

/// Code that talks to one driver API.
///
/// A backend value exists only after its library was found (see
/// [`BackendEntry`](crate::BackendEntry)), so its methods need not explain absence.
pub trait GpuBackend: Any + fmt::Debug + Send + Sync {
    /// The name under which it registers.
    fn id(&self) -> BackendId;

    /// Every kind of memory its devices may offer.
    fn memory_kinds(&self) -> &'static [MemoryKind];

    /// Lists the devices, cheaply: no context is created, no thread stays behind, and where the
    /// driver answers it takes less than 200 ms. No device is an empty list, not an error.
    ///
    /// # Errors
    /// When the driver is there but cannot be asked. It must not panic: users build with
    /// `panic = "abort"`.
    fn probe(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens a device that `probe` listed. Opening twice is allowed and gives two independent
    /// devices on the same hardware.
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>>;
}
