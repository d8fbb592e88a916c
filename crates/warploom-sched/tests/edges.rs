//! The edges of the streaming encoder follow from who reads and writes what.

mod graphs;

use std::time::{Duration, Instant};

use graphs::{ENCODER, Encoder, Tail};
use rstest::rstest;
use warploom_core::{Coded, QueueClass, Space};
use warploom_sched::{
    Carry, Edge, Keeper, Node, Options, Plan, PlanError, Resource, Shape, Stage, StageGraph, plan,
};

fn planned(graph: &StageGraph) -> Plan {
    plan(graph, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// An edge as `name: from -> to`, by queues, host included.
fn shown(plan: &Plan, edge: &Edge) -> String {
    let place = |node: Node| {
        if node.is_host(plan.graph()) {
            return "host".to_owned();
        }
        let on = |queue: &&warploom_sched::PlannedQueue| queue.stages.contains(&node.stage());
        let queue = plan.queues().iter().find(on);
        queue.map_or_else(String::new, |queue| queue.name.clone())
    };
    let mut from: Vec<String> = edge.links().iter().map(|link| place(link.from)).collect();
    let mut to: Vec<String> = edge.links().iter().map(|link| place(link.to)).collect();
    for side in [&mut from, &mut to] {
        side.sort();
        side.dedup();
    }
    format!("{}: {} -> {}", edge.name(), from.join("+"), to.join("+"))
}

fn names(plan: &Plan, keep: impl Fn(&Edge) -> bool) -> Vec<String> {
    let edges = plan.edges().iter().filter(|edge| keep(edge));
    let mut names: Vec<String> = edges.map(|edge| shown(plan, edge)).collect();
    names.sort();
    names
}

#[test]
fn the_table_gives_its_ten_events_five_queues_and_the_host_rules() {
    let plan = planned(&ENCODER.graph());
    let queues: Vec<&str> = plan.queues().iter().map(|queue| &*queue.name).collect();
    assert_eq!(queues, ["h2d", "compute", "compress", "d2h", "download"]);
    assert_eq!(
        names(&plan, |edge| edge.keeper() == Keeper::Event),
        [
            // slot drained
            "agg-slot free: d2h+download -> compress",
            // aggregate done; the payload's copy follows the host's look at the index
            "agg-slot ready: compress -> d2h+download",
            // pool consumed
            "chunk-pool free: compress -> compute",
            // pyramid done
            "chunk-pool ready from pyramid: compute -> compress",
            // pool filled
            "chunk-pool ready from scatter: compute -> compress",
            // d2h done
            "host-output ready: download -> host",
            // chunk index ready
            "index-host ready: d2h -> host",
            // staging scatter done
            "staging-dev free: compute -> h2d",
            // staging h2d done
            "staging-dev ready: h2d -> compute",
            // staging free
            "staging-host free: h2d -> host",
        ]
    );
    // One lease per slot, and delivery in order.
    assert_eq!(
        names(&plan, |edge| edge.keeper() == Keeper::Host),
        [
            "host-output free: host -> download",
            "index-host free: host -> d2h",
            "staging-host ready: host -> h2d",
        ]
    );
    assert!(plan.edge("deliver oldest first").is_some());
    assert_eq!(plan.shape(), Shape::Pipelined);
    assert!(plan.is_complete());
}

#[test]
fn what_shares_a_queue_needs_nothing_and_the_plan_says_so() {
    let plan = planned(&ENCODER.graph());
    for name in ["compressed ready", "compressed free", "linear ready"] {
        let edge = &plan.edges()[plan.edge(name).unwrap().index()];
        assert!(edge.links().iter().all(|link| link.carry == Carry::Fifo));
        assert!(!edge.is_live());
    }
    let text = plan.explanation();
    let said =
        "edge compressed ready: guards what codec writes to compressed, until it is all there
  codec -> aggregate: needs no wait: they share a queue, which runs in order";
    assert!(text.contains(said), "{text}");
}

#[test]
fn implied_waits_are_left_out_and_the_plan_says_by_what() {
    let plan = planned(&ENCODER.graph());
    let covered = |edge: &str, from: &str, to: &str| {
        let id = plan.edge(edge).unwrap();
        let name = |node: Node| &*plan.graph().stages()[node.stage().index()].name;
        let mut links = plan.edges()[id.index()].links().iter();
        let link = links.find(|link| (name(link.from), name(link.to)) == (from, to));
        match &link.unwrap().carry {
            Carry::Covered(by) => by
                .iter()
                .map(|id| plan.edges()[id.index()].name())
                .collect(),
            other => panic!("{edge}: {other:?}"),
        }
    };
    let by: Vec<&str> = covered("chunk-pool ready from scatter", "scatter", "codec");
    assert_eq!(by, ["chunk-pool ready from pyramid"]);
    // The payload is copied when the host has seen the index, which came after the aggregation.
    let by: Vec<&str> = covered("agg-slot ready", "aggregate", "read payload");
    assert_eq!(by, ["agg-slot ready", "index-host ready"]);
    let by: Vec<&str> = covered("agg-slot free", "read index", "aggregate");
    assert_eq!(by, ["index-host ready", "agg-slot free"]);
}

#[test]
fn one_event_serves_several_edges() {
    let plan = planned(&ENCODER.graph());
    let alias = |name: &str| {
        let owner = plan.alias_of(plan.edge(name).unwrap());
        owner.map(|owner| plan.edges()[owner.index()].name())
    };
    assert_eq!(alias("staging-dev ready"), Some("staging-host free"));
    assert_eq!(alias("host-output ready"), Some("agg-slot free"));
    assert_eq!(alias("chunk-pool free"), None);
}

#[test]
fn without_a_codec_there_is_no_index_and_one_queue_less() {
    let plan = planned(
        &Encoder {
            codec: false,
            ..ENCODER
        }
        .graph(),
    );
    assert_eq!(plan.queues().len(), 4);
    let names: Vec<&str> = plan.edges().iter().map(Edge::name).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.contains("index") || name.contains("compressed"))
    );
    // One copy back for each generation.
    let back = plan
        .queues()
        .iter()
        .filter(|queue| queue.class == QueueClass::Download);
    assert_eq!(back.map(|queue| queue.stages.len()).sum::<usize>(), 1);
}

