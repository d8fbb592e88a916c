//! How much memory a stream takes, in processes of their own.

use std::process::Command;

use warploom_core::{CheckedDevice, GpuBackend, QueueClass, Space};
use warploom_sched::{
    Options, Payloads, Pipeline, Plan, Resource, RunOptions, Stage, StageGraph, StageId, Threads,
    plan,
};
use warploom_testkit::{FakeBackend, FakeDevice};

use crate::Outcome;

/// The word by which this program is told to be a stream and nothing else.
pub(crate) const WORD: &str = "stream";

const FRAME: u64 = 4 << 20;

/// Read, upload, download, write.
fn planned(bytes: u64) -> Outcome<(Plan, [StageId; 4])> {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, bytes));
    let image = graph.resource(Resource::new("image", Space::Device, bytes));
    let output = graph.resource(Resource::new("output", Space::Pinned, bytes));
    let up = Stage::device("up", QueueClass::Upload);
    let down = Stage::device("down", QueueClass::Download);
    let stages = [
        Stage::host("read").writes(input),
        up.reads(input).writes(image),
        down.reads(image).writes(output),
        Stage::host("write").reads(output),
    ];
    let ids = stages.map(|stage| graph.stage(stage));
    let plan = plan(&graph, &Options::default().with_depth(2))?;
    Ok((plan, ids))
}

/// Streams so many frames of so many bytes and prints the most memory this process ever had.
#[expect(clippy::print_stdout, reason = "it is how a process tells its parent")]
pub(crate) fn stream(bytes: u64, frames: u64) -> Outcome<()> {
    let (plan, [read, up, down, write]) = planned(bytes)?;
    let of = |stage: StageId, at: usize| plan.graph().stages()[stage.index()].accesses[at].resource;
    let (input, image, output) = (of(read, 0), of(up, 1), of(down, 1));
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let device = CheckedDevice::new(fakes.open(0)?);
    let payloads = Payloads::new()
        .host(read, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.write(input, |bytes| bytes.fill(byte))
        })
        .device(up, move |turn| {
            let (from, to) = (turn.read(input)?, turn.write(image)?);
            turn.copy(&from, &to)
        })
        .device(down, move |turn| {
            let (from, to) = (turn.read(image)?, turn.write(output)?);
            turn.copy(&from, &to)
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
