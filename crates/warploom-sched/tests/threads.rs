//! Plans on devices with threads of their own, in real time.

mod graphs;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graphs::{ENCODER, Encoder, ms, random};
use rstest::rstest;
use warploom_core::{CancelToken, CheckedDevice, GpuBackend, QueueClass, Space};
use warploom_sched::{
    DRIVER, Options, Payloads, Pipeline, Plan, Replicas, Resource, RunError, RunOptions, Stage,
    StageGraph, StageId, Threads, plan,
};
use warploom_testkit::{FakeBackend, FakeDevice};
use world::{Script, run_seeded};

fn fake() -> CheckedDevice {
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    CheckedDevice::new(fakes.open(0).unwrap_or_else(|error| panic!("{error}")))
}

fn options(generations: u64) -> RunOptions {
    RunOptions::of(generations, 1)
        .with_patience(Duration::from_secs(20))
        .with_race_check(true)
}

type Delivered = Vec<(usize, u64, u64, u64)>;

fn run(plan: &Plan, device: &CheckedDevice, generations: u64) -> Delivered {
    let script = Script::default();
    let payloads = script
        .payloads(plan, device)
        .unwrap_or_else(|error| panic!("{error}"));
    let crew = Threads::new();
    let mut pipeline = Pipeline::start(plan, device, payloads, crew, options(generations))
        .unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = pipeline.run() {
        panic!("{error}");
    }
    assert_eq!(pipeline.pool().held(), 0);
    drop(pipeline);
    let log = script.delivered.lock();
    let mut delivered = log.map_or_else(|_| Vec::new(), |log| log.clone());
    delivered.sort_unstable();
    delivered
}

#[test]
fn threads_deliver_what_the_simulation_does() {
    let device = fake();
    for encoder in Encoder::all() {
        for depth in 1..=4 {
            let Ok(plan) = plan(&encoder.graph(), &Options::default().with_depth(depth)) else {
                continue;
            };
            let mut simulated = run_seeded(&plan, 1, 8, true).delivered;
            simulated.sort_unstable();
            assert_eq!(run(&plan, &device, 8), simulated, "{encoder:?} {depth}");
        }
    }
}

#[test]
fn random_graphs_on_threads_deliver_what_the_simulation_does() {
    let device = fake();
    for seed in 0..40 {
        let Ok(plan) = plan(&random(seed), &Options::default().with_depth(2)) else {
            continue;
        };
        let mut simulated = run_seeded(&plan, 1, 8, true).delivered;
        simulated.sort_unstable();
        assert_eq!(run(&plan, &device, 8), simulated, "{seed}");
    }
}

/// Read, upload, download, write.
fn simple(thread: Option<&str>) -> (StageGraph, [StageId; 4]) {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, 512));
    let image = graph.resource(Resource::new("image", Space::Device, 512));
    let output = graph.resource(Resource::new("output", Space::Pinned, 512));
    let place = |stage: Stage| match thread {
        Some(thread) => stage.on(thread),
        None => stage,
    };
    let stages = [
        place(Stage::host("read")).writes(input),
        Stage::device("upload", QueueClass::Upload)
            .reads(input)
            .writes(image),
        Stage::device("download", QueueClass::Download)
            .reads(image)
            .writes(output),
        place(Stage::host("write")).reads(output),
    ];
    let ids = stages.map(|stage| graph.stage(stage));
    (graph, ids)
}

/// Payloads that move bytes through, and tell the last stage's to `write`.
fn moving(
    graph: &StageGraph,
    [read, upload, download, write]: [StageId; 4],
    mut sink: impl FnMut(u64, &[u8]) + Send + 'static,
) -> Payloads {
    let resource = |stage: StageId, at: usize| graph.stages()[stage.index()].accesses[at].resource;
    let [input, image, output] = [resource(read, 0), resource(upload, 1), resource(write, 0)];
    Payloads::new()
        .host(read, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.write(input, |bytes| bytes.fill(byte))
        })
        .device(upload, move |turn| {
            let (from, to) = (turn.read(input)?, turn.write(image)?);
            turn.copy(&from, &to)
        })
        .device(download, move |turn| {
            let (from, to) = (turn.read(image)?, turn.write(output)?);
            turn.copy(&from, &to)
        })
        .host(write, move |turn| {
            let generation = turn.batch().generation;
            turn.read(output, |bytes| sink(generation, bytes))
        })
}

#[test]
fn stages_on_the_driver_need_no_thread() {
    let (graph, ids) = simple(Some(DRIVER));
    let plan = plan(&graph, &Options::default()).unwrap();
    let here = std::thread::current().id();
    let seen = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&seen);
    let payloads = moving(&graph, ids, move |generation, bytes| {
        assert_eq!(std::thread::current().id(), here);
        assert!(
            bytes
                .iter()
                .all(|byte| u64::from(*byte) == generation % 256)
        );
        own.fetch_add(1, Ordering::SeqCst);
    });
    let device = fake();
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), options(300)).unwrap();
    assert_eq!(pipeline.run().unwrap().generations, 300);
    assert_eq!(seen.load(Ordering::SeqCst), 300);
}

