//! Several plans on one simulated device: shares, budgets, failures of one, and the same bytes.

mod graphs;
mod world;

use std::sync::Arc;
use std::time::Duration;

use graphs::{ENCODER, chain, ms, random};
use proptest::prelude::*;
use rstest::rstest;
use warploom_core::{CancelToken, CheckedDevice, DeviceError, GpuBackend, QueueClass, Space};
use warploom_sched::{
    Arbiter, Budget, Options, Payloads, Plan, Resource, RunError, RunOptions, Slots, Stage,
    StageGraph, StageId, Summary, Tenant, TenantId, Tenants, Threads, plan,
};
use warploom_testkit::fake::Call;
use warploom_testkit::sim::{Sim, SimBuilder};
use warploom_testkit::{FakeBackend, FakeDevice};
use world::{Mischief, Script, SimCrew, device, run_on};

const PATIENCE: Duration = Duration::from_secs(20);

fn planned(graph: &StageGraph, depth: u32) -> Plan {
    plan(graph, &Options::default().with_depth(depth)).unwrap_or_else(|error| panic!("{error}"))
}

/// A plan that wants the compute engine all the time: `micros` of it for each generation, behind an
/// upload that takes a tenth.
fn hungry(name: &str, micros: u64) -> Plan {
    let mut graph = StageGraph::new();
    let staging = graph.resource(Resource::new("staging", Space::Pinned, 512));
    let image = graph.resource(Resource::new("image", Space::Device, 512));
    let result = graph.resource(Resource::new("result", Space::Device, 512));
    let output = graph.resource(Resource::new("output", Space::Pinned, 512));
    let us = Duration::from_micros;
    let stage = |what: &str| format!("{name} {what}");
    graph.stage(Stage::host(stage("fill")).writes(staging).taking(us(5)));
    let upload = Stage::device(stage("upload"), QueueClass::Upload);
    graph.stage(upload.reads(staging).writes(image).taking(us(micros / 10)));
    let compute = Stage::device(stage("compute"), QueueClass::Compute);
    graph.stage(compute.reads(image).writes(result).taking(us(micros)));
    let down = Stage::device(stage("down"), QueueClass::Download);
    graph.stage(down.reads(result).writes(output).taking(us(micros / 10)));
    graph.stage(Stage::host(stage("see")).reads(output).taking(us(5)));
    planned(&graph, 3)
}

/// A simulation whose kernels take what the stage of their name says, in any of these plans.
fn simulation(plans: &[&Plan], seed: u64) -> SimBuilder {
    simulation_of(device(), plans, seed)
}

fn simulation_of(device: FakeDevice, plans: &[&Plan], seed: u64) -> SimBuilder {
    let graphs: Vec<StageGraph> = plans.iter().map(|plan| plan.graph().clone()).collect();
    let pace = move |kernel: Option<&str>| {
        let mut found = graphs.iter().filter_map(|graph| {
            let stage = graph.find(kernel?)?;
            Some(graph.stages()[stage.index()].time)
        });
        found.next().unwrap_or(Duration::ZERO)
    };
    Sim::build(device, seed)
        .with_engines()
        .pace(move |operation| Some(pace(operation.kernel)))
}

struct Party {
    sim: Sim,
    tenants: Tenants<SimCrew>,
    scripts: Vec<Script>,
    ids: Vec<TenantId>,
}

/// Tenants of these weights with so many generations to do.
fn party(sim: Sim, guests: Vec<(&Plan, u32, u64, Script)>) -> Party {
    let opened = CheckedDevice::new(sim.open(0).expect("a device"));
    let plans: Vec<&Plan> = guests.iter().map(|guest| guest.0).collect();
    let mut tenants = Tenants::new(&opened, SimCrew::of_all(&sim, &plans));
    let (mut ids, mut scripts) = (Vec::new(), Vec::new());
    for (at, (plan, weight, generations, script)) in guests.into_iter().enumerate() {
        let payloads = script.payloads(plan, &opened).expect("payloads");
        let options = RunOptions::of(generations, 1).with_patience(PATIENCE);
        let tenant = Tenant::new(format!("tenant {at}")).with_weight(weight);
        ids.push(
            tenants
                .join(&tenant, plan, payloads, options)
                .expect("room"),
        );
        scripts.push(script);
    }
    Party {
        sim,
        tenants,
        scripts,
        ids,
    }
}

