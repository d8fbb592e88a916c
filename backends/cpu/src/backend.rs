//! The backend: one device, and how much of the machine it may use.

use std::sync::Arc;
use std::thread::available_parallelism;

use warploom_core::memory::HOST;
use warploom_core::{
    BackendId, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, MemoryKind, Result,
};

use crate::device::CpuDevice;
use crate::probe::{Machine, device_info};

/// This backend's name.
pub const ID: BackendId = BackendId::CPU;

/// The embedded backend.
#[derive(Clone, Copy, Debug)]
pub struct CpuBackend {
    threads: usize,
    limit: Option<u64>,
}

impl CpuBackend {
    /// As many kernel threads as this process may run at once, and all of the memory.
    pub fn new() -> Self {
        Self::with_threads(available_parallelism().map_or(1, usize::from))
    }

    /// Kernels of each opened device share `threads` threads; 0 counts as 1.
    pub fn with_threads(threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            limit: None,
        }
    }

    /// Buffers of each opened device hold at most `bytes`; more is out of memory.
    #[must_use]
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        let limit = Some(bytes);
        Self { limit, ..self }
    }

    fn info(&self) -> DeviceInfo {
        device_info(&Machine::now(), self.threads, self.limit)
    }
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl GpuBackend for CpuBackend {
    fn id(&self) -> BackendId {
        ID
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        &[HOST]
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![self.info()])
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let info = self.info();
        if ordinal != info.id.ordinal {
            let what = format!("being opened: the only device is {}", info.id);
            return Err(DeviceError::unsupported(DeviceId::new(ID, ordinal), what));
        }
        // Memory is mapped only when touched, so without this the operating system would promise
        // more than there is and kill us later.
        let limit = info.limits.max_alloc;
        Ok(Arc::new(CpuDevice::open(info, self.threads, limit)?))
    }
}
