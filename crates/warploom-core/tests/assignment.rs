//! Which card a pipeline gets, what its memory is bound to, what names mean, and who may use what.
//! The numbers are those of the acceptance list this design grew from.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod scripted;

use std::collections::BTreeSet;
use std::time::Duration;

use rstest::rstest;
use scripted::{Probe, cards, gpu, options, registry, scripted};
use warploom_core::{
    BackendId, Bindings, CapacityPolicy, Coded, DeviceId, LeaseRequest, LeaseScope, MemoryNeed,
    Options, Placement, Registry, RegistryError, memory,
};

const CUDA: BackendId = BackendId::new("cuda");

// ---- assignment ---------------------------------------------------------------------------

fn loads(placed: &[&warploom_core::PhysicalDevice]) -> Vec<usize> {
    let names: BTreeSet<&str> = placed.iter().map(|device| device.name.as_str()).collect();
    names
        .iter()
        .map(|name| placed.iter().filter(|d| d.name == *name).count())
        .collect()
}

#[test]
fn c42_pipelines_spread_and_first_reproduces_the_original() {
    let registry = cards(&[0, 1, 2, 3]);
    let status = registry.initialize(&options(8)).unwrap();
    let spread = status.place(10, CUDA, Placement::Spread).unwrap();
    assert_eq!(loads(&spread), [3, 3, 2, 2]);
    let first = status.place(10, CUDA, Placement::First).unwrap();
    assert_eq!(loads(&first), [10]);
}

#[test]
fn c43_six_wells_on_four_devices_spread() {
    let status = cards(&[0, 1, 2, 3]).initialize(&options(8)).unwrap();
    assert_eq!(
        loads(&status.place(6, CUDA, Placement::Spread).unwrap()),
        [2, 2, 1, 1]
    );
}

#[test]
fn spreading_respects_capacity() {
    let (mut small, mut large) = (gpu("cuda", 0), gpu("cuda", 1));
    small.total_memory = 10 << 30;
    large.total_memory = 40 << 30;
    let mut options = options(64);
    let need = MemoryNeed {
        footprint: 10 << 30,
        context: 0,
        percent: 100,
    };
    options.capacity = CapacityPolicy::Memory(need);
    let registry = registry([scripted("cuda", Probe::Lists(vec![small, large]))]);
    let status = registry.initialize(&options).unwrap();
    assert_eq!(
        loads(&status.place(10, CUDA, Placement::Spread).unwrap()),
        [2, 8]
    );
}

#[test]
fn c44_a_backend_without_devices_is_named_in_the_error() {
    let status = cards(&[]).initialize(&options(8)).unwrap();
    let error = status.place(1, CUDA, Placement::Spread).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0108");
    assert_eq!(
        error.to_string(),
        "no device for backend `cuda`: its driver is there and lists no device"
    );
}

#[test]
fn c45_impossible_bindings_cannot_be_written_or_are_refused() {
    let mut bindings = Bindings::new();
    let error = bindings
        .bind(memory::HOST, DeviceId::new(CUDA, 0))
        .unwrap_err();
    assert_eq!(error.to_string(), "host memory cannot be bound to cuda:0");
    let error = bindings
        .bind(memory::OPENCL_DEVICE, DeviceId::new(CUDA, 0))
        .unwrap_err();
    assert_eq!(error.code().to_string(), "WL0212");
    // A negative number or a boolean is not a device.
    for text in ["cuda:-1", "cuda:true"] {
        assert!(text.parse::<DeviceId>().is_err());
    }
}

#[test]
fn c46_contradicting_bindings_are_refused() {
    let (zero, one) = (DeviceId::new(CUDA, 0), DeviceId::new(CUDA, 1));
    let mut first = Bindings::new();
    first.bind(memory::CUDA_DEVICE, zero).unwrap();
    first.bind(memory::CUDA_PINNED, zero).unwrap();
    let error = first.bind(memory::CUDA_DEVICE, one).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend `cuda` is bound to cuda:0 already and cannot be bound to cuda:1 as well"
    );
    assert_eq!(
        first.device(memory::CUDA_DEVICE),
        Ok(Some(zero)),
        "the first binding stands"
    );
    let mut second = Bindings::new();
    second.bind(memory::CUDA_DEVICE, one).unwrap();
    assert!(matches!(
        first.merge(&second),
        Err(RegistryError::BoundTwice { .. })
    ));
    assert_eq!(first.merge(&first), Ok(first.clone()));
    let error = first
        .select(&[memory::CUDA_DEVICE, memory::WGPU_DEVICE])
        .unwrap_err();
    assert_eq!(
        error,
        RegistryError::Unbound {
            kind: memory::WGPU_DEVICE
        }
    );
}

#[test]
fn c47_host_memory_needs_no_device_and_gpu_memory_needs_one() {
    let bindings = Bindings::new();
    assert_eq!(bindings.device(memory::HOST), Ok(None));
    let error = bindings.device(memory::CUDA_DEVICE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cuda.device memory is not bound to a device"
    );
    assert_eq!(
        error.help().as_deref(),
        Some("bind it to a device of `cuda`")
    );
}

#[test]
fn c48_with_the_cpu_only_switch_gpu_work_is_refused_and_cpu_work_is_not() {
    let mut cpu = gpu("cpu", 0);
    cpu.software = true;
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![gpu("cuda", 0)])),
        scripted("cpu", Probe::Lists(vec![cpu])),
    ]);
    let status = registry.initialize(&Options::cpu_only()).unwrap();
    let error = status.place(1, CUDA, Placement::Spread).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no device for backend `cuda`: switched off: CPU only"
    );
    assert_eq!(
        status
            .place(2, BackendId::CPU, Placement::Spread)
            .unwrap()
            .len(),
        2
    );
}