impl Party {
    fn delivered(&self, at: usize) -> Vec<(usize, u64, u64, u64)> {
        let mut own = self.scripts[at].delivered.lock().expect("a list").clone();
        own.sort_unstable();
        own
    }

    fn outcome(&self, at: usize) -> Result<Summary, RunError> {
        let outcome = self.tenants.outcome(self.ids[at]);
        outcome.expect("it has ended").cloned()
    }

    fn served(&self, at: usize) -> Duration {
        self.tenants.served(self.ids[at], QueueClass::Compute)
    }
}

/// What a plan delivers when it has the device to itself.
fn alone(plan: &Plan, generations: u64) -> Vec<(usize, u64, u64, u64)> {
    let options = RunOptions::of(generations, 1).with_patience(PATIENCE);
    let ran = run_on(Sim::new(device(), 1), plan, &Script::default(), options);
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let mut delivered = ran.delivered;
    delivered.sort_unstable();
    delivered
}

fn guest(plan: &Plan, weight: u32, generations: u64) -> (&Plan, u32, u64, Script) {
    (plan, weight, generations, Script::default())
}

#[rstest]
#[case(1, 1, 2000, 2000)]
#[case(3, 1, 2000, 2000)]
#[case(1, 1, 4000, 500)]
#[case(5, 2, 500, 3000)]
#[case(1, 4, 1500, 1500)]
fn engines_are_shared_by_weight_while_both_are_busy(
    #[case] first: u32,
    #[case] second: u32,
    #[case] first_us: u64,
    #[case] second_us: u64,
) {
    let (a, b) = (hungry("a", first_us), hungry("b", second_us));
    let sim = simulation(&[&a, &b], 7).finish();
    let mut party = party(sim, vec![guest(&a, first, 4000), guest(&b, second, 4000)]);
    let mut looks = 0;
    while party.tenants.turn() {
        let both = [0, 1].map(|at| party.tenants.outcome(party.ids[at]).is_none());
        let now = party.sim.now();
        if both != [true, true] || now < ms(100) || now > ms(900) {
            continue;
        }
        looks += 1;
        let per_weight = [(0, first), (1, second)]
            .map(|(at, weight)| party.served(at).as_secs_f64() / f64::from(weight));
        let us = Duration::from_micros;
        let most = Arbiter::lead((us(first_us), first), (us(second_us), second)).as_secs_f64();
        let apart = (per_weight[0] - per_weight[1]).abs();
        assert!(apart <= most, "{apart} of {most} at {now:?}");
        if now > ms(880) {
            let all = party.served(0) + party.served(1);
            let share = party.served(0).as_secs_f64() / all.as_secs_f64();
            let due = f64::from(first) / f64::from(first + second);
            assert!((share - due).abs() < 0.05 * due, "{share} of {due}");
            // And the engine was busy: nothing of it is lost to sharing.
            assert!(all > now.mul_f64(0.95), "{all:?} of {now:?}");
        }
    }
    assert!(looks > 100, "{looks}");
}

#[test]
fn two_take_as_long_together_as_one_with_all_their_work() {
    let (a, b) = (hungry("a", 1000), hungry("b", 1000));
    let alone = {
        let sim = simulation(&[&a], 3).finish();
        let mut party = party(sim, vec![guest(&a, 1, 400)]);
        party.tenants.run();
        party.outcome(0).unwrap().wall
    };
    let sim = simulation(&[&a, &b], 3).finish();
    let mut party = party(sim, vec![guest(&a, 1, 200), guest(&b, 1, 200)]);
    party.tenants.run();
    let together = party.sim.now();
    assert!(alone >= together.mul_f64(0.95), "{alone:?} {together:?}");
    // Neither was made to wait for the other's end.
    let ends = [0, 1].map(|at| party.outcome(at).unwrap().wall);
    assert!(ends[0].abs_diff(ends[1]) < ms(10), "{ends:?}");
}

