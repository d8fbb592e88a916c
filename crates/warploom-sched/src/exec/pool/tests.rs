use warploom_core::{GpuBackend as _, QueueClass};
use warploom_testkit::FakeDevice;
use warploom_testkit::sim::Sim;

use super::*;
use crate::model::{Options, Resource, Stage, StageGraph, plan};

/// A stage of the device that writes two slots in turn, and one that reads them.
fn pool() -> (Pool, [StageId; 2], ResourceId) {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Device, 64));
    let make = Stage::device("make", QueueClass::Compute).on("first");
    let make = graph.stage(make.writes(image));
    let take = Stage::device("take", QueueClass::Compute).on("second");
    let take = graph.stage(take.reads(image));
    let plan = plan(&graph, &Options::default().with_depth(2)).unwrap();
    let sim = Sim::new(FakeDevice::new("Simulated").memory(1 << 20), 1);
    let device = CheckedDevice::new(sim.open(0).unwrap());
    (Pool::new(&plan, &device).unwrap(), [make, take], image)
}

/// Stages of the device were not counted, so that nobody saw whether their leases were given back.
#[test]
fn a_lease_of_the_device_that_is_not_given_back_is_seen() {
    let (pool, [make, _], image) = pool();
    let hold = pool.hold_to_enqueue(make, 0).unwrap();
    let counted = u64::from(cfg!(debug_assertions));
    assert_eq!(pool.held(), counted);
    drop(hold);
    assert_eq!(pool.held(), 0);
    let hold = pool.hold_to_enqueue(make, 1).unwrap();
    std::mem::forget(hold);
    assert_eq!(pool.held(), counted);
    let state = pool.state(image, 1).unwrap();
    assert_eq!((state.writes_left, state.reads_left), (1, 1));
}

#[test]
fn every_use_of_a_generation_is_counted_off_once() {
    let (pool, [make, take], image) = pool();
    let left = || {
        let state = pool.state(image, 0).unwrap();
        (state.writes_left, state.reads_left)
    };
    drop(pool.hold_to_enqueue(make, 0).unwrap());
    assert_eq!(left(), (0, 1));
    // What is still to be read is not written again.
    assert!(pool.hold_to_enqueue(make, 2).is_err());
    drop(pool.hold_to_enqueue(take, 0).unwrap());
    assert_eq!(left(), (0, 0));
    drop(pool.hold_to_enqueue(make, 2).unwrap());
    assert_eq!((left(), pool.held()), ((0, 1), 0));
}

#[test]
fn a_turn_covers_the_slots_it_holds_for_what_it_holds_them_for() {
    let (pool, [make, take], image) = pool();
    let slots = &pool.resources[image.0].slots;
    let part = slots[1].part(8..16).unwrap();
    let covers = |stage, generation, slice: &Slice, is_written| {
        pool.covers((stage, generation), slice, is_written).is_ok()
    };
    assert!(covers(make, 1, &part, true) && covers(make, 1, &part, false));
    assert!(covers(take, 1, &part, false) && !covers(take, 1, &part, true));
    assert!(!covers(make, 0, &part, true) && !covers(take, 2, &part, false));
    // Both slots at once are nobody's.
    let both = Slice::whole(slots[0].buffer());
    assert!(!covers(make, 0, &both, true) && !covers(make, 1, &both, true));
}
