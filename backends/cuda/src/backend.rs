//! The backend: a loaded driver.

use std::path::PathBuf;
use std::sync::Arc;

use warploom_core::{
    BackendId, CodeCache, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, LoadError,
    MemoryKind, Result,
};

use crate::context::Context;
use crate::device::{CudaDevice, Opened};
use crate::driver::Driver;
use crate::error::{Status, code, start_hint};
use crate::nvrtc::NvrtcChoice;
use crate::{ID, KINDS, probe};

/// NVIDIA devices through the CUDA driver.
#[derive(Debug)]
pub struct CudaBackend {
    driver: &'static Driver,
    nvrtc: NvrtcChoice,
    cache: Option<CodeCache>,
}

impl CudaBackend {
    /// Finds the driver and starts it. A driver without a device is fine: it lists none. What NVRTC
    /// compiled is kept in `.cache/warploom/cuda` of the user's home directory, if there is one.
    ///
    /// # Errors
    /// Absent without a driver; broken when it lacks an entry point or does not start.
    pub fn load() -> Result<Self, LoadError> {
        let driver = Driver::load()?;
        driver.init().map_err(|status| broken(driver, status))?;
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Ok(Self {
            driver,
            nvrtc: NvrtcChoice::default(),
            cache: home.map(|home| CodeCache::new(home.join(".cache/warploom/cuda"))),
        })
    }

    /// The same keeping compiled kernels in `dir`, which is made when needed.
    ///
    /// What is found there is run, so nobody else should be able to write to it. A kernel that
    /// cannot be read or written there is compiled; it is never an error.
    #[must_use]
    pub fn with_cache_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self {
            cache: Some(CodeCache::new(dir)),
            ..self
        }
    }

    /// The same keeping nothing on disk.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self {
            cache: None,
            ..self
        }
    }

    /// The same with NVRTC taken from this file instead of the usual names, which is looked for
    /// when it is first needed.
    #[must_use]
    pub fn with_nvrtc(self, path: impl Into<PathBuf>) -> Self {
        Self {
            nvrtc: NvrtcChoice::file(path),
            ..self
        }
    }

    /// Starts the driver again, in case a device appeared; `false` when there is none.
    fn ready(&self) -> Result<bool> {
        let started = self.driver.init();
        started.map_err(|status| self.probe_error(status))
    }

    fn probe_error(&self, status: Status) -> DeviceError {
        DeviceError::probe(ID, status.call(), self.driver.explain(status))
    }
}

fn broken(driver: &Driver, status: Status) -> LoadError {
    let hint = start_hint(status).map_or(String::new(), |hint| format!("; {hint}"));
    let text = driver.explain(status);
    LoadError::broken(format!("{} answered {text}{hint}", status.call()))
}

/// What the registry calls.
pub(crate) fn load() -> Result<Box<dyn GpuBackend>, LoadError> {
    Ok(Box::new(CudaBackend::load()?))
}

impl GpuBackend for CudaBackend {
    fn id(&self) -> BackendId {
        ID
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        KINDS
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        if !self.ready()? {
            return Ok(Vec::new());
        }
        let count = probe::count(self.driver).map_err(|status| self.probe_error(status))?;
        let nvrtc = self.nvrtc.get().is_ok();
        let devices = (0..count).filter_map(|ordinal| {
            let found = probe::Found::at(self.driver, ordinal);
            // One sick card does not hide the others.
            let found = found.inspect_err(|status| {
                let text = self.driver.explain(*status);
                tracing::warn!(ordinal, call = status.call(), text, "device skipped");
            });
            Some(found.ok()?.describe(self.driver, nvrtc))
        });
        Ok(devices.collect())
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let id = DeviceId::new(ID, ordinal);
        let driver = self.driver;
        if !self.ready()? {
            return Err(Status::new("cuInit", code::NO_DEVICE).error(driver, id));
        }
        let found = probe::Found::at(driver, ordinal).map_err(|status| status.error(driver, id))?;
        let mut info = found.describe(driver, self.nvrtc.get().is_ok());
        let capability = found.capability(driver);
        let context = Context::retain(driver, id, found.handle())?;
        info.free_memory = context.memory().ok().map(|(free, _)| free);
        tracing::debug!(device = %id, name = info.name, capability, "opened");
        let opened = Opened::new(context, capability, self.nvrtc.clone(), self.cache.clone())?;
        Ok(Arc::new(CudaDevice::new(info, opened)))
    }
}
