//! Frames read from files, segmented, shuffled and compressed, and written: as a pipeline or as
//! replicas of one, whichever the scheduler thinks is faster.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use warploom::kernels::flow::ValueId;
use warploom::kernels::lower::Recipe;
use warploom::kernels::op::{Given, find, image_type};
use warploom::kernels::program::{Loaded, Loader, Program, room};
use warploom::sched::{
    Options, Payloads, Pipeline, Replicas, Resource, RunOptions, Stage, StageError, StageGraph,
    Threads, plan,
};
use warploom::{CheckedQueue, DType, Math, Queue as _, QueueDesc, Slice, Space, registry};

const SIDE: usize = 2048;
const PIXELS: usize = SIDE * SIDE;
const FRAMES: u64 = 24;
const STAGES: [&str; 4] = ["read", "work", "pack", "write"];

/// How it went.
pub(crate) struct Overlap {
    /// What was taken above the ideal.
    pub(crate) ratio: f64,
    pub(crate) replicas: usize,
    pub(crate) frame_ms: f64,
    /// Of all processors.
    pub(crate) processor_ms: f64,
    /// The same while stages overlap: caches and memory are shared then.
    pub(crate) overlapped_ms: f64,
    /// What the choice that was not made would have taken.
    pub(crate) otherwise_ms: f64,
    /// As many threads as processors, each with whole frames and without a scheduler.
    pub(crate) pool_ms: f64,
}

/// The segmentation on the processor, with a queue of its own.
struct Segmenter {
    loaded: Arc<Loaded>,
    queue: CheckedQueue,
    inputs: Vec<Slice>,
    outputs: Vec<Slice>,
    workspace: Option<Slice>,
}

const STEPS: [(&str, &[&str], &[i32]); 8] = [
    // Negative numbers are images: raw, dark, gain.
    ("subtract_images", &[], &[-1, -2]),
    ("multiply_images", &[], &[0, -3]),
    ("gaussian", &["sigma=2", "truncate=3"], &[1]),
    ("gaussian", &["sigma=8", "truncate=3"], &[2]),
    ("subtract_images", &[], &[2, 3]),
    ("percentile_normalize", &["low=1", "high=99.8"], &[4]),
    ("cast", &["type=u16", "scale_from=0,1"], &[5]),
    ("greater", &["value=32767"], &[6]),
];

impl Segmenter {
    fn all(count: usize) -> Result<Vec<Self>> {
        let device = registry().open("cpu:0".parse()?)?;
        let kind = device.info().local_kind().context("memory for kernels")?;
        let mut recipe = Recipe::new();
        let mut images = Vec::new();
        for (at, dtype) in [DType::U16, DType::F32, DType::F32].iter().enumerate() {
            let op = find("subtract_images")?;
            let kind = image_type(op, at.min(1), *dtype, &[SIDE as u64, SIDE as u64])?;
            images.push(recipe.image(kind));
        }
        let mut made = Vec::new();
        for (op, args, inputs) in STEPS {
            let value = |input: &i32| match usize::try_from(*input) {
                Ok(earlier) => made[earlier],
                Err(_) => images[usize::try_from(-1 - input).unwrap_or(0)],
            };
            let inputs: Vec<_> = inputs.iter().map(value).collect();
            made.push(recipe.apply(op, &Given::parse(args.iter().copied())?, &inputs)?);
        }
        recipe.give(made[6]);
        recipe.give(made[7]);
        let loader = Loader::new(device.clone(), Math::Strict);
        let loaded = Arc::new(loader.load(Program::new(recipe.flow(), device.info()))?);
        let alloc = |bytes| -> Result<Slice> { Ok(Slice::whole(&device.alloc(kind, bytes)?)) };
        let flow = loaded.program().flow();
        let mut all = Vec::new();
        for _ in 0..count {
            let of = |ids: &[ValueId]| -> Result<Vec<Slice>> {
                let rooms = ids.iter().map(|id| room(&flow.kind(*id)));
                rooms.map(alloc).collect()
            };
            let (inputs, outputs) = (of(flow.inputs())?, of(flow.outputs())?);
            // One thread, so that whoever has the other processor keeps nobody waiting.
            let mut queue = device.queue(&QueueDesc::named("work").with_threads(1))?;
            for (input, number) in [(1, 100.0_f32), (2, 1.25)] {
                let bytes = number.to_le_bytes().repeat(PIXELS);
                queue.upload(&bytes, &inputs[input].part(0..bytes.len() as u64)?)?;
            }
            let workspace = match loaded.program().workspace() {
                0 => None,
                bytes => Some(alloc(bytes)?),
            };
            all.push(Self {
                loaded: Arc::clone(&loaded),
                queue,
                inputs,
                outputs,
                workspace,
            });
        }
        Ok(all)
    }

