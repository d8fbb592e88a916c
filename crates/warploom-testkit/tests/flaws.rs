//! The suite can fail: each mistake a backend could make is caught, by the case named here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rstest::rstest;
use warploom_core::{Caps, DeviceError, DeviceId, GpuBackend, Limits, MemoryKind, Space};
use warploom_testkit::fake::Probe;
use warploom_testkit::{CaseReport, FakeBackend, FakeDevice, Flaw, Options, Outcome, cases, run};

fn suite(backend: FakeBackend, case: &str) -> Vec<CaseReport> {
    let backend: Arc<dyn GpuBackend> = Arc::new(backend);
    let mut options = Options::default();
    // Some flaws make a case hang; the watchdog's word is as good as a failure's.
    options.limit = Duration::from_secs(8);
    options.only = vec![case.to_owned()];
    run(&backend, &options)
}

fn one_device() -> FakeBackend {
    FakeBackend::new("fake").device(FakeDevice::new("Fake 1000").memory(64 << 20))
}

fn two_devices() -> FakeBackend {
    one_device().device(FakeDevice::new("Fake 2000").memory(64 << 20))
}

/// A test per flaw, and the list of them all.
macro_rules! caught {
    ($($name:ident: $flaw:ident => $case:literal;)*) => {
        const CAUGHT: &[(Flaw, &str)] = &[$((Flaw::$flaw, $case)),*];

        mod caught {
            use super::*;
            $(#[test]
            fn $name() {
                is_caught(Flaw::$flaw, $case);
            })*
        }
    };
}

caught! {
    probe_drifts: ProbeDrifts => "backend::probe_twice_agrees";
    probe_leaves_thread: ProbeLeavesThread => "backend::probe_leaves_no_thread";
    opens_anything: OpensAnything => "backend::unknown_ordinals_are_errors";
    opens_first: OpensFirst => "backend::every_listed_device_opens";
    twins_share_count: TwinsShareCount => "device::opening_twice_gives_two";
    memory_uncounted: MemoryUncounted => "memory::ours_grows_by_what_is_held";
    memory_unreturned: MemoryUnreturned => "memory::ours_shrinks_when_dropped";
    overcommits: Overcommits => "memory::too_much_is_out_of_memory";
    size_rounded: SizeRounded => "memory::any_size_is_given";
    errors_misname: ErrorsMisname => "error::names_the_device";
    kernel_nameless: KernelNameless => "kernel::keeps_its_declaration";
    hints_obeyed: HintsObeyed => "device::hints_do_not_forbid";
    upload_aligned: UploadAligned => "queue::uploads_at_any_offset";
    upload_overtakes: UploadOvertakes => "order::uploads_do_not_overtake";
    download_overtakes: DownloadOvertakes => "queue::download_sees_earlier_work";
    copy_short: CopyShort => "copy::at_odd_offsets";
    copy_rewrites_all: CopyRewritesAll => "parallel::disjoint_slices_of_one_buffer";
    launches_reversed: LaunchesReversed => "order::launches_keep_their_order";
    numbers_zeroed: NumbersZeroed => "launch::numbers_of_every_type";
    offsets_ignored: OffsetsIgnored => "launch::slices_of_one_slab";
    grid_flattened: GridFlattened => "launch::two_dimensions";
    not_kept: NotKept => "lifetime::work_keeps_its_buffers";
    drop_discards: DropDiscards => "lifetime::a_dropped_queue_starts_its_work";
    record_lazy: RecordLazy => "event::comes_without_being_waited_for";
    wait_ignored: WaitIgnored => "order::a_consumer_waits_for_its_producer";
    stranger_ignored: StrangerIgnored => "order::a_strangers_event_is_waited_for";
    events_early: EventsEarly => "event::done_means_done";
    events_asleep: EventsAsleep => "event::comes_without_being_waited_for";
    timeout_deaf: TimeoutDeaf => "event::gives_up_in_time";
    timeout_final: TimeoutFinal => "event::gives_up_in_time";
    failures_forgotten: FailuresForgotten => "event::failed_work_is_an_error_for_good";
    clock_backwards: ClockBackwards => "timing::clock_does_not_run_backwards";
    clock_unit: ClockUnit => "timing::clock_measures_the_work";
    clock_early: ClockEarly => "timing::clock_is_silent_before";
    clock_silent: ClockSilent => "timing::clock_answers_after";
    host_unsynced: HostUnsynced => "buffer::host_sees_queued_slow_work";
    host_snapshot: HostSnapshot => "buffer::host_access_is_exclusive";
    device_lent: DeviceLent => "buffer::hidden_kinds_are_unsupported";
    queues_serial: QueuesSerial => "timing::queues_overlap";
}

