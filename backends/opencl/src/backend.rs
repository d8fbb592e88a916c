//! The backend value: OpenCL was found.

use std::path::PathBuf;
use std::sync::Arc;

use warploom_core::{
    BackendId, CodeCache, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, LoadError,
    MemoryKind, Result,
};

use crate::device::OpenClDevice;
use crate::{cl, error, probe};

/// OpenCL on this machine.
#[derive(Debug)]
pub struct OpenClBackend {
    cache: Option<CodeCache>,
    /// Was the folder named by somebody, for every device?
    named: bool,
}

impl OpenClBackend {
    /// Looks for the OpenCL library and a driver. Compiled programs are kept in
    /// `.cache/warploom/opencl` of the user's home directory, if there is one; those of PoCL are not, since it
    /// keeps them itself, and compiles every kernel a second time for whoever wants to have it.
    ///
    /// # Errors
    /// [`Absent`](LoadError::Absent) without library or driver, [`Broken`](LoadError::Broken) when
    /// they are there and cannot be asked.
    pub fn load() -> Result<Self, LoadError> {
        let platforms = cl::platforms().map_err(error::Failure::on_load)?;
        if platforms.is_empty() {
            return Err(error::no_driver());
        }
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Ok(Self {
            cache: home.map(|home| CodeCache::new(home.join(".cache/warploom/opencl"))),
            named: false,
        })
    }

    /// The same backend keeping compiled programs in `dir`, which is made when needed.
    ///
    /// What is found there is run, so nobody else should be able to write to it. A program that
    /// cannot be read or written there is compiled; it is never an error.
    #[must_use]
    pub fn with_cache_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self {
            cache: Some(CodeCache::new(dir)),
            named: true,
        }
    }

    /// The same backend keeping nothing on disk.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self {
            cache: None,
            named: true,
        }
    }
}

impl OpenClBackend {
    fn cache_of(&self, driver_keeps: bool) -> Option<&CodeCache> {
        let cache = self.cache.as_ref();
        cache.filter(|_| self.named || !driver_keeps)
    }
}

impl GpuBackend for OpenClBackend {
    fn id(&self) -> BackendId {
        crate::ID
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        probe::KINDS
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        let found = probe::devices()?;
        Ok(found.into_iter().map(|found| found.info).collect())
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let id = DeviceId::new(crate::ID, ordinal);
        let mut found = probe::devices()?;
        let Some(at) = found.iter().position(|found| found.info.id == id) else {
            let message = format!("{} devices are there, none with this number", found.len());
            return Err(DeviceError::driver(id, "clGetDeviceIDs", message));
        };
        let found = found.swap_remove(at);
        let cache = self.cache_of(found.keeps_programs).cloned();
        Ok(Arc::new(OpenClDevice::open(found, cache)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_keeps_is_kept_again_only_where_somebody_said_so() {
        let cache = || Some(CodeCache::new("somewhere"));
        let own = OpenClBackend {
            cache: cache(),
            named: false,
        };
        assert!(own.cache_of(false).is_some());
        assert!(own.cache_of(true).is_none());
        let told = own.with_cache_dir("elsewhere");
        assert!(told.cache_of(true).is_some());
        assert!(told.without_cache().cache_of(false).is_none());
    }
}
