//! The crew's threads under a scheduler that tries interleavings: `--cfg warploom_shuttle`.
//!
//! A thread that is never woken shows as a deadlock, which shuttle reports with the schedule that
//! led to it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::Rng as _;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use warploom_core::{
    BackendId, CancelToken, CheckedDevice, DeviceError, DeviceId, Event, Result, Space,
};

use super::crew::{Crew, Outcome, Watch, panic_text};
use super::error::RunError;
use super::options::RunOptions;
use super::payload::Payloads;
use super::pipeline::Pipeline;
use super::threads::Threads;
use super::tray::{Hand, Tray};
use crate::model::{Options, Resource, Slots, Stage, StageGraph, StageId, plan};

#[path = "../../tests/idle/mod.rs"]
mod idle;

/// Enough for each test to take a second or two.
const SCHEDULES: usize = 1000;
const GENERATIONS: u64 = 3;

thread_local! {
    /// All threads of a schedule are one thread of the system, and tests have one each.
    static MUTE: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_mute() -> bool {
    MUTE.get()
}

/// Tries schedules that switch threads at random, and schedules that starve some threads.
fn explore(test: fn()) {
    shuttle::check_random(test, SCHEDULES);
    shuttle::check_pct(test, SCHEDULES, 3);
}

/// Three generations through a producer, a worker and a joiner with two slots between them,
/// called off at any moment or never, and dropped.
fn produce_work_join(is_called_off: bool) {
    let mut graph = StageGraph::new();
    let two = |name| Resource::new(name, Space::Pinned, 64).with_slots(Slots::Exactly(2));
    let (made, worked) = (graph.resource(two("made")), graph.resource(two("worked")));
    let stages = [
        Stage::host("produce").writes(made),
        Stage::host("work").reads(made).writes(worked),
        Stage::host("join").reads(worked),
    ];
    let [produce, work, join] = stages.map(|stage| graph.stage(stage));
    let plan = plan(&graph, &Options::default().with_depth(2)).expect("a plan");
    let device = CheckedDevice::new(idle::IdleDevice::open());
    // How far each stage is; slots bound the distances.
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let count = |at: usize| {
        let counts = Arc::clone(&counts);
        move |turn: &mut super::turn::HostTurn<'_>| {
            let done = counts[at].fetch_add(1, Ordering::SeqCst);
            assert_eq!(done, turn.batch().generation, "in order");
            if at > 0 {
                assert!(
                    counts[at - 1].load(Ordering::SeqCst) > done,
                    "not before it is made"
                );
            }
            if at < 2 {
                // One more may have ended whose news is still on the way.
                assert!(
                    done <= counts[at + 1].load(Ordering::SeqCst) + 2,
                    "two slots"
                );
            }
            Ok(())
        }
    };
    let payloads = Payloads::new()
        .host(produce, count(0))
        .host(work, count(1))
        .host(join, count(2));
    let token = CancelToken::new();
    let options = RunOptions::of(GENERATIONS, 1)
        .with_race_check(true)
        .cancelled_by(&token);
    let canceller = is_called_off.then(|| thread::spawn(move || token.cancel()));
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), options).expect("a start");
    let ended = pipeline.run().cloned();
    assert_eq!(pipeline.pool().held(), 0);
    drop(pipeline);
    let joined = counts[2].load(Ordering::SeqCst);
    match ended {
        Ok(summary) => assert_eq!((summary.generations, joined), (GENERATIONS, GENERATIONS)),
        Err(RunError::Cancelled { delivered }) => {
            assert!(is_called_off);
            assert_eq!(joined, delivered, "all or nothing of each");
        }
        Err(error) => panic!("{error}"),
    }
    if let Some(canceller) = canceller {
        canceller.join().expect("calling off does not panic");
    }
}

#[test]
fn three_generations_pass_two_slots_in_any_order_of_threads() {
    explore(|| produce_work_join(false));
}

#[test]
fn calling_off_at_any_moment_ends_in_order() {
    explore(|| produce_work_join(true));
}

