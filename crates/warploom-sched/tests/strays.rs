//! Slices of slots in the wrong hands: kept from an earlier turn, of a stage that did not declare them, or
//! leased for reading and written. The queue refuses them before the device hears of it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod world;

use std::sync::Arc;

use rstest::rstest;
use warploom_core::{
    CheckedDevice, GpuBackend as _, Grid, Kernel, KernelSource, Param, Queue as _, QueueClass,
    Slice, Space,
};
use warploom_sched::{
    DeviceTurn, LeaseError, Options, Payloads, Pipeline, Plan, Resource, ResourceId, RunError,
    RunOptions, Stage, StageError, StageGraph, Use, plan,
};
use warploom_testkit::fake::Call;
use warploom_testkit::sim::Sim;
use world::{SimCrew, device};

/// Two parts that a kernel may begin at.
const BYTES: u64 = 512;

/// `make` writes an image, `take` reads it and writes another.
struct Pair {
    plan: Plan,
    image: ResourceId,
    result: ResourceId,
}

fn pair() -> Pair {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Device, BYTES));
    let result = graph.resource(Resource::new("result", Space::Device, BYTES));
    let make = Stage::device("make", QueueClass::Compute).on("first");
    graph.stage(make.writes(image));
    let take = Stage::device("take", QueueClass::Compute).on("second");
    graph.stage(take.reads(image).writes(result));
    let plan = plan(&graph, &Options::default().with_depth(2)).unwrap();
    Pair {
        plan,
        image,
        result,
    }
}

type Work = Box<dyn FnMut(&mut DeviceTurn<'_>) -> Result<(), StageError> + Send>;

/// What a run of a few generations comes to where `take` does this; and the simulation.
fn run(pair: &Pair, take: impl FnOnce(&CheckedDevice) -> Work) -> (Result<(), RunError>, Sim) {
    let sim = Sim::new(device(), 3);
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    let graph = pair.plan.graph();
    let [first, second] = ["make", "take"].map(|name| graph.find(name).unwrap());
    let image = pair.image;
    let payloads = Payloads::new()
        .device(first, move |turn: &mut DeviceTurn<'_>| {
            let to = turn.write(image)?;
            Ok(turn.queue().upload(&[7; 512], to.slice())?)
        })
        .device(second, take(&opened));
    let crew = SimCrew::new(&sim, &pair.plan);
    let options = RunOptions::of(4, 1);
    let mut pipeline = Pipeline::start(&pair.plan, &opened, payloads, crew, options).unwrap();
    let result = pipeline.run().map(|_| ());
    assert_eq!(pipeline.pool().held(), 0);
    (result, sim)
}

/// What was refused, as `take` did it in `generation`.
fn stray(result: &Result<(), RunError>) -> (String, u64) {
    let Err(RunError::Stage {
        stage,
        generation,
        error,
    }) = result
    else {
        panic!("{result:?}");
    };
    assert_eq!(stage, "take");
    let StageError::Lease(LeaseError::Stray { .. }) = &**error else {
        panic!("{error}");
    };
    (error.to_string(), *generation)
}

/// Doubles its second argument from its first.
fn kernel(device: &CheckedDevice) -> Arc<dyn Kernel> {
    let params = [Param::Read, Param::Write];
    let source = KernelSource::host("double", &params, |call| {
        let doubled: Vec<u8> = call.read::<u8>(0).iter().map(|byte| byte * 2).collect();
        call.write::<u8>(1).copy_from_slice(&doubled);
    });
    device.kernel(&source).unwrap()
}

#[test]
fn what_a_turn_holds_may_be_used_as_slices_parts_and_leases() {
    let pair = pair();
    let (image, result) = (pair.image, pair.result);
    let (ran, sim) = run(&pair, |device| {
        let kernel = kernel(device);
        let kind = device.info().local_kind().unwrap();
        let own = Slice::whole(&device.alloc(kind, BYTES).unwrap());
        Box::new(move |turn| {
            let (from, to) = (turn.read(image)?, turn.write(result)?);
            let grid = Grid::groups([1; 3]);
            turn.launch(&kernel, grid, &[Use::Read(&from), Use::Write(&to)])?;
            let half = [from.slice().part(0..256)?, to.slice().part(256..512)?];
            let half = half.map(Use::Slice);
            turn.launch(&kernel, grid, &half)?;
            // Memory of its own is its own affair, and what is written may be read.
            turn.queue().copy(from.slice(), &own)?;
            let mut bytes = [0; 512];
            turn.queue().download(to.slice(), &mut bytes)?;
            assert_eq!(bytes, [14; 512]);
            Ok(())
        })
    });
    ran.unwrap();
    assert_eq!(sim.calls(Call::Launch), 8);
}

