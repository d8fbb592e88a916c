//! Listing devices.

use std::time::{Duration, Instant};

use warploom_core::{Caps, DeviceKind, GpuBackend, Language, LoadError};
use warploom_opencl::{ENTRY, ID};

use crate::rig::{backend, each};

#[test]
fn loading_works_or_says_what_is_missing() {
    match ENTRY.load() {
        Ok(backend) => assert_eq!(backend.id(), ID),
        Err(LoadError::Absent { reason }) => {
            println!("skipped: {reason}");
            assert!(
                reason.ends_with("is not installed") || reason.ends_with("is installed"),
                "{reason}"
            );
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn probing_is_quick_and_repeatable() {
    let Some(backend) = backend() else { return };
    let first = backend.probe().unwrap();
    // The best of a few: others use this machine too.
    let probe = || {
        let start = Instant::now();
        assert_eq!(backend.probe().unwrap().len(), first.len());
        start.elapsed()
    };
    let best = (0..5).map(|_| probe()).min().unwrap();
    println!("{} devices in {best:?}", first.len());
    assert!(best < Duration::from_millis(200), "{best:?}");
}

#[test]
fn devices_are_described() {
    each(|rig| {
        let info = rig.device.info();
        assert_eq!(info.id.backend, ID);
        assert!(!info.name.is_empty());
        assert!(info.driver.contains("OpenCL"), "{}", info.driver);
        assert_eq!(info.languages, [Language::OpenClC]);
        assert!(info.total_memory > 0);
        assert!(info.caps.contains(Caps::TIMESTAMPS));
        let limits = info.limits;
        assert!(limits.max_alloc <= info.total_memory);
        assert_eq!(limits.max_alloc, limits.max_binding);
        assert!(limits.slice_align >= 16 && limits.slice_align.is_power_of_two());
        assert!(limits.max_group_items >= 1);
        assert!(limits.max_slices >= 8);
        assert!(limits.compute_units >= 1);
    });
}

#[test]
fn pocl_is_software_without_identity() {
    each(|rig| {
        let info = rig.device.info();
        if !info.driver.contains("PoCL") {
            println!("skipped: not PoCL");
            return;
        }
        assert_eq!(info.kind, DeviceKind::Cpu);
        assert!(info.software);
        assert!(
            info.caps
                .contains(Caps::STRICT_MATH | Caps::F64 | Caps::I64)
        );
        assert!(info.caps.contains(Caps::UNIFIED_MEMORY));
        let basic = info.name.starts_with("basic");
        if basic {
            assert!(
                !info
                    .caps
                    .intersects(Caps::CONCURRENT_QUEUES | Caps::COPY_OVERLAP)
            );
        } else if info.limits.compute_units > 1 {
            assert!(info.caps.contains(Caps::CONCURRENT_QUEUES));
        }
    });
}

#[test]
fn a_number_nobody_has_is_an_error() {
    let Some(backend) = backend() else { return };
    let error = backend.open(4_000_000).unwrap_err();
    assert!(error.to_string().contains("opencl:4000000"), "{error}");
}

#[test]
fn threads_that_list_devices_at_once_see_the_same() {
    let Some(backend) = backend() else { return };
    std::thread::scope(|scope| {
        let probe = || scope.spawn(|| backend.probe().unwrap());
        let threads: Vec<_> = (0..4).map(|_| probe()).collect();
        let mut seen: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let first = seen.remove(0);
        assert!(seen.iter().all(|other| other.len() == first.len()));
    });
}

#[test]
fn ordinals_count_up() {
    let Some(backend) = backend() else { return };
    let found = backend.probe().unwrap();
    let ordinals: Vec<u32> = found.iter().map(|info| info.id.ordinal).collect();
    assert!(ordinals.is_sorted_by(|a, b| a < b), "{ordinals:?}");
}
