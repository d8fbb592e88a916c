//! What happened when: spans of stages, memory over time, small pictures. Nothing is collected that
//! nobody asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{CheckedDevice, Event, Queue as _, QueueDesc};
use warploom_sched::{Batch, DeviceTurn, StageError};
use warploom_watch::recording::{Clock, Picture, Sample};

/// The most records that have their picture taken.
const PICTURES: usize = 6;
/// Memory is looked at no more often than this.
const EVERY: Duration = Duration::from_millis(20);
/// Work whose end has not been looked up is at most so much.
const PENDING: usize = 64;

/// A stage at work, as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) stage: &'static str,
    pub(crate) batch: Batch,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    pub(crate) clock: Clock,
}

/// A record before and after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pictures {
    pub(crate) before: Option<Picture>,
    pub(crate) after: Vec<(String, Picture)>,
}

/// Everything that was seen of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    pub(crate) spans: Vec<Seen>,
    pub(crate) memory: Vec<Sample>,
    pub(crate) pictures: BTreeMap<usize, Pictures>,
    /// When each task was begun.
    pub(crate) begun: BTreeMap<usize, Duration>,
    /// Spans whose end was not known yet when there were too many of them to wait for.
    pub(crate) guessed: u64,
}

/// Collects what happens, if somebody wants to know.
#[derive(Debug)]
pub(crate) struct Recorder {
    start: Instant,
    sights: Option<Mutex<Sights>>,
    tasks: usize,
}

impl Recorder {
    pub(crate) fn new(start: Instant, is_wanted: bool, tasks: usize) -> Self {
        Self {
            start,
            sights: is_wanted.then(Mutex::default),
            tasks,
        }
    }

    fn sights(&self) -> Option<MutexGuard<'_, Sights>> {
        let sights = self.sights.as_ref()?;
        Some(sights.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.sights.is_some()
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What was seen, which is forgotten here.
    pub(crate) fn take(&self) -> Sights {
        let sights = self.sights();
        sights.map_or_else(Sights::default, |mut sights| std::mem::take(&mut *sights))
    }

    /// Is this task one of the few that have their picture taken? Evenly spread, the first among them.
    pub(crate) fn is_pictured(&self, task: usize) -> bool {
        let step = self.tasks.div_ceil(PICTURES).max(1);
        self.is_on() && task.is_multiple_of(step)
    }

    pub(crate) fn picture(&self, task: usize, add: impl FnOnce(&mut Pictures)) {
        if let Some(mut sights) = self.sights() {
            add(sights.pictures.entry(task).or_default());
        }
    }

    /// A task is begun.
    pub(crate) fn begin(&self, task: usize) {
        let now = self.now();
        if let Some(mut sights) = self.sights() {
            sights.begun.entry(task).or_insert(now);
        }
    }

    /// Does a host stage's work and notes how long it took.
    pub(crate) fn host<T>(&self, stage: &'static str, batch: Batch, work: impl FnOnce() -> T) -> T {
        let begin = self.now();
        let result = work();
        if let Some(mut sights) = self.sights() {
            sights.spans.push(Seen {
                stage,
                batch,
                begin,
                end: self.now(),
                clock: Clock::Host,
            });
        }
        result
    }

    /// Notes how much memory is in use, now and then.
    pub(crate) fn weigh(&self, device: &CheckedDevice) {
        let Some(mut sights) = self.sights() else {
            return;
        };
        let now = self.now();
        let last = sights
            .memory
            .last()
            .map(|sample| Duration::from_nanos(sample.at));
        if last.is_some_and(|last| now.saturating_sub(last) < EVERY) {
            return;
        }
        if let Ok(memory) = device.memory() {
            sights.memory.push(Sample {
                at: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
                value: memory.ours as f64,
            });
        }
    }
}

/// Work on a queue between two events.
#[derive(Debug)]
struct Pending {
    batch: Batch,
    enqueued: Duration,
    begin: Arc<dyn Event>,
    end: Arc<dyn Event>,
}

/// Notes when a stage on the device really began and ended.
#[derive(Debug)]
pub(crate) struct DeviceLane {
    recorder: Arc<Recorder>,
    stage: &'static str,
    /// The device's clock minus the run's.
    ahead: Option<Ahead>,
    pending: VecDeque<Pending>,
}

/// Where the clock of a device stood at some moment of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    device: Duration,
    run: Duration,
}

