//! What the scheduler itself costs: a batch through five queues of a device that does nothing, a
//! slot taken and given back, the host woken by a device, and engines that ought to overlap.
//! `cargo xtask bench sched` runs it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../tests/graphs/mod.rs"]
mod graphs;
#[path = "../tests/idle/mod.rs"]
mod idle;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use graphs::{ENCODER, ms};
use idle::IdleDevice;
use warploom_core::{CheckedDevice, GpuBackend, Queue, QueueClass, QueueDesc, Slice, Space};
use warploom_sched::{
    DRIVER, Options, Payloads, Pipeline, Resource, RunOptions, Slots, Stage, StageGraph, Threads,
    plan,
};
use warploom_testkit::{FakeBackend, FakeDevice};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The best of several rounds: what the code costs when nothing else runs.
fn best(rounds: u32, mut round: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        best = best.min(round()?);
    }
    Ok(best)
}

/// The same graph with all host stages on the driver.
fn on_driver(graph: &StageGraph) -> StageGraph {
    let mut own = StageGraph::new();
    for resource in graph.resources() {
        own.resource(resource.clone());
    }
    for stage in graph.stages() {
        let stage = stage.clone();
        own.stage(if stage.is_host() {
            stage.on(DRIVER)
        } else {
            stage
        });
    }
    own
}

fn nothing(graph: &StageGraph) -> Outcome<Payloads> {
    let mut payloads = Payloads::new();
    for stage in graph.stages() {
        let id = graph.find(&stage.name).ok_or("no such stage")?;
        payloads = if stage.is_host() {
            payloads.host(id, |_| Ok(()))
        } else {
            payloads.device(id, |_| Ok(()))
        };
    }
    Ok(payloads)
}

/// Nanoseconds per batch through the encoder's five queues, with payloads that do nothing.
fn batch_ns(depth: u32) -> Outcome<f64> {
    const BATCHES: u64 = 20_000;
    let graph = on_driver(&ENCODER.graph());
    let plan = plan(&graph, &Options::default().with_depth(depth))?;
    best(7, || {
        let device = CheckedDevice::new(IdleDevice::open());
        let options = RunOptions::of(BATCHES, 1).with_race_check(false);
        let crew = Threads::new();
        let mut pipeline = Pipeline::start(&plan, &device, nothing(&graph)?, crew, options)?;
        let begun = Instant::now();
        pipeline.run()?;
        Ok(begun.elapsed().as_secs_f64() * 1e9 / BATCHES as f64)
    })
}

/// Nanoseconds to take one slot and give it back.
fn slot_ns() -> Outcome<f64> {
    const TURNS: u64 = 200_000;
    let mut graph = StageGraph::new();
    let frame = graph.resource(Resource::new("frame", Space::Pinned, 4096));
    let stage = graph.stage(Stage::host("write").on(DRIVER).writes(frame));
    let plan = plan(&graph, &Options::default().with_depth(3))?;
    let device = CheckedDevice::new(IdleDevice::open());
    let payloads = nothing(&graph)?;
    let options = RunOptions::of(1, 1).with_race_check(false);
    let pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    best(7, || {
        let begun = Instant::now();
        let mut generation = 0;
        while generation < TURNS {
            drop(std::hint::black_box(
                pipeline.pool().hold(stage, generation)?,
            ));
            generation += 1;
        }
        let spent = begun.elapsed().as_secs_f64() * 1e9 / TURNS as f64;
        Ok(spent)
    })
}