// ---- names --------------------------------------------------------------------------------

#[test]
fn memory_names_from_elsewhere_resolve() {
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![])),
        scripted("opencl", Probe::Lists(vec![])),
    ]);
    for (name, kind) in [
        ("cupy", memory::CUDA_DEVICE),
        ("torch", memory::CUDA_DEVICE),
        ("tensorflow", memory::CUDA_DEVICE),
        ("jax", memory::CUDA_DEVICE),
        ("pyclesperanto", memory::OPENCL_DEVICE),
        ("numpy", memory::HOST),
        ("cuda.pinned", memory::CUDA_PINNED),
    ] {
        assert_eq!(registry.memory_kind(name), Ok(kind));
    }
}

#[test]
fn an_unknown_memory_name_is_never_taken_for_the_cpu() {
    let registry = cards(&[]);
    for name in ["mlx", "CuPy", "", "torcch"] {
        let error = registry.memory_kind(name).unwrap_err();
        assert_eq!(error.code().to_string(), "WL0201", "{name}");
    }
    let error = registry.memory_kind("torcch").unwrap_err();
    assert_eq!(error.help().as_deref(), Some("did you mean `torch`?"));
}

#[test]
fn a_known_memory_name_of_a_missing_backend_is_another_mistake() {
    let error = cards(&[]).memory_kind("pyclesperanto").unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend `opencl` is not in this build, which has cuda"
    );
    assert!(error.help().unwrap().contains("--features opencl"));
}

#[test]
fn an_unknown_device_is_refused_with_the_known_ones() {
    let status = cards(&[0, 1]).initialize(&options(8)).unwrap();
    assert_eq!(
        status.device("gpu7").unwrap_err().to_string(),
        "there is no device `gpu7`; there are gpu0, cuda:0, gpu1, cuda:1"
    );
    assert_eq!(status.device("cuda:1").unwrap().name, "gpu1");
}

// ---- leases -------------------------------------------------------------------------------

fn lending() -> Registry {
    let mut soft = gpu("opencl", 0);
    soft.software = true;
    let mut options = options(4);
    options.leases = LeaseScope::Process;
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![gpu("cuda", 0), gpu("cuda", 1)])),
        scripted("opencl", Probe::Lists(vec![soft])),
    ]);
    registry.initialize(&options).unwrap();
    registry
}

#[test]
fn a_lease_before_initialisation_is_an_error() {
    let error = cards(&[0]).lease(&LeaseRequest::new(1, 0)).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0106");
}

#[test]
fn a_lease_names_a_card_or_one_of_its_faces() {
    let registry = lending();
    let by_face = registry
        .lease(&LeaseRequest::new(1, 1 << 30).on(["cuda:1"]))
        .unwrap();
    assert_eq!(by_face.device(), "gpu1");
    let by_name = registry
        .lease(&LeaseRequest::new(1, 1 << 30).on(["gpu0"]))
        .unwrap();
    assert_eq!(by_name.device(), "gpu0");
}

#[test]
fn any_device_means_any_gpu_as_long_as_there_is_one() {
    let registry = lending();
    let leases: Vec<_> = (0..4)
        .map(|_| {
            registry
                .lease(&LeaseRequest::new(1, 0).within(Duration::ZERO))
                .unwrap()
        })
        .collect();
    assert!(leases.iter().all(|lease| lease.device().starts_with("gpu")));
    let error = registry
        .lease(&LeaseRequest::new(1, 0).within(Duration::ZERO))
        .unwrap_err();
    assert_eq!(
        error.code().to_string(),
        "WL0125",
        "soft0 is free, and was not asked for"
    );
    let soft = registry
        .lease(&LeaseRequest::new(1, 0).on(["soft0"]))
        .unwrap();
    assert_eq!(soft.device(), "soft0");
}

#[rstest]
#[case::bytes(LeaseRequest::new(1, 25 << 30), "25.0 GiB were asked of gpu0, which leases 24.0 GiB in all")]
#[case::slots(LeaseRequest::new(3, 0), "3 slots were asked of gpu0, which has 2")]
#[case::nothing(LeaseRequest::new(0, 0), "a lease of 0 slots was asked for")]
#[case::unknown(
    LeaseRequest::new(1, 0).on(["gpu7"]),
    "there is no device `gpu7` to lease; known: gpu0, gpu1, soft0"
)]
fn a_bad_lease_request_is_refused_with_numbers_and_names(
    #[case] request: LeaseRequest,
    #[case] says: &str,
) {
    let error = lending().lease(&request).unwrap_err();
    assert_eq!(error.to_string(), says);
    assert!(error.help().is_some(), "I10: {error} says what would work");
}

#[test]
fn a_rescan_that_finds_the_same_devices_keeps_the_books() {
    let registry = lending();
    let lease = registry
        .lease(&LeaseRequest::new(2, 0).on(["gpu0"]))
        .unwrap();
    let mut again = options(4);
    again.leases = LeaseScope::Process;
    registry.rescan(&again).unwrap();
    let request = LeaseRequest::new(1, 0).on(["gpu0"]).within(Duration::ZERO);
    assert!(
        registry.lease(&request).is_err(),
        "the old lease still counts"
    );
    drop(lease);
    assert!(registry.lease(&request).is_ok());
}
