//! The host woken through a pipeline, beside a thread woken by a condition variable. The device is
//! such a thread too, and the same one for both: on which processor the system puts a thread
//! decides between 3 and 30 microseconds, so that two threads would be compared by luck.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warploom_core::{
    Arg, Buffer, CheckedDevice, Device, DeviceError, DeviceId, DeviceInfo, Event, Grid, Kernel,
    KernelSource, MemoryKind, MemoryUse, Queue, QueueClass, QueueDesc, Result, Slice, Space,
};
use warploom_sched::{
    DRIVER, Options, Payloads, Pipeline, Resource, RunOptions, Stage, StageGraph, Threads, plan,
};

use crate::Outcome;
use crate::idle::IdleDevice;

/// Whoever waits is asleep after that.
pub(crate) const LONG: Duration = Duration::from_micros(100);

/// Microseconds: half of the times are shorter than the first, and 99 of 100 than the second.
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

/// What was measured, of one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// From the end of the work until the one who waits runs.
    pub(crate) late: Wake,
    /// From asking for work until the one who waits runs.
    pub(crate) trip: Wake,
}

/// How much somebody was asked to do, and has done.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    asked: u64,
    done: u64,
    is_over: bool,
}

/// A thread that works when it is asked, a mutex and a condition variable.
#[derive(Debug)]
struct Partner {
    count: Mutex<Count>,
    changed: Condvar,
    /// When the last work ended.
    stamp: AtomicU64,
}

impl Partner {
    fn hire(work: Duration, now: impl Fn() -> u64 + Send + 'static) -> (Arc<Self>, JoinHandle<()>) {
        let partner = Arc::new(Self {
            count: Mutex::default(),
            changed: Condvar::new(),
            stamp: AtomicU64::new(0),
        });
        let own = Arc::clone(&partner);
        let thread = std::thread::spawn(move || {
            loop {
                let idle = |count: &mut Count| count.asked == count.done && !count.is_over;
                let waited = own.changed.wait_while(own.count(), idle);
                if waited.unwrap_or_else(PoisonError::into_inner).is_over {
                    return;
                }
                if !work.is_zero() {
                    std::thread::sleep(work);
                }
                own.stamp.store(now(), Ordering::SeqCst);
                own.count().done += 1;
                own.changed.notify_all();
            }
        });
        (partner, thread)
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for another piece of work, and answers which it is.
    fn ask(&self) -> u64 {
        let mut count = self.count();
        count.asked += 1;
        let number = count.asked;
        drop(count);
        self.changed.notify_all();
        number
    }

    fn wait(&self, number: u64) {
        let open = |count: &mut Count| count.done < number;
        drop(self.changed.wait_while(self.count(), open));
    }

    fn dismiss(&self) {
        self.count().is_over = true;
        self.changed.notify_all();
    }

    /// How long ago the last work ended.
    fn late(&self, now: u64) -> u64 {
        now.saturating_sub(self.stamp.load(Ordering::SeqCst))
    }
}

/// A device whose work is a partner's.
#[derive(Debug)]
struct Bell {
    idle: Arc<dyn Device>,
    partner: Arc<Partner>,
}

impl Device for Bell {
    fn info(&self) -> &DeviceInfo {
        self.idle.info()
    }
    fn memory(&self) -> Result<MemoryUse> {
        self.idle.memory()
    }
    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        self.idle.alloc(kind, bytes)
    }
    fn queue(&self, _desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(BellQueue(
            self.info().id,
            Arc::clone(&self.partner),
        )))
    }
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        self.idle.kernel(source)
    }
}

/// Whatever is recorded asks for work.
#[derive(Debug)]
struct BellQueue(DeviceId, Arc<Partner>);

impl Queue for BellQueue {
    fn upload(&mut self, _src: &[u8], _dst: &Slice) -> Result<()> {
        Ok(())
    }
    fn download(&mut self, _src: &Slice, _dst: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn copy(&mut self, _src: &Slice, _dst: &Slice) -> Result<()> {
        Ok(())
    }
    fn launch(&mut self, _kernel: &Arc<dyn Kernel>, _grid: Grid, _args: &[Arg]) -> Result<()> {
        Ok(())
    }
    fn record(&mut self) -> Result<Arc<dyn Event>> {
        let number = self.1.ask();
        Ok(Arc::new(BellEvent {
            device: self.0,
            partner: Arc::clone(&self.1),
            number,
        }))
    }
    fn wait(&mut self, _event: &Arc<dyn Event>) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct BellEvent {
    device: DeviceId,
    partner: Arc<Partner>,
    number: u64,
}

impl Event for BellEvent {
    fn is_done(&self) -> Result<bool> {
        Ok(self.partner.count().done >= self.number)
    }
    fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let Some(waited) = timeout else {
            self.partner.wait(self.number);
            return Ok(());
        };
        let open = |count: &mut Count| count.done < self.number;
        let partner = &self.partner;
        let ended = partner
            .changed
            .wait_timeout_while(partner.count(), waited, open);
        let (count, _) = ended.unwrap_or_else(PoisonError::into_inner);
        if count.done < self.number {
            let device = self.device;
            return Err(DeviceError::Timeout { device, waited });
        }
        Ok(())
    }
    fn at(&self) -> Option<Duration> {
        None
    }
}

/// Nanoseconds, one for each turn.
#[derive(Debug, Default)]
struct Log {
    late: Vec<u64>,
    trip: Vec<u64>,
}

impl Log {
    fn side(&self) -> Side {
        Side {
            late: Wake::of(self.late.clone()),
            trip: Wake::of(self.trip.clone()),
        }
    }
}

/// The scheduler's wake-ups and a condition variable's, one after the other all the time, for work
/// that takes so long.
pub(crate) fn race(work_time: Duration) -> Outcome<[Side; 2]> {
    const TURNS: u64 = 3_000;
    let epoch = Instant::now();
    let now = move || u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (partner, thread) = Partner::hire(work_time, now);
    let device = CheckedDevice::new(Arc::new(Bell {
        idle: IdleDevice::open(),
        partner: Arc::clone(&partner),
    }));

    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Pinned, 64));
    let work = graph.stage(Stage::device("work", QueueClass::Compute).writes(image));
    let see = graph.stage(Stage::host("see").on(DRIVER).reads(image));
    let plan = plan(&graph, &Options::default().with_depth(1))?;

    let logs = Arc::new(Mutex::new([Log::default(), Log::default()]));
    let (own_logs, own_partner) = (Arc::clone(&logs), Arc::clone(&partner));
    let mut asked_at = None;
    let payloads = Payloads::new()
        .device(work, |_| Ok(()))
        .host(see, move |_| {
            let awake = now();
            let mut logs = own_logs.lock().unwrap_or_else(PoisonError::into_inner);
            let [ours, theirs] = &mut *logs;
            ours.late.push(own_partner.late(awake));
            if let Some(asked_at) = asked_at {
                ours.trip.push(awake - asked_at);
            }
            let begun = now();
            own_partner.wait(own_partner.ask());
            let awake = now();
            theirs.late.push(own_partner.late(awake));
            theirs.trip.push(awake - begun);
            asked_at = Some(now());
            Ok(())
        });
    let options = RunOptions::of(TURNS, 1).with_race_check(false);
    let mut pipeline = Pipeline::start(&plan, &device, payloads, Threads::new(), options)?;
    let ran = pipeline.run().map(|_| ());
    drop(pipeline);
    partner.dismiss();
    // It waits and cannot fail.
    let _ = thread.join();
    ran?;
    let logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
    Ok([logs[0].side(), logs[1].side()])
}
