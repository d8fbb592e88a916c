//! Which records each generation of a run is about.
//!
//! The stages of a run know generations by their number. A run over a list of records counts them off. A
//! worker does not know its records beforehand: they come in batches while its stages are at work, and each
//! generation is about a part of one of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warploom_plan::ExecutionPlan;
use warploom_sched::{Batch, StageError};

use crate::course::Course;
use crate::recorder::Recorder;

/// What one generation is about.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) course: Arc<Course>,
    first: u64,
    records: u64,
}

impl Round {
    /// Its units: their place in the generation, and their number in the course.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let first = self.first;
        (0..self.records).map(move |at| (at, first + at))
    }
}

/// What the generations of a run are about.
#[derive(Debug)]
pub(crate) struct Agenda {
    pub(crate) plan: Arc<ExecutionPlan>,
    pub(crate) recorder: Arc<Recorder>,
    output: PathBuf,
    /// How many units there are about.
    pub(crate) items: u64,
    of: Of,
}

#[derive(Debug)]
enum Of {
    Whole(Arc<Course>),
    #[cfg(all(feature = "fleet", target_os = "linux"))]
    Stream(stream::Stream),
}

impl Agenda {
    /// Everything is known beforehand.
    pub(crate) fn whole(course: &Arc<Course>) -> Self {
        Self {
            plan: Arc::clone(&course.plan),
            recorder: Arc::clone(&course.recorder),
            output: course.output.clone(),
            items: course.items(),
            of: Of::Whole(Arc::clone(course)),
        }
    }

    /// Where results go.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }

    /// How many units there are, if that is certain.
    #[cfg_attr(
        not(all(feature = "fleet", target_os = "linux")),
        expect(
            clippy::unnecessary_wraps,
            reason = "only workers do not know it beforehand"
        )
    )]
    pub(crate) fn count(&self) -> Option<u64> {
        match &self.of {
            Of::Whole(_) => Some(self.items),
            #[cfg(all(feature = "fleet", target_os = "linux"))]
            Of::Stream(_) => None,
        }
    }

    /// What the next generation is about, for the stage that begins it; waits until that is known. Nothing
    /// when there will be none.
    #[cfg_attr(
        not(all(feature = "fleet", target_os = "linux")),
        expect(
            clippy::unnecessary_wraps,
            reason = "only workers do not know it beforehand"
        )
    )]
    pub(crate) fn next(&self, batch: Batch) -> Option<Round> {
        match &self.of {
            Of::Whole(course) => Some(counted(course, batch)),
            #[cfg(all(feature = "fleet", target_os = "linux"))]
            Of::Stream(stream) => stream.next(batch),
        }
    }

    /// What a generation is about that was begun.
    #[cfg_attr(
        not(all(feature = "fleet", target_os = "linux")),
        expect(
            clippy::unnecessary_wraps,
            reason = "only workers do not know it beforehand"
        )
    )]
    pub(crate) fn round(&self, batch: Batch) -> Result<Round, StageError> {
        match &self.of {
            Of::Whole(course) => Ok(counted(course, batch)),
            #[cfg(all(feature = "fleet", target_os = "linux"))]
            Of::Stream(stream) => stream
                .round(batch)
                .ok_or_else(|| StageError::failed("a generation that was not begun")),
        }
    }

    /// Nobody will ask for this generation or any before it again.
    pub(crate) fn done(&self, batch: Batch) {
        match &self.of {
            // It is counted off, whoever asks again.
            Of::Whole(_) => {
                let _ = batch;
            }
            #[cfg(all(feature = "fleet", target_os = "linux"))]
            Of::Stream(stream) => stream.done(batch),
        }
    }
}

fn counted(course: &Arc<Course>, batch: Batch) -> Round {
    Round {
        course: Arc::clone(course),
        first: batch.first,
        records: batch.records,
    }
}

#[cfg(all(feature = "fleet", target_os = "linux"))]
mod stream {
    use std::collections::VecDeque;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

    use super::{Agenda, Arc, Batch, Course, ExecutionPlan, Of, PathBuf, Recorder, Round};

    /// Courses that come while stages are at work.
    #[derive(Debug, Default)]
    pub(super) struct Stream {
        lane: Mutex<Lane>,
        came: Condvar,
    }

    #[derive(Debug, Default)]
    struct Lane {
        /// Courses, and the first unit of each that is in no generation.
        waiting: VecDeque<(Arc<Course>, u64)>,
        /// Generations that were begun and are not done; the first has this number.
        rounds: VecDeque<Round>,
        first: u64,
        closed: bool,
    }

    impl Agenda {
        /// Nothing is known beforehand but the plan and about how much there will be.
        pub(crate) fn stream(
            plan: &Arc<ExecutionPlan>,
            recorder: Recorder,
            output: PathBuf,
            items: u64,
        ) -> Self {
            Self {
                plan: Arc::clone(plan),
                recorder: Arc::new(recorder),
                output,
                items,
                of: Of::Stream(Stream::default()),
            }
        }

        /// More to do. Generations are about one course each.
        pub(crate) fn add(&self, course: Arc<Course>) {
            if let Of::Stream(stream) = &self.of {
                stream.lane().waiting.push_back((course, 0));
                stream.came.notify_all();
            }
        }

        /// There will be no more; what has not been begun is not.
        pub(crate) fn close(&self, now: bool) {
            if let Of::Stream(stream) = &self.of {
                let mut lane = stream.lane();
                lane.closed = true;
                if now {
                    lane.waiting.clear();
                }
                drop(lane);
                stream.came.notify_all();
            }
        }
    }

    impl Stream {
        fn lane(&self) -> MutexGuard<'_, Lane> {
            self.lane.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(super) fn next(&self, batch: Batch) -> Option<Round> {
            let mut lane = self.lane();
            while lane.waiting.is_empty() && !lane.closed {
                lane = self.came.wait(lane).unwrap_or_else(PoisonError::into_inner);
            }
            let (course, next) = lane.waiting.front_mut()?;
            let left = course.items() - *next;
            let round = Round {
                course: Arc::clone(course),
                first: *next,
                records: left.min(batch.records),
            };
            *next += round.records;
            if round.records == left {
                lane.waiting.pop_front();
            }
            lane.rounds.push_back(round.clone());
            Some(round)
        }

        pub(super) fn round(&self, batch: Batch) -> Option<Round> {
            let lane = self.lane();
            let at = batch.generation.checked_sub(lane.first)?;
            lane.rounds.get(usize::try_from(at).ok()?).cloned()
        }

        pub(super) fn done(&self, batch: Batch) {
            let mut lane = self.lane();
            while lane.first <= batch.generation && lane.rounds.pop_front().is_some() {
                lane.first += 1;
            }
        }
    }
}
