//! A backend that answers what a test tells it to. Registries are tested with it alone; the fake
//! that can run work is in `warploom-testkit`.
#![allow(
    unreachable_pub,
    reason = "shared by test binaries, so `pub` reads best"
)]
#![allow(dead_code, reason = "each test binary uses its own part of this file")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use warploom_core::{
    BackendId, CapacityPolicy, Device, DeviceError, DeviceId, DeviceInfo, GpuBackend, MemoryKind,
    Options, PhysicalKey, Registry, Result, memory,
};

/// What the backend does when it is probed.
#[derive(Clone, Debug)]
pub enum Probe {
    Lists(Vec<DeviceInfo>),
    Fails(&'static str),
    Panics,
    Sleeps(Duration),
}

#[derive(Debug)]
pub struct Scripted {
    pub id: BackendId,
    pub probe: Probe,
    pub delay: Duration,
    pub probes: AtomicUsize,
}

impl GpuBackend for Scripted {
    fn id(&self) -> BackendId {
        self.id
    }
    fn memory_kinds(&self) -> &'static [MemoryKind] {
        &[memory::CUDA_DEVICE]
    }
    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        self.probes.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.delay);
        match &self.probe {
            Probe::Lists(devices) => Ok(devices.clone()),
            Probe::Fails(message) => Err(DeviceError::probe(self.id, "cuInit", message)),
            Probe::Panics => panic!("driver exploded"),
            Probe::Sleeps(time) => {
                std::thread::sleep(*time);
                Ok(Vec::new())
            }
        }
    }
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let id = DeviceId::new(self.id, ordinal);
        Err(DeviceError::unsupported(id, "being opened in this test"))
    }
}

pub fn scripted(id: &str, probe: Probe) -> Arc<Scripted> {
    Arc::new(Scripted {
        id: BackendId::new(id),
        probe,
        delay: Duration::ZERO,
        probes: AtomicUsize::new(0),
    })
}

pub fn slow(id: &str, probe: Probe, delay: Duration) -> Arc<Scripted> {
    Arc::new(Scripted {
        id: BackendId::new(id),
        probe,
        delay,
        probes: AtomicUsize::new(0),
    })
}

/// A hardware device with 24 GiB and no identity.
pub fn gpu(backend: &str, ordinal: u32) -> DeviceInfo {
    let id = DeviceId::new(BackendId::new(backend), ordinal);
    let mut info = DeviceInfo::new(id, "Test Card", &[memory::CUDA_DEVICE]);
    info.total_memory = 24 << 30;
    info
}

/// The same with a UUID made of one number.
pub fn gpu_with_uuid(backend: &str, ordinal: u32, uuid: u8) -> DeviceInfo {
    let mut info = gpu(backend, ordinal);
    info.key = PhysicalKey {
        uuid: Some(warploom_core::Uuid([uuid; 16])),
        ..PhysicalKey::default()
    };
    info
}

pub fn registry(backends: impl IntoIterator<Item = Arc<Scripted>>) -> Registry {
    let mut registry = Registry::empty();
    for backend in backends {
        registry.add(backend);
    }
    registry
}

/// One backend called `cuda` that lists devices with these ordinals.
pub fn cards(ordinals: &[u32]) -> Registry {
    let devices = ordinals.iter().map(|at| gpu("cuda", *at)).collect();
    registry([scripted("cuda", Probe::Lists(devices))])
}

/// Options that count capacity by threads, so that it can be worked out by hand.
pub fn options(threads: u32) -> Options {
    let mut options = Options::default();
    options.capacity = CapacityPolicy::Threads;
    options.cpu_threads = NonZeroU32::new(threads);
    options
}
