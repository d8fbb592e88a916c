//! Machines that exist only here.

use std::num::NonZeroU32;
use std::time::Duration;

use warploom_core::memory::{
    CUDA_DEVICE, CUDA_PINNED, HOST, OPENCL_DEVICE, OPENCL_PINNED, WGPU_DEVICE, WGPU_PINNED,
};
use warploom_core::{
    BackendId, BackendReport, BackendState, Capacity, CapacityPolicy, Caps, DeviceId, DeviceInfo,
    DeviceKind, Language, Status, Survey, Uuid,
};

pub(crate) const GIB: u64 = 1 << 30;

fn id(backend: &str, ordinal: u32) -> DeviceId {
    DeviceId::new(BackendId::new(backend), ordinal)
}

pub(crate) fn cpu() -> DeviceInfo {
    let mut info = DeviceInfo::software(id("cpu", 0), "processor", &[HOST]);
    info.kind = DeviceKind::Cpu;
    info.total_memory = 64 * GIB;
    info.caps = Caps::F64 | Caps::STRICT_MATH | Caps::UNIFIED_MEMORY;
    info
}

pub(crate) fn cuda(ordinal: u32, memory: u64) -> DeviceInfo {
    let mut info = DeviceInfo::new(id("cuda", ordinal), "Card", &[CUDA_DEVICE, CUDA_PINNED]);
    info.total_memory = memory;
    info.languages = vec![Language::CudaC];
    info.caps = Caps::F64 | Caps::STRICT_MATH | Caps::COPY_OVERLAP;
    info.key.uuid = Some(uuid(ordinal));
    info
}

pub(crate) fn opencl(ordinal: u32, card: u32, memory: u64) -> DeviceInfo {
    let mut info = DeviceInfo::new(
        id("opencl", ordinal),
        "Card",
        &[OPENCL_DEVICE, OPENCL_PINNED],
    );
    info.total_memory = memory;
    info.languages = vec![Language::OpenClC];
    info.caps = Caps::F64 | Caps::STRICT_MATH;
    info.key.uuid = Some(uuid(card));
    info
}

/// A card whose kernels know no numbers of 64 bits, and which promises no bits.
pub(crate) fn wgpu(ordinal: u32, memory: u64) -> DeviceInfo {
    let mut info = DeviceInfo::new(id("wgpu", ordinal), "Card", &[WGPU_DEVICE, WGPU_PINNED]);
    info.total_memory = memory;
    info.languages = vec![Language::Wgsl];
    info.key.uuid = Some(uuid(ordinal));
    info
}

fn uuid(card: u32) -> Uuid {
    format!("00000000-0000-4000-8000-0000000000{card:02x}")
        .parse()
        .unwrap()
}

fn report(name: &str, reason: Option<&str>) -> BackendReport {
    BackendReport {
        id: BackendId::new(name),
        state: if reason.is_some() {
            BackendState::Absent
        } else {
            BackendState::Loaded
        },
        reason: reason.map(str::to_owned),
        took: Duration::ZERO,
    }
}

/// A machine with these devices; backends without one are absent.
pub(crate) fn machine(devices: impl IntoIterator<Item = DeviceInfo>) -> Status {
    let devices: Vec<DeviceInfo> = devices.into_iter().collect();
    let backends = devices.iter().map(|device| device.id.backend.to_string());
    let backends: Vec<String> = backends.collect();
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    machine_with(&backends, devices)
}

/// A machine with these drivers, whether or not they list a device.
pub(crate) fn machine_with(
    drivers: &[&str],
    devices: impl IntoIterator<Item = DeviceInfo>,
) -> Status {
    let devices: Vec<DeviceInfo> = devices.into_iter().collect();
    let has = |name: &str| drivers.contains(&name);
    let why = |name: &str| match name {
        "cuda" => "libcuda.so.1 is not installed",
        "opencl" => "no OpenCL loader is installed",
        _ => "no adapter answered",
    };
    let backends = ["cpu", "cuda", "opencl", "wgpu"];
    let reports = backends.map(|name| report(name, (!has(name)).then(|| why(name))));
    let survey = Survey::unite(reports.to_vec(), devices);
    let threads = NonZeroU32::new(8).unwrap();
    let capacity = Capacity::of(&survey, CapacityPolicy::Threads, threads);
    Status::described(survey, capacity)
}
