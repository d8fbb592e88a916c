//! However a run ends: each thing is told of once, and others go on.

mod graphs;
mod world;

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graphs::{ENCODER, ms};
use rstest::rstest;
use warploom_core::{CancelToken, CheckedDevice, GpuBackend, Space};
use warploom_sched::{
    Crew, Fill, Job, Note, Options, Payloads, Pipeline, Plan, Post, Resource, RunError, RunOptions,
    Stage, StageGraph, StageId, Tenant, Tenants, Threads, Watch, plan,
};
use warploom_testkit::sim::Sim;
use warploom_testkit::{FakeBackend, FakeDevice};
use world::{Mischief, Script, SimCrew, device, run_on};

fn encoder() -> Plan {
    plan(&ENCODER.graph(), &Options::default().with_depth(2)).expect("a plan")
}

fn options(generations: u64) -> RunOptions {
    RunOptions::of(generations, 1).with_patience(Duration::from_secs(5))
}

/// For each stage and generation, how often it was begun and told of.
type Counts = Arc<Mutex<BTreeMap<(StageId, u64), [u32; 2]>>>;

/// A crew that counts what it is given and what it tells.
struct Tally {
    crew: SimCrew,
    counts: Counts,
}

impl Tally {
    fn add(&self, stage: StageId, generation: u64, at: usize) {
        self.counts
            .lock()
            .expect("no panic")
            .entry((stage, generation))
            .or_default()[at] += 1;
    }
}

impl Crew for Tally {
    fn now(&self) -> Duration {
        self.crew.now()
    }
    fn adopt(&mut self, posts: Vec<Post>) -> Result<(), RunError> {
        self.crew.adopt(posts)
    }
    fn start(&mut self, job: Job) {
        self.add(job.stage, job.batch.generation, 0);
        self.crew.start(job);
    }
    fn watch(&mut self, watch: Watch) {
        self.add(watch.stage, watch.generation, 0);
        self.crew.watch(watch);
    }
    fn poll(&mut self) -> Option<Note> {
        let note = self.crew.poll()?;
        self.add(note.stage, note.generation, 1);
        Some(note)
    }
    fn rest(&mut self, timeout: Duration) {
        self.crew.rest(timeout);
    }
    fn abandon(&mut self, stage: StageId) {
        self.crew.abandon(stage);
    }
    fn dismiss(&mut self) {
        self.crew.dismiss();
    }
}

