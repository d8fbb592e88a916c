//! What a registry promises, case by case. The numbers are those of the acceptance list this
//! design grew from: where the original misbehaved, the name says what we do instead.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod scripted;

use std::num::NonZeroU32;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rstest::rstest;
use scripted::{Probe, cards, gpu, gpu_with_uuid, options, registry, scripted, slow};
use warploom_core::{
    BackendEntry, BackendId, BackendState, CapacityPolicy, Coded, GpuBackend, LoadError,
    MemoryNeed, Options, Registry, RegistryError, Status,
};

const CUDA: BackendId = BackendId::new("cuda");

fn slots(status: &Status) -> Vec<u32> {
    status.capacity.max_pipelines.values().copied().collect()
}

fn ordinals(status: &Status) -> Vec<u32> {
    status
        .survey
        .devices
        .iter()
        .flat_map(|d| d.faces.iter().map(|f| f.id.ordinal))
        .collect()
}

// ---- capacity and lifecycle ---------------------------------------------------------------

#[rstest]
#[case::c01(8, &[0, 1, 2], 3)]
#[case::c02(8, &[0], 8)]
#[case::c03(8, &[0, 1], 4)]
#[case::c04_rounds_up(7, &[0, 1], 4)]
#[case::c05_at_least_one(1, &[0, 1, 2, 3], 1)]
#[case::c09_gaps_are_kept(16, &[0, 2, 5], 6)]
#[case::c10_one_card_takes_all(64, &[0], 64)]
fn threads_policy(#[case] threads: u32, #[case] cards_there: &[u32], #[case] each: u32) {
    let status = cards(cards_there).initialize(&options(threads)).unwrap();
    assert_eq!(slots(&status), vec![each; cards_there.len()]);
    assert_eq!(ordinals(&status), cards_there);
}

#[test]
fn c06_workers_do_not_count_where_threads_are_known() {
    let mut options = options(2);
    options.workers = NonZeroU32::new(100).unwrap();
    let status = cards(&[0, 1, 2]).initialize(&options).unwrap();
    assert_eq!(slots(&status), [1, 1, 1]);
}

#[test]
fn c07_workers_count_where_threads_are_unknown() {
    let mut options = options(0);
    options.workers = NonZeroU32::new(6).unwrap();
    let status = cards(&[0, 1]).initialize(&options).unwrap();
    assert_eq!(slots(&status), [3, 3]);
}

#[rstest]
#[case(0)]
#[case(-3)]
#[case(i64::MAX)]
fn c08_absurd_worker_counts_are_refused_where_they_are_written(#[case] workers: i64) {
    let error = Options::parse_workers(workers).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0107");
    assert_eq!(
        error.to_string(),
        format!("workers = {workers} makes no sense: a pipeline needs at least one worker")
    );
    assert_eq!(Options::parse_workers(6).unwrap().get(), 6);
}

#[rstest]
#[case::holds_four(24, 64, 4)]
#[case::one_even_if_it_is_tight(2, 64, 1)]
#[case::never_more_than_threads(640, 8, 8)]
fn c10_memory_policy_counts_what_the_card_holds(
    #[case] gib: u64,
    #[case] threads: u32,
    #[case] expected: u32,
) {
    let mut card = gpu("cuda", 0);
    card.total_memory = gib << 30;
    let mut options = options(threads);
    options.capacity = CapacityPolicy::Memory(MemoryNeed::default());
    let registry = registry([scripted("cuda", Probe::Lists(vec![card]))]);
    assert_eq!(slots(&registry.initialize(&options).unwrap()), [expected]);
}

#[test]
fn c10_memory_policy_treats_unequal_cards_unequally_and_unknown_ones_by_threads() {
    let (mut small, mut large, mut silent) = (gpu("cuda", 0), gpu("cuda", 1), gpu("cuda", 2));
    small.total_memory = 8 << 30;
    large.total_memory = 80 << 30;
    silent.total_memory = 0;
    let mut options = options(12);
    options.capacity = CapacityPolicy::Memory(MemoryNeed {
        footprint: 6 << 30,
        context: 0,
        percent: 100,
    });
    let registry = registry([scripted("cuda", Probe::Lists(vec![small, large, silent]))]);
    assert_eq!(slots(&registry.initialize(&options).unwrap()), [1, 12, 4]);
}

#[test]
fn c11_no_gpu_is_one_warning_and_an_initialised_registry() {
    let registry = cards(&[]);
    let status = registry.initialize(&options(8)).unwrap();
    assert_eq!(status.gpus().count(), 0);
    assert!(status.capacity.max_pipelines.is_empty());
    assert_eq!(status.warnings(), ["no GPU was found; there is nothing"]);
    assert!(registry.is_initialized());
}

