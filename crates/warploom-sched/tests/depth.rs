//! How many slots, how fast, and what limits it.

mod graphs;

use graphs::{chain, ms};
use rstest::rstest;
use warploom_core::{QueueClass, Space};
use warploom_sched::{Carry, Options, PlanError, Resource, Slots, Stage, StageGraph, plan};

/// Five stages of 10 ms that hand one image on, each changing it in place.
fn relay() -> StageGraph {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Device, 1024));
    for name in ["A", "B", "C", "D", "E"] {
        let stage = Stage::device(name, QueueClass::Compute)
            .on(name)
            .taking(ms(10));
        graph.stage(if name == "A" {
            stage.writes(image)
        } else {
            stage.updates(image)
        });
    }
    graph
}

#[rstest]
#[case(1.0, 1, 50e6)]
#[case(2.0, 2, 25e6)]
#[case(3.5, 3, 50e6 / 3.0)]
#[case(10.0, 5, 10e6)]
fn the_budget_gives_the_depth_i1(#[case] times: f64, #[case] depth: u32, #[case] period: f64) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let bytes = (1024.0 * times) as u64;
    let plan = plan(&relay(), &Options::default().with_device_budget(bytes)).unwrap();
    assert!(
        plan.explanation()
            .contains(&format!("image: {depth} slots"))
    );
    assert!((plan.period().unwrap().nanos() - period).abs() < 1.0);
    assert!(plan.memory().device <= bytes);
    // What limits it is the way around the image, as long as there are too few.
    let around = plan.limit().unwrap().stages().len() == 5;
    assert!(around || depth == 5);
}

#[test]
fn less_than_one_slot_is_refused_with_numbers_i10() {
    let mut graph = relay();
    graph.resource(Resource::new("table", Space::Device, 100));
    let error = plan(&graph, &Options::default().with_device_budget(1000)).unwrap_err();
    assert!(matches!(error, PlanError::Budget { .. }));
    assert_eq!(
        error.to_string(),
        "1.2 KiB of device memory are needed, 1.0 KiB for `image` alone, and 1000 B are allowed"
    );
}

#[rstest]
#[case(Slots::Exactly(1), 20e6)]
#[case(Slots::Exactly(2), 10e6)]
#[case(Slots::Exactly(3), 10e6)]
#[case(Slots::UpTo(8), 10e6)]
fn a_second_slot_lets_neighbours_overlap(#[case] slots: Slots, #[case] period: f64) {
    let plan = plan(&chain(&[10, 10, 10], slots), &Options::default()).unwrap();
    assert!((plan.period().unwrap().nanos() - period).abs() < 1.0);
    if slots == Slots::UpTo(8) {
        let text = plan.explanation();
        assert!(text.contains("after A: 2 slots"), "{text}");
    }
}

#[test]
fn one_generation_at_a_time_takes_the_sum() {
    let options = Options::default().sharing_slots();
    let plan = plan(&chain(&[10, 20, 30], Slots::UpTo(8)), &options).unwrap();
    assert!((plan.period().unwrap().nanos() - 60e6).abs() < 1.0);
}

#[test]
fn a_wait_that_two_others_imply_is_not_issued() {
    let mut graph = StageGraph::new();
    let space = Space::Device;
    let [ab, bc, ac] =
        ["ab", "bc", "ac"].map(|name| graph.resource(Resource::new(name, space, 64)));
    let on = |name: &str| Stage::device(name, QueueClass::Compute).on(name);
    graph.stage(on("A").writes(ab).writes(ac));
    graph.stage(on("B").reads(ab).writes(bc));
    graph.stage(on("C").reads(bc).reads(ac));
    let plan = plan(&graph, &Options::default().with_depth(2)).unwrap();
    let ready = plan
        .edges()
        .iter()
        .filter(|edge| edge.name().ends_with("ready"));
    let links: Vec<&Carry> = ready
        .flat_map(warploom_sched::Edge::links)
        .map(|link| &link.carry)
        .collect();
    let issued = links
        .iter()
        .filter(|carry| ***carry == Carry::Event)
        .count();
    assert_eq!((links.len(), issued), (3, 2));
    assert!(plan.is_complete());
}