#[test]
fn a_drop_waits_for_a_sink_that_is_busy_and_no_longer_i7() {
    let (graph, ids) = simple(None);
    let plan = plan(&graph, &Options::default()).unwrap();
    let (begun, has_begun) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let released = Mutex::new(released);
    let payloads = moving(&graph, ids, move |generation, _| {
        if generation == 1 {
            let _ = begun.send(());
            let _ = released.lock().map(|released| released.recv());
        }
        assert!(generation < 2, "what was not begun stays so");
    });
    let device = fake();
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), options(20)).unwrap();
    while has_begun.try_recv().is_err() {
        pipeline.turn().unwrap();
    }
    let is_dropped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_dropped);
    let dropper = std::thread::spawn(move || {
        drop(pipeline);
        told.store(true, Ordering::SeqCst);
    });
    std::thread::sleep(ms(100));
    assert!(
        !is_dropped.load(Ordering::SeqCst),
        "the sink still holds its slot"
    );
    let begun = Instant::now();
    release.send(()).unwrap();
    dropper.join().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(device.memory().unwrap().ours, 0);
}

#[test]
fn a_sink_that_hangs_is_given_up_in_time() {
    let (graph, ids) = simple(None);
    let plan = plan(&graph, &Options::default()).unwrap();
    let (release, released) = sync_channel::<()>(1);
    let released = Mutex::new(released);
    let payloads = moving(&graph, ids, move |_, _| {
        let _ = released.lock().map(|released| released.recv());
    });
    let patience = ms(300);
    let device = fake();
    let options = options(4).with_patience(patience);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options).unwrap();
    let error = pipeline.run().unwrap_err();
    let RunError::Timeout { waited, chain } = &error else {
        panic!("{error}");
    };
    assert!(*waited >= patience, "{waited:?}");
    let end = "write(0) [output free], which is running on the host";
    assert!(chain.ends_with(end), "{chain}");
    assert_eq!(pipeline.run().unwrap_err(), error);
    drop(release);
}

#[test]
fn calling_off_wakes_a_run_that_waits() {
    let (graph, ids) = simple(None);
    let plan = plan(&graph, &Options::default()).unwrap();
    let payloads = moving(&graph, ids, |_, _| std::thread::sleep(ms(20)));
    let token = CancelToken::new();
    let device = fake();
    let options = options(10_000).cancelled_by(&token);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options).unwrap();
    let other = token.clone();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(ms(100));
        other.cancel();
    });
    let begun = Instant::now();
    let error = pipeline.run().unwrap_err();
    assert!(
        matches!(error, RunError::Cancelled { delivered } if delivered > 0),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    canceller.join().unwrap();
}

#[test]
fn eight_runs_deliver_the_same() {
    let plan = plan(&ENCODER.graph(), &Options::default().with_depth(3)).unwrap();
    let device = fake();
    let first = run(&plan, &device, 20);
    for _ in 0..7 {
        assert_eq!(run(&plan, &device, 20), first);
    }
}

#[rstest]
#[case(1, 7)]
#[case(2, 7)]
#[case(3, 12)]
#[case(4, 2)]
fn replicas_do_each_record_once(#[case] count: usize, #[case] records: u64) {
    let mut graph = StageGraph::new();
    let between = graph.resource(Resource::new("between", Space::Pinned, 64));
    let make = graph.stage(Stage::host("make").writes(between));
    let take = graph.stage(Stage::host("take").reads(between));
    let replicas = Replicas::new(&graph, count);
    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut payloads = Payloads::new();
    for replica in 0..count {
        let own = replicas.resource(replica, between);
        let of = replicas.clone();
        let made = replicas.stage(replica, make);
        payloads = payloads.host(made, move |turn| match of.record(replica, turn.batch()) {
            Some(record) => turn.write(own, |bytes| bytes.fill(record.to_le_bytes()[0])),
            None => Ok(()),
        });
        let (of, taken) = (replicas.clone(), Arc::clone(&taken));
        payloads = payloads.host(replicas.stage(replica, take), move |turn| {
            match of.record(replica, turn.batch()) {
                Some(record) => turn.read(own, |bytes| {
                    taken.lock().unwrap().push((record, bytes[63]));
                }),
                None => Ok(()),
            }
        });
    }
    let plan = plan(replicas.graph(), &Options::default()).unwrap();
    let options = RunOptions::of(records, count as u64);
    let mut run = Pipeline::start(&plan, &fake(), payloads, Threads::new(), options).unwrap();
    assert_eq!(run.run().unwrap().records, records);
    let mut taken = taken.lock().unwrap().clone();
    taken.sort_unstable();
    let wanted: Vec<(u64, u8)> = (0..records).zip(0..).collect();
    assert_eq!(taken, wanted);
}