#[test]
fn a_lease_for_reading_is_not_bound_to_what_a_kernel_writes() {
    let pair = pair();
    let (image, result) = (pair.image, pair.result);
    for is_slice in [false, true] {
        let (ran, sim) = run(&pair, |device| {
            let kernel = kernel(device);
            Box::new(move |turn| {
                let (from, to) = (turn.read(image)?, turn.write(result)?);
                let written = if is_slice {
                    Use::Slice(from.slice().clone())
                } else {
                    Use::Read(&from)
                };
                let source = Use::Slice(to.slice().clone());
                turn.launch(&kernel, Grid::groups([1; 3]), &[source, written])
            })
        });
        let (text, generation) = stray(&ran);
        assert_eq!(
            text,
            "`take` writes slot 0 of `image` in generation 0, which its turn does not hold for that"
        );
        assert_eq!((generation, sim.calls(Call::Launch)), (0, 0));
    }
}

#[derive(Clone, Copy, Debug)]
enum How {
    Upload,
    Copy,
    Launch,
    Download,
}

/// The first turn keeps the slice that it was lent, the second uses it.
#[rstest]
fn a_slice_that_was_kept_is_refused_in_later_turns(
    #[values(How::Upload, How::Copy, How::Launch, How::Download)] how: How,
) {
    let pair = pair();
    let (image, result) = (pair.image, pair.result);
    let (ran, _) = run(&pair, |device| {
        let kernel = kernel(device);
        let mut kept: Option<Slice> = None;
        Box::new(move |turn| {
            let (from, to) = (turn.read(image)?, turn.write(result)?);
            let Some(old) = &kept else {
                kept = Some(to.slice().clone());
                return Ok(());
            };
            let grid = Grid::groups([1; 3]);
            match how {
                How::Upload => turn.queue().upload(&[1; 512], old)?,
                How::Copy => turn.queue().copy(from.slice(), old)?,
                How::Download => turn.queue().download(old, &mut [0; 512])?,
                How::Launch => {
                    let uses = [Use::Slice(old.clone()), Use::Write(&to)];
                    turn.launch(&kernel, grid, &uses)?;
                }
            }
            Ok(())
        })
    });
    let (text, generation) = stray(&ran);
    let verb = match how {
        How::Upload | How::Copy => "writes",
        How::Launch | How::Download => "reads",
    };
    assert!(text.contains(&format!("{verb} slot 0 of `result` in generation 1")));
    assert_eq!(generation, 1);
}

/// In the generation after the next its slot is the same again, and is held.
#[test]
fn a_slice_that_was_kept_is_as_good_as_a_new_one_where_its_slot_is_held() {
    let pair = pair();
    let result = pair.result;
    let (ran, _) = run(&pair, |_| {
        let mut kept: Option<Slice> = None;
        Box::new(move |turn| {
            let to = turn.write(result)?;
            let old = kept.get_or_insert_with(|| to.slice().clone());
            if turn.batch().generation.is_multiple_of(2) {
                turn.queue().upload(&[1; 512], old)?;
            }
            Ok(())
        })
    });
    ran.unwrap();
}

#[test]
fn a_payload_that_keeps_a_refusal_to_itself_has_failed_all_the_same() {
    let pair = pair();
    let image = pair.image;
    let (ran, sim) = run(&pair, |_| {
        Box::new(move |turn| {
            let from = turn.read(image)?;
            let _ = turn.queue().upload(&[1; 512], from.slice());
            Ok(())
        })
    });
    assert_eq!(stray(&ran).1, 0);
    // Only `make` has uploaded anything.
    assert!(sim.calls(Call::Upload) <= 2);
}
