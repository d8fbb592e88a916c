//! Plans on devices with threads of their own, in real time.

mod graphs;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graphs::{ENCODER, Encoder, ms, random};
use rstest::rstest;
use warploom_core::{CancelToken, CheckedDevice, GpuBackend, QueueClass, Space};
use warploom_sched::{
    DRIVER, Options, Owner, Payloads, Pipeline, Plan, Replicas, Resource, RunError, RunOptions,
    SlotState, Stage, StageGraph, StageId, Threads, plan,
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

/// A sink that stops at a generation until it is let go on.
struct Gate {
    is_there: Receiver<()>,
    go_on: SyncSender<()>,
}

/// The gate and what the sink does there.
fn gate(at: u64) -> (Gate, impl FnMut(u64) + Send + 'static) {
    let (arrive, is_there) = sync_channel(1);
    let (go_on, may_go_on) = sync_channel::<()>(1);
    let gate = Gate { is_there, go_on };
    let stop = move |generation| {
        if generation == at {
            let _ = arrive.send(());
            let _ = may_go_on.recv();
        }
    };
    (gate, stop)
}

/// A graph and payloads as of [`simple`] and [`moving`], with a stage that always has news, so that
/// whoever drives is never asleep for long.
fn ticking(sink: impl FnMut(u64, &[u8]) + Send + 'static) -> (StageGraph, Payloads) {
    let (mut graph, ids) = simple(None);
    let tick = graph.stage(Stage::host("tick"));
    let payloads = moving(&graph, ids, sink).host(tick, |_| {
        std::thread::sleep(ms(1));
        Ok(())
    });
    (graph, payloads)
}

/// More ticks than any test takes, and no race detector: it does not look that far back.
fn endless() -> RunOptions {
    options(1_000_000).with_race_check(false)
}

impl Gate {
    /// Drives until the sink is there.
    fn reach(&self, pipeline: &mut Pipeline<Threads>) {
        while self.is_there.try_recv().is_err() {
            assert_eq!(pipeline.turn(), Ok(true));
        }
    }
}

#[rstest]
fn a_drop_waits_for_a_sink_that_is_busy_and_no_longer_i7(#[values(0, 1, 2, 5)] at: u64) {
    let (gate, mut stop) = gate(at);
    let (graph, payloads) = ticking(move |generation, _| {
        stop(generation);
        assert!(generation <= at, "what was not begun stays so");
    });
    let plan = plan(&graph, &Options::default()).unwrap();
    let device = fake();
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), endless()).unwrap();
    gate.reach(&mut pipeline);
    let (dropped, is_dropped) = sync_channel(1);
    let dropper = std::thread::spawn(move || {
        drop(pipeline);
        dropped.send(()).unwrap();
    });
    assert!(
        is_dropped.recv_timeout(ms(100)).is_err(),
        "the sink still holds its slot"
    );
    let begun = Instant::now();
    gate.go_on.send(()).unwrap();
    is_dropped.recv().unwrap();
    let took = begun.elapsed();
    dropper.join().unwrap();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(device.memory().unwrap().ours, 0);
}

/// Where a sink stands, what it has delivered by then, and what is known of its slot.
#[rstest]
fn a_sink_that_is_held_shows_what_the_table_says(
    #[values(1, 2, 3)] depth: u32,
    #[values(0, 1, 3)] at: u64,
) {
    let ((before, mut stop_before), (after, mut stop_after)) = (gate(at), gate(at));
    let delivered = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&delivered);
    let (graph, payloads) = ticking(move |generation, _| {
        stop_before(generation);
        own.fetch_add(1, Ordering::SeqCst);
        stop_after(generation);
    });
    let write = graph.find("write").unwrap();
    let output = graph.stages()[write.index()].accesses[0].resource;
    let plan = plan(&graph, &Options::default().with_depth(depth)).unwrap();
    let slots = u64::from(plan.slots(output));
    let device = fake();
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), endless()).unwrap();
    let pool = Arc::clone(pipeline.pool());
    let state = || {
        let slot = usize::try_from(at % slots).unwrap();
        (
            delivered.load(Ordering::SeqCst),
            pool.state(output, slot).unwrap(),
        )
    };
    let slot = |reads_left, in_use| SlotState {
        generation: at + 1,
        writes_left: 0,
        reads_left,
        in_use,
    };
    // Filled, lent to the sink, nothing delivered.
    before.reach(&mut pipeline);
    assert_eq!(state(), (at, slot(1, 1)));
    // Delivered, and still lent: nobody may fill the slot again.
    before.go_on.send(()).unwrap();
    after.is_there.recv().unwrap();
    assert_eq!(state(), (at + 1, slot(1, 1)));
    // Returned: read as often as it should be and in nobody's hand. The driver has not heard of it,
    // so the slot keeps its generation.
    after.go_on.send(()).unwrap();
    while state().1.in_use > 0 {
        std::thread::yield_now();
    }
    let (count, returned) = state();
    assert_eq!(returned, slot(0, 0));
    // The next one may have been at hand.
    assert!((at + 1..=at + 2).contains(&count), "{count}");
    // Once it has, another generation gets the slot.
    while state().1.generation == at + 1 {
        assert!(pipeline.turn().unwrap());
    }
    assert_eq!(state().1.generation, at + 1 + slots);
}

#[test]
fn a_sink_that_never_returns_keeps_nobody_who_gave_it_up() {
    let (graph, ids) = simple(None);
    let plan = plan(&graph, &Options::default()).unwrap();
    let (gate, mut stop) = gate(1);
    let (tell, told) = sync_channel(8);
    let payloads = moving(&graph, ids, move |generation, bytes| {
        stop(generation);
        // Long after all others are gone, its bytes are still there.
        let _ = tell.send((generation, bytes.iter().all(|byte| *byte == 1)));
    });
    let device = fake();
    let options = options(8).with_patience(ms(200));
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options).unwrap();
    let error = pipeline.run().unwrap_err();
    assert!(matches!(error, RunError::Timeout { .. }), "{error}");
    let begun = Instant::now();
    drop(pipeline);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    gate.is_there.recv().unwrap();
    assert!(device.memory().unwrap().ours > 0, "it holds its slot");
    gate.go_on.send(()).unwrap();
    assert_eq!(told.recv(), Ok((0, false)));
    assert_eq!(told.recv(), Ok((1, true)));
    // What was at hand for it is not begun any more, and its thread ends.
    assert!(told.recv().is_err());
    let deadline = Instant::now() + Duration::from_secs(10);
    while device.memory().unwrap().ours > 0 {
        assert!(Instant::now() < deadline, "memory is given back in the end");
        std::thread::yield_now();
    }
}

#[test]
fn all_time_of_threads_and_queues_is_accounted_for_on_a_clock() {
    let (graph, ids) = simple(None);
    let plan = plan(&graph, &Options::default()).unwrap();
    let payloads = moving(&graph, ids, |_, _| std::thread::sleep(ms(1)));
    let device = fake();
    let options = options(200).metered();
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options).unwrap();
    let summary = pipeline.run().unwrap();
    assert_eq!(summary.lost, 0);
    assert_eq!(summary.usages.len(), 1 + 2 + plan.queues().len());
    for usage in &summary.usages {
        let off = usage.total().abs_diff(summary.wall);
        assert!(off <= summary.wall / 100, "{usage:?} of {:?}", summary.wall);
    }
    let write = Owner::Thread("write".into());
    let write = summary
        .usages
        .iter()
        .find(|usage| usage.owner == write)
        .unwrap();
    assert_eq!(write.turns, 200);
    assert!(write.busy >= ms(200), "{write:?}");
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