#[test]
fn what_one_does_not_use_the_other_gets() {
    // The first is held up by its source; the second takes the rest.
    let slow = {
        let mut graph = StageGraph::new();
        let staging = graph.resource(Resource::new("staging", Space::Pinned, 512));
        let image = graph.resource(Resource::new("image", Space::Device, 512));
        graph.stage(Stage::host("slow fill").writes(staging).taking(ms(10)));
        let compute = Stage::device("slow compute", QueueClass::Compute);
        graph.stage(compute.reads(staging).writes(image).taking(ms(1)));
        planned(&graph, 2)
    };
    let busy = hungry("b", 1000);
    let sim = simulation(&[&slow, &busy], 5).finish();
    let mut party = party(sim, vec![guest(&slow, 9, 50), guest(&busy, 1, 400)]);
    party.tenants.run();
    let walls = [0, 1].map(|at| party.outcome(at).unwrap().wall);
    assert!(walls[0] < ms(510), "{walls:?}: its weight lets it go first");
    assert!(
        walls[1] < ms(460),
        "{walls:?}: 400 of its own and what the other took"
    );
}

#[test]
fn bytes_are_those_of_running_alone_whatever_the_company() {
    let encoder = planned(&ENCODER.graph(), 2);
    let whole = alone(&encoder, 9);
    for seed in 0..40 {
        let other = planned(&random(seed), 2);
        let theirs = alone(&other, 9);
        let sim = Sim::build(device(), seed).with_engines().loose().finish();
        let guests = vec![guest(&encoder, 1, 9), guest(&other, 2, 9)];
        let mut party = party(sim, guests);
        party.tenants.run();
        for at in 0..2 {
            let outcome = party.outcome(at);
            assert!(outcome.is_ok(), "seed {seed}, {at}: {outcome:?}");
        }
        assert_eq!(party.delivered(0), whole, "seed {seed}");
        assert_eq!(party.delivered(1), theirs, "seed {seed}");
    }
}

#[test]
fn what_fails_in_one_is_nothing_to_the_other_at_any_call() {
    let (failing, other) = (planned(&ENCODER.graph(), 2), hungry("b", 300));
    let whole = alone(&other, 6);
    let calls = {
        let sim = simulation(&[&failing, &other], 5).finish();
        let mut party = party(sim, vec![guest(&failing, 1, 4), guest(&other, 1, 6)]);
        party.tenants.run();
        let asked = |call| (call, party.sim.calls(call));
        [Call::Copy, Call::Launch, Call::Record, Call::Wait].map(asked)
    };
    let mut both = 0;
    for (call, count) in calls {
        for nth in 1..=count {
            let fail = |id| DeviceError::driver(id, "call", "on purpose");
            for device in [
                device().fail(call, nth, fail),
                device().fail_later(call, nth, fail),
            ] {
                let sim = simulation_of(device, &[&failing, &other], 5).finish();
                let mut party = party(sim, vec![guest(&failing, 1, 4), guest(&other, 1, 6)]);
                party.tenants.run();
                let outcomes = [0, 1].map(|at| party.outcome(at));
                let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
                assert!(failed <= 1, "{call:?} {nth}: {outcomes:?}");
                if outcomes[1].is_ok() {
                    assert_eq!(party.delivered(1), whole, "{call:?} {nth}");
                    both += usize::from(failed == 1);
                }
                let sim = party.sim.clone();
                drop(party);
                assert_eq!(sim.used(), 0, "{call:?} {nth}: memory is given back");
            }
        }
    }
    assert!(both > 20, "{both}");
}

#[rstest]
#[case(Mischief::Fail)]
#[case(Mischief::Panic)]
fn a_sink_that_fails_ends_its_own_plan_only(#[case] what: Mischief) {
    let (a, b) = (planned(&ENCODER.graph(), 2), hungry("b", 1000));
    let script = Script {
        mischief: Some(("deliver", 2, what)),
        ..Script::default()
    };
    let sim = simulation(&[&a, &b], 1).finish();
    let mut party = party(sim, vec![(&a, 1, 6, script), guest(&b, 1, 20)]);
    party.tenants.run();
    assert!(
        party
            .outcome(0)
            .unwrap_err()
            .to_string()
            .contains("on purpose")
    );
    let deliver = a.graph().find("deliver").map(StageId::index);
    let sink = party.delivered(0);
    let sink: Vec<u64> = sink
        .iter()
        .filter(|d| Some(d.0) == deliver)
        .map(|d| d.1)
        .collect();
    assert_eq!(sink, [0, 1]);
    assert_eq!(party.outcome(1).unwrap().generations, 20);
}

