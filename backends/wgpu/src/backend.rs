//! The backend: is there a driver API at all, and what does it offer?

use std::sync::Arc;

use warploom_core::memory::{WGPU_DEVICE, WGPU_PINNED};
use warploom_core::{
    BackendId, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, LoadError, MemoryKind, Result,
};

use crate::device::WgpuDevice;
use crate::{ID, probe};

/// Creating a wgpu instance succeeds on a machine without any driver, so the loader asks for the
/// library that everything else hangs on. Windows and Apple systems bring theirs along.
#[cfg(any(windows, target_vendor = "apple"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the other systems' loader can fail, and both have one signature"
)]
pub(crate) fn load() -> Result<Box<dyn GpuBackend>, LoadError> {
    Ok(Box::new(Wgpu))
}

#[cfg(not(any(windows, target_vendor = "apple")))]
pub(crate) fn load() -> Result<Box<dyn GpuBackend>, LoadError> {
    find("libvulkan.so.1")?;
    Ok(Box::new(Wgpu))
}

/// Opens and closes a library, to see whether it is there.
#[cfg(not(any(windows, target_vendor = "apple")))]
fn find(library: &str) -> Result<(), LoadError> {
    use std::error::Error as _;
    // SAFETY: the only library asked for is the Vulkan loader, whose initialisers and finalisers
    // may run on any thread at any time; no symbol of it is used through this handle.
    let opened = unsafe { libloading::Library::new(library) };
    match opened {
        Ok(_) => Ok(()),
        Err(error) => {
            // The system's own words are in the source.
            let text = error
                .source()
                .map_or(error.to_string(), ToString::to_string);
            Err(
                if text.contains("No such file") || text.contains("not found") {
                    LoadError::absent(format!("{library} is not installed"))
                } else {
                    LoadError::broken(format!("{library} does not load: {text}"))
                },
            )
        }
    }
}

/// Holds nothing: every probe starts from a fresh instance, so that it sees what is there now and
/// leaves nothing behind.
#[derive(Debug)]
struct Wgpu;

impl GpuBackend for Wgpu {
    fn id(&self) -> BackendId {
        ID
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        &[WGPU_DEVICE, WGPU_PINNED]
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        Ok(probe::find().into_iter().map(|found| found.info).collect())
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let id = DeviceId::new(ID, ordinal);
        let found = probe::find().into_iter().find(|found| found.info.id == id);
        let found = found.ok_or_else(|| {
            DeviceError::driver(
                id,
                "enumerate_adapters",
                "there is no such adapter (any more)",
            )
        })?;
        Ok(Arc::new(WgpuDevice::open(found)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(any(windows, target_vendor = "apple")))]
    #[test]
    fn a_missing_library_is_absent_and_named() {
        let error = find("libvulkan-that-is-not-there.so.1").unwrap_err();
        let reason = "libvulkan-that-is-not-there.so.1 is not installed";
        assert_eq!(error, LoadError::absent(reason));
    }

    #[cfg(not(any(windows, target_vendor = "apple")))]
    #[test]
    fn a_library_that_is_none_is_broken() {
        let path = std::env::temp_dir().join(format!("no-library-{}.so", std::process::id()));
        std::fs::write(&path, "this is not a library").unwrap();
        let found = find(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(found, Err(LoadError::Broken { .. })), "{found:?}");
    }
}
