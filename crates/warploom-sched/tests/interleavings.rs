//! Every order of a small graph, and the same run again.

mod graphs;
mod world;

use graphs::{ENCODER, Encoder};
use warploom_core::{QueueClass, Space};
use warploom_sched::{
    Command, Options, Owner, Plan, Resource, RunOptions, Stage, StageGraph, plan,
};
use warploom_testkit::sim::{Sim, explore};
use world::{Script, device, run_on, run_seeded};

/// Host, device, host: the smallest graph with edges of all keepers.
fn small() -> StageGraph {
    let mut graph = StageGraph::new();
    let input = graph.resource(Resource::new("input", Space::Pinned, 512));
    let image = graph.resource(Resource::new("image", Space::Device, 512));
    let output = graph.resource(Resource::new("output", Space::Pinned, 512));
    graph.stage(Stage::host("read").writes(input));
    let upload = Stage::device("upload", QueueClass::Upload);
    graph.stage(upload.reads(input).writes(image));
    let download = Stage::device("download", QueueClass::Download);
    graph.stage(download.reads(image).writes(output));
    graph.stage(Stage::host("write").reads(output));
    graph
}

type Delivered = Vec<(usize, u64, u64, u64)>;

/// What was delivered under every script, and how many scripts there were.
fn all_orders(plan: &Plan, generations: u64, limit: usize) -> (Vec<Delivered>, usize, bool) {
    let mut outcomes: Vec<Delivered> = Vec::new();
    let (count, all) = explore(limit, |decisions| {
        let sim = Sim::scripted(device(), decisions).loose().finish();
        let options = RunOptions::of(generations, 1).with_race_check(false);
        let ran = run_on(sim.clone(), plan, &Script::default(), options);
        let outcome = if ran.result.is_ok() {
            ran.delivered
        } else {
            Vec::new()
        };
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
        sim.script()
    });
    (outcomes, count, all)
}

#[test]
fn every_order_of_a_small_graph_gives_the_same_bytes() {
    for depth in 1..=2 {
        let plan = plan(&small(), &Options::default().with_depth(depth)).unwrap();
        let (outcomes, count, all) = all_orders(&plan, 2, 6_000);
        assert_eq!(outcomes.len(), 1, "depth {depth}");
        assert!(count > 100, "depth {depth}: {count}");
        // With one slot all orders are few enough to be looked at.
        assert!(all || depth == 2, "depth {depth}: {count}");
        println!("depth {depth}: {count} orders, all of them: {all}");
    }
}

/// A queue and the host behind it.
fn smaller() -> StageGraph {
    let mut graph = StageGraph::new();
    let output = graph.resource(Resource::new("output", Space::Pinned, 512));
    let make = Stage::device("make", QueueClass::Compute);
    graph.stage(make.writes(output));
    graph.stage(Stage::host("write").reads(output));
    graph
}

#[test]
fn all_orders_with_two_slots_give_the_same_bytes_and_need_every_edge() {
    let plan = plan(&smaller(), &Options::default().with_depth(2)).unwrap();
    // Three generations, so that a slot is used again; this is small enough to be looked at whole.
    let (good, count, all) = all_orders(&plan, 3, 2_000);
    assert!(all && count > 20, "{count} orders, all of them: {all}");
    assert_eq!(good.len(), 1);
    println!("{count} orders");
    for (id, edge) in plan.edge_ids().filter(|(_, edge)| edge.is_live()) {
        let (outcomes, count, _) = all_orders(&plan.without(id), 3, 2_000);
        let is_seen = outcomes.iter().any(|one| !good.contains(one));
        assert!(is_seen, "{edge}: {count} orders");
        println!("without {edge}: {count} orders");
    }
}

