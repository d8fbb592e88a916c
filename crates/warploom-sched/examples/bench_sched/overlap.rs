//! Engines that ought to overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use warploom_core::{CheckedDevice, Space};
use warploom_sched::{
    Options, Payloads, Pipeline, Resource, RunOptions, Slots, Stage, StageGraph, Threads, plan,
};

use crate::Outcome;
use crate::graphs::ms;
use crate::idle::IdleDevice;

/// Four engines that wait 4, 6, 3 and 5 ms for each of 60 frames, with so many frames at once: how
/// much longer it takes than it would have to.
pub(crate) fn ratio(slots: u32) -> Outcome<f64> {
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
pub(crate) fn busy(measure: impl FnOnce() -> Outcome<f64>) -> Outcome<f64> {
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
