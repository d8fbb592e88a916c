//! What the scheduler itself costs: a batch through five queues of a device that does nothing, a
//! slot taken and given back, the host woken by a device, and engines that ought to overlap.
//! `cargo xtask bench sched` runs it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "../../tests/counting/mod.rs"]
mod counting;
#[path = "../../tests/graphs/mod.rs"]
mod graphs;
#[path = "../../tests/idle/mod.rs"]
mod idle;
mod overlap;
#[path = "../peer/mod.rs"]
mod peer;
mod wake;

use std::error::Error;
use std::time::{Duration, Instant};

use graphs::ENCODER;
use idle::IdleDevice;
use peer::Peer;
use warploom_core::{CheckedDevice, Space};
use warploom_sched::{
    DRIVER, Options, Payloads, Pipeline, Plan, Resource, RunOptions, Stage, StageGraph, Threads,
    plan,
};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

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

/// Seconds and allocations of so many batches through the encoder's five queues, with payloads
/// that do nothing.
fn batches(graph: &StageGraph, plan: &Plan, count: u64) -> Outcome<(f64, u64)> {
    let device = CheckedDevice::new(IdleDevice::open());
    let options = RunOptions::of(count, 1).with_race_check(false);
    let crew = Threads::new();
    let mut pipeline = Pipeline::start(plan, &device, nothing(graph)?, crew, options)?;
    let (begun, before) = (Instant::now(), counting::allocations());
    pipeline.run()?;
    let allocated = counting::allocations() - before;
    Ok((begun.elapsed().as_secs_f64(), allocated))
}

/// What a batch and a task cost, taking turns with oneTBB where it is here.
fn tasks(depth: u32) -> Outcome<()> {
    // Long rounds are how a stream goes on; short ones are not interrupted even if the machine is busy.
    const LONG: (u64, u32) = (20_000, 9);
    const SHORT: (u64, u32) = (1_000, 100);
    let graph = on_driver(&ENCODER.graph());
    let plan = plan(&graph, &Options::default().with_depth(depth))?;
    let mut tbb = Peer::start("WARPLOOM_PEER_TBB", &[])?;
    let (mut ours, mut theirs) = ([f64::INFINITY; 2], f64::INFINITY);
    for (best, (count, rounds)) in ours.iter_mut().zip([LONG, SHORT]) {
        for _ in 0..rounds {
            let (seconds, _) = batches(&graph, &plan, count)?;
            *best = best.min(seconds * 1e9 / count as f64);
            if let Some(tbb) = &mut tbb {
                theirs = theirs.min(tbb.round("stream")?.unwrap_or(f64::INFINITY));
            }
        }
    }
    let [task, short] = ours.map(|batch| batch / graph.stages().len() as f64);
    println!("sched_batch_us {:.3}", ours[0] / 1e3);
    println!("sched_task_ns {task:.1}");
    println!("sched_task_short_ns {short:.1}");
    if tbb.is_some() {
        println!("tbb_task_ns {theirs:.1}");
        println!("sched_task_tbb_ratio {:.3}", task / theirs);
    }
    let [(_, few), (_, many)] = [batches(&graph, &plan, 1000)?, batches(&graph, &plan, 2000)?];
    let each = many.saturating_sub(few) as f64 / 1e3;
    println!("sched_batch_allocations_count {each:.3}");
    Ok(())
}

/// Nanoseconds to take one slot and give it back, and how often that allocates.
fn slots() -> Outcome<(f64, f64)> {
    const TURNS: u64 = 20_000;
    let mut graph = StageGraph::new();
    let frame = graph.resource(Resource::new("frame", Space::Pinned, 4096));
    let stage = graph.stage(Stage::host("write").on(DRIVER).writes(frame));
    let plan = plan(&graph, &Options::default().with_depth(3))?;
    let device = CheckedDevice::new(IdleDevice::open());
    let payloads = nothing(&graph)?;
    let options = RunOptions::of(1, 1).with_race_check(false);
    let pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    let before = counting::allocations();
    let (mut best, mut generation) = (f64::INFINITY, 0);
    for _ in 0..70 {
        let begun = Instant::now();
        for _ in 0..TURNS {
            drop(std::hint::black_box(
                pipeline.pool().hold(stage, generation)?,
            ));
            generation += 1;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / TURNS as f64);
    }
    let allocated = counting::allocations() - before;
    Ok((best, allocated as f64 / generation as f64))
}

/// A part of the benchmark and its name.
type Part = (&'static str, fn() -> Outcome<()>);

/// The parts that can be asked for by name; all of them without a name.
const PARTS: [Part; 5] = [
    ("tasks", || tasks(2)),
    ("slots", show_slots),
    ("wake", show_wake),
    ("overlap", show_overlap),
    ("plans", show_plans),
];

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    for word in &words {
        if PARTS.iter().all(|(name, _)| name != word) {
            return Err(format!("no part is called {word}").into());
        }
    }
    for (name, show) in PARTS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            show()?;
        }
    }
    Ok(())
}

fn show_slots() -> Outcome<()> {
    let (ns, allocations) = slots()?;
    println!("sched_slot_ns {ns:.1}");
    println!("sched_slot_allocations_count {allocations:.3}");
    Ok(())
}

fn show_wake() -> Outcome<()> {
    let [ours, bare] = wake::race(wake::LONG)?;
    println!("sched_wake_p50_us {:.2}", ours.late.p50);
    println!("sched_wake_p99_us {:.2}", ours.late.p99);
    println!("condvar_wake_p50_us {:.2}", bare.late.p50);
    println!("condvar_wake_p99_us {:.2}", bare.late.p99);
    let [ours, bare] = wake::race(Duration::ZERO)?;
    println!("sched_trip_p50_us {:.2}", ours.trip.p50);
    println!("condvar_trip_p50_us {:.2}", bare.trip.p50);
    println!("sched_wake_ratio {:.3}", ours.trip.p50 / bare.trip.p50);
    Ok(())
}

fn show_overlap() -> Outcome<()> {
    for slots in [2, 3, 4] {
        let [ours, theirs] = overlap::race(slots)?;
        println!("sched_overlap_{slots}_slots_ratio {ours:.3}");
        println!("channels_overlap_{slots}_slots_ratio {theirs:.3}");
    }
    let [ours, theirs] = overlap::busy(|| overlap::race(3))?;
    println!("sched_overlap_busy_ratio {ours:.3}");
    println!("channels_overlap_busy_ratio {theirs:.3}");
    Ok(())
}

fn show_plans() -> Outcome<()> {
    let begun = Instant::now();
    plan(&ENCODER.graph(), &Options::default())?;
    println!(
        "sched_plan_us {:.1}",
        Duration::as_secs_f64(&begun.elapsed()) * 1e6
    );
    let stuck = graphs::Encoder {
        drain_on_d2h: true,
        tail: graphs::Tail::Gate,
        ..ENCODER
    };
    let begun = Instant::now();
    let refused = plan(&stuck.graph(), &Options::default()).is_err();
    if !refused {
        return Err("a graph that would lock up got a plan".into());
    }
    println!(
        "sched_deadlock_ms {:.3}",
        Duration::as_secs_f64(&begun.elapsed()) * 1e3
    );
    Ok(())
}
