//! Probing and opening.

use warploom_core::memory::{CUDA_DEVICE, HOST};
use warploom_core::{
    BackendId, DeviceError, DeviceKind, GpuBackend, KernelCode, KernelSource, Language, MemoryUse,
    Param, inventory,
};
use warploom_cpu::{CpuBackend, ENTRY, ID};

use crate::*;

#[test]
fn the_backend_registers_itself() {
    assert_eq!((ENTRY.id(), ID), (BackendId::CPU, BackendId::CPU));
    let mut entries = inventory::iter::<warploom_core::BackendEntry>();
    assert!(entries.any(|entry| entry.id() == ID));
    let backend = ENTRY.load().unwrap();
    assert_eq!(backend.id(), ID);
    assert_eq!(backend.memory_kinds(), [HOST]);
}

#[test]
fn there_is_one_device_and_it_is_software() {
    let backend = CpuBackend::new();
    let [info] = &backend.probe().unwrap()[..] else {
        panic!("one device");
    };
    assert_eq!(info.id.to_string(), "cpu:0");
    assert_eq!((info.kind, info.software), (DeviceKind::Cpu, true));
    assert_eq!(info.memory, [HOST]);
    assert_eq!(info.languages, [Language::Host]);
    assert!(!info.name.is_empty());
    let threads = info.limits.compute_units as usize;
    assert_eq!(threads, std::thread::available_parallelism().unwrap().get());
    assert!(
        info.free_memory
            .is_none_or(|free| free <= info.total_memory)
    );
    let error = backend.open(1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cpu:1 does not support being opened: the only device is cpu:0"
    );
}

#[test]
fn zero_threads_are_one() {
    let info = CpuBackend::with_threads(0).probe().unwrap().remove(0);
    assert_eq!(info.limits.compute_units, 1);
}

#[test]
fn two_opened_devices_count_on_their_own() {
    let backend = CpuBackend::with_threads(1);
    let (one, two) = (open_with(backend), open_with(backend));
    let held = buffer(&one, 100);
    let ours = |device: &CheckedDevice| {
        let MemoryUse { ours, .. } = device.memory().unwrap();
        ours
    };
    assert_eq!((ours(&one), ours(&two)), (100, 0));
    drop(held);
    assert_eq!(ours(&one), 0);
}

#[test]
fn a_bare_device_says_what_it_cannot_do() {
    let device = CpuBackend::with_threads(1).open(0).unwrap();
    let error = device.alloc(CUDA_DEVICE, 16).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cpu:0 does not support cuda.device memory"
    );
    let source = KernelSource::wgsl("f", "", &[Param::Read], [1; 3]);
    assert!(matches!(source.code(), KernelCode::Wgsl(_)));
    let error = device.kernel(&source).unwrap_err();
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    let error = device.alloc(HOST, u64::MAX).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
}