/// How a run goes that ends one way or another.
#[derive(Clone, Copy, Debug)]
enum Exit {
    End,
    Mischief(&'static str, Mischief),
    Source(Fill),
    CalledOff,
}

#[rstest]
#[case(Exit::End)]
#[case(Exit::Mischief("deliver", Mischief::Fail))]
#[case(Exit::Mischief("deliver", Mischief::Panic))]
#[case(Exit::Mischief("fill", Mischief::Fail))]
#[case(Exit::Mischief("fill", Mischief::Panic))]
#[case(Exit::Source(Fill::End))]
#[case(Exit::Source(Fill::Last(1)))]
#[case(Exit::CalledOff)]
fn whatever_was_begun_is_told_of_exactly_once(#[case] exit: Exit) {
    let plan = encoder();
    for seed in 0..20 {
        let mut script = Script::default();
        let mut options = RunOptions::of(12, 2).with_patience(Duration::from_secs(5));
        let token = CancelToken::new();
        match exit {
            Exit::End => {}
            Exit::Mischief(stage, what) => script.mischief = Some((stage, 3, what)),
            Exit::Source(fill) => (script.ends_with, script.ends_at) = (Some(fill), 3),
            Exit::CalledOff => options = options.cancelled_by(&token),
        }
        let sim = Sim::new(device(), seed);
        let opened = CheckedDevice::new(sim.open(0).unwrap());
        let payloads = script.payloads(&plan, &opened).unwrap();
        let counts = Counts::default();
        let crew = Tally {
            crew: SimCrew::new(&sim, &plan),
            counts: Arc::clone(&counts),
        };
        let mut pipeline = Pipeline::start(&plan, &opened, payloads, crew, options).unwrap();
        for _ in 0..20 {
            let _ = pipeline.turn();
        }
        token.cancel();
        let is_good = pipeline.run().is_ok();
        assert_eq!(
            is_good,
            matches!(exit, Exit::End | Exit::Source(_)),
            "{exit:?}"
        );
        assert_eq!(pipeline.pool().held(), 0);
        let host = |stage: StageId| plan.graph().stages()[stage.index()].is_host();
        for ((stage, generation), [begun, told]) in counts.lock().unwrap().iter() {
            assert_eq!(*begun, 1, "{exit:?}: {stage:?} {generation}");
            // What the host is to see on the device nobody asks for any more after the end.
            let is_told = *told == 1 || (!host(*stage) && *told == 0);
            assert!(
                is_told,
                "{exit:?}: {stage:?} {generation} was told {told} times"
            );
        }
    }
}

#[test]
fn a_lost_device_is_nothing_to_the_pipeline_of_another() {
    let plan = encoder();
    let good = run_on(Sim::new(device(), 2), &plan, &Script::default(), options(8));
    for launches in [0, 9, 30] {
        let sims = [
            Sim::new(device().lose_after(launches), 1),
            Sim::new(device(), 2),
        ];
        let opened = sims
            .each_ref()
            .map(|sim| CheckedDevice::new(sim.open(0).unwrap()));
        let scripts = [Script::default(), Script::default()];
        let mut pipelines: Vec<_> = (0..2)
            .map(|at| {
                let payloads = scripts[at].payloads(&plan, &opened[at]).unwrap();
                let crew = SimCrew::new(&sims[at], &plan);
                Pipeline::start(&plan, &opened[at], payloads, crew, options(8)).unwrap()
            })
            .collect();
        // A turn of the one, a turn of the other.
        let mut ended = [None, None];
        while ended.iter().any(Option::is_none) {
            for (pipeline, ended) in pipelines.iter_mut().zip(&mut ended) {
                match pipeline.turn() {
                    Ok(true) => {}
                    Ok(false) => *ended = Some(Ok(())),
                    Err(error) => *ended = Some(Err(error.to_string())),
                }
            }
        }
        let [lost, other] = ended.map(Option::unwrap);
        assert!(lost.unwrap_err().contains("was lost"), "{launches}");
        assert_eq!(other, Ok(()));
        let delivered = scripts[1].delivered.lock().unwrap().clone();
        assert_eq!(delivered, good.delivered, "{launches}");
    }
}

#[test]
fn a_tenant_that_never_returns_keeps_neither_the_others_nor_the_house() {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Pinned, 64));
    let make = graph.stage(Stage::host("make").writes(image));
    let take = graph.stage(Stage::host("take").reads(image));
    let plan = plan(&graph, &Options::default()).unwrap();
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let opened = CheckedDevice::new(fakes.open(0).unwrap());
    let mut tenants = Tenants::new(&opened, Threads::new());
    let (let_go, may_go) = sync_channel::<()>(0);
    let may_go = Mutex::new(may_go);
    let payloads = Payloads::new().host(make, |_| Ok(())).host(take, move |_| {
        let _ = may_go.lock().map(|may_go| may_go.recv());
        Ok(())
    });
    let patience = options(4).with_patience(ms(200));
    let stuck = tenants.join(&Tenant::new("stuck"), &plan, payloads, patience);
    let payloads = Payloads::new()
        .host(make, |_| Ok(()))
        .host(take, |_| Ok(()));
    let other = tenants.join(&Tenant::new("other"), &plan, payloads, options(500));
    tenants.run();
    let stuck = tenants.outcome(stuck.unwrap()).unwrap();
    assert!(matches!(stuck, Err(RunError::Timeout { .. })), "{stuck:?}");
    let other = tenants.outcome(other.unwrap()).unwrap();
    assert_eq!(other.unwrap().generations, 500);
    let begun = Instant::now();
    drop(tenants);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    drop(let_go);
}
