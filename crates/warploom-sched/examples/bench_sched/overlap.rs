//! Engines that ought to overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use warploom_core::{CheckedDevice, Space};
use warploom_sched::{
    Options, Payloads, Pipeline, Resource, RunOptions, Slots, Stage, StageGraph, Threads, plan,
};

use crate::Outcome;
use crate::graphs::ms;
use crate::idle::IdleDevice;

/// What the engines wait for each frame, in milliseconds.
const ENGINES: [(&str, u64); 4] = [("upload", 4), ("compute", 6), ("download", 3), ("write", 5)];
const FRAMES: u64 = 60;
/// The best of some, as the peers do it: a machine that does something else meanwhile is nobody's fault.
const TRIES: u32 = 5;

/// How much longer than it would have to, with so many frames at once: the scheduler, and threads that hand
/// frames on through channels, taking turns.
pub(crate) fn race(slots: u32) -> Outcome<[f64; 2]> {
    let sum: u64 = ENGINES.iter().map(|(_, time)| time).sum();
    let longest = ENGINES.iter().map(|(_, time)| *time).max().unwrap_or(0) as f64;
    let period = longest.max(sum as f64 / f64::from(slots));
    let ideal = (FRAMES - 1) as f64 * period + sum as f64;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..TRIES {
        for (best, seconds) in best.iter_mut().zip([planned(slots)?, channels(slots)?]) {
            *best = best.min(seconds * 1e3 / ideal);
        }
    }
    Ok(best)
}

/// Seconds through the scheduler.
fn planned(slots: u32) -> Outcome<f64> {
    let mut graph = StageGraph::new();
    let frame = Resource::new("frame", Space::Pinned, 64).with_slots(Slots::Exactly(slots));
    let frame = graph.resource(frame);
    let mut payloads = Payloads::new();
    for (name, time) in ENGINES {
        let stage = Stage::host(name).taking(ms(time));
        let id = graph.stage(if name == "upload" {
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
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds through one thread for each engine, with channels between them and back to the first.
fn channels(slots: u32) -> Outcome<f64> {
    let (free, mut from) = sync_channel(slots as usize);
    for slot in 0..slots {
        free.send(slot)?;
    }
    let begun = Instant::now();
    let mut threads = Vec::new();
    for (at, (_, time)) in ENGINES.iter().enumerate() {
        let (to, next) = sync_channel(slots as usize);
        let is_last = at + 1 == ENGINES.len();
        let to = if is_last { free.clone() } else { to };
        let own = std::mem::replace(&mut from, next);
        threads.push(std::thread::spawn(move || {
            for slot in own.iter().take(usize::try_from(FRAMES).unwrap_or(0)) {
                std::thread::sleep(ms(*time));
                // Nobody takes the last ones.
                let _ = to.send(slot);
            }
        }));
    }
    for thread in threads {
        thread.join().map_err(|_| "an engine panicked")?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// The same while two threads do nothing but count.
pub(crate) fn busy(measure: impl FnOnce() -> Outcome<[f64; 2]>) -> Outcome<[f64; 2]> {
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
