//! Nothing is allocated per batch after the start (I8).

mod counting;
mod graphs;
mod idle;

use graphs::ENCODER;
use idle::IdleDevice;
use rstest::rstest;
use warploom_core::CheckedDevice;
use warploom_sched::{DRIVER, Options, Payloads, Pipeline, Place, RunOptions, Threads, plan};

/// What a run of so many generations allocates after it was started.
fn allocated(generations: u64, on_driver: bool, check_races: bool) -> u64 {
    let mut graph = warploom_sched::StageGraph::new();
    let encoder = ENCODER.graph();
    for resource in encoder.resources() {
        graph.resource(resource.clone());
    }
    for stage in encoder.stages() {
        let is_here = on_driver && matches!(stage.place, Place::Host { .. });
        graph.stage(if is_here {
            stage.clone().on(DRIVER)
        } else {
            stage.clone()
        });
    }
    let plan = plan(&graph, &Options::default()).expect("a plan");
    let device = CheckedDevice::new(IdleDevice::open());
    let mut payloads = Payloads::new();
    for stage in graph.stages() {
        let id = graph.find(&stage.name).expect("a stage");
        let accesses = stage.accesses.clone();
        payloads = if stage.is_host() {
            payloads.host(id, move |turn| {
                for access in &accesses {
                    match access.how {
                        warploom_sched::How::Write => turn.write(access.resource, |_| ())?,
                        _ => turn.read(access.resource, |_| ())?,
                    }
                }
                Ok(())
            })
        } else {
            payloads.device(id, |_| Ok(()))
        };
    }
    let options = RunOptions::of(generations, 1).with_race_check(check_races);
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), options).expect("a start");
    let before = counting::allocations();
    pipeline.run().expect("a run");
    counting::allocations() - before
}

#[rstest]
fn a_thousand_generations_allocate_what_ten_do_i8() {
    // One test in this binary, because all threads count together.
    for (on_driver, check_races) in [(true, false), (false, false), (true, true)] {
        // What a run allocates it allocates every time; the harness has a thread that allocates when it likes.
        let least = |generations| {
            let tries = (0..3).map(|_| allocated(generations, on_driver, check_races));
            tries.min().unwrap_or(0)
        };
        let (few, many) = (least(10), least(1000));
        // Threads that watch begin when they are first needed, which is a matter of luck.
        let luck = if on_driver { 0 } else { 64 };
        assert!(
            many <= few + luck,
            "{few} and {many}, {on_driver} {check_races}"
        );
    }
}
