//! How much memory a stream takes, in processes of their own: through a device, and on the host alone.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use warploom::sched::{
    Options, Payloads, Pipeline, Plan, Resource, RunOptions, Stage, StageGraph, StageId, Threads,
    plan,
};
use warploom::{CheckedDevice, GpuBackend as _, QueueClass, Space, registry};
use warploom_testkit::{FakeBackend, FakeDevice};

/// The word by which this program is told to be a stream and nothing else.
pub(crate) const WORD: &str = "stream";

/// The device of the testkit, whose memory is the host's.
pub(crate) const FAKE: &str = "fake";

/// No device at all: stages of the host.
pub(crate) const HOST: &str = "host";

const FRAME: u64 = 4 << 20;
const DEPTH: u32 = 2;

/// What is streamed, and by which stages.
struct Planned {
    plan: Plan,
    read: StageId,
    /// Up and down, or one that copies on the host.
    between: Vec<StageId>,
    write: StageId,
}

/// Read, upload, download, write; or read, copy, write.
fn planned(device: &str, bytes: u64) -> Result<Planned> {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, bytes));
    let image =
        (device != HOST).then(|| graph.resource(Resource::new("image", Space::Device, bytes)));
    let output = graph.resource(Resource::new("output", Space::Pinned, bytes));
    let read = graph.stage(Stage::host("read").writes(input));
    let between = match image {
        Some(image) => {
            let up = Stage::device("up", QueueClass::Upload);
            let down = Stage::device("down", QueueClass::Download);
            vec![
                graph.stage(up.reads(input).writes(image)),
                graph.stage(down.reads(image).writes(output)),
            ]
        }
        None => vec![graph.stage(Stage::host("copy").reads(input).writes(output))],
    };
    let write = graph.stage(Stage::host("write").reads(output));
    Ok(Planned {
        plan: plan(&graph, &Options::default().with_depth(DEPTH))?,
        read,
        between,
        write,
    })
}

fn open(device: &str) -> Result<CheckedDevice> {
    if [FAKE, HOST].contains(&device) {
        let fakes = FakeBackend::new(FAKE).device(FakeDevice::new("Fake"));
        return Ok(CheckedDevice::new(fakes.open(0)?));
    }
    Ok(registry().open(device.parse()?)?)
}

/// Streams so many frames of so many bytes and prints the most memory this process ever had.
#[expect(clippy::print_stdout, reason = "it is how a process tells its parent")]
pub(crate) fn stream(device: &str, bytes: u64, frames: u64) -> Result<()> {
    let Planned {
        plan,
        read,
        between,
        write,
    } = planned(device, bytes)?;
    let uses = |stage: StageId, at: usize| {
        let stage = &plan.graph().stages()[stage.index()];
        stage.accesses[at].resource
    };
    let (input, output) = (uses(read, 0), uses(write, 0));
    let device = open(device)?;
    let mut payloads = Payloads::new()
        .host(read, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.write(input, |bytes| bytes.fill(byte))
        })
        .host(write, move |turn| {
            let byte = turn.batch().generation.to_le_bytes()[0];
            turn.read(output, |bytes| {
                assert!(bytes.iter().all(|own| *own == byte));
            })
        });
    for stage in &between {
        let (from, to) = (uses(*stage, 0), uses(*stage, 1));
        payloads = if between.len() == 1 {
            payloads.host(*stage, move |turn| {
                let mut written = Ok(());
                turn.read(from, |from| {
                    written = turn.write(to, |to| to.copy_from_slice(from));
                })?;
                written
            })
        } else {
            payloads.device(*stage, move |turn| {
                let (from, to) = (turn.read(from)?, turn.write(to)?);
                turn.copy(&from, &to)
            })
        };
    }
    let options = RunOptions::of(frames, 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    pipeline.run()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next());
    let kib: u64 = kib.context("the system does not tell")?.parse()?;
    println!("{}", kib * 1024);
    Ok(())
}

/// The most memory that a process with such a stream had.
fn peak(device: &str, bytes: u64, frames: u64) -> Result<f64> {
    let mut child = Command::new(std::env::current_exe()?);
    let words = [WORD, device, &bytes.to_string(), &frames.to_string()];
    let ran = child.args(words).output()?;
    if !ran.status.success() {
        bail!("{}", String::from_utf8_lossy(&ran.stderr));
    }
    Ok(String::from_utf8(ran.stdout)?.trim().parse()?)
}

/// What the longer of 64 and 640 frames takes above its slots, and 640 above 64. What the same program
/// takes for frames of a few bytes, above all its driver, is not counted.
pub(crate) fn ratios(device: &str) -> Result<(f64, f64)> {
    let idle = peak(device, 64, 64)?;
    let (short, long) = (
        peak(device, FRAME, 64)? - idle,
        peak(device, FRAME, 640)? - idle,
    );
    let slots = planned(device, FRAME)?.plan.memory().total() as f64;
    Ok((short.max(long) / slots, long / short))
}
