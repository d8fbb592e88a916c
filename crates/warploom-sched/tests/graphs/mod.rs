//! Graphs that several tests use.
#![allow(dead_code, reason = "each test binary uses some of them")]

use std::time::Duration;

use warploom_core::{QueueClass, Space};
use warploom_sched::{Resource, Slots, Stage, StageGraph};

/// The streaming encoder: frames are uploaded, scattered into chunks, reduced, compressed,
/// gathered by shard, read back and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoder {
    pub(crate) codec: bool,
    pub(crate) pyramid: bool,
    pub(crate) drain_on_d2h: bool,
    /// What a delivery leaves to the next generation's aggregation: nothing, something the host
    /// orders, or something the device waits for.
    pub(crate) tail: Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    None,
    Host,
    Gate,
}

pub(crate) const ENCODER: Encoder = Encoder {
    codec: true,
    pyramid: true,
    drain_on_d2h: false,
    tail: Tail::None,
};

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Encoder {
    pub(crate) fn graph(self) -> StageGraph {
        use QueueClass::{Compute, Download, Upload};
        let mut graph = StageGraph::new();
        let mut resource =
            |name: &str, space, bytes| graph.resource(Resource::new(name, space, bytes));
        let staging_host = resource("staging-host", Space::Pinned, 512);
        let staging_dev = resource("staging-dev", Space::Device, 512);
        let pool = resource("chunk-pool", Space::Device, 512);
        let linear = self.pyramid.then(|| resource("linear", Space::Device, 512));
        let compressed = self
            .codec
            .then(|| resource("compressed", Space::Device, 512));
        let agg = resource("agg-slot", Space::Device, 512);
        let index = self
            .codec
            .then(|| resource("index-host", Space::Pinned, 256));
        let output = resource("host-output", Space::Pinned, 512);
        let has_tail = self.tail != Tail::None;
        let tail = has_tail.then(|| resource("tail", Space::Pinned, 512));
        let rest = has_tail.then(|| resource("rest", Space::Host, 512));

        graph.stage(Stage::host("fill").writes(staging_host).taking(ms(2)));
        let upload = Stage::device("upload", Upload).on("h2d");
        graph.stage(upload.reads(staging_host).writes(staging_dev).taking(ms(3)));
        let mut scatter = Stage::device("scatter", Compute).on("compute");
        scatter = scatter.reads(staging_dev).writes(pool).taking(ms(2));
        if let Some(linear) = linear {
            graph.stage(scatter.writes(linear));
            let pyramid = Stage::device("pyramid", Compute).on("compute");
            graph.stage(pyramid.reads(linear).writes(pool).taking(ms(2)));
        } else {
            graph.stage(scatter);
        }
        if let Some(compressed) = compressed {
            let codec = Stage::device("codec", Compute).on("compress");
            graph.stage(codec.reads(pool).writes(compressed).taking(ms(4)));
        }
        if let (Some(tail), Tail::Gate) = (tail, self.tail) {
            let gate = Stage::device("gate", Compute).on("compress");
            graph.stage(gate.reads_previous(tail).gated());
        }
        let mut aggregate = Stage::device("aggregate", Compute).on("compress");
        aggregate = aggregate.reads(compressed.unwrap_or(pool));
        if let (Some(tail), Tail::Host) = (tail, self.tail) {
            aggregate = aggregate.reads_previous(tail);
        }
        graph.stage(aggregate.writes(agg).taking(ms(1)));
        let mut payload = Stage::device("read payload", Download).reads(agg);
        if let Some(index) = index {
            let read_index = Stage::device("read index", Download).on("d2h");
            graph.stage(read_index.reads(agg).writes(index).taking(ms(1)));
            payload = payload.looks_at(index);
        }
        if self.drain_on_d2h {
            payload = payload.on("d2h");
        }
        graph.stage(payload.writes(output).taking(ms(3)));
        let deliver = Stage::host("deliver").reads(output).taking(ms(2));
        if let (Some(tail), Some(rest)) = (tail, rest) {
            graph.stage(deliver.writes(rest));
            graph.stage(Stage::host("publish").reads(rest).writes(tail));
        } else {
            graph.stage(deliver);
        }
        graph
    }

    /// Every configuration of the encoder that has a plan.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for codec in [false, true] {
            for pyramid in [false, true] {
                for drain_on_d2h in [false, true] {
                    for tail in [Tail::None, Tail::Host] {
                        all.push(Self {
                            codec,
                            pyramid,
                            drain_on_d2h,
                            tail,
                        });
                    }
                }
            }
        }
        all
    }
}

/// Stages in a row, each on a queue of its own.
pub(crate) fn chain(times: &[u64], slots: Slots) -> StageGraph {
    let mut graph = StageGraph::new();
    let mut before = None;
    for (at, (name, time)) in ('A'..).zip(times).enumerate() {
        let mut stage = Stage::device(name, QueueClass::Compute)
            .on(format!("queue {name}"))
            .taking(ms(*time));
        if let Some(before) = before {
            stage = stage.reads(before);
        }
        if at + 1 < times.len() {
            let resource = Resource::new(format!("after {name}"), Space::Device, 512);
            let after = graph.resource(resource.with_slots(slots));
            stage = stage.writes(after);
            before = Some(after);
        }
        graph.stage(stage);
    }
    graph
}