#[test]
fn c12_a_second_initialisation_is_an_error_and_changes_nothing() {
    let registry = cards(&[0, 1]);
    let first = registry.initialize(&options(8)).unwrap();
    let error = registry.initialize(&options(1)).unwrap_err();
    assert_eq!(error, RegistryError::AlreadyInitialized { devices: 2 });
    assert_eq!(registry.status().unwrap(), first);
}

#[test]
fn c13_also_after_finding_nothing() {
    let registry = cards(&[]);
    registry.initialize(&options(8)).unwrap();
    let error = registry.initialize(&options(8)).unwrap_err();
    assert_eq!(error, RegistryError::AlreadyInitialized { devices: 0 });
}

#[test]
fn c14_status_before_initialisation_is_an_error() {
    let error = cards(&[0]).status().unwrap_err();
    assert_eq!(error, RegistryError::NotInitialized { detecting: false });
    assert_eq!(error.to_string(), "the registry is not initialised yet");
}

#[rstest]
#[case::with_cards(&[0])]
#[case::without(&[])]
fn c15_initialised_before_and_after(#[case] there: &[u32]) {
    let registry = cards(there);
    assert!(!registry.is_initialized());
    registry.initialize(&options(8)).unwrap();
    assert!(registry.is_initialized());
}

#[test]
fn c16_changing_a_snapshot_changes_nothing() {
    let registry = cards(&[0]);
    registry.initialize(&options(8)).unwrap();
    let mut copy = Status::clone(&registry.status().unwrap());
    copy.survey.devices.clear();
    copy.capacity.max_pipelines.clear();
    assert_eq!(registry.status().unwrap().survey.devices.len(), 1);
}

#[test]
fn c17_setup_after_initialisation_is_fine_and_changes_nothing() {
    let registry = cards(&[0, 1]);
    let first = registry.initialize(&options(8)).unwrap();
    assert_eq!(registry.setup(&options(1)).unwrap(), first);
}

#[test]
fn c18_setup_with_defaults_counts_workers_where_threads_are_unknown() {
    let mut options = Options::default();
    options.capacity = CapacityPolicy::Threads;
    options.cpu_threads = None;
    options.workers = NonZeroU32::new(7).unwrap();
    assert_eq!(slots(&cards(&[0]).setup(&options).unwrap()), [7]);
}

#[test]
fn c19_a_hard_failure_leaves_it_uninitialised_and_retryable() {
    let registry = registry([
        scripted("cuda", Probe::Fails("999 unknown error")),
        scripted("wgpu", Probe::Lists(vec![gpu("wgpu", 0)])),
    ]);
    let mut strict = options(8);
    strict.require = vec![CUDA];
    let error = registry.initialize(&strict).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0103");
    assert_eq!(
        error.to_string(),
        "backend `cuda` is broken: cuda cannot list its devices: cuInit: 999 unknown error"
    );
    assert!(!registry.is_initialized());
    assert!(matches!(
        registry.status(),
        Err(RegistryError::NotInitialized { detecting: false })
    ));
    assert_eq!(
        registry
            .initialize(&options(8))
            .unwrap()
            .survey
            .devices
            .len(),
        1
    );
}

#[test]
fn c20_two_setups_at_once_both_succeed_with_one_detection() {
    let backend = slow(
        "cuda",
        Probe::Lists(vec![gpu("cuda", 0)]),
        Duration::from_millis(100),
    );
    let registry = Arc::new(registry([Arc::clone(&backend)]));
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (registry, start) = (Arc::clone(&registry), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                registry.setup(&options(8)).unwrap()
            })
        })
        .collect();
    let found: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(found.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
    assert_eq!(backend.probes.load(Ordering::SeqCst), 1);
}

#[test]
fn c20_two_initialisations_at_once_one_wins_and_one_is_told() {
    let backend = slow("cuda", Probe::Lists(vec![]), Duration::from_millis(50));
    let registry = Arc::new(registry([Arc::clone(&backend)]));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let registry = Arc::clone(&registry);
            std::thread::spawn(move || registry.initialize(&options(8)).is_ok())
        })
        .collect();
    let won = threads.into_iter().map(|t| t.join().unwrap());
    assert_eq!(won.filter(|won| *won).count(), 1);
    assert_eq!(backend.probes.load(Ordering::SeqCst), 1);
}