    fn run(&mut self, raw: &[u8], out: &mut [u8]) -> warploom::Result<()> {
        let input = self.inputs[0].part(0..raw.len() as u64)?;
        self.queue.upload(raw, &input)?;
        self.loaded.enqueue(
            &mut self.queue,
            &self.inputs,
            &self.outputs,
            self.workspace.as_ref(),
        )?;
        let output = self.outputs[0].part(0..out.len() as u64)?;
        self.queue.download(&output, out)
    }
}

/// All low bytes, then all high ones: what compresses well lies together.
fn shuffled(from: &[u8], to: &mut [u8]) {
    let (low, high) = to.split_at_mut(from.len() / 2);
    for ((pair, low), high) in from.chunks_exact(2).zip(low).zip(high) {
        (*low, *high) = (pair[0], pair[1]);
    }
}

/// What each stage does with one frame; packed frames begin with their length.
struct Worker {
    segmenter: Option<Segmenter>,
    shuffled: Vec<u8>,
    folder: std::path::PathBuf,
}

impl Worker {
    fn new(folder: &Path, segmenter: Option<Segmenter>) -> Self {
        Self {
            segmenter,
            shuffled: vec![0; PIXELS * 2],
            folder: folder.to_owned(),
        }
    }

    fn stage(&mut self, stage: usize, record: u64, from: &[u8], to: &mut [u8]) -> Result<()> {
        match stage {
            0 => {
                let path = self.folder.join(format!("{}.raw", record % 4));
                File::open(path)?.read_exact(to)?;
            }
            1 => {
                let segmenter = self.segmenter.as_mut().context("no segmenter")?;
                segmenter.run(from, to)?;
            }
            2 => {
                shuffled(from, &mut self.shuffled);
                let (length, room) = to.split_at_mut(8);
                let packed = zstd::bulk::compress_to_buffer(&self.shuffled, room, 1)?;
                length.copy_from_slice(&(packed as u64).to_le_bytes());
            }
            _ => {
                let (length, packed) = from.split_at(8);
                let length = usize::try_from(u64::from_le_bytes(length.try_into()?))?;
                let mut file = File::create(self.folder.join(format!("{record}.packed")))?;
                file.write_all(&packed[..length])?;
            }
        }
        Ok(())
    }
}

fn sizes() -> [u64; 4] {
    let frame = PIXELS as u64 * 2;
    let packed = zstd::zstd_safe::compress_bound(PIXELS * 2) as u64 + 8;
    [frame, frame, packed, 0]
}

/// What each stage takes when nothing else runs: wall and processor seconds a frame.
fn alone(folder: &Path) -> Result<[(f64, f64); 4]> {
    const TRIES: u64 = 6;
    let mut worker = Worker::new(folder, Segmenter::all(1)?.pop());
    let mut rooms = sizes().map(|bytes| vec![0; usize::try_from(bytes).unwrap_or(0)]);
    let mut best = [(f64::INFINITY, f64::INFINITY); 4];
    for round in 0..4 {
        for (stage, best) in best.iter_mut().enumerate() {
            let (from, to) = rooms.split_at_mut(stage);
            let from = from.last().map_or(&[][..], |room| room);
            let (begun, spent) = (Instant::now(), processor()?);
            for record in 0..TRIES {
                worker.stage(stage, record, from, &mut to[0])?;
            }
            let wall = begun.elapsed().as_secs_f64() / TRIES as f64;
            let spent = (processor()? - spent) / TRIES as f64;
            if round > 0 {
                *best = (best.0.min(wall), best.1.min(spent));
            }
        }
    }
    Ok(best)
}

/// Processor seconds of this process so far, all threads that live or lived.
fn processor() -> Result<f64> {
    let mut spent = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // Nanoseconds on a processor; a thread may end while one looks.
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let first = text.split_whitespace().next();
        spent += first.and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(spent / 1e9)
}

/// Runs the frames once by so many threads that each do whole frames, all stages in a row: seconds.
fn pool(folder: &Path, threads: usize) -> Result<f64> {
    let mut workers = Vec::new();
    for segmenter in Segmenter::all(threads)? {
        let rooms = sizes().map(|bytes| vec![0; usize::try_from(bytes).unwrap_or(0)]);
        workers.push((Worker::new(folder, Some(segmenter)), rooms));
    }
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let hands = workers.iter_mut().map(|(worker, rooms)| {
            let next = &next;
            scope.spawn(move || -> Result<()> {
                loop {
                    let record = next.fetch_add(1, Ordering::Relaxed);
                    if record >= FRAMES {
                        return Ok(());
                    }
                    for stage in 0..STAGES.len() {
                        let (from, to) = rooms.split_at_mut(stage);
                        let from = from.last().map_or(&[][..], |room| room);
                        worker.stage(stage, record, from, &mut to[0])?;
                    }
                }
            })
        });
        let hands: Vec<_> = hands.collect();
        hands.into_iter().try_for_each(|hand| match hand.join() {
            Ok(outcome) => outcome,
            Err(_) => anyhow::bail!("a worker panicked"),
        })
    })?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Runs the frames once with so many replicas: wall and processor seconds.