#[test]
fn without_a_pyramid_its_edges_do_not_exist() {
    let plan = planned(
        &Encoder {
            pyramid: false,
            ..ENCODER
        }
        .graph(),
    );
    assert_eq!(
        plan.edges()
            .iter()
            .filter(|edge| edge.keeper() == Keeper::Event)
            .count(),
        9
    );
    assert!(plan.edge("chunk-pool ready").is_some());
    assert!(plan.edge("linear ready").is_none());
}

#[test]
fn copies_back_behind_the_next_generation_and_a_gate_are_a_circle_of_six() {
    let graph = Encoder {
        drain_on_d2h: true,
        tail: Tail::Gate,
        ..ENCODER
    }
    .graph();
    let error = plan(&graph, &Options::default()).unwrap_err();
    let PlanError::Deadlock { cycle } = &error else {
        panic!("{error}");
    };
    let mut stages = cycle.stages();
    let start = stages
        .iter()
        .position(|name| *name == "read payload")
        .unwrap();
    stages.rotate_left(start);
    assert_eq!(
        stages,
        [
            "read payload",
            "deliver",
            "publish",
            "gate",
            "aggregate",
            "read index"
        ]
    );
    assert_eq!(
        error.to_string(),
        "stages wait for each other in a circle: \
         read payload(k) -> [host-output ready] deliver(k) -> [rest ready] publish(k) -> [tail ready] gate(k+1) -> \
         [one after the other on its queue] aggregate(k+1) -> [agg-slot ready] read index(k+1) -> \
         [one after the other on its queue] -> read payload(k)"
    );
    assert_eq!(error.code().to_string(), "WL0804");
}