impl Ahead {
    /// Compares the clocks; `None` where the device has none, or nobody wants to know.
    pub(crate) fn measured(device: &CheckedDevice, recorder: &Recorder) -> Option<Self> {
        if !recorder.is_on() {
            return None;
        }
        let mut queue = device.queue(&QueueDesc::named("clock")).ok()?;
        let event = queue.record().ok()?;
        event.wait(Some(Duration::from_secs(1))).ok()?;
        let run = recorder.now();
        Some(Self {
            device: event.at()?,
            run,
        })
    }

    fn told(self, at: Duration) -> Duration {
        (self.run + at).saturating_sub(self.device)
    }
}

impl DeviceLane {
    pub(crate) fn new(recorder: &Arc<Recorder>, stage: &'static str, ahead: Option<Ahead>) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            stage,
            ahead,
            pending: VecDeque::new(),
        }
    }

    /// Enqueues a stage's work between two events.
    pub(crate) fn around(
        &mut self,
        turn: &mut DeviceTurn<'_>,
        work: impl FnOnce(&mut DeviceTurn<'_>) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        if !self.recorder.is_on() {
            return work(turn);
        }
        let enqueued = self.recorder.now();
        let begin = turn.queue().record()?;
        work(turn)?;
        let end = turn.queue().record()?;
        self.pending.push_back(Pending {
            batch: turn.batch(),
            enqueued,
            begin,
            end,
        });
        self.collect(PENDING);
        Ok(())
    }

    /// Looks up what has ended; of what is still open, at most so many stay.
    fn collect(&mut self, most: usize) {
        while let Some(first) = self.pending.front() {
            let is_done = !matches!(first.end.is_done(), Ok(false));
            if !is_done && self.pending.len() <= most {
                return;
            }
            let Some(Pending {
                batch,
                enqueued,
                begin,
                end,
            }) = self.pending.pop_front()
            else {
                return;
            };
            let seen = match (self.ahead, begin.at(), end.at()) {
                (Some(ahead), Some(begin), Some(end)) => Seen {
                    stage: self.stage,
                    batch,
                    begin: ahead.told(begin),
                    end: ahead.told(end).max(ahead.told(begin)),
                    clock: Clock::Device,
                },
                _ => Seen {
                    stage: self.stage,
                    batch,
                    begin: enqueued,
                    end: self.recorder.now(),
                    clock: Clock::Host,
                },
            };
            if let Some(mut sights) = self.recorder.sights() {
                sights.guessed += u64::from(!is_done);
                sights.spans.push(seen);
            }
        }
    }
}

impl Drop for DeviceLane {
    /// The run is over, and the queues have been waited for.
    fn drop(&mut self) {
        self.collect(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point that is never reached.
    #[derive(Debug)]
    struct Never;

    impl Event for Never {
        fn is_done(&self) -> warploom_core::Result<bool> {
            Ok(false)
        }
        fn wait(&self, _timeout: Option<Duration>) -> warploom_core::Result<()> {
            Ok(())
        }
        fn at(&self) -> Option<Duration> {
            None
        }
    }

    #[test]
    fn spans_that_had_to_be_guessed_are_counted() {
        let recorder = Arc::new(Recorder::new(Instant::now(), true, 1));
        let mut lane = DeviceLane::new(&recorder, "work", None);
        for _ in 0..PENDING + 6 {
            lane.pending.push_back(Pending {
                batch: Batch::default(),
                enqueued: Duration::ZERO,
                begin: Arc::new(Never),
                end: Arc::new(Never),
            });
        }
        lane.collect(PENDING);
        let sights = recorder.take();
        assert_eq!((sights.spans.len(), sights.guessed), (6, 6));
    }
}
