//! What runs in order: a queue of jobs with a thread of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::chance;
use super::health::{Health, Trouble};
use super::status::Status;

/// Who waits for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The default stream of old: it and blocking streams wait for each other.
    Legacy,
    /// An ordinary stream, or the default stream of a thread.
    Blocking,
    /// A stream that minds its own business.
    NonBlocking,
}

/// One thing to do.
pub(crate) enum Job {
    /// Dropped when the context has failed; a failure of its own ends the context.
    Work(Box<dyn FnOnce() -> Result<(), Trouble> + Send>),
    /// Done in any case, and told how the context is.
    Always(Box<dyn FnOnce(Status) + Send>),
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Work(_) => "Work",
            Self::Always(_) => "Always",
        })
    }
}

/// Delays before jobs, so that what nobody waits for is late sometimes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jitter {
    pub(crate) seed: u64,
    pub(crate) longest: Duration,
}

impl Jitter {
    fn sleep(self, lane: u64, job: u64) {
        let longest = u64::try_from(self.longest.as_micros()).unwrap_or(u64::MAX);
        if longest == 0 {
            return;
        }
        let micros = chance::number(&[self.seed, lane, job]) % longest.saturating_add(1);
        std::thread::sleep(Duration::from_micros(micros));
    }
}

/// Jobs in order. The thread is started by the first job and ends when the lane is closed and done.
#[derive(Debug)]
pub(crate) struct Lane {
    kind: Kind,
    /// Number of the lane, for the jitter.
    number: u64,
    jitter: Jitter,
    health: Arc<Health>,
    state: Mutex<State>,
    /// There is a job, or the lane is closed.
    work: Condvar,
    /// A job has ended.
    progress: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Queued>,
    submitted: u64,
    finished: u64,
    started: bool,
    closed: bool,
}

#[derive(Debug)]
struct Queued {
    after: Vec<Ticket>,
    job: Job,
}

/// A job of a lane, to be waited for.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    lane: Arc<Lane>,
    number: u64,
}

impl Ticket {
    pub(crate) fn is_done(&self) -> bool {
        self.lane.lock().finished >= self.number
    }

    pub(crate) fn wait(&self) {
        let lane = &self.lane;
        let state = lane.lock();
        let waited = lane
            .progress
            .wait_while(state, |state| state.finished < self.number);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Lane {
    pub(crate) fn new(kind: Kind, number: u64, jitter: Jitter, health: &Arc<Health>) -> Arc<Self> {
        Arc::new(Self {
            kind,
            number,
            jitter,
            health: Arc::clone(health),
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job that begins when those of `after`, and all before it, have ended. All of `after`
    /// must have been submitted before, so that nobody waits in a circle.
    pub(crate) fn push(self: &Arc<Self>, after: Vec<Ticket>, job: Job) -> Ticket {
        let mut state = self.lock();
        state.jobs.push_back(Queued { after, job });
        state.submitted += 1;
        let ticket = Ticket {
            lane: Arc::clone(self),
            number: state.submitted,
        };
        if !state.started {
            state.started = true;
            let lane = Arc::clone(self);
            let name = format!("emu-stream-{}", self.number);
            std::thread::Builder::new()
                .name(name)
                .spawn(move || lane.run())
                .expect("without threads there are no streams");
        }
        drop(state);
        self.work.notify_one();
        ticket
    }

    /// The last job so far, unless all are done.
    pub(crate) fn last(self: &Arc<Self>) -> Option<Ticket> {
        let state = self.lock();
        (state.finished < state.submitted).then(|| Ticket {
            lane: Arc::clone(self),
            number: state.submitted,
        })
    }

    /// Ends the lane when its jobs are done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_one();
    }

    /// Closed, and all done.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.closed && state.finished == state.submitted
    }

    fn run(&self) {
        while let Some((number, queued)) = self.next() {
            for ticket in queued.after {
                ticket.wait();
            }
            self.jitter.sleep(self.number, number);
            self.perform(queued.job);
            self.lock().finished = number;
            self.progress.notify_all();
        }
    }

    fn next(&self) -> Option<(u64, Queued)> {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
        let state = self.work.wait_while(self.lock(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let queued = state.jobs.pop_front()?;
        Some((state.finished + 1, queued))
    }

    fn perform(&self, job: Job) {
        let outcome = catch_unwind(AssertUnwindSafe(|| match job {
            Job::Work(work) => match self.health.check() {
                Ok(()) => work(),
                Err(_) => Ok(()),
            },
            Job::Always(act) => {
                act(self.health.status());
                Ok(())
            }
        }));
        let trouble = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble {
                status: Status::UNKNOWN,
                text: "the emulator itself failed, see above".to_owned(),
            },
        };
        self.health.fail(&trouble);
    }
}