/// Some flaws show only when two threads meet, which a busy machine may prevent once or twice.
const TRIES: usize = 5;

fn is_caught(flaw: Flaw, case: &str) {
    let mut reports = Vec::new();
    for _ in 0..TRIES {
        let backend = match flaw {
            Flaw::OpensFirst => two_devices(),
            _ => one_device(),
        };
        reports = suite(backend.flawed(flaw), case);
        assert!(!reports.is_empty(), "there is no case {case}");
        if reports.iter().any(CaseReport::failed) {
            return;
        }
    }
    panic!("{flaw:?} is not caught by {case} in {TRIES} tries: {reports:?}");
}

#[test]
fn the_table_has_every_flaw() {
    let named: BTreeSet<String> = CAUGHT.iter().map(|(flaw, _)| format!("{flaw:?}")).collect();
    let all: BTreeSet<String> = Flaw::ALL.iter().map(|flaw| format!("{flaw:?}")).collect();
    assert_eq!(named, all);
    for (_, case) in CAUGHT {
        assert!(
            cases().any(|known| known.title("x").ends_with(case)),
            "{case}"
        );
    }
}

/// Wrong answers a device can be told to give, without a flaw in its code.
#[rstest]
#[case::no_name("device::info_is_whole", FakeDevice::new(" "))]
#[case::no_language(
    "device::info_is_whole",
    FakeDevice::new("x").edit(|info| info.languages.clear())
)]
#[case::odd_alignment(
    "device::info_is_whole",
    FakeDevice::new("x").limits(Limits { slice_align: 24, ..Limits::default() })
)]
#[case::no_room_for_slices(
    "device::info_is_whole",
    FakeDevice::new("x").limits(Limits { max_slices: 0, ..Limits::default() })
)]
#[case::more_free_than_there_is(
    "device::info_is_whole",
    FakeDevice::new("x").memory(10).edit(|info| info.free_memory = Some(11))
)]
#[case::overlap_it_has_not(
    "timing::queues_overlap",
    FakeDevice::new("x").at_once().edit(|info| info.caps |= Caps::CONCURRENT_QUEUES)
)]
fn wrong_answers_are_caught(#[case] case: &str, #[case] device: FakeDevice) {
    let reports = suite(FakeBackend::new("fake").device(device), case);
    assert!(reports.iter().any(CaseReport::failed), "{reports:?}");
}