fn stream(folder: &Path, graph: &StageGraph, count: usize) -> Result<(f64, f64)> {
    let replicas = Replicas::new(graph, count);
    let plan = plan(replicas.graph(), &Options::default().with_depth(2))?;
    let device = registry().open("cpu:0".parse()?)?;
    let mut payloads = Payloads::new();
    for (replica, segmenter) in Segmenter::all(count)?.into_iter().enumerate() {
        let mut segmenter = Some(segmenter);
        for (at, name) in STAGES.iter().enumerate() {
            let stage = graph.find(name).context("a stage")?;
            let accesses = &graph.stages()[at].accesses;
            let own = |access: usize| replicas.resource(replica, accesses[access].resource);
            let from = (at > 0).then(|| own(0));
            let to = (at < 3).then(|| own(usize::from(at > 0)));
            let segmenter = if at == 1 { segmenter.take() } else { None };
            let mut worker = Worker::new(folder, segmenter);
            let of = replicas.clone();
            payloads = payloads.host(replicas.stage(replica, stage), move |turn| {
                let Some(record) = of.record(replica, turn.batch()) else {
                    return Ok(());
                };
                let mut outcome = Ok(());
                let mut act = |from: &[u8], to: &mut [u8]| {
                    outcome = worker.stage(at, record, from, to);
                };
                match (from, to) {
                    (None, Some(to)) => turn.write(to, |to| act(&[], to))?,
                    (Some(from), None) => turn.read(from, |from| act(from, &mut []))?,
                    (Some(from), Some(to)) => {
                        let mut lent = Ok(());
                        turn.read(from, |from| lent = turn.write(to, |to| act(from, to)))?;
                        lent?;
                    }
                    (None, None) => {}
                }
                outcome.map_err(|error| StageError::failed(format!("{error:#}")))
            });
        }
    }
    let options = RunOptions::of(FRAMES, count as u64).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    let (begun, spent) = (Instant::now(), processor()?);
    pipeline.run()?;
    Ok((begun.elapsed().as_secs_f64(), processor()? - spent))
}

pub(crate) fn overlap() -> Result<Overlap> {
    let folder = tempfile::tempdir()?;
    let mut state = 1_u64;
    for number in 0..4 {
        let mut frame = Vec::with_capacity(PIXELS * 2);
        for _ in 0..PIXELS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // A dim camera frame: an offset and some noise.
            let pixel = 160 + (state >> 59) + (state >> 50 & 15);
            frame.extend_from_slice(&u16::try_from(pixel)?.to_le_bytes());
        }
        std::fs::write(folder.path().join(format!("{number}.raw")), frame)?;
    }
    let times = alone(folder.path())?;
    let threads = std::thread::available_parallelism()?.get();
    let mut graph = StageGraph::new();
    let mut before = None;
    for ((name, (wall, spent)), bytes) in STAGES.iter().zip(times).zip(sizes()) {
        let busy = (spent / wall).round().clamp(1.0, threads as f64);
        let mut stage = Stage::host(*name).taking(Duration::from_secs_f64(wall));
        stage = stage.on_threads(format!("{busy}").parse()?);
        if let Some(before) = before {
            stage = stage.reads(before);
        }
        if bytes > 0 {
            let after = graph.resource(Resource::new(format!("after {name}"), Space::Host, bytes));
            stage = stage.writes(after);
            before = Some(after);
        }
        graph.stage(stage);
    }
    let count = Replicas::choose(&graph, threads);
    let processor_ms = 1e3 * times.iter().map(|(_, spent)| spent).sum::<f64>();
    let longest = times.iter().map(|(wall, _)| *wall).fold(0.0, f64::max) / count as f64;
    let period = longest.max(processor_ms / 1e3 / threads as f64);
    // The first frame goes through all stages before anything overlaps.
    let first: f64 = times.iter().map(|(wall, _)| wall).sum();
    let ideal = first + period * (FRAMES - 1) as f64;
    let other = if count == 1 { threads } else { 1 };
    let mut best = (f64::INFINITY, f64::INFINITY);
    let (mut otherwise, mut pooled) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..7 {
        let (wall, spent) = stream(folder.path(), &graph, count)?;
        if wall < best.0 {
            best = (wall, spent);
        }
        otherwise = otherwise.min(stream(folder.path(), &graph, other)?.0);
        pooled = pooled.min(pool(folder.path(), threads)?);
    }
    let (best, spent) = best;
    Ok(Overlap {
        ratio: best / ideal,
        overlapped_ms: 1e3 * spent / FRAMES as f64,
        pool_ms: 1e3 * pooled / FRAMES as f64,
        replicas: count,
        frame_ms: 1e3 * best / FRAMES as f64,
        processor_ms,
        otherwise_ms: 1e3 * otherwise / FRAMES as f64,
    })
}
