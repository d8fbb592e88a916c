//! What a child does on the driver it was given. A scene ends well or panics.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::host::Ready;
use warploom_core::{
    Arg, DType, DeviceError, Event, GpuBackend, Grid, Language, LoadError, Param, Queue, Slice,
};
use warploom_cuda::CudaBackend;

use crate::faults;
use crate::rig::{content, device_memory, fill, load, open, pattern, pinned_memory, queue};

/// Scenes for the strict driver, and the switches it is compiled with.
pub(crate) const ON_STRICT_DRIVER: &[(&str, &[&str])] = &[
    ("copies", &[]),
    ("copies_without_pinned_memory", &["-DNO_PINNED"]),
    ("sources_are_free_at_once", &[]),
    ("handles_may_be_dropped_early", &[]),
    ("kernels_and_events_across_queues_and_devices", &[]),
    ("pinned_memory_is_lent_when_idle", &[]),
    ("memory_of_dropped_buffers_is_found_again", &[]),
    ("a_lost_device_stays_lost", &[]),
    ("time_goes_forward", &[]),
    ("waits_end_in_time", &[]),
    ("bad_code_is_refused_with_words", &[]),
    ("many_threads_many_queues", &[]),
    ("two_openings_are_independent", &[]),
];

pub(crate) fn play(scene: &str, rest: &[String]) {
    match scene {
        "report" => report(),
        "copies" | "copies_without_pinned_memory" => copies(),
        "sources_are_free_at_once" => sources_are_free_at_once(),
        "handles_may_be_dropped_early" => handles_may_be_dropped_early(),
        "kernels_and_events_across_queues_and_devices" => kernels_and_events(),
        "pinned_memory_is_lent_when_idle" => pinned_memory_is_lent_when_idle(),
        "memory_of_dropped_buffers_is_found_again" => {
            faults::memory_of_dropped_buffers_is_found_again();
        }
        "a_lost_device_stays_lost" => faults::a_lost_device_stays_lost(),
        "time_goes_forward" => time_goes_forward(),
        "waits_end_in_time" => faults::waits_end_in_time(),
        "bad_code_is_refused_with_words" => faults::bad_code_is_refused_with_words(),
        "many_threads_many_queues" => many_threads_many_queues(),
        "two_openings_are_independent" => two_openings_are_independent(),
        "machine_code" => faults::compiled(&rest[0], "fill"),
        "cuda_c" => faults::compiled(&rest[0], "add"),
        other => panic!("there is no scene `{other}`"),
    }
}

/// Prints what loading and probing said, one device per line.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn report() {
    let backend = match warploom_cuda::ENTRY.load() {
        Ok(backend) => backend,
        Err(LoadError::Absent { reason }) => return println!("absent: {reason}"),
        Err(other) => return println!("broken: {other}"),
    };
    assert_eq!(backend.id(), warploom_cuda::ID);
    let devices = backend.probe().expect("the driver started");
    println!("loaded with {} devices", devices.len());
    for info in devices {
        let text = |identity: Option<String>| identity.unwrap_or_else(|| "none".into());
        let kinds: Vec<&str> = info
            .memory
            .iter()
            .map(warploom_core::MemoryKind::name)
            .collect();
        let limits = info.limits;
        println!(
            "{} `{}` {} software {} `{}` pci {} uuid {} slice {} luid {} total {} max_alloc {} free {:?} \
             memory {} ptx {} caps {} units {} group {:?} of {} groups {:?} local {} align {}",
            info.id,
            info.name,
            info.kind,
            info.software,
            info.driver,
            text(info.key.pci.map(|pci| pci.to_string())),
            text(info.key.uuid.map(|uuid| uuid.to_string())),
            info.key.slice,
            text(info.key.luid.map(|luid| luid.to_string())),
            info.total_memory,
            limits.max_alloc,
            info.free_memory,
            kinds.join(", "),
            info.languages.contains(&Language::Ptx),
            names(info.caps),
            limits.compute_units,
            limits.max_group,
            limits.max_group_items,
            limits.max_groups,
            limits.local_memory,
            limits.slice_align,
        );
    }
}

fn names(caps: warploom_core::Caps) -> String {
    let names: Vec<&str> = caps.iter_names().map(|(name, _)| name).collect();
    names.join(" | ")
}

