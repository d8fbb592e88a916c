//! Which device a pipeline's memory lives on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backend::BackendId;
use crate::device::DeviceId;
use crate::memory::MemoryKind;
use crate::registry::error::RegistryError;

/// For each backend a pipeline uses, the one device it uses there. Host memory needs none, so a
/// binding of it cannot be written down.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bindings {
    devices: BTreeMap<BackendId, DeviceId>,
}

impl Bindings {
    /// No bindings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds memory of `kind` to `device`. Binding the same pair again changes nothing.
    ///
    /// # Errors
    /// When the device does not have such memory, the memory is the host's, or the backend is
    /// bound to another device already.
    pub fn bind(&mut self, kind: MemoryKind, device: DeviceId) -> Result<(), RegistryError> {
        if !kind.needs_gpu() || kind.backend() != device.backend {
            return Err(RegistryError::WrongBackend { kind, device });
        }
        match self.devices.insert(device.backend, device) {
            Some(first) if first != device => {
                self.devices.insert(device.backend, first);
                Err(RegistryError::BoundTwice {
                    first,
                    second: device,
                })
            }
            _ => Ok(()),
        }
    }

    /// Both sets in one.
    ///
    /// # Errors
    /// When they bind a backend to different devices.
    pub fn merge(&self, other: &Self) -> Result<Self, RegistryError> {
        let mut merged = self.clone();
        for device in other.devices.values() {
            match merged.devices.insert(device.backend, *device) {
                Some(first) if first != *device => {
                    return Err(RegistryError::BoundTwice {
                        first,
                        second: *device,
                    });
                }
                _ => {}
            }
        }
        Ok(merged)
    }

    /// Only the bindings that these kinds need.
    ///
    /// # Errors
    /// When one that is needed was never made.
    pub fn select(&self, kinds: &[MemoryKind]) -> Result<Self, RegistryError> {
        let mut selected = Self::new();
        for kind in kinds {
            if let Some(device) = self.device(*kind)? {
                selected.devices.insert(device.backend, device);
            }
        }
        Ok(selected)
    }

    /// The device that memory of `kind` lives on; `None` for the host's.
    ///
    /// # Errors
    /// When the kind needs a device and none is bound.
    pub fn device(&self, kind: MemoryKind) -> Result<Option<DeviceId>, RegistryError> {
        if !kind.needs_gpu() {
            return Ok(None);
        }
        let bound = self.devices.get(&kind.backend()).copied();
        bound.map(Some).ok_or(RegistryError::Unbound { kind })
    }
}
