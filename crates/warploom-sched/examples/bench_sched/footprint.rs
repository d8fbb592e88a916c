//! How much memory a stream takes, in processes of their own.

use std::process::Command;

use warploom_core::{CheckedDevice, Space};
use warploom_sched::{
    Options, Payloads, Pipeline, Plan, Resource, RunOptions, Stage, StageGraph, StageId, Threads,
    plan,
};

use crate::Outcome;
use crate::idle::IdleDevice;

/// The word by which this program is told to be a stream and nothing else.
pub(crate) const WORD: &str = "stream";

const FRAME: u64 = 4 << 20;

/// Read, change, write: on the host, because devices bring buffers of their own.
fn planned(bytes: u64) -> Outcome<(Plan, [StageId; 3])> {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, bytes));
    let output = graph.resource(Resource::new("output", Space::Pinned, bytes));
    let stages = [
        Stage::host("read").writes(input),
        Stage::host("change").reads(input).writes(output),
        Stage::host("write").reads(output),
    ];
    let ids = stages.map(|stage| graph.stage(stage));
    let plan = plan(&graph, &Options::default().with_depth(3))?;
    Ok((plan, ids))
}

/// Streams so many frames of so many bytes and prints the most memory this process ever had.
#[expect(clippy::print_stdout, reason = "it is how a process tells its parent")]
pub(crate) fn stream(bytes: u64, frames: u64) -> Outcome<()> {
    let (plan, [read, change, write]) = planned(bytes)?;
    let of = |stage: StageId, at: usize| plan.graph().stages()[stage.index()].accesses[at].resource;
    let (input, output) = (of(change, 0), of(change, 1));
    let device = CheckedDevice::new(IdleDevice::open());
    let payloads = Payloads::new()
        .host(read, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.write(input, |bytes| bytes.fill(byte))
        })
        .host(change, move |turn| {
            let mut written = Ok(());
            turn.read(input, |from| {
                written = turn.write(output, |to| to.copy_from_slice(from));
            })?;
            written
        })
        .host(write, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.read(output, |bytes| {
                assert!(bytes.iter().all(|own| *own == byte));
            })
        });
    let options = RunOptions::of(frames, 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    pipeline.run()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next());
    println!(
        "{}",
        kib.ok_or("the system does not tell")?.parse::<u64>()? * 1024
    );
    Ok(())
}

/// The most memory that a process with such a stream had.
fn peak(bytes: u64, frames: u64) -> Outcome<f64> {
    let mut child = Command::new(std::env::current_exe()?);
    let ran = child
        .args([WORD, &bytes.to_string(), &frames.to_string()])
        .output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    Ok(String::from_utf8(ran.stdout)?.trim().parse()?)
}

/// What 64 frames take above their slots, and 640 above 64.
pub(crate) fn ratios() -> Outcome<(f64, f64)> {
    let idle = peak(64, 64)?;
    let (short, long) = (peak(FRAME, 64)? - idle, peak(FRAME, 640)? - idle);
    let slots = planned(FRAME)?.0.memory().total() as f64;
    Ok((short.max(long) / slots, long / short))
}
