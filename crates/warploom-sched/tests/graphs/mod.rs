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

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A graph of up to twelve stages on the host and up to four queues, reading, changing and looking
/// at what others wrote, now and then what they left a generation before.
pub(crate) fn random(seed: u64) -> StageGraph {
    let mut dice = Dice::new(seed);
    let count = 2 + dice.below(11);
    let hosts: Vec<bool> = (0..count).map(|_| dice.below(3) == 0).collect();
    let mut uses: Vec<Vec<(usize, u64)>> = Vec::new();
    for (at, is_host) in hosts.iter().enumerate() {
        let mut own = Vec::new();
        for before in 0..at {
            // Near ones more often than far ones.
            if dice.below(2 + (at - before) as u64) == 0 {
                own.push((before, dice.below(if *is_host { 8 } else { 10 })));
            }
        }
        uses.push(own);
    }
    let mut graph = StageGraph::new();
    let is_seen = |resource: usize| {
        let users = uses.iter().enumerate();
        let by_host = users.clone().any(|(user, own)| {
            own.iter()
                .any(|(r, how)| *r == resource && (hosts[user] || *how >= 8))
        });
        hosts[resource] || by_host
    };
    let spaces: Vec<Space> = (0..hosts.len())
        .map(|at| {
            if is_seen(at) {
                Space::Pinned
            } else {
                Space::Device
            }
        })
        .collect();
    let resources: Vec<_> = spaces
        .iter()
        .enumerate()
        .map(|(at, space)| graph.resource(Resource::new(format!("r{at}"), *space, 512)))
        .collect();
    for (at, own) in uses.iter().enumerate() {
        let mut stage = if hosts[at] {
            Stage::host(format!("s{at}"))
        } else {
            Stage::device(format!("s{at}"), QueueClass::Compute).on(format!("q{}", dice.below(4)))
        };
        stage = stage.taking(Duration::from_micros(100 + dice.below(900)));
        for (resource, how) in own {
            let resource = resources[*resource];
            stage = match how {
                0..=5 => stage.reads(resource),
                6 | 7 => stage.updates(resource),
                _ => stage.looks_at(resource),
            };
        }
        graph.stage(stage.writes(resources[at]));
    }
    graph
}
