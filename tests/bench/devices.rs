//! What the scheduler costs beside bare OpenCL, how well real work overlaps, how much memory streams
//! take, and what reading ahead brings.
//! `cargo xtask bench sched` runs it.
//!
//! Both sides of a ratio take turns, and the best of each counts.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "devices/bare.rs"]
mod bare;
#[path = "devices/footprint.rs"]
mod footprint;
#[path = "devices/readers.rs"]
mod readers;
#[path = "devices/stream.rs"]
mod stream;
#[path = "devices/wake.rs"]
mod wake;

use std::time::Instant;

use anyhow::{Context as _, Result};
use warploom::sched::{
    Options as Wishes, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Threads, Use,
    plan,
};
use warploom::{
    CheckedDevice, DeviceId, Grid, Options, Queue as _, QueueClass, Slice, Space, registry,
};

use bare::{Bare, scale};

/// Rounds of each side.
const ROUNDS: usize = 27;

/// Elements of a tiny frame.
const FRAME: u32 = 64 * 64;

/// How many times longer ours takes than theirs, each at its best.
fn ratio(
    mut ours: impl FnMut() -> Result<f64>,
    mut theirs: impl FnMut() -> Result<f64>,
) -> Result<f64> {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        best = [best[0].min(ours()?), best[1].min(theirs()?)];
    }
    Ok(best[0] / best[1])
}

/// Kernels that do next to nothing, through our queue, with an event behind each of them or behind
/// all, against bare launches, which come with an event each.
fn enqueue(device: &CheckedDevice, bare: &Bare, has_events: bool) -> Result<f64> {
    const LAUNCHES: u32 = 5000;
    let kernel = device.kernel(&scale())?;
    let kind = device.info().local_kind().context("memory for kernels")?;
    let buffer = device.alloc(kind, 4 * 64)?;
    let mut queue = device.queue(&warploom::QueueDesc::named("ours"))?;
    let args = [Slice::whole(&buffer).into(), 1.0_f32.into(), 64_u32.into()];
    ratio(
        || {
            let begun = Instant::now();
            for _ in 0..LAUNCHES {
                queue.launch(&kernel, Grid::groups([1; 3]), &args)?;
                if has_events {
                    drop(queue.record()?);
                }
            }
            queue.record()?.wait(None)?;
            Ok(begun.elapsed().as_secs_f64())
        },
        || bare.launches(LAUNCHES, 64),
    )
}

/// Ten thousand frames of 64 x 64 through a pipeline, so many in a generation, against as many bare
/// launches.
fn tiny(device: &CheckedDevice, bare: &Bare, batch: u64) -> Result<f64> {
    const FRAMES: u32 = 10_000;
    let bytes = u64::from(FRAME) * 4;
    let kernel = device.kernel(&scale())?;
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Device, bytes * batch));
    let work = graph.stage(Stage::device("work", QueueClass::Compute).writes(image));
    let plan = plan(&graph, &Wishes::default().with_depth(2))?;
    ratio(
        || {
            let kernel = std::sync::Arc::clone(&kernel);
            let payloads = Payloads::new().device(work, move |turn| {
                let lease = turn.write(image)?;
                for at in 0..turn.batch().records {
                    let part = lease.slice().part(at * bytes..(at + 1) * bytes)?;
                    let uses = [
                        Use::Slice(part),
                        Use::Number(1.0_f32.into()),
                        Use::Number(FRAME.into()),
                    ];
                    turn.launch(&kernel, Grid::groups([FRAME / 64, 1, 1]), &uses)?;
                }
                Ok(())
            });
            let options = RunOptions::of(u64::from(FRAMES), batch).with_race_check(false);
            let mut pipeline = Pipeline::start(&plan, device, payloads, Threads::new(), options)?;
            let begun = Instant::now();
            pipeline.run()?;
            Ok(begun.elapsed().as_secs_f64())
        },
        || bare.launches(FRAMES, FRAME as usize),
    )
}

fn main() -> Result<()> {
    registry().setup(&Options::default())?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, device, bytes, frames] = &words[..]
        && word == footprint::WORD
    {
        return footprint::stream(device, bytes.parse()?, frames.parse()?);
    }
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    if is_wanted("launches") {
        launches()?;
    }
    if is_wanted("overlap") {
        overlap()?;
    }
    if is_wanted("footprint") {
        footprints()?;
    }
    if is_wanted("readers") {
        let gain = readers::gain()?;
        println!("sched_readers_ratio {:.3}", gain.with_ms / gain.without_ms);
        println!(
            "compressed images: {:.1} ms each with readers, {:.1} ms without",
            gain.with_ms, gain.without_ms
        );
    }
    Ok(())
}

fn footprints() -> Result<()> {
    let opencl = registry().open("opencl:0".parse()?).is_ok();
    let devices = [
        ("fake", footprint::FAKE, true),
        ("cpu", "cpu:0", true),
        ("opencl", "opencl:0", opencl),
        ("host_stages", footprint::HOST, true),
    ];
    for (name, device, _) in devices.iter().filter(|(.., is_here)| *is_here) {
        let (above_slots, growth) = footprint::ratios(device)?;
        println!("sched_footprint_{name}_ratio {above_slots:.3}");
        println!("sched_footprint_{name}_growth_ratio {growth:.3}");
    }
    Ok(())
}

fn launches() -> Result<()> {
    let id: DeviceId = "opencl:0".parse()?;
    if let Ok(device) = registry().open(id) {
        let bare = Bare::open(id.ordinal as usize, FRAME as usize)?;
        let [without, with] = [false, true].map(|events| enqueue(&device, &bare, events));
        println!("sched_enqueue_ratio {:.3}", without?);
        println!("sched_enqueue_events_ratio {:.3}", with?);
        println!("sched_tiny_ratio {:.3}", tiny(&device, &bare, 32)?);
        println!("sched_tiny_single_ratio {:.3}", tiny(&device, &bare, 1)?);
        let trips = wake::race(&device, &bare)?;
        println!("sched_trip_opencl_us {:.2}", trips.pipeline);
        println!("opencl_trip_us {:.2}", trips.bare);
        println!("sched_wake_opencl_ratio {:.3}", trips.pipeline / trips.bare);
        println!("sched_wake_queue_ratio {:.3}", trips.queue / trips.bare);
    } else {
        println!("no OpenCL device is here: nothing to compare launches with");
    }
    Ok(())
}

fn overlap() -> Result<()> {
    let real = stream::overlap()?;
    println!("sched_overlap_real_ratio {:.3}", real.ratio);
    println!(
        "sched_overlap_pool_ratio {:.3}",
        real.frame_ms / real.pool_ms
    );
    println!(
        "{} replicas: {:.1} ms a frame, {:.1} ms of processors, {:.1} ms for stages alone; the other way {:.1} ms, \
         a pool of threads {:.1} ms",
        real.replicas,
        real.frame_ms,
        real.overlapped_ms,
        real.processor_ms,
        real.otherwise_ms,
        real.pool_ms
    );
    Ok(())
}
