//! The host woken by a device, beside a thread woken by a condition variable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{
    CheckedDevice, GpuBackend, Grid, KernelSource, Param, QueueClass, Slice, Space,
};
use warploom_sched::{
    DRIVER, Options, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Threads, Use,
    plan,
};
use warploom_testkit::{FakeBackend, FakeDevice};

use crate::Outcome;

/// Whoever waits is asleep after that.
const WORK: Duration = Duration::from_micros(100);

/// Microseconds from the end of the work until the one who waits runs: half of them are shorter,
/// and 99 of 100.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Wake {
    fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let at = |percent: usize| nanos[(nanos.len() - 1) * percent / 100] as f64 / 1e3;
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Somebody who works when asked, and says when he was done.
#[derive(Debug, Default)]
struct Partner {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Turn {
    #[default]
    Ours,
    Theirs,
    Over,
}

impl Partner {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, turn: Turn) {
        *self.turn() = turn;
        self.changed.notify_all();
    }

    fn await_change(&self, from: Turn) -> Turn {
        let waiting = self.changed.wait_while(self.turn(), |turn| *turn == from);
        *waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scheduler's wake-ups and a condition variable's, one after the other all the time.
pub(crate) fn wakes() -> Outcome<[Wake; 2]> {
    const TURNS: u64 = 3_000;
    let epoch = Instant::now();
    let now = move || u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("Fake"));
    let device = CheckedDevice::new(fakes.open(0)?);
    let stamp = Arc::new(AtomicU64::new(0));

    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Pinned, 64));
    let work = graph.stage(Stage::device("work", QueueClass::Compute).writes(image));
    let see = graph.stage(Stage::host("see").on(DRIVER).reads(image));
    let plan = plan(&graph, &Options::default().with_depth(1))?;

    let own = Arc::clone(&stamp);
    let params = [Param::Write];
    let kernel = device.kernel(&KernelSource::host("work", &params, move |_| {
        std::thread::sleep(WORK);
        own.store(now(), Ordering::SeqCst);
    }))?;
    let scratch = device.alloc(device.info().memory[0], 64)?;

    let partner = Arc::new(Partner::default());
    let (theirs, done) = (Arc::clone(&partner), Arc::new(AtomicU64::new(0)));
    let their_stamp = Arc::clone(&done);
    let thread = std::thread::spawn(move || {
        while theirs.await_change(Turn::Ours) == Turn::Theirs {
            std::thread::sleep(WORK);
            their_stamp.store(now(), Ordering::SeqCst);
            theirs.pass(Turn::Ours);
        }
    });

    let [ours, bare] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let (our_log, bare_log, asked) = (Arc::clone(&ours), Arc::clone(&bare), Arc::clone(&partner));
    let late = move |log: &Mutex<Vec<u64>>, stamp: &AtomicU64| {
        let late = now().saturating_sub(stamp.load(Ordering::SeqCst));
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(late);
    };
    let payloads = Payloads::new()
        .device(work, move |turn| {
            let uses = [Use::Slice(Slice::whole(&scratch))];
            turn.launch(&kernel, Grid::groups([1; 3]), &uses)
        })
        .host(see, move |_| {
            late(&our_log, &stamp);
            asked.pass(Turn::Theirs);
            asked.await_change(Turn::Theirs);
            late(&bare_log, &done);
            Ok(())
        });
    let options = RunOptions::of(TURNS, 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    let ran = pipeline.run().map(|_| ());
    partner.pass(Turn::Over);
    // It waits and cannot fail.
    let _ = thread.join();
    ran?;
    let of = |log: &Mutex<Vec<u64>>| {
        Wake::of(log.lock().unwrap_or_else(PoisonError::into_inner).clone())
    };
    Ok([of(&ours), of(&bare)])
}
