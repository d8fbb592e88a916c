//! Asking platforms and devices about themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

use opencl3::device::{
    CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CUSTOM, get_device_data, get_device_ids,
};
use opencl3::platform::platform::{get_platform_data, get_platform_ids};
use opencl3::types::{cl_device_id, cl_device_info, cl_platform_id, cl_platform_info};

use crate::error::{Driven, during};

/// One vendor's OpenCL. Platforms live as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Platform(pub(super) cl_platform_id);

// SAFETY: an immutable handle that lives as long as the process, usable from any thread.
unsafe impl Send for Platform {}
// SAFETY: as above.
unsafe impl Sync for Platform {}

/// A whole device, not a part of one; such devices live as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceHandle(pub(super) cl_device_id);

// SAFETY: an immutable handle that lives as long as the process, usable from any thread.
unsafe impl Send for DeviceHandle {}
// SAFETY: as above.
unsafe impl Sync for DeviceHandle {}

/// Held while platforms and devices are listed. The first listing starts the drivers, and `PoCL` 3.1
/// shows a second thread devices that are half made: none at all, or a crash.
static LISTING: Mutex<()> = Mutex::new(());

fn listing() -> MutexGuard<'static, ()> {
    LISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every platform, in the loader's order.
pub(crate) fn platforms() -> Driven<Vec<Platform>> {
    let _alone = listing();
    let ids = get_platform_ids().map_err(during("clGetPlatformIDs"))?;
    Ok(ids.into_iter().map(Platform).collect())
}

impl Platform {
    /// Every device, in the driver's order. Custom ones, which run no kernels of ours, do not
    /// belong to "all" by the specification; runtimes that count them in are corrected.
    pub(crate) fn devices(self) -> Driven<Vec<DeviceHandle>> {
        let _alone = listing();
        let ids = get_device_ids(self.0, CL_DEVICE_TYPE_ALL).map_err(during("clGetDeviceIDs"))?;
        let devices = ids.into_iter().map(DeviceHandle);
        let custom = |device: &DeviceHandle| {
            device
                .number(CL_DEVICE_TYPE)
                .is_some_and(|bits| bits & CL_DEVICE_TYPE_CUSTOM != 0)
        };
        Ok(devices.filter(|device| !custom(device)).collect())
    }

    /// A property as text; empty when the platform does not tell.
    pub(crate) fn text(self, property: cl_platform_info) -> String {
        plain(&get_platform_data(self.0, property).unwrap_or_default())
    }
}

impl DeviceHandle {
    /// A property as the driver wrote it, or `None` when the driver does not know it.
    pub(crate) fn bytes(self, property: cl_device_info) -> Option<Vec<u8>> {
        get_device_data(self.0, property).ok()
    }

    /// A property that is one number of any width.
    pub(crate) fn number(self, property: cl_device_info) -> Option<u64> {
        self.bytes(property).as_deref().and_then(number)
    }

    /// A property that is a yes or a no.
    pub(crate) fn flag(self, property: cl_device_info) -> bool {
        self.number(property).is_some_and(|value| value != 0)
    }

    /// A property as text; empty when the driver does not tell.
    pub(crate) fn text(self, property: cl_device_info) -> String {
        plain(&self.bytes(property).unwrap_or_default())
    }
}

/// A number as drivers write it: four or eight bytes in the host's order.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    if let Ok(word) = bytes.try_into() {
        return Some(u64::from(u32::from_ne_bytes(word)));
    }
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// A list of `size_t`.
pub(crate) fn sizes(bytes: &[u8]) -> Vec<u64> {
    let width = size_of::<usize>();
    bytes.chunks_exact(width).filter_map(number).collect()
}

/// Text without the terminator and the blanks that drivers pad names with.
fn plain(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_or_eight_bytes() {
        assert_eq!(number(&7_u32.to_ne_bytes()), Some(7));
        assert_eq!(number(&u64::MAX.to_ne_bytes()), Some(u64::MAX));
        assert_eq!(number(&[1, 2, 3]), None);
        assert_eq!(number(&[]), None);
    }

    #[test]
    fn lists_of_sizes_ignore_a_torn_end() {
        let mut bytes = Vec::new();
        bytes.extend(4096_usize.to_ne_bytes());
        bytes.extend(64_usize.to_ne_bytes());
        assert_eq!(sizes(&bytes), [4096, 64]);
        bytes.push(1);
        assert_eq!(sizes(&bytes), [4096, 64]);
    }

    #[test]
    fn text_ends_at_the_terminator() {
        assert_eq!(plain(b"  NVIDIA T4 \0garbage"), "NVIDIA T4");
        assert_eq!(plain(b""), "");
        assert_eq!(plain(b"\xff"), "\u{fffd}");
    }
}
