//! Where the time of a pipeline goes, on every device that is here.

use std::time::Duration;

use warploom::sched::{
    Options as Wishes, Owner, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Summary,
    Threads, plan,
};
use warploom::{CheckedDevice, Options, QueueClass, Space, registry};

const GENERATIONS: u64 = 60;
const BYTES: u64 = 1 << 20;

/// Read, upload, download, write, measured.
fn measured(device: &CheckedDevice) -> Summary {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, BYTES));
    let image = graph.resource(Resource::new("image", Space::Device, BYTES));
    let output = graph.resource(Resource::new("output", Space::Pinned, BYTES));
    let read = graph.stage(Stage::host("read").writes(input));
    let up = Stage::device("up", QueueClass::Upload);
    let up = graph.stage(up.reads(input).writes(image));
    let down = Stage::device("down", QueueClass::Download);
    let down = graph.stage(down.reads(image).writes(output));
    let write = graph.stage(Stage::host("write").reads(output));
    let byte = |generation: u64| generation.to_le_bytes()[0];
    let payloads = Payloads::new()
        .host(read, move |turn| {
            let byte = byte(turn.batch().generation);
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
            // Long enough that one part in a hundred is more than clocks are apart.
            std::thread::sleep(Duration::from_millis(3));
            let byte = byte(turn.batch().generation);
            turn.read(output, |bytes| {
                assert!(bytes.iter().all(|own| *own == byte));
            })
        });
    let plan = plan(&graph, &Wishes::default().with_depth(2)).unwrap();
    let options = RunOptions::of(GENERATIONS, 1).metered();
    let mut pipeline = Pipeline::start(&plan, device, payloads, Threads::new(), options).unwrap();
    pipeline.run().unwrap().clone()
}

#[test]
fn all_time_is_accounted_for_on_every_device() {
    let status = registry().setup(&Options::default()).unwrap();
    let faces = status
        .survey
        .devices
        .iter()
        .flat_map(|device| &device.faces);
    let mut whole = Vec::new();
    for face in faces {
        let summary = measured(&registry().open(face.id).unwrap());
        if summary.lost > 0 {
            eprintln!(
                "{} has no clock: {} turns are missing",
                face.id, summary.lost
            );
            continue;
        }
        whole.push(face.id.to_string());
        for usage in &summary.usages {
            let off = usage.total().abs_diff(summary.wall);
            assert!(
                off <= summary.wall / 100,
                "{}: {usage:?} of {:?}",
                face.id,
                summary.wall
            );
        }
        let write = Owner::Thread("write".into());
        let write = summary.usages.iter().find(|usage| usage.owner == write);
        assert_eq!(write.map(|usage| usage.turns), Some(GENERATIONS));
    }
    assert!(whole.iter().any(|id| id == "cpu:0"), "{whole:?}");
}
