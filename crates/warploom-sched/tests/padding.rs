//! The last batch has fewer records than its slot has room for: nothing of what was in that room
//! before gets out.

mod graphs;
mod world;

use std::sync::{Arc, Mutex};

use rstest::rstest;
use warploom_core::{
    CheckedDevice, DType, GpuBackend, Grid, KernelSource, Param, QueueClass, Space,
};
use warploom_sched::{
    Fill, Options, Payloads, Pipeline, Resource, RunOptions, Slots, Stage, StageGraph, Use, plan,
};
use warploom_testkit::sim::Sim;
use world::{SimCrew, device};

/// Bytes of a record, and records of a batch.
const RECORD: usize = 32;
const BATCH: usize = 4;
/// What is beyond the records of a batch.
const PADDING: u8 = 0;

fn value(record: u64) -> u8 {
    // Never the padding.
    record.to_le_bytes()[0] % 100 + 100
}

/// Everything that the sink got: records, and bytes of the whole slot.
type Got = Arc<Mutex<Vec<(u64, Vec<u8>)>>>;

fn run(depth: u32, seed: u64, records: u64, does_source_say: bool) -> Vec<(u64, Vec<u8>)> {
    let sim = Sim::build(device(), seed).loose().finish();
    let opened = CheckedDevice::new(sim.open(0).expect("no failure"));
    let bytes = (RECORD * BATCH) as u64;
    let mut graph = StageGraph::new();
    let mut resource = |name, space| {
        let slots = Slots::Exactly(depth);
        graph.resource(Resource::new(name, space, bytes).with_slots(slots))
    };
    let input = resource("input", Space::Pinned);
    let image = resource("image", Space::Device);
    let done = resource("done", Space::Device);
    let output = resource("output", Space::Pinned);
    let read = graph.stage(Stage::host("read").writes(input));
    let up = Stage::device("up", QueueClass::Upload);
    let up = graph.stage(up.reads(input).writes(image));
    let work = Stage::device("work", QueueClass::Compute);
    let work = graph.stage(work.reads(image).writes(done));
    let down = Stage::device("down", QueueClass::Download);
    let down = graph.stage(down.reads(done).writes(output));
    let write = graph.stage(Stage::host("write").reads(output));
    let plan = plan(&graph, &Options::default().with_depth(depth)).expect("no failure");

    // It answers for what it was told there is, and pads the rest.
    let params = [Param::Read, Param::Write, Param::Scalar(DType::U32)];
    let kernel = opened.kernel(&KernelSource::host("work", &params, |call| {
        let records: u32 = call.scalar(2);
        let there = RECORD * records as usize;
        let input: Vec<u8> = call.read::<u8>(0).to_vec();
        let output = call.write::<u8>(1);
        output.fill(PADDING);
        output[..there].copy_from_slice(&input[..there]);
    }));
    let kernel = kernel.expect("no failure");
    let got = Got::default();
    let sink = Arc::clone(&got);
    let payloads = Payloads::new()
        .source(read, move |turn| {
            let first = turn.batch().first;
            let there = records.saturating_sub(first).min(BATCH as u64);
            turn.write(input, |bytes| {
                // What is beyond stays as it was: rubbish, or an earlier batch.
                for (record, room) in (0..there).zip(bytes.chunks_exact_mut(RECORD)) {
                    room.fill(value(first + record));
                }
            })?;
            Ok(match there {
                0 => Fill::End,
                there if there < BATCH as u64 => Fill::Last(there),
                _ => Fill::Full,
            })
        })
        .device(up, move |turn| {
            let (from, to) = (turn.read(input)?, turn.write(image)?);
            turn.copy(&from, &to)
        })
        .device(work, move |turn| {
            let records = u32::try_from(turn.batch().records).unwrap_or(u32::MAX);
            let (from, to) = (turn.read(image)?, turn.write(done)?);
            let uses = [
                Use::Read(&from),
                Use::Write(&to),
                Use::Number(records.into()),
            ];
            turn.launch(&kernel, Grid::groups([1; 3]), &uses)
        })
        .device(down, move |turn| {
            let (from, to) = (turn.read(done)?, turn.write(output)?);
            turn.copy(&from, &to)
        })
        .host(write, move |turn| {
            let records = turn.batch().records;
            turn.read(output, |bytes| {
                sink.lock()
                    .expect("no failure")
                    .push((records, bytes.to_vec()));
            })
        });
    let mut options = RunOptions::of(records, BATCH as u64).with_race_check(true);
    if does_source_say {
        options.records = None;
    }
    let crew = SimCrew::new(&sim, &plan);
    let mut pipeline =
        Pipeline::start(&plan, &opened, payloads, crew, options).expect("no failure");
    assert_eq!(pipeline.run().expect("no failure").records, records);
    drop(pipeline);
    std::mem::take(&mut *got.lock().expect("no failure"))
}

#[rstest]
fn a_partial_batch_shows_nothing_of_what_was_there_before(
    #[values(1, 2, 3, 4)] depth: u32,
    #[values(1, 5, 18, 23, 24)] records: u64,
    #[values(false, true)] does_source_say: bool,
) {
    for seed in 0..25 {
        let got = run(depth, seed, records, does_source_say);
        let all: u64 = got.iter().map(|(records, _)| records).sum();
        assert_eq!(all, records, "seed {seed}");
        let mut next = 0;
        for (there, bytes) in &got {
            for (at, room) in (0..).zip(bytes.chunks_exact(RECORD)) {
                let wanted = if at < *there {
                    value(next + at)
                } else {
                    PADDING
                };
                assert!(
                    room.iter().all(|byte| *byte == wanted),
                    "seed {seed}: record {at} of the batch at {next}: {room:?}"
                );
            }
            next += there;
        }
    }
}

#[test]
fn the_room_beyond_holds_rubbish_at_first() {
    // Were fresh memory clean, the test above would prove nothing about it.
    let sim = Sim::new(device(), 1);
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    for kind in &opened.info().memory {
        let buffer = opened.alloc(*kind, 256).unwrap();
        let mut is_clean = true;
        let looked = buffer.with_host(&mut |bytes| is_clean = bytes.iter().all(|b| *b == PADDING));
        assert!(looked.is_err() || !is_clean, "{kind:?}");
    }
}