#[test]
fn a_probe_that_panics_hangs_or_fails_is_told_apart() {
    let id = FakeBackend::new("fake").id();
    let panics = suite(
        two_devices().on_probe([Probe::Panic("on purpose".into())]),
        "",
    );
    let [
        CaseReport {
            outcome: Outcome::Failed { text },
            ..
        },
    ] = &panics[..]
    else {
        panic!("{panics:?}");
    };
    assert!(text.contains("on purpose"), "{text}");

    let backend: Arc<dyn GpuBackend> =
        Arc::new(two_devices().on_probe([Probe::Late(Duration::from_secs(30))]));
    let mut options = Options::default();
    options.limit = Duration::from_secs(1);
    let hangs = run(&backend, &options);
    let [
        CaseReport {
            outcome: Outcome::Failed { text },
            ..
        },
    ] = &hangs[..]
    else {
        panic!("{hangs:?}");
    };
    assert!(text.contains("did not end within 1s"), "{text}");

    let error = DeviceError::probe(id, "list", "on purpose");
    let fails = suite(two_devices().on_probe([Probe::Error(error)]), "");
    let [
        CaseReport {
            outcome: Outcome::Skipped { reason },
            ..
        },
    ] = &fails[..]
    else {
        panic!("{fails:?}");
    };
    assert!(reason.contains("on purpose"), "{reason}");

    let empty = suite(FakeBackend::new("fake"), "");
    assert!(matches!(
        &empty[..],
        [CaseReport {
            outcome: Outcome::Skipped { .. },
            ..
        }]
    ));
}

#[test]
fn a_case_that_hangs_fails_with_its_name() {
    let backend: Arc<dyn GpuBackend> = Arc::new(one_device().flawed(Flaw::RecordLazy));
    let mut options = Options::default();
    options.limit = Duration::from_millis(500);
    // A `record` that starts nothing makes its wait last.
    options.only = vec!["timing::clock_answers_after".to_owned()];
    let reports = run(&backend, &options);
    let [
        CaseReport {
            name,
            outcome: Outcome::Failed { text },
            ..
        },
    ] = &reports[..]
    else {
        panic!("{reports:?}");
    };
    assert_eq!(name, "fake:0::timing::clock_answers_after");
    assert!(text.contains("did not end within 500ms"), "{text}");
}

#[test]
fn a_slow_probe_is_caught() {
    let slow = || Probe::Late(Duration::from_millis(2100));
    let script = [Probe::Answer, slow(), slow(), slow()];
    let reports = suite(two_devices().on_probe(script), "backend::probe_is_fast");
    assert!(reports[0].failed(), "{reports:?}");
}

#[test]
fn kinds_of_others_are_caught() {
    /// A fake that lists another backend's memory.
    #[derive(Debug)]
    struct Thief(FakeBackend);
    impl GpuBackend for Thief {
        fn id(&self) -> warploom_core::BackendId {
            self.0.id()
        }
        fn memory_kinds(&self) -> &'static [MemoryKind] {
            const STOLEN: &[MemoryKind] = &[MemoryKind::new("other.device", Space::Device)];
            STOLEN
        }
        fn probe(&self) -> warploom_core::Result<Vec<warploom_core::DeviceInfo>> {
            self.0.probe()
        }
        fn open(&self, ordinal: u32) -> warploom_core::Result<Arc<dyn warploom_core::Device>> {
            self.0.open(ordinal)
        }
    }
    let thief: Arc<dyn GpuBackend> = Arc::new(Thief(two_devices()));
    let mut options = Options::default();
    options.only = vec!["kinds".to_owned()];
    let reports = run(&thief, &options);
    let failed = |name: &str| reports.iter().any(|r| r.name.ends_with(name) && r.failed());
    assert!(failed("backend::kinds_belong_to_it"), "{reports:?}");
    assert!(failed("backend::devices_use_listed_kinds"), "{reports:?}");
}

#[test]
fn errors_on_order_surface_in_the_report() {
    let device =
        FakeDevice::new("x").fail(warploom_testkit::fake::Call::Copy, 1, |id: DeviceId| {
            DeviceError::driver(id, "copy", "the bus is full")
        });
    let reports = suite(
        FakeBackend::new("fake").device(device),
        "copy::of_big_slices",
    );
    let [
        CaseReport {
            outcome: Outcome::Failed { text },
            ..
        },
    ] = &reports[..]
    else {
        panic!("{reports:?}");
    };
    // The words, the code and the place.
    assert!(text.contains("the bus is full"), "{text}");
    assert!(text.contains("WL0404"), "{text}");
    assert!(text.contains("conformance/copy.rs:"), "{text}");
}