/// The best of a few, because the machine may be busy with something else.
#[test]
fn the_circle_of_six_is_named_in_fifty_milliseconds() {
    let graph = Encoder {
        drain_on_d2h: true,
        tail: Tail::Gate,
        ..ENCODER
    }
    .graph();
    let tries = (0..8).map(|_| {
        let begun = Instant::now();
        assert!(plan(&graph, &Options::default()).is_err());
        begun.elapsed()
    });
    let best = tries.min().unwrap();
    assert!(best < Duration::from_millis(50), "{best:?}");
}

#[rstest]
#[case(true, false)]
#[case(false, false)]
#[case(false, true)]
fn a_device_never_waits_for_a_later_act_of_the_host_i3(
    #[case] codec: bool,
    #[case] drain_on_d2h: bool,
) {
    let encoder = Encoder {
        codec,
        drain_on_d2h,
        tail: Tail::Gate,
        pyramid: false,
    };
    let error = plan(&encoder.graph(), &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`gate` would wait on the device for `tail`, which `publish` writes on the host after `gate` was enqueued"
    );
    // Where the host orders it, there is a plan, and it does not run ahead.
    let plan = planned(
        &Encoder {
            tail: Tail::Host,
            ..encoder
        }
        .graph(),
    );
    assert_eq!(plan.shape(), Shape::DrainBeforeKick);
}

#[test]
fn shapes_follow_from_what_does_not_change() {
    assert_eq!(planned(&ENCODER.graph()).shape(), Shape::Pipelined);
    let shared = Options::default().sharing_slots();
    let plan = plan(&ENCODER.graph(), &shared).unwrap();
    assert_eq!(plan.shape(), Shape::DrainAfterKick);
    assert!(plan.edge("one generation at a time").is_some());
    // With one generation at a time, nothing gains from a second slot.
    let slots = (0..plan.graph().resources().len()).map(|at| {
        let name = &plan.graph().resources()[at].name;
        let text = plan.explanation();
        text.contains(&format!("{name}: 1 slots"))
    });
    assert!(slots.into_iter().all(|one| one));
}

#[test]
fn copies_back_on_one_queue_without_a_gate_only_cost_time() {
    let apart = planned(&ENCODER.graph());
    let shared = planned(
        &Encoder {
            drain_on_d2h: true,
            ..ENCODER
        }
        .graph(),
    );
    assert_eq!(shared.queues().len(), 4);
    assert!(shared.period() >= apart.period());
}

#[rstest]
#[case::unwritten(|graph: &mut StageGraph| {
    let lost = graph.resource(Resource::new("lost", Space::Device, 1));
    graph.stage(Stage::device("reader", QueueClass::Compute).reads(lost));
}, "stage `reader` reads `lost`, which no stage before it writes")]
#[case::unseen(|graph: &mut StageGraph| {
    let far = graph.resource(Resource::new("far", Space::Device, 1));
    graph.stage(Stage::host("writer").writes(far));
}, "stage `writer` uses `far` on the host, which cannot see Device memory")]
#[case::twice(|graph: &mut StageGraph| {
    graph.stage(Stage::host("twin"));
    graph.stage(Stage::host("twin"));
}, "stage `twin` is not a name of its own")]
#[case::empty(|_: &mut StageGraph| {}, "the graph has no stage")]
#[case::no_slot(|graph: &mut StageGraph| {
    let none = graph.resource(Resource::new("none", Space::Host, 1).with_slots(warploom_sched::Slots::Exactly(0)));
    graph.stage(Stage::host("writer").writes(none));
}, "`none` with 0 slots: at least 1 and at most 64 make sense")]
fn refusals_say_what_and_how_to_go_on_i10(
    #[case] build: fn(&mut StageGraph),
    #[case] message: &str,
) {
    let mut graph = StageGraph::new();
    build(&mut graph);
    let error = plan(&graph, &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.help().is_some());
}