/// How much longer the host takes to hear of a device's work through a pipeline than by itself.
fn wake_ratio() -> Outcome<f64> {
    const TURNS: u64 = 2_000;
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let device = CheckedDevice::new(fakes.open(0)?);
    let kinds = &device.info().memory;
    let (near, far) = (device.alloc(kinds[0], 64)?, device.alloc(kinds[1], 64)?);
    let mut queue = device.queue(&QueueDesc::named("bare"))?;
    let bare = best(5, || {
        let begun = Instant::now();
        for _ in 0..TURNS {
            queue.copy(&Slice::whole(&near), &Slice::whole(&far))?;
            queue.record()?.wait(None)?;
        }
        Ok(begun.elapsed().as_secs_f64())
    })?;
    let mut graph = StageGraph::new();
    let from = graph.resource(Resource::new("from", Space::Device, 64));
    let to = graph.resource(Resource::new("to", Space::Pinned, 64));
    let copy = Stage::device("copy", QueueClass::Download);
    let copy = graph.stage(copy.writes(from).writes(to));
    let see = graph.stage(Stage::host("see").on(DRIVER).reads(to));
    let plan = plan(&graph, &Options::default().with_depth(1))?;
    let ours = best(5, || {
        let payloads = Payloads::new()
            .device(copy, move |turn| {
                let (from, to) = (turn.write(from)?, turn.write(to)?);
                Ok(turn.queue().copy(from.slice(), to.slice())?)
            })
            .host(see, |_| Ok(()));
        let options = RunOptions::of(TURNS, 1).with_race_check(false);
        let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
        let begun = Instant::now();
        pipeline.run()?;
        Ok(begun.elapsed().as_secs_f64())
    })?;
    Ok(ours / bare)
}

/// Four engines that wait 4, 6, 3 and 5 ms for each of 60 frames, with so many frames at once: how
/// much longer it takes than it would have to.
fn overlap_ratio(slots: u32) -> Outcome<f64> {
    const FRAMES: u64 = 60;
    const TIMES: [u64; 4] = [4, 6, 3, 5];
    let mut graph = StageGraph::new();
    let frame = Resource::new("frame", Space::Pinned, 64).with_slots(Slots::Exactly(slots));
    let frame = graph.resource(frame);
    let mut payloads = Payloads::new();
    for (name, time) in ["upload", "compute", "download", "write"].iter().zip(TIMES) {
        let stage = Stage::host(*name).taking(ms(time));
        let id = graph.stage(if *name == "upload" {
            stage.writes(frame)
        } else {
            stage.updates(frame)
        });
        payloads = payloads.host(id, move |_| {
            std::thread::sleep(ms(time));
            Ok(())
        });
    }
    let plan = plan(&graph, &Options::default())?;
    let device = CheckedDevice::new(IdleDevice::open());
    let options = RunOptions::of(FRAMES, 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    let begun = Instant::now();
    pipeline.run()?;
    let sum: u64 = TIMES.iter().sum();
    let longest = TIMES.iter().max().copied().unwrap_or(0) as f64;
    let period = longest.max(sum as f64 / f64::from(slots));
    let ideal = (FRAMES - 1) as f64 * period + sum as f64;
    Ok(begun.elapsed().as_secs_f64() * 1e3 / ideal)
}

/// The same while two threads do nothing but count.
fn busy(measure: impl FnOnce() -> Outcome<f64>) -> Outcome<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let neighbours = [(); 2].map(|()| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
    });
    let measured = measure();
    stop.store(true, Ordering::Relaxed);
    for neighbour in neighbours {
        // It counts and cannot fail.
        let _ = neighbour.join();
    }
    measured
}

fn main() -> Outcome<()> {
    let stages = ENCODER.graph().stages().len() as f64;
    let batch = batch_ns(2)?;
    println!("sched_batch_us {:.3}", batch / 1e3);
    println!("sched_task_ns {:.1}", batch / stages);
    println!("sched_slot_ns {:.1}", slot_ns()?);
    println!("sched_wake_ratio {:.3}", wake_ratio()?);
    for slots in [2, 3, 4] {
        println!(
            "sched_overlap_{slots}_slots_ratio {:.3}",
            overlap_ratio(slots)?
        );
    }
    println!("sched_overlap_busy_ratio {:.3}", busy(|| overlap_ratio(3))?);
    let begun = Instant::now();
    plan(&ENCODER.graph(), &Options::default())?;
    println!(
        "sched_plan_us {:.1}",
        Duration::as_secs_f64(&begun.elapsed()) * 1e6
    );
    Ok(())
}