#[test]
fn some_order_of_a_small_graph_shows_each_lost_edge_in_the_bytes() {
    let plan = plan(&small(), &Options::default().with_depth(1)).unwrap();
    let (good, ..) = all_orders(&plan, 2, 6_000);
    for (id, edge) in plan.edge_ids().filter(|(_, edge)| edge.is_live()) {
        let (outcomes, count, _) = all_orders(&plan.without(id), 2, 6_000);
        assert!(
            outcomes.iter().any(|one| !good.contains(one)),
            "{edge}: {count} orders"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_commands() {
    let plan = plan(&ENCODER.graph(), &Options::default().with_depth(3)).unwrap();
    let run = |seed| {
        let sim = Sim::new(device(), seed);
        let ran = run_on(
            sim,
            &plan,
            &Script::default(),
            RunOptions::of(12, 1).with_log(),
        );
        ran.result.unwrap()
    };
    for seed in 0..8 {
        let first = run(seed);
        for _ in 0..5 {
            assert_eq!(run(seed), first);
        }
    }
}

/// The commands of each stage, whatever was between them.
fn by_stage(log: &[Command], stages: usize) -> Vec<Vec<Command>> {
    let of = |stage| {
        let own = log.iter().filter(|command| command.stage.index() == stage);
        own.cloned().collect()
    };
    (0..stages).map(of).collect()
}

#[test]
fn what_queues_are_told_does_not_depend_on_timing() {
    for encoder in Encoder::all() {
        let plan = plan(&encoder.graph(), &Options::default().with_depth(2)).unwrap();
        let mut first = None;
        for seed in 0..4 {
            let sim = Sim::new(device(), seed);
            let options = RunOptions::of(10, 1).with_log();
            let ran = run_on(sim, &plan, &Script::default(), options);
            let log = by_stage(&ran.result.unwrap().log, plan.graph().stages().len());
            let known = first.get_or_insert_with(|| log.clone());
            assert_eq!(*known, log, "{encoder:?}");
        }
    }
}

#[test]
fn the_edges_that_were_waited_for_are_those_of_the_plan() {
    for encoder in Encoder::all() {
        for depth in 1..=3 {
            let Ok(plan) = plan(&encoder.graph(), &Options::default().with_depth(depth)) else {
                continue;
            };
            let summary = run_seeded(&plan, 1, 12, true).result.unwrap();
            for (id, edge) in plan.edge_ids() {
                let is_waited_for = summary.edge(id).waits > 0;
                assert_eq!(is_waited_for, edge.is_live(), "{encoder:?} {depth}: {edge}");
            }
        }
    }
}

#[test]
fn an_event_is_recorded_once_for_each_stage_that_needs_one() {
    let plan = plan(&ENCODER.graph(), &Options::default().with_depth(2)).unwrap();
    let sources: std::collections::BTreeSet<usize> = plan
        .edges()
        .iter()
        .flat_map(warploom_sched::Edge::links)
        .filter(|link| link.carry == warploom_sched::Carry::Event)
        .map(|link| link.from.stage().index())
        .collect();
    let summary = run_seeded(&plan, 1, 10, true).result.unwrap();
    assert_eq!(summary.recorded, 10 * sources.len() as u64);
}

#[test]
fn host_time_is_all_accounted_for() {
    let plan = plan(&ENCODER.graph(), &Options::default()).unwrap();
    let sim = world::paced(device(), &plan, 1).finish();
    let ran = run_on(sim, &plan, &Script::default(), RunOptions::of(50, 1));
    let summary = ran.result.unwrap();
    // In virtual time the driver takes none: all of it is waiting.
    let by_edges: std::time::Duration = summary.edges.iter().map(|edge| edge.blocked).sum();
    assert_eq!(summary.blocked, summary.wall);
    assert!(by_edges <= summary.blocked);
    // Nobody asked for more.
    assert_eq!((summary.usages.len(), summary.lost), (0, 0));
}

#[test]
fn all_time_of_threads_and_queues_is_accounted_for() {
    for encoder in Encoder::all() {
        let plan = plan(&encoder.graph(), &Options::default()).unwrap();
        let sim = world::paced(device(), &plan, 1).finish();
        let options = RunOptions::of(50, 1).metered();
        let summary = run_on(sim, &plan, &Script::default(), options)
            .result
            .unwrap();
        assert_eq!(summary.lost, 0);
        let queues = plan.queues().iter();
        let queues = queues.map(|queue| Owner::Queue(queue.name.clone()));
        let hosts = plan.graph().stages().iter().filter(|stage| stage.is_host());
        let hosts = hosts.map(|stage| Owner::Thread(stage.name.clone()));
        let expected: Vec<Owner> = [Owner::Driver]
            .into_iter()
            .chain(hosts)
            .chain(queues)
            .collect();
        let owners: Vec<Owner> = summary
            .usages
            .iter()
            .map(|usage| usage.owner.clone())
            .collect();
        assert_eq!(owners, expected, "{encoder:?}");
        for usage in &summary.usages {
            let off = usage.total().abs_diff(summary.wall);
            assert!(
                off <= summary.wall / 100,
                "{encoder:?}: {usage:?} of {:?}",
                summary.wall
            );
            // The simulation knows what each was told to do.
            let stages = plan.graph().stages().iter().enumerate();
            let own = stages.filter(|(at, stage)| match &usage.owner {
                Owner::Driver => false,
                Owner::Thread(name) => stage.name == *name,
                Owner::Queue(name) => {
                    let mut queues = plan.queues().iter();
                    let queue = queues.find(|queue| queue.name == *name).unwrap();
                    queue.stages.iter().any(|stage| stage.index() == *at)
                }
            });
            let work: std::time::Duration = own.map(|(_, stage)| stage.time).sum();
            assert_eq!(usage.busy, work * 50, "{encoder:?}: {usage:?}");
        }
    }
}