/// Copies of every size around the staging memory's, at odd places.
fn copies() {
    const HALF: usize = 4 << 20;
    let device = open(0);
    let mut queue = queue(&device);
    for len in [1, 3, 4096, HALF - 1, HALF, HALF + 1, 3 * HALF + 7] {
        let bytes = pattern(len, len);
        let whole = device_memory(&device, len + 13);
        let part = whole.part(5..5 + len as u64).expect("inside");
        queue.upload(&bytes, &part).expect("an upload");
        assert!(content(&mut queue, &part) == bytes, "{len} bytes");
    }
    // Many small ones share a half; the order of overlapping ones is kept.
    let whole = device_memory(&device, 100_000);
    let mut wanted = vec![0; 100_000];
    queue.upload(&wanted, &whole).expect("an upload");
    for round in 0..2000 {
        let (at, bytes) = (round * 37 % 90_000, pattern(9000 - round % 7, round));
        wanted[at..at + bytes.len()].copy_from_slice(&bytes);
        let part = whole.part(at as u64..(at + bytes.len()) as u64);
        queue
            .upload(&bytes, &part.expect("inside"))
            .expect("an upload");
    }
    assert!(content(&mut queue, &whole) == wanted);
    let copy = device_memory(&device, 100_000);
    queue.copy(&whole, &copy).expect("a copy");
    assert!(content(&mut queue, &copy) == wanted);
}

fn sources_are_free_at_once() {
    let device = open(0);
    let mut queue = queue(&device);
    let slices: Vec<Slice> = (0..40).map(|_| device_memory(&device, 1 << 20)).collect();
    let mut source = vec![0; 1 << 20];
    for (round, slice) in slices.iter().enumerate() {
        source.copy_from_slice(&pattern(1 << 20, round));
        queue.upload(&source, slice).expect("an upload");
    }
    drop(source);
    for (round, slice) in slices.iter().enumerate() {
        assert!(
            content(&mut queue, slice) == pattern(1 << 20, round),
            "{round}"
        );
    }
}

fn handles_may_be_dropped_early() {
    let device = open(0);
    let mut queue = queue(&device);
    let out = device_memory(&device, 4096);
    let held = device.memory().expect("numbers").ours;
    assert_eq!(held, 4096);
    for round in 0..600_u32 {
        let (first, second) = (device_memory(&device, 4096), pinned_memory(&device, 4096));
        let kernel = fill(&device);
        let args = [Arg::from(first.clone()), round.into(), 1024_u32.into()];
        queue
            .launch(&kernel, Grid::groups([16, 1, 1]), &args)
            .expect("a launch");
        queue.copy(&first, &second).expect("a copy");
        queue.copy(&second, &out).expect("a copy");
    }
    let event = queue.record().expect("an event");
    event.wait(None).expect("the work is done");
    assert_eq!(device.memory().expect("numbers").ours, held);
    assert_eq!(content(&mut queue, &out)[..4], 599_u32.to_ne_bytes());
    // And with the device and the queue gone first.
    queue
        .copy(
            &out.part(0..8).expect("inside"),
            &out.part(8..16).expect("inside"),
        )
        .expect("a copy");
    let event = queue.record().expect("an event");
    drop((device, queue));
    assert_eq!(event.is_done(), Ok(true));
    drop(out);
}

/// Two devices, two queues: a value travels by events alone.
fn kernels_and_events() {
    let (device, other) = (open(0), open(1));
    let (mut first, mut second, mut third) = (queue(&device), queue(&device), queue(&other));
    let number = Param::Scalar(DType::U32);
    let scale = Param::Scalar(DType::F32);
    let add = load(
        &device,
        "add",
        &[Param::Read, Param::ReadWrite, scale, number],
    );
    let fill = fill(&device);
    let (a, b) = (device_memory(&device, 400), device_memory(&device, 400));
    let one = f32::to_bits(1.0);
    for (queue, slice) in [(&mut first, &a), (&mut second, &b)] {
        let args = [slice.clone().into(), one.into(), 100_u32.into()];
        queue
            .launch(&fill, Grid::groups([2, 1, 1]), &args)
            .expect("a launch");
    }
    let filled = first.record().expect("an event");
    second.wait(&filled).expect("a wait");
    let args = [a.into(), b.clone().into(), 2.5_f32.into(), 100_u32.into()];
    second
        .launch(&add, Grid::groups([2, 1, 1]), &args)
        .expect("a launch");
    let added = second.record().expect("an event");
    // Another device waits on the device; a stranger's event is waited for by the host.
    third.wait(&added).expect("a wait");
    let stranger: Arc<dyn Event> = Arc::new(Ready(Duration::ZERO));
    third.wait(&stranger).expect("a wait");
    let met = third.record().expect("an event");
    met.wait(None).expect("done");
    assert_eq!(added.is_done(), Ok(true));
    let values = content(&mut second, &b);
    for value in values.as_chunks().0 {
        assert!((f32::from_ne_bytes(*value) - 3.5).abs() < f32::EPSILON);
    }
}

