//! One kernel that is launched and waited for, again and again: through a pipeline, by our queue alone,
//! and with bare calls.

use std::time::Instant;

use anyhow::{Context as _, Result};
use warploom::sched::{
    DRIVER, Options, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Threads, Use,
    plan,
};
use warploom::{CheckedDevice, Grid, Queue as _, QueueClass, QueueDesc, Slice, Space};

use super::bare::{Bare, scale};

/// Round trips in one round.
const TRIPS: u32 = 200;
/// Rounds of each side.
const ROUNDS: usize = 40;
/// Elements that the kernel goes over.
const ELEMENTS: u32 = 64;

/// Microseconds of a round trip, in the best round of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trips {
    pub(crate) pipeline: f64,
    pub(crate) queue: f64,
    pub(crate) bare: f64,
}

/// All three take turns.
pub(crate) fn race(device: &CheckedDevice, bare: &Bare) -> Result<Trips> {
    let mut best = Trips {
        pipeline: f64::INFINITY,
        queue: f64::INFINITY,
        bare: f64::INFINITY,
    };
    for _ in 0..ROUNDS {
        best.pipeline = best.pipeline.min(through_pipeline(device)?);
        best.queue = best.queue.min(through_queue(device)?);
        best.bare = best.bare.min(bare.trips(TRIPS, ELEMENTS as usize)?);
    }
    let micros = 1e6 / f64::from(TRIPS);
    Ok(Trips {
        pipeline: best.pipeline * micros,
        queue: best.queue * micros,
        bare: best.bare * micros,
    })
}

/// Seconds for all trips: each generation is one kernel, and the host sees its end before the next.
fn through_pipeline(device: &CheckedDevice) -> Result<f64> {
    let kernel = device.kernel(&scale())?;
    let kind = device.info().local_kind().context("memory for kernels")?;
    let data = device.alloc(kind, u64::from(ELEMENTS) * 4)?;
    let mut graph = StageGraph::new();
    let token = graph.resource(Resource::new("token", Space::Pinned, 64));
    let work = graph.stage(Stage::device("work", QueueClass::Compute).writes(token));
    let see = graph.stage(Stage::host("see").on(DRIVER).reads(token));
    let plan = plan(&graph, &Options::default().with_depth(1))?;
    let payloads = Payloads::new()
        .device(work, move |turn| {
            let uses = [
                Use::Slice(Slice::whole(&data)),
                Use::Number(1.0_f32.into()),
                Use::Number(ELEMENTS.into()),
            ];
            turn.launch(&kernel, Grid::groups([1; 3]), &uses)
        })
        .host(see, |_| Ok(()));
    let options = RunOptions::of(u64::from(TRIPS), 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, device, payloads, Threads::new(), options)?;
    let begun = Instant::now();
    pipeline.run()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The same without a scheduler.
fn through_queue(device: &CheckedDevice) -> Result<f64> {
    let kernel = device.kernel(&scale())?;
    let kind = device.info().local_kind().context("memory for kernels")?;
    let data = device.alloc(kind, u64::from(ELEMENTS) * 4)?;
    let mut queue = device.queue(&QueueDesc::named("trips"))?;
    let args = [Slice::whole(&data).into(), 1.0_f32.into(), ELEMENTS.into()];
    let begun = Instant::now();
    for _ in 0..TRIPS {
        queue.launch(&kernel, Grid::groups([1; 3]), &args)?;
        queue.record()?.wait(None)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}