#[test]
fn c21_status_during_a_slow_detection_returns_at_once() {
    let backend = slow(
        "cuda",
        Probe::Lists(vec![gpu("cuda", 0)]),
        Duration::from_millis(500),
    );
    let registry = Arc::new(registry([Arc::clone(&backend)]));
    let detecting = {
        let registry = Arc::clone(&registry);
        std::thread::spawn(move || registry.setup(&options(8)).unwrap())
    };
    while backend.probes.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let asked = Instant::now();
    let answer = registry.status();
    assert!(asked.elapsed() < Duration::from_millis(100));
    assert_eq!(
        answer,
        Err(RegistryError::NotInitialized { detecting: true })
    );
    assert!(!registry.is_initialized());
    detecting.join().unwrap();
    assert!(registry.is_initialized());
}

// ---- detection ----------------------------------------------------------------------------

#[test]
fn c22_one_card_seen_twice_is_one_device_with_two_ordinals() {
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![gpu_with_uuid("cuda", 0, 1)])),
        scripted("opencl", Probe::Lists(vec![gpu_with_uuid("opencl", 0, 1)])),
    ]);
    let status = registry.initialize(&options(8)).unwrap();
    assert_eq!(status.survey.devices.len(), 1);
    assert_eq!(status.survey.devices[0].faces.len(), 2);
}

#[rstest]
#[case::same_card(1, 1, 1)]
#[case::two_cards(1, 2, 2)]
fn c23_ordinals_mean_nothing_identity_does(
    #[case] first: u8,
    #[case] second: u8,
    #[case] devices: usize,
) {
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![gpu_with_uuid("cuda", 0, first)])),
        scripted(
            "opencl",
            Probe::Lists(vec![gpu_with_uuid("opencl", 1, second)]),
        ),
    ]);
    assert_eq!(
        registry
            .initialize(&options(8))
            .unwrap()
            .survey
            .devices
            .len(),
        devices
    );
}

#[test]
fn c24_devices_are_listed_in_ascending_order() {
    let status = cards(&[3, 1, 0]).initialize(&options(8)).unwrap();
    assert_eq!(ordinals(&status), [0, 1, 3]);
}

#[test]
fn c25_one_failing_probe_does_not_hide_the_others_and_is_reported() {
    let registry = registry([
        scripted("cuda", Probe::Fails("100 no device")),
        scripted("opencl", Probe::Lists(vec![gpu("opencl", 2)])),
    ]);
    let status = registry.initialize(&options(8)).unwrap();
    assert_eq!(ordinals(&status), [2]);
    let cuda = status.survey.backend(CUDA).unwrap();
    assert_eq!(cuda.state, BackendState::Broken);
    assert_eq!(
        status.warnings(),
        ["backend cuda is broken: cuda cannot list its devices: cuInit: 100 no device"]
    );
}

#[test]
fn c26_any_single_backend_is_enough() {
    let registry = registry([scripted("jax", Probe::Lists(vec![gpu("jax", 0)]))]);
    assert_eq!(ordinals(&registry.initialize(&options(8)).unwrap()), [0]);
}

#[test]
fn c27_a_backend_without_devices_invents_none() {
    let registry = registry([scripted("jax", Probe::Lists(vec![]))]);
    let status = registry.initialize(&options(8)).unwrap();
    assert!(status.survey.devices.is_empty());
    assert_eq!(status.survey.backends[0].state, BackendState::Loaded);
}

#[test]
fn c28_all_eight_devices_are_seen() {
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(
        cards(&all)
            .initialize(&options(8))
            .unwrap()
            .survey
            .devices
            .len(),
        8
    );
}

#[test]
fn c29_the_cpu_only_switch_loads_nothing_else() {
    let gpu_backend = scripted("cuda", Probe::Lists(vec![gpu("cuda", 0)]));
    let mut cpu = gpu("cpu", 0);
    cpu.software = true;
    let registry = registry([
        Arc::clone(&gpu_backend),
        scripted("cpu", Probe::Lists(vec![cpu])),
    ]);
    let status = registry.initialize(&Options::cpu_only()).unwrap();
    assert_eq!(gpu_backend.probes.load(Ordering::SeqCst), 0);
    assert_eq!(status.survey.devices.len(), 1);
    assert_eq!(status.survey.devices[0].name, "cpu");
    let cuda = status.survey.backend(CUDA).unwrap();
    assert_eq!(cuda.state, BackendState::Absent);
    assert_eq!(cuda.reason.as_deref(), Some("switched off: CPU only"));
}