fn pinned_memory_is_lent_when_idle() {
    let device = open(0);
    let (mut up, mut down) = (queue(&device), queue(&device));
    let (from, to) = (pinned_memory(&device, 1000), pinned_memory(&device, 1000));
    let on_device = device_memory(&device, 1000);
    for round in 0..50 {
        let bytes = pattern(1000, round);
        from.buffer()
            .with_host(&mut |host| host.copy_from_slice(&bytes))
            .expect("lent");
        up.copy(&from, &on_device).expect("a copy");
        let event = up.record().expect("an event");
        // Changed only after the copy that reads it.
        from.buffer()
            .with_host(&mut |host| host.fill(0xEE))
            .expect("lent");
        down.wait(&event).expect("a wait");
        down.copy(&on_device, &to).expect("a copy");
        to.buffer()
            .with_host(&mut |host| assert!(host == bytes))
            .expect("lent");
        // Host to host, both ways, and by plain slices.
        down.copy(&to, &from).expect("a copy");
        from.buffer()
            .with_host(&mut |host| assert!(host == bytes))
            .expect("lent");
        down.copy(
            &from.part(0..10).expect("inside"),
            &from.part(20..30).expect("inside"),
        )
        .expect("a copy");
        assert!(content(&mut down, &from)[20..30] == bytes[..10]);
        down.upload(&[7; 1000], &from).expect("an upload");
        assert!(content(&mut down, &from) == [7; 1000]);
    }
    let error = on_device
        .buffer()
        .with_host(&mut |_| ())
        .expect_err("the host cannot see it");
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
}

fn time_goes_forward() {
    let device = open(0);
    let (mut first, mut second) = (queue(&device), queue(&device));
    let slice = device_memory(&device, 64);
    let mut last = Duration::ZERO;
    // Long enough for the clock to take a younger base, twice.
    for round in 0..9 {
        let queue = if round % 2 == 0 {
            &mut first
        } else {
            &mut second
        };
        queue.upload(&[0; 64], &slice).expect("an upload");
        let event = queue.record().expect("an event");
        event.wait(None).expect("done");
        let at = event.at().expect("a time");
        assert!(
            at >= last && at < last + Duration::from_secs(30),
            "{last:?} {at:?}"
        );
        if round > 0 {
            let gap = at.checked_sub(last).expect("forward");
            assert!(gap >= Duration::from_millis(590), "{gap:?}");
        }
        last = at;
        std::thread::sleep(Duration::from_millis(600));
    }
    // Left pending, an event has no time; another queue's later event does not disturb it.
    first.upload(&[0; 64], &slice).expect("an upload");
    first.upload(&[0; 64], &slice).expect("an upload");
    let pending = first.record().expect("an event");
    assert_eq!(pending.at(), None);
    let late = second.record().expect("an event");
    late.wait(None).expect("done");
    assert!(late.at().expect("a time") >= last);
    pending.wait(None).expect("done");
    assert!(pending.at().expect("a time") >= last);
}

fn many_threads_many_queues() {
    let device = open(0);
    let shared = pinned_memory(&device, 4096);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (device, shared) = (&device, &shared);
            let mut queue = queue(device);
            scope.spawn(move || {
                for round in 0..50 {
                    let bytes = pattern(70_000, thread * 100 + round);
                    let slice = device_memory(device, bytes.len());
                    queue.upload(&bytes, &slice).expect("an upload");
                    let lent = shared.part(thread as u64 * 1024..(thread as u64 + 1) * 1024);
                    let lent = lent.expect("inside");
                    queue
                        .copy(&slice.part(0..1024).expect("inside"), &lent)
                        .expect("a copy");
                    let mut seen = false;
                    let look = &mut |host: &mut [u8]| {
                        seen = host[lent.host_range()] == bytes[..1024];
                    };
                    shared.buffer().with_host(look).expect("lent");
                    assert!(seen);
                    assert!(content(&mut queue, &slice) == bytes);
                    // Dropped by a thread that never saw the device.
                    scope.spawn(move || drop(slice));
                }
                queue
            });
        }
    });
    assert_eq!(device.memory().expect("numbers").ours, 4096);
}

fn two_openings_are_independent() {
    let (first, second) = (open(0), open(0));
    let slice = device_memory(&first, 1000);
    assert_eq!(first.memory().expect("numbers").ours, 1000);
    assert_eq!(second.memory().expect("numbers").ours, 0);
    drop(first);
    // The buffer's own opening is gone, the other works on.
    let mut queue = queue(&second);
    queue.upload(&[9; 1000], &slice).expect("an upload");
    assert!(content(&mut queue, &slice) == [9; 1000]);
    let backend = CudaBackend::load().expect("loaded");
    let error = backend.open(7).expect_err("there is no such device");
    assert_eq!(
        error.to_string(),
        "cuDeviceGet failed on cuda:7: CUDA_ERROR_OTHER (101)"
    );
}
