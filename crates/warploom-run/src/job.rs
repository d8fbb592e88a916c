//! A pipeline over an input: from files to files, every record accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use warploom_core::{Registry, Status};
use warploom_io::records::RecordReader;
use warploom_plan::{ExecutionPlan, Options, Pipeline, compile};
use warploom_sched::RunError;

use crate::attempt::{at_once, attempt, taken};
use crate::course::{Course, Setting, Task};
use crate::error::RunFailure;
use crate::folder::{About, AboutDevice, Origin, RunFolder};
use crate::input::Input;
use crate::journal::{Journal, Keeper, Line};
use crate::loads::loads;
use crate::lookout::{Signs, patiently};
use crate::outcome::{Done, Failure, News, Outcome, Summary, tally};
use crate::reading;
use crate::recipe;
use crate::recorder::Recorder;
use crate::recording::{Recorded, Trail};
use crate::rooms::Constants;
use crate::settings::Settings;
use crate::tasks::tasks;
use crate::unit::units;

/// A pipeline, what it is to work on, and where the results go.
#[derive(Debug)]
pub struct Job {
    pipeline: Pipeline,
    /// The pipeline as it was read, where it was.
    text: Option<String>,
    /// What was asked for, for whoever resumes it.
    origin: Option<Origin>,
    /// Where the constants' files are.
    folder: PathBuf,
    input: Input,
    output: PathBuf,
}

/// What a run would do.
#[derive(Debug)]
#[non_exhaustive]
pub struct Preview {
    /// The plan.
    pub plan: ExecutionPlan,
    /// The records, in order, and the files that each would give.
    pub records: Vec<(String, Vec<PathBuf>)>,
    /// How many of them an earlier run has done.
    pub skipped: u64,
    /// Images that go through the stages together.
    pub batch: u64,
    /// Bytes that the run would take of its card.
    pub bytes: u64,
    /// Workers on each of several devices; none where one process does the work.
    pub crew: Vec<Hire>,
}

/// Workers on one of several devices.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Hire {
    /// The device: `cuda:0`.
    pub device: String,
    /// What it is called.
    pub name: String,
    /// Worker processes on it.
    pub workers: usize,
    /// Images that go through the stages of each together.
    pub batch: u64,
    /// Bytes that each would take of the device.
    pub bytes: u64,
}

impl Job {
    /// A job. The files of the pipeline's constants are below `folder`.
    pub fn new(
        pipeline: Pipeline,
        folder: impl Into<PathBuf>,
        input: Input,
        output: impl Into<PathBuf>,
    ) -> Self {
        Self {
            pipeline,
            text: None,
            origin: None,
            folder: folder.into(),
            input,
            output: output.into(),
        }
    }

