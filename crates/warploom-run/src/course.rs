//! What the stages of a run share: which unit is whose, and which records are lost.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use warploom_core::Axis;
use warploom_io::Header;
use warploom_io::records::Record;
use warploom_plan::ExecutionPlan;

use crate::outcome::{Done, Failure, News, Outcome};
use crate::recorder::Recorder;
use crate::unit::Unit;

/// Whoever wants to know how a run goes on.
pub type Listener = Arc<dyn Fn(News) + Send + Sync>;

/// A record that is to be worked on.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its place among all records of the run.
    pub(crate) index: usize,
    pub(crate) record: Record,
    /// The files of each variant's outputs, for each run of planes: `files[run][output]`.
    pub(crate) files: Vec<Vec<PathBuf>>,
}

/// What of a record was read, for the list of what is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) content: String,
    pub(crate) stamp: String,
}

/// What a run is about.
pub(crate) struct Setting {
    pub(crate) plan: Arc<ExecutionPlan>,
    pub(crate) units: Vec<Unit>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) header: Header,
    pub(crate) output: PathBuf,
    pub(crate) recipe: String,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) listener: Listener,
}

/// Everything that stages share: what the run is about, and how far its records are.
pub(crate) struct Course {
    setting: Setting,
    lost: Vec<AtomicBool>,
    seen: Mutex<BTreeMap<usize, Seen>>,
    ended: Mutex<BTreeMap<usize, (Outcome, Duration)>>,
}

impl Deref for Course {
    type Target = Setting;
    fn deref(&self) -> &Setting {
        &self.setting
    }
}

impl std::fmt::Debug for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Course")
            .field("tasks", &self.tasks.len())
            .field("units", &self.units)
            .finish_non_exhaustive()
    }
}

/// A unit of a task: the `item`-th piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'c> {
    pub(crate) task: &'c Task,
    pub(crate) number: usize,
    pub(crate) unit: Unit,
    /// The unit's place among those of its record.
    pub(crate) place: usize,
}

impl Course {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            lost: setting
                .tasks
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            setting,
            seen: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    /// How many pieces of work there are.
    pub(crate) fn items(&self) -> u64 {
        (self.tasks.len() * self.units.len()) as u64
    }

    pub(crate) fn item(&self, number: u64) -> Item<'_> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let (task, place) = (number / self.units.len(), number % self.units.len());
        Item {
            task: &self.tasks[task],
            number: task,
            unit: self.units[place],
            place,
        }
    }

    /// The axes that records have.
    pub(crate) fn axes(&self) -> &[Axis] {
        self.header.shape.axes()
    }

    /// Has the record of this item failed already?
    pub(crate) fn is_lost(&self, item: Item<'_>) -> bool {
        self.lost[item.number].load(Ordering::Acquire)
    }

    /// A record has no result. The first reason stays.
    pub(crate) fn lose(&self, task: usize, failure: Failure) {
        if !self.lost[task].swap(true, Ordering::AcqRel) {
            self.end(task, Outcome::Failed(failure));
        }
    }

    /// What was read of a record, until it is asked for.
    pub(crate) fn note(&self, task: usize, seen: Seen) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(task, seen);
    }

    pub(crate) fn seen(&self, task: usize) -> Option<Seen> {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&task)
    }

    /// A record has come to its end, which is told.
    pub(crate) fn end(&self, task: usize, outcome: Outcome) {
        let of = &self.tasks[task];
        let done = Done {
            record: of.record.id().to_owned(),
            outcome: outcome.clone(),
        };
        let at = self.recorder.now();
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.insert(task, (outcome, at));
        drop(ended);
        (self.listener)(News::Ended {
            index: of.index,
            done,
            at,
        });
    }

    /// What became of the tasks so far, and when.
    pub(crate) fn outcomes(&self) -> BTreeMap<usize, (Outcome, Duration)> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clone()
    }
}
