//! What planning takes: a stream of frames of 10240 x 15360 pixels in eight levels, each compressed, gathered,
//! read back and delivered by itself.

mod counting;

use std::time::{Duration, Instant};

use warploom_core::{QueueClass, Space};
use warploom_sched::{Options, Resource, Stage, StageGraph, plan};

const LEVELS: u32 = 8;
const FRAME: u64 = 10_240 * 15_360 * 2;

fn eight_levels() -> StageGraph {
    use QueueClass::{Compute, Download, Upload};
    let mut graph = StageGraph::new();
    let staged = graph.resource(Resource::new("staged", Space::Pinned, FRAME));
    let mut finer = graph.resource(Resource::new("level 0", Space::Device, FRAME));
    graph.stage(Stage::host("fill").writes(staged));
    let upload = Stage::device("upload", Upload).on("h2d");
    graph.stage(upload.reads(staged).writes(finer));
    for level in 0..LEVELS {
        let bytes = (FRAME >> (2 * level)).max(512);
        let mut resource = |what: &str, space, bytes| {
            graph.resource(Resource::new(format!("{what} {level}"), space, bytes))
        };
        let chunks = resource("chunks", Space::Device, bytes);
        let coarser = resource("coarser than", Space::Device, bytes / 4);
        let packed = resource("packed", Space::Device, bytes);
        let gathered = resource("gathered", Space::Device, bytes);
        let index = resource("index", Space::Pinned, 4096);
        let output = resource("output", Space::Pinned, bytes);
        let on = |what: &str, class, queue: &str| {
            Stage::device(format!("{what} {level}"), class).on(queue.to_owned())
        };
        let scatter = on("scatter", Compute, "compute").reads(finer);
        graph.stage(scatter.writes(chunks).writes(coarser));
        graph.stage(on("pack", Compute, "compress").reads(chunks).writes(packed));
        graph.stage(
            on("gather", Compute, "compress")
                .reads(packed)
                .writes(gathered),
        );
        graph.stage(
            on("read index", Download, "d2h")
                .reads(gathered)
                .writes(index),
        );
        let payload = on("read", Download, "payload").reads(gathered);
        graph.stage(payload.looks_at(index).writes(output));
        graph.stage(Stage::host(format!("deliver {level}")).reads(output));
        finer = coarser;
    }
    graph
}

/// One test in this binary, because all threads count together.
#[test]
fn a_plan_of_eight_levels_takes_little_time_and_memory() {
    let graph = eight_levels();
    assert_eq!(graph.stages().len(), 50);
    let begun = Instant::now();
    let (made, bytes) = counting::peak(|| plan(&graph, &Options::default()));
    let took = begun.elapsed();
    let made = made.unwrap_or_else(|error| panic!("{error}"));
    assert!(made.memory().total() > FRAME);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(bytes < 64 << 20, "{bytes} bytes");
    eprintln!(
        "{took:?} and {bytes} bytes for {} edges",
        made.edges().len()
    );
}
