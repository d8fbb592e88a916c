//! Whatever fails, wherever: no hang, nothing held, the first error stays, earlier bytes are intact.

mod graphs;
mod world;

use std::time::Duration;

use graphs::{ENCODER, ms};
use rstest::rstest;
use warploom_core::{CancelToken, CheckedDevice, DeviceError, GpuBackend};
use warploom_sched::{
    Fill, Options, Pipeline, Plan, RunError, RunOptions, StageError, StageId, plan,
};
use warploom_testkit::fake::Call;
use warploom_testkit::sim::Sim;
use world::{Mischief, Ran, Script, SimCrew, all_calls, device, paced, run_on};

fn encoder() -> Plan {
    let options = Options::default().with_depth(2);
    plan(&ENCODER.graph(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn options(generations: u64) -> RunOptions {
    RunOptions::of(generations, 1).with_patience(Duration::from_secs(5))
}

/// What `deliver` got, in order.
fn sink(plan: &Plan, ran: &Ran) -> Vec<(u64, u64)> {
    let deliver = plan.graph().find("deliver").map(StageId::index);
    let own = ran
        .delivered
        .iter()
        .filter(|delivered| Some(delivered.0) == deliver);
    own.map(|(_, generation, _, sum)| (*generation, *sum))
        .collect()
}

/// Once with copies from slot to slot, once with bytes that go by way of the host: all calls there are.
#[rstest]
fn every_call_of_every_sort_may_fail(#[values(false, true)] by_bytes: bool) {
    let plan = encoder();
    let script = || Script {
        by_bytes,
        ..Script::default()
    };
    let good = run_on(Sim::new(device(), 5), &plan, &script(), options(4));
    assert!(good.result.is_ok());
    let whole = sink(&plan, &good);
    assert_eq!(whole.len(), 4);
    let mut trials = 0;
    for (call, count) in all_calls(&good.sim) {
        let is_made = match call {
            Call::Upload | Call::Download => by_bytes,
            Call::Copy => !by_bytes,
            _ => true,
        };
        assert_eq!(count > 0, is_made, "{call:?}");
        for nth in 1..=count {
            let failing = device().fail(call, nth, |id| {
                DeviceError::driver(id, "call", "on purpose")
            });
            let sim = Sim::build(failing, 5).finish();
            let ran = run_on(sim, &plan, &script(), options(4));
            trials += 1;
            // The very last calls are those of the drop, which has nobody to tell.
            if let Err(error) = &ran.result {
                let text = error.to_string();
                assert!(text.contains("on purpose"), "{call:?} {nth}: {text}");
            } else {
                assert!(
                    matches!(call, Call::Record | Call::EventWait),
                    "{call:?} {nth}"
                );
            }
            assert_eq!(ran.held, 0, "{call:?} {nth}");
            let got = sink(&plan, &ran);
            assert_eq!(got, whole[..got.len()], "{call:?} {nth}");
            assert_eq!(ran.sim.used(), 0, "{call:?} {nth}: memory is given back");
        }
    }
    assert!(trials > 100, "{trials}");
}

#[test]
fn the_way_that_bytes_take_does_not_change_them() {
    let plan = encoder();
    let run = |by_bytes| {
        let script = Script {
            by_bytes,
            ..Script::default()
        };
        let ran = run_on(Sim::new(device(), 5), &plan, &script, options(4));
        sink(&plan, &ran)
    };
    assert_eq!(run(true), run(false));
}

#[rstest]
#[case(Call::Copy, false)]
#[case(Call::Launch, false)]
#[case(Call::Upload, false)]
#[case(Call::Copy, true)]
#[case(Call::Launch, true)]
#[case(Call::Upload, true)]
fn work_that_fails_on_the_device_is_an_error_of_its_generation(
    #[case] call: Call,
    #[case] is_forgetful: bool,
) {
    let plan = encoder();
    let script = || Script {
        by_bytes: call == Call::Upload,
        ..Script::default()
    };
    let good = run_on(Sim::new(device(), 5), &plan, &script(), options(4));
    assert!(good.sim.calls(call) > 0);
    let whole = sink(&plan, &good);
    for nth in 1..=good.sim.calls(call) {
        let failing = device().fail_later(call, nth, |id| DeviceError::driver(id, "work", "late"));
        let sim = Sim::build(failing, 5);
        let sim = if is_forgetful { sim.forgetful() } else { sim };
        let ran = run_on(sim.finish(), &plan, &script(), options(4));
        let error = ran.result.as_ref().unwrap_err().to_string();
        assert!(error.contains("late"), "{nth}: {error}");
        assert_eq!(ran.held, 0);
        let got = sink(&plan, &ran);
        assert!(got.len() < 4 && got == whole[..got.len()], "{nth}");
        assert_eq!(ran.sim.used(), 0);
    }
}

#[test]
fn a_lost_device_ends_the_run_with_what_was_delivered() {
    let plan = encoder();
    for launches in 0..30 {
        let sim = Sim::new(device().lose_after(launches), 3);
        let ran = run_on(sim, &plan, &Script::default(), options(8));
        let error = ran.result.as_ref().unwrap_err();
        assert!(error.to_string().contains("was lost"), "{error}");
        assert_eq!(ran.held, 0);
        let got = sink(&plan, &ran);
        assert!(got.iter().map(|one| one.0).eq(0..got.len() as u64));
    }
}

#[rstest]
#[case(Mischief::Fail, "stage `deliver` failed in generation 2: on purpose")]
#[case(
    Mischief::Panic,
    "stage `deliver` failed in generation 2: it panicked: on purpose"
)]
fn a_sink_that_fails_has_got_what_came_before(#[case] what: Mischief, #[case] text: &str) {
    let plan = encoder();
    let script = Script {
        mischief: Some(("deliver", 2, what)),
        ..Script::default()
    };
    let sim = paced(device(), &plan, 1).finish();
    let ran = run_on(sim, &plan, &script, options(12).with_log());
    assert_eq!(ran.result.as_ref().unwrap_err().to_string(), text);
    let got: Vec<u64> = sink(&plan, &ran).iter().map(|one| one.0).collect();
    assert_eq!(got, [0, 1]);
    assert_eq!((ran.held, ran.sim.used()), (0, 0));
    // What was not enqueued by then never is: whatever the log does not have, the device has not
    // got. Every stage of the device launches one kernel.
    let log = &ran.summary.log;
    let launched = log.iter().filter(|command| command.queue.is_some()).count() as u64;
    assert_eq!(ran.sim.calls(Call::Launch), launched);
    let upload = plan.graph().find("upload").unwrap();
    let generations = |stage: Option<StageId>| {
        let own = log.iter().filter(|command| match stage {
            Some(stage) => command.stage == stage,
            None => command.queue.is_some(),
        });
        own.map(|command| command.generation + 1).max().unwrap()
    };
    assert_eq!(generations(None), generations(Some(upload)));
    assert!(generations(None) < 12, "some were not submitted");
}

#[test]
fn a_source_that_fails_at_once_costs_no_device_work() {
    let plan = encoder();
    let script = Script {
        mischief: Some(("fill", 0, Mischief::Fail)),
        ..Script::default()
    };
    let ran = run_on(Sim::new(device(), 1), &plan, &script, options(6));
    assert!(ran.result.is_err());
    assert_eq!(ran.sim.calls(Call::Launch) + ran.sim.calls(Call::Copy), 0);
}

#[test]
fn a_device_that_hangs_is_given_up_in_time_and_the_chain_says_where() {
    let plan = encoder();
    let sim = Sim::build(device(), 1)
        .pace(|operation| (operation.kernel != Some("codec")).then_some(ms(1)))
        .finish();
    let patience = Duration::from_secs(5);
    let ran = run_on(
        sim,
        &plan,
        &Script::default(),
        options(6).with_patience(patience),
    );
    let Err(RunError::Timeout { waited, chain }) = &ran.result else {
        panic!("{:?}", ran.result);
    };
    assert!(
        *waited >= patience && *waited < patience.mul_f64(1.1),
        "{waited:?}"
    );
    assert_eq!(
        chain,
        "deliver(0) waits for read payload(0) [host-output ready] waits for read index(0) [index-host ready] waits for aggregate(0) \
         [agg-slot ready] behind codec(0), which is enqueued on compress and not done"
    );
}

#[rstest]
#[case(10, 4, &[4, 4, 2])]
#[case(8, 4, &[4, 4])]
#[case(1, 4, &[1])]
#[case(0, 4, &[])]
fn batches_are_full_but_for_the_last(
    #[case] records: u64,
    #[case] batch: u64,
    #[case] expected: &[u64],
) {
    let plan = encoder();
    let ran = run_on(
        Sim::new(device(), 1),
        &plan,
        &Script::default(),
        RunOptions::of(records, batch),
    );
    let deliver = plan.graph().find("deliver").unwrap().index();
    let got = ran
        .delivered
        .iter()
        .filter(|one| one.0 == deliver)
        .map(|one| one.2);
    assert_eq!(got.collect::<Vec<_>>(), expected);
    let summary = ran.result.unwrap();
    assert_eq!(
        (summary.records, summary.generations),
        (records, expected.len() as u64)
    );
}

#[rstest]
#[case(Fill::End, 5, &[4, 4, 4, 4, 4], 20)]
#[case(Fill::Last(3), 5, &[4, 4, 4, 4, 4, 3], 23)]
#[case(Fill::Last(0), 2, &[4, 4], 8)]
#[case(Fill::End, 0, &[], 0)]
fn a_source_says_when_there_is_no_more(
    #[case] ends_with: Fill,
    #[case] ends_at: u64,
    #[case] expected: &[u64],
    #[case] records: u64,
) {
    let plan = encoder();
    let deliver = plan.graph().find("deliver").unwrap().index();
    for seed in 0..20 {
        let script = Script {
            ends_with: Some(ends_with),
            ends_at,
            ..Script::default()
        };
        let mut options = RunOptions::of(0, 4);
        options.records = None;
        let ran = run_on(Sim::new(device(), seed), &plan, &script, options);
        let got = ran
            .delivered
            .iter()
            .filter(|one| one.0 == deliver)
            .map(|one| one.2);
        assert_eq!(got.collect::<Vec<_>>(), expected, "seed {seed}");
        assert_eq!(ran.result.unwrap().records, records);
    }
}

#[test]
fn what_was_called_off_is_finished_as_far_as_the_device_has_it() {
    let plan = encoder();
    for turns in 0..60 {
        let sim = Sim::new(device(), 9);
        let opened = CheckedDevice::new(sim.open(0).unwrap());
        let script = Script::default();
        let payloads = script.payloads(&plan, &opened).unwrap();
        let token = CancelToken::new();
        let options = options(50).cancelled_by(&token);
        let crew = SimCrew::new(&sim, &plan);
        let mut pipeline = Pipeline::start(&plan, &opened, payloads, crew, options).unwrap();
        for _ in 0..turns {
            pipeline.turn().unwrap();
        }
        token.cancel();
        let Err(RunError::Cancelled { delivered }) = pipeline.run().cloned() else {
            panic!("not called off");
        };
        assert_eq!(pipeline.pool().held(), 0);
        drop(pipeline);
        let deliver = plan.graph().find("deliver").unwrap().index();
        let log = script.delivered.lock().unwrap();
        let got = log.iter().filter(|one| one.0 == deliver).map(|one| one.1);
        assert!(got.eq(0..delivered), "after {turns} turns");
    }
}

#[test]
fn a_pipeline_may_be_dropped_at_any_moment_i7() {
    let plan = encoder();
    for turns in 0..120 {
        let sim = Sim::new(device(), turns);
        let opened = CheckedDevice::new(sim.open(0).unwrap());
        let script = Script::default();
        let payloads = script.payloads(&plan, &opened).unwrap();
        let crew = SimCrew::new(&sim, &plan);
        let mut pipeline = Pipeline::start(&plan, &opened, payloads, crew, options(20)).unwrap();
        for _ in 0..turns {
            if !pipeline.turn().unwrap() {
                break;
            }
        }
        drop(pipeline);
        drop(opened);
        assert_eq!(sim.used(), 0, "after {turns} turns");
        let log = script.delivered.lock().unwrap();
        let deliver = plan.graph().find("deliver").unwrap().index();
        let got: Vec<u64> = log
            .iter()
            .filter(|one| one.0 == deliver)
            .map(|one| one.1)
            .collect();
        assert!(got.iter().copied().eq(0..got.len() as u64));
    }
}

#[test]
fn memory_is_what_the_plan_says_and_is_made_once() {
    for depth in 1..=4 {
        let plan = plan(&ENCODER.graph(), &Options::default().with_depth(depth)).unwrap();
        let count = |generations| {
            let sim = Sim::new(device(), 1);
            let opened = CheckedDevice::new(sim.open(0).unwrap());
            let script = Script::default();
            let payloads = script.payloads(&plan, &opened).unwrap();
            let crew = SimCrew::new(&sim, &plan);
            let options = options(generations);
            let mut pipeline = Pipeline::start(&plan, &opened, payloads, crew, options).unwrap();
            assert_eq!(opened.memory().unwrap().ours, plan.memory().total());
            assert_eq!(sim.used(), plan.memory().device);
            pipeline.run().unwrap();
            assert_eq!(pipeline.pool().bytes(), plan.memory().total());
            sim.calls(Call::Alloc)
        };
        assert_eq!(count(1), count(50));
    }
}

#[test]
fn a_stage_sees_only_what_it_declared() {
    let plan = encoder();
    let graph = plan.graph();
    let sim = Sim::new(device(), 1);
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    let script = Script::default();
    let [fill, index] = ["fill", "deliver"].map(|name| graph.find(name).unwrap());
    let foreign = graph.stages()[index.index()].accesses[0].resource;
    let payloads = script.payloads(&plan, &opened).unwrap();
    let payloads = payloads.host(fill, move |turn| turn.write(foreign, |_| ()));
    let crew = SimCrew::new(&sim, &plan);
    let mut pipeline = Pipeline::start(&plan, &opened, payloads, crew, options(3)).unwrap();
    let error = pipeline.run().unwrap_err();
    let RunError::Stage { error, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(*error, StageError::Lease(_)), "{error}");
}

#[test]
fn payloads_have_to_fit_their_stages() {
    let plan = encoder();
    let sim = Sim::new(device(), 1);
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    let start = |payloads| {
        let crew = SimCrew::new(&sim, &plan);
        let made = Pipeline::start(&plan, &opened, payloads, crew, options(1));
        made.map(|_| ()).unwrap_err().to_string()
    };
    let none = warploom_sched::Payloads::new();
    assert_eq!(
        start(none),
        "stage `fill` runs on the host and has no payload"
    );
    let fill = plan.graph().find("fill").unwrap();
    let wrong = warploom_sched::Payloads::new().device(fill, |_| Ok(()));
    assert_eq!(
        start(wrong),
        "stage `fill` runs on the host and has a payload for the device"
    );
}