    /// The same with the text of the pipeline's file, for whoever wants to show it.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        let text = Some(text.into());
        Self { text, ..self }
    }

    /// The same, noting down which file and input it is of, so that whoever resumes the run need not say it.
    #[must_use]
    pub fn with_origin(self, file: impl Into<PathBuf>, input: impl Into<String>) -> Self {
        let origin = Some(Origin::new(file.into(), input.into()));
        Self { origin, ..self }
    }

    /// The pipeline's name.
    pub fn name(&self) -> &str {
        &self.pipeline.name.value
    }

    /// The input.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Compiles it for these devices.
    ///
    /// # Errors
    /// When the pipeline is refused, or a constant cannot be read.
    pub fn plan(&self, status: &Status, options: &Options) -> Result<ExecutionPlan, RunFailure> {
        let sources = self.input.sources(&self.pipeline, &self.folder)?;
        compile(&self.pipeline, &sources, Some(status), options).map_err(RunFailure::Refused)
    }

    /// What a run would do, without doing it.
    ///
    /// # Errors
    /// When it would be refused.
    pub fn preview(&self, registry: &Registry, settings: &Settings) -> Result<Preview, RunFailure> {
        let status = registry.status()?;
        let plan = self.plan(&status, &busy(registry, settings))?;
        self.preview_of(plan, &status, settings)
    }

    /// What a run by this plan would do.
    pub(crate) fn preview_of(
        &self,
        plan: ExecutionPlan,
        status: &Status,
        settings: &Settings,
    ) -> Result<Preview, RunFailure> {
        let tasks = self.tasks(&plan)?;
        let mut skipped = 0;
        if settings.resume && self.output.exists() {
            let journal = Journal::open(&self.output)?;
            let constants = Constants::read(&plan, &self.folder)?;
            let recorder = Recorder::new(Instant::now(), false, tasks.len());
            let recorder = Arc::new(recorder);
            let tasks = tasks.clone();
            let course = self.course((&plan, status), tasks, &constants, settings, &recorder);
            skipped = done_in_time(course, &journal, settings)?.len() as u64;
        }
        let items = (tasks.len() * units(&plan).len()) as u64;
        let records = tasks.into_iter().map(|task| {
            let files = task.files.into_iter().flatten().collect();
            (task.record.id().to_owned(), files)
        });
        Ok(Preview {
            records: records.collect(),
            batch: at_once(&plan, settings, items),
            bytes: taken(&plan, settings, items),
            plan,
            skipped,
            crew: Vec::new(),
        })
    }

    pub(crate) fn tasks(&self, plan: &ExecutionPlan) -> Result<Vec<Task>, RunFailure> {
        tasks(plan, &self.input.records, &self.output, &self.input.header)
    }

    pub(crate) fn course(
        &self,
        (plan, status): (&ExecutionPlan, &Status),
        tasks: Vec<Task>,
        constants: &Constants,
        settings: &Settings,
        recorder: &Arc<Recorder>,
    ) -> Course {
        Course::new(Setting {
            units: units(plan),
            tasks,
            header: self.input.header.clone(),
            output: self.output.clone(),
            recipe: recipe::fingerprint(plan, &constants.prints, status),
            plan: Arc::new(plan.clone()),
            recorder: Arc::clone(recorder),
            listener: Arc::clone(&settings.listener),
        })
    }

    /// Runs it. Whatever happens to records is in the summary, also why it ended before all of them had an
    /// outcome; an error is a run that was not begun.
    ///
    /// # Errors
    /// When the pipeline is refused, or files that all records need are not there.
    pub fn run(&self, registry: &Registry, settings: &Settings) -> Result<Summary, RunFailure> {
        let mut options = busy(registry, settings);
        let status = registry.status()?;
        let mut plan = self.plan(&status, &options)?;
        let tasks = self.tasks(&plan)?;
        let constants = Constants::read(&plan, &self.folder)?;
        let mut journal = Journal::open(&self.output)?;
        self.clean(&tasks);
        let begun = Instant::now();
        let mut outcomes: Vec<Outcome> = vec![Outcome::NotStarted; tasks.len()];
        let recorder = Arc::new(Recorder::new(begun, settings.record, tasks.len()));
        let mut recording = Recorded::new(self, &plan, settings.record);
        if settings.resume {
            let tasks = tasks.clone();
            let course = self.course((&plan, &status), tasks, &constants, settings, &recorder);
            for number in done_in_time(course, &journal, settings)? {
                outcomes[number] = Outcome::Skipped;
            }
        }
        let left = |outcomes: &[Outcome]| -> Vec<Task> {
            let all = tasks.iter().zip(outcomes);
            let open = all.filter(|(_, outcome)| **outcome == Outcome::NotStarted);
            open.map(|(task, _)| task.clone()).collect()
        };
        if settings.cancel.is_cancelled() {
            // Nothing was begun, and what is there stays.
            return Err(RunError::Cancelled { delivered: 0 }.into());
        }
        let open = left(&outcomes);
        let names: Vec<&str> = open.iter().map(|task| task.record.id()).collect();
        self.forget(&mut journal, &names)?;
        let folder = RunFolder::begin(&self.output, self.about_one(&plan, &names))?;
        let settings = &folder.noting(settings);
        let journal = Mutex::new(journal);
        let keeper: Keeper = Arc::new(move |line| {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.add(line)
        });
        (settings.listener)(News::Begun {
            records: (tasks.len() + self.input.incomplete.len()) as u64,
            skipped: (tasks.len() - open.len()) as u64,
            device: plan.device.name.clone(),
        });
        let mut changes = Vec::new();
        let mut times = BTreeMap::new();
        let mut races_checked = 0;
        let (mut error, mut interrupted) = (None, false);
        loop {
            let open = left(&outcomes);
            if open.is_empty() {
                break;
            }
            let course = self.course((&plan, &status), open, &constants, settings, &recorder);
            let course = Arc::new(course);
            let (ended, trail) = attempt(&course, &keeper, &constants, registry, settings);
            races_checked += trail.as_ref().map_or(0, Trail::races_checked);
            recording.add(&course, recorder.take(), trail);
            for (task, (outcome, at)) in course.outcomes() {
                let index = course.tasks[task].index;
                outcomes[index] = outcome;
                times.insert(index, at);
            }
            let failure = match ended {
                Ok(()) => break,
                Err(failure) if failure.is_call_off() => {
                    interrupted = true;
                    break;
                }
                Err(failure) => failure,
            };
            let next = self.instead(&plan, &mut options, &status, settings, &failure);
            let Some((next, change)) = next else {
                error = Some(Failure {
                    attempts: 0,
                    reason: standing(&plan, &status, settings, &failure),
                    ..Failure::of(&failure)
                });
                break;
            };
            recording.mark(recorder.now(), &change);
            (settings.listener)(News::Changed(change.clone()));
            changes.push(change);
            plan = next;
        }
        let took = begun.elapsed();
        let mut summary = self.summary(&plan, outcomes, took, interrupted, changes);
        summary.races_checked = Some(races_checked);
        summary.error = error;
        summary.recording = recording.finish(&summary, took, &times);
        folder.conclude(&mut summary);
        Ok(summary)
    }

    /// Takes records off the list, with their results, that are to be done, and those that cannot be.
    pub(crate) fn forget(&self, journal: &mut Journal, open: &[&str]) -> Result<(), RunFailure> {
        let lacking = self.input.incomplete.iter();
        let lacking = lacking.map(|lacking| lacking.id.as_str());
        let names: Vec<&str> = open.iter().copied().chain(lacking).collect();
        journal.forget(&names).map_err(|error| RunFailure::Output {
            path: self.output.clone(),
            what: format!("its list of results cannot be changed: {error}"),
        })
    }

    /// What a run that begins now is of.
    pub(crate) fn about(
        &self,
        plan: &ExecutionPlan,
        open: &[&str],
        devices: Vec<AboutDevice>,
    ) -> About {
        About {
            pipeline: plan.pipeline.clone(),
            plan: plan.hash.clone(),
            devices,
            open: open.iter().map(|name| (*name).to_owned()).collect(),
            skipped: (self.input.records.len() - open.len()) as u64,
            lacking: self.lacking().collect(),
            origin: self.origin.clone(),
            ..About::default()
        }
    }

    /// The same for a run in this process alone.
    fn about_one(&self, plan: &ExecutionPlan, open: &[&str]) -> About {
        let device = AboutDevice {
            label: plan.device.name.clone(),
            name: plan.device.label.clone(),
            id: plan.device.faces.join(" "),
            workers: 0,
        };
        self.about(plan, open, vec![device])
    }

    /// Records that cannot be begun, because a part of each is missing.
    fn lacking(&self) -> impl Iterator<Item = Done> + '_ {
        self.input.incomplete.iter().map(|lacking| Done {
            record: lacking.id.clone(),
            outcome: Outcome::Failed(Failure {
                attempts: 0,
                ..Failure::new(format!("it {}", lacking.words()))
            }),
        })
    }

    /// Removes what killed runs left half written, where this one will write.
    pub(crate) fn clean(&self, tasks: &[Task]) {
        let files = tasks.iter().flat_map(|task| task.files.iter().flatten());
        let folders = files.filter_map(|file| Some(self.output.join(file.parent()?)));
        let folders: BTreeSet<PathBuf> = folders.collect();
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            // What cannot be removed harms nobody: it has no name that is read.
            if let Err(error) = warploom_io::remove_leftovers(folder) {
                tracing::warn!(%error, "leftovers stay");
            }
        }
    }

    pub(crate) fn summary(
        &self,
        plan: &ExecutionPlan,
        outcomes: Vec<Outcome>,
        took: Duration,
        interrupted: bool,
        changes: Vec<String>,
    ) -> Summary {
        let worked = outcomes
            .iter()
            .filter(|one| matches!(one, Outcome::Ok { .. }));
        let pixels = worked.count() as f64 * self.input.header.shape.elements() as f64;
        let seconds = took.as_secs_f64();
        let named = self.input.records.iter().zip(outcomes);
        let mut records: Vec<Done> = named
            .map(|(record, outcome)| Done {
                record: record.id().to_owned(),
                outcome,
            })
            .collect();
        records.extend(self.lacking());
        Summary {
            pipeline: plan.pipeline.clone(),
            plan: plan.hash.clone(),
            device: plan.device.name.clone(),
            faces: plan.device.faces.clone(),
            tally: tally(records.iter().map(|done| &done.outcome)),
            interrupted,
            seconds,
            mpix_per_second: pixels / 1e6 / seconds.max(1e-9),
            error: None,
            changes,
            races_checked: None,
            run: PathBuf::new(),
            records,
            recording: None,
        }
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The text of the pipeline's file, if it was given.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Where the files of the pipeline's constants are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where results go.
    pub fn output(&self) -> &Path {
        &self.output
    }
}