/// A pipeline that is dropped before its end: nobody stays behind.
fn drop_early() {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Pinned, 64));
    let make = graph.stage(Stage::host("make").writes(image));
    let take = graph.stage(Stage::host("take").reads(image));
    let plan = plan(&graph, &Options::default().with_depth(2)).expect("a plan");
    let device = CheckedDevice::new(idle::IdleDevice::open());
    let payloads = Payloads::new()
        .host(make, |_| Ok(()))
        .host(take, |_| Ok(()));
    let options = RunOptions::of(GENERATIONS, 1);
    let mut pipeline =
        Pipeline::start(&plan, &device, payloads, Threads::new(), options).expect("a start");
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..4) {
        if !pipeline.turn().expect("nothing fails") {
            break;
        }
    }
    drop(pipeline);
}

#[test]
fn dropping_at_any_moment_leaves_no_thread() {
    explore(drop_early);
}

/// A thread that is handed two things and sent home.
fn hand() {
    let done = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&done);
    let mut hand = Hand::hire("hand", move |add: u64, _: &Tray<u64>| {
        own.fetch_add(add, Ordering::SeqCst);
    })
    .expect("a thread");
    hand.tray.put(1);
    hand.tray.put(2);
    hand.retire();
    assert!([0, 1, 3].contains(&done.load(Ordering::SeqCst)));
}

#[test]
fn every_order_of_handing_over_and_sending_home_ends() {
    shuttle::check_dfs(hand, None);
}

/// What shuttle says of a test that must fail.
fn complaint(test: fn()) -> String {
    MUTE.set(true);
    let failed = catch_unwind(AssertUnwindSafe(|| shuttle::check_random(test, SCHEDULES)));
    MUTE.set(false);
    panic_text(&*failed.expect_err("nobody noticed"))
}

#[test]
fn a_call_off_that_wakes_nobody_is_noticed() {
    for test in [hand as fn(), drop_early, || produce_work_join(true)] {
        let text = complaint(test);
        assert!(text.contains("deadlock"), "{text}");
    }
}

/// A point that somebody else reaches. Deadlines strike at random.
#[derive(Debug, Default)]
struct Point(Mutex<bool>, Condvar);

impl Point {
    fn reach(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_all();
    }
}

impl Event for Point {
    fn is_done(&self) -> Result<bool> {
        Ok(*self.0.lock().expect("no panic"))
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        if let Some(waited) = timeout
            && shuttle::rand::thread_rng().gen_bool(0.5)
        {
            thread::yield_now();
            let device = DeviceId::new(BackendId::new("points"), 0);
            return if self.is_done()? {
                Ok(())
            } else {
                Err(DeviceError::Timeout { device, waited })
            };
        }
        let mut is_reached = self.0.lock().expect("no panic");
        while !*is_reached {
            is_reached = self.1.wait(is_reached).expect("no panic");
        }
        Ok(())
    }

    fn at(&self) -> Option<Duration> {
        None
    }
}

/// Events of two queues, some of them reached while the host waits for all.
fn watch(reached: usize) {
    let points: Vec<Arc<Point>> = (0..4).map(|_| Arc::default()).collect();
    let mut crew = Threads::new();
    for (at, point) in points.iter().enumerate() {
        crew.watch(Watch {
            stage: StageId(at % 2),
            queue: at % 2,
            generation: at as u64 / 2,
            event: Arc::clone(point) as Arc<dyn Event>,
        });
    }
    let own = points.clone();
    let device = thread::spawn(move || {
        for point in &own[..reached] {
            point.reach();
        }
    });
    let mut next = [0, 0];
    while next[0] + next[1] < reached as u64 {
        let Some(note) = crew.poll() else {
            crew.rest(Duration::from_secs(1));
            continue;
        };
        assert_eq!(note.outcome, Outcome::Seen(Ok(())));
        assert_eq!(note.generation, next[note.stage.0], "in order");
        next[note.stage.0] += 1;
    }
    device.join().expect("no panic");
    if reached < points.len() {
        // Somebody may be looking out for what is not reached yet; the end does not wait for it.
        let late = thread::spawn(move || points[reached..].iter().for_each(|point| point.reach()));
        crew.dismiss();
        late.join().expect("no panic");
    } else {
        crew.dismiss();
    }
}

#[test]
fn events_of_several_queues_are_told_in_order() {
    explore(|| watch(4));
    explore(|| watch(3));
}