#[test]
fn a_kernel_that_hangs_is_given_up_and_the_other_goes_on() {
    // Engines of their own, so that the device itself could go on.
    let (a, b) = (hungry("a", 1000), hungry("b", 1000));
    let sim = Sim::build(device(), 1).pace(|operation| match operation.kernel {
        Some("a compute") => None,
        Some(_) => Some(ms(1)),
        None => Some(Duration::ZERO),
    });
    let mut party = party(sim.finish(), vec![guest(&a, 5, 50), guest(&b, 1, 50)]);
    party.tenants.run();
    let error = party.outcome(0).unwrap_err();
    assert!(matches!(error, RunError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("a compute"), "{error}");
    assert_eq!(party.outcome(1).unwrap().generations, 50);
}

#[test]
fn one_is_called_off_and_the_other_is_not() {
    let (a, b) = (hungry("a", 1000), hungry("b", 1000));
    let sim = simulation(&[&a, &b], 1).finish();
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    let mut tenants = Tenants::new(&opened, SimCrew::of_all(&sim, &[&a, &b]));
    let token = CancelToken::new();
    let script = Script::default();
    let mut join = |name: &str, plan, options| {
        let payloads = script.payloads(plan, &opened).unwrap();
        tenants
            .join(&Tenant::new(name), plan, payloads, options)
            .unwrap()
    };
    let first = join("a", &a, RunOptions::of(1000, 1).cancelled_by(&token));
    let second = join("b", &b, RunOptions::of(100, 1));
    while tenants.turn() {
        if sim.now() > ms(50) {
            token.cancel();
        }
    }
    let error = tenants.outcome(first).unwrap().unwrap_err();
    assert!(matches!(error, RunError::Cancelled { delivered } if delivered < 1000));
    assert_eq!(tenants.outcome(second).unwrap().unwrap().generations, 100);
}

#[test]
fn budgets_are_kept_before_anything_is_allocated() {
    let plan = hungry("a", 1000);
    let sim = simulation(&[&plan], 1).finish();
    let opened = CheckedDevice::new(sim.open(0).unwrap());
    let needed = plan.memory();
    let script = Script::default();
    let both = Budget {
        device: Some(2 * needed.device),
        host: Some(2 * (needed.pinned + needed.host)),
    };
    let crew = SimCrew::of_all(&sim, &[&plan, &plan, &plan]);
    let mut tenants = Tenants::new(&opened, crew).within(both);
    let mut join = |budget| {
        let payloads = script.payloads(&plan, &opened).unwrap();
        let tenant = Tenant::new("one").with_budget(budget);
        tenants.join(&tenant, &plan, payloads, RunOptions::of(3, 1))
    };
    let tight = |device| Budget {
        device: Some(device),
        host: None,
    };
    let (none, before) = (Budget::default(), sim.used());
    let error = join(tight(needed.device - 1)).unwrap_err();
    assert_eq!(
        error,
        RunError::Budget {
            tenant: "one".into(),
            is_device: true,
            needed: needed.device,
            allowed: needed.device - 1,
            is_common: false,
        }
    );
    assert_eq!(sim.used(), before, "nothing was allocated for it");
    join(tight(needed.device)).unwrap();
    join(none).unwrap();
    assert_eq!(sim.used() - before, 2 * needed.device);
    let error = join(none).unwrap_err();
    assert!(
        matches!(
            error,
            RunError::Budget {
                is_common: true,
                ..
            }
        ),
        "{error}"
    );
    tenants.run();
    assert_eq!(tenants.memory().device, 2 * needed.device);
    assert_eq!(
        sim.used() - before,
        2 * needed.device,
        "and not a byte later"
    );
}

#[test]
fn a_drop_at_any_moment_waits_and_frees_i7() {
    let (a, b) = (planned(&ENCODER.graph(), 2), hungry("b", 1000));
    for turns in (0..200).step_by(3) {
        let sim = simulation(&[&a, &b], turns).finish();
        let guests = vec![guest(&a, 1, 6), guest(&b, 1, 6)];
        let mut party = party(sim, guests);
        for _ in 0..turns {
            party.tenants.turn();
        }
        let sim = party.sim.clone();
        drop(party);
        assert_eq!(sim.used(), 0, "{turns}");
    }
}

#[test]
fn threads_serve_several_plans_with_equal_names() {
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let opened = CheckedDevice::new(fakes.open(0).unwrap());
    let plan = hungry("same", 100);
    let graph = plan.graph();
    let ids: Vec<StageId> = graph
        .stages()
        .iter()
        .map(|stage| graph.find(&stage.name).unwrap())
        .collect();
    let resources: Vec<_> = graph.stages().iter().map(|s| s.accesses.clone()).collect();
    let seen = Arc::new(std::sync::Mutex::new(vec![Vec::new(); 3]));
    let mut tenants = Tenants::new(&opened, Threads::new());
    for number in 0..3_u8 {
        let (staging, image) = (resources[1][0].resource, resources[1][1].resource);
        let (result, output) = (resources[3][0].resource, resources[3][1].resource);
        let seen = Arc::clone(&seen);
        let payloads = Payloads::new()
            .host(ids[0], move |turn| {
                let byte = turn.batch().generation.to_le_bytes()[0] ^ (number << 6);
                turn.write(staging, |bytes| bytes.fill(byte))
            })
            .device(ids[1], move |turn| {
                let (from, to) = (turn.read(staging)?, turn.write(image)?);
                turn.copy(&from, &to)
            })
            .device(ids[2], move |turn| {
                let (from, to) = (turn.read(image)?, turn.write(result)?);
                turn.copy(&from, &to)
            })
            .device(ids[3], move |turn| {
                let (from, to) = (turn.read(result)?, turn.write(output)?);
                turn.copy(&from, &to)
            })
            .host(ids[4], move |turn| {
                turn.read(output, |bytes| {
                    seen.lock().unwrap()[usize::from(number)].push(bytes[511]);
                })
            });
        let options = RunOptions::of(40, 1);
        let tenant = Tenant::new(format!("tenant {number}"));
        tenants.join(&tenant, &plan, payloads, options).unwrap();
    }
    tenants.run();
    for (number, own) in seen.lock().unwrap().iter().enumerate() {
        let number = u8::try_from(number).unwrap();
        let wanted: Vec<u8> = (0..40)
            .map(|generation| generation ^ (number << 6))
            .collect();
        assert_eq!(*own, wanted, "{number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any company of random graphs ends, delivers what each would alone, and starves nobody.
    #[test]
    fn any_company_ends_with_everybodys_own_bytes(
        seeds in proptest::collection::vec((0_u64..5000, 1_u32..9, 1_u32..4), 1..4),
        seed in any::<u64>(),
    ) {
        let plans: Vec<Plan> = seeds
            .iter()
            .filter_map(|(seed, _, depth)| {
                plan(&random(*seed), &Options::default().with_depth(*depth)).ok()
            })
            .collect();
        let guests = plans.iter().zip(&seeds).map(|(plan, (_, weight, _))| guest(plan, *weight, 7));
        let sim = Sim::build(device(), seed).with_engines().loose().finish();
        let mut party = party(sim, guests.collect());
        party.tenants.run();
        for (at, plan) in plans.iter().enumerate() {
            let outcome = party.outcome(at);
            prop_assert!(outcome.is_ok(), "{at}: {outcome:?}");
            prop_assert_eq!(party.delivered(at), alone(plan, 7));
        }
    }
}

#[test]
fn a_plan_of_one_slot_is_not_starved_by_one_of_many() {
    let (thin, broad) = (
        planned(&chain(&[1, 1, 1], Slots::Exactly(1)), 1),
        hungry("b", 1000),
    );
    let sim = simulation(&[&thin, &broad], 2).finish();
    let mut party = party(sim, vec![guest(&thin, 1, 50), guest(&broad, 1, 1000)]);
    let mut ended = None;
    while party.tenants.turn() {
        if ended.is_none() && party.tenants.outcome(party.ids[0]).is_some() {
            ended = Some(party.sim.now());
        }
    }
    // Each of its 150 kernels waits for two of the other's at most.
    assert!(ended.is_some_and(|ended| ended < ms(600)), "{ended:?}");
}