/// Why a run ends with what is left undone.
fn standing(
    plan: &ExecutionPlan,
    status: &Status,
    settings: &Settings,
    failure: &RunFailure,
) -> String {
    let loose = recipe::loose(plan, status);
    if settings.failover && failure.is_of_device() && !loose.is_empty() {
        let loose = loose.join(", ");
        return format!(
            "{failure}; no other device goes on, because {loose} does not promise the same bits as others"
        );
    }
    failure.to_string()
}

/// The tasks of which the results are there already, made of the same pixels by the same work. Given up when a
/// file says nothing for too long, or when the run is called off.
pub(crate) fn done_in_time(
    course: Course,
    journal: &Journal,
    settings: &Settings,
) -> Result<Vec<usize>, RunFailure> {
    let claimed = claimed(&course, journal);
    patiently(settings.patience, &settings.cancel, move |signs| {
        confirmed(&course, &claimed, signs)
    })
}

/// The tasks that the list says are done.
fn claimed(course: &Course, journal: &Journal) -> Vec<(usize, Line)> {
    let tasks = course.tasks.iter().enumerate();
    let lines = tasks.filter_map(|(number, task)| {
        let line = journal.line(task.record.id())?;
        (line.recipe == course.recipe).then(|| (number, line.clone()))
    });
    lines.collect()
}

/// Those of which that is true.
fn confirmed(course: &Course, claimed: &[(usize, Line)], signs: &Signs<'_>) -> Vec<usize> {
    let mut reader = RecordReader::new();
    let is_so = |(number, line): &&(usize, Line)| {
        let record = &course.tasks[*number].record;
        signs.at(record.path());
        if !line.is_there(&course.output) {
            return false;
        }
        let is_same = line.stamp != "unknown" && line.stamp == reading::stamp(record);
        is_same || reading::content(course, &mut reader, *number).as_ref() == Some(&line.content)
    };
    let confirmed = claimed.iter().filter(is_so);
    confirmed.map(|(number, _)| *number).collect()
}

/// What the compiler is told, and how busy cards are unless that was said.
fn busy(registry: &Registry, settings: &Settings) -> Options {
    let mut options = settings.plan.clone();
    if options.loads.is_empty() {
        options.loads = loads(registry);
    }
    options
}