#[rstest]
#[case::error(Probe::Fails("3 not initialized"), "cuInit: 3 not initialized")]
#[case::panic(Probe::Panics, "it panicked: driver exploded")]
#[case::hang(
    Probe::Sleeps(Duration::from_secs(20)),
    "it did not answer within 200 ms"
)]
fn c30_an_unusable_driver_is_a_report_not_a_crash(#[case] probe: Probe, #[case] reason: &str) {
    let registry = registry([
        scripted("cuda", probe),
        scripted("wgpu", Probe::Lists(vec![gpu("wgpu", 0)])),
    ]);
    let mut options = options(8);
    // Short only where silence is the point: a busy machine is slow to panic.
    let hangs = reason.contains("200 ms");
    options.probe_deadline = Duration::from_millis(if hangs { 200 } else { 8000 });
    let asked = Instant::now();
    let status = registry.initialize(&options).unwrap();
    assert!(asked.elapsed() < Duration::from_secs(10));
    let cuda = status.survey.backend(CUDA).unwrap();
    assert_eq!(cuda.state, BackendState::Broken);
    assert!(cuda.reason.as_deref().unwrap().contains(reason), "{cuda:?}");
    assert_eq!(status.survey.devices.len(), 1, "the other one answered");
}

#[test]
fn c31_an_unknown_backend_is_an_error_that_lists_the_known() {
    let mut options = options(8);
    options.backends = Some(vec![BackendId::new("cudda")]);
    let registry = cards(&[0]);
    let error = registry.initialize(&options).unwrap_err();
    assert_eq!(error.code().to_string(), "WL0102");
    assert_eq!(
        error.to_string(),
        "backend `cudda` is not in this build, which has cuda"
    );
    assert_eq!(error.help().as_deref(), Some("did you mean `cuda`?"));
    assert!(!registry.is_initialized());
}

#[test]
fn a_backend_that_lists_nonsense_is_broken() {
    let foreign = registry([scripted("cuda", Probe::Lists(vec![gpu("opencl", 0)]))]);
    let twice = registry([scripted(
        "cuda",
        Probe::Lists(vec![gpu("cuda", 0), gpu("cuda", 0)]),
    )]);
    for (registry, reason) in [
        (foreign, "it lists opencl:0, which is not its own"),
        (twice, "it lists cuda:0 twice"),
    ] {
        let status = registry.initialize(&options(8)).unwrap();
        assert_eq!(status.survey.backends[0].reason.as_deref(), Some(reason));
        assert!(status.survey.devices.is_empty());
        // Whoever asks for its device is told that, not that the name is wrong.
        let error = status.device("cuda:0").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("backend `cuda` is broken: {reason}")
        );
        let error = status.device("gpu0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no device `gpu0`; there is none at all"
        );
    }
}

#[test]
fn what_was_switched_off_or_not_found_is_not_opened() {
    let mut cpu = gpu("cpu", 0);
    cpu.software = true;
    let registry = registry([
        scripted("cuda", Probe::Lists(vec![gpu("cuda", 0)])),
        scripted("cpu", Probe::Lists(vec![cpu])),
    ]);
    registry.initialize(&Options::cpu_only()).unwrap();
    let error = registry.open("cuda:0".parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend `cuda` is absent: switched off: CPU only"
    );
    let error = registry.open("cpu:3".parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no device `cpu:3`; there are cpu, cpu:0"
    );
}

#[test]
fn two_backends_of_one_name_are_told() {
    fn load() -> Result<Box<dyn GpuBackend>, LoadError> {
        Err(LoadError::absent("nothing is installed"))
    }
    let entry = BackendEntry::new(CUDA, load);
    let status = Registry::from_entries([entry, entry])
        .initialize(&options(1))
        .unwrap();
    assert_eq!(status.survey.backends.len(), 1);
    assert!(
        status
            .warnings()
            .contains(&"two backends are called `cuda`; only one of them is used".into())
    );
}

#[test]
fn a_backend_s_name_leaves_room_for_its_memory() {
    for text in ["my.fpga", "host", "My"] {
        assert!(text.parse::<BackendId>().is_err(), "{text}");
    }
}

#[test]
fn no_backends_at_all_says_how_to_get_some() {
    let error = Registry::empty().initialize(&options(8)).unwrap_err();
    assert_eq!(error.to_string(), "this program has no backends");
    assert!(error.help().unwrap().contains("staticlib"));
}

#[test]
fn a_rescan_finds_what_is_new_and_old_snapshots_stay() {
    let registry = cards(&[0]);
    let first = registry.initialize(&options(8)).unwrap();
    let second = registry.rescan(&options(2)).unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!((slots(&first), slots(&second)), (vec![8], vec![2]));
    assert_eq!(registry.status().unwrap(), second);
}
