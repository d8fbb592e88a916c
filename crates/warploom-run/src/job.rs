//! A pipeline over an input: from files to files, every record accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use warploom_core::{CancelToken, LeaseRequest, Registry, Status};
use warploom_io::records::{OutputNames, RecordReader};
use warploom_plan::pipeline::Math;
use warploom_plan::{ExecutionPlan, Options, Pipeline, compile};
use warploom_sched::{Pipeline as Stages, RunError, RunOptions, StageError, Threads};

use crate::content::Gathered;
use crate::course::{Course, Listener, Setting, Task};
use crate::error::RunFailure;
use crate::input::Input;
use crate::journal::Journal;
use crate::outcome::{Done, Failure, News, Outcome, Summary, tally};
use crate::reading;
use crate::recipe;
use crate::rooms::Constants;
use crate::stages::{Parts, Schedule, Wishes};
use crate::unit::units;

/// How a job is run.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What the compiler is told: devices, budget, depth.
    pub plan: Options,
    /// Units of a generation; small ones go several at a time if nothing is said.
    pub batch: Option<u64>,
    /// Leave out records that an earlier run has done.
    pub resume: bool,
    /// Go on with another device when one is lost, where the results are the same bits.
    pub failover: bool,
    /// The longest that nothing may happen.
    pub patience: Duration,
    /// The longest to wait for a device that others use.
    pub lease: Duration,
    /// Look at every use of every slot.
    pub check_races: bool,
    /// What calls it off.
    pub cancel: CancelToken,
    /// Who wants to know how it goes on.
    pub listener: Listener,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("plan", &self.plan)
            .field("batch", &self.batch)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan: Options::default(),
            batch: None,
            resume: false,
            failover: true,
            patience: Duration::from_mins(10),
            lease: Duration::from_hours(24),
            check_races: cfg!(debug_assertions),
            cancel: CancelToken::new(),
            listener: Arc::new(|_| {}),
        }
    }
}

/// A pipeline, what it is to work on, and where the results go.
#[derive(Debug)]
pub struct Job {
    pipeline: Pipeline,
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
            folder: folder.into(),
            input,
            output: output.into(),
        }
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
        let plan = self.plan(&*registry.status()?, &settings.plan)?;
        let tasks = self.tasks(&plan)?;
        let mut skipped = 0;
        if settings.resume && self.output.exists() {
            let journal = Journal::open(&self.output)?;
            let constants = Constants::read(&plan, &self.folder)?;
            let course = self.course(&plan, tasks.clone(), &constants, settings, Instant::now());
            skipped = done_before(&course, &journal).len() as u64;
        }
        let records = tasks.into_iter().map(|task| {
            let files = task.files.into_iter().flatten().collect();
            (task.record.id().to_owned(), files)
        });
        Ok(Preview {
            records: records.collect(),
            plan,
            skipped,
        })
    }

    /// Every record with the names of its files, which are checked: each has a place of its own, and
    /// its format can hold it.
    fn tasks(&self, plan: &ExecutionPlan) -> Result<Vec<Task>, RunFailure> {
        let units = units(plan);
        let planes = usize::try_from(plan.record.planes.max(1)).unwrap_or(usize::MAX);
        let runs: Vec<_> = units.iter().step_by(planes).copied().collect();
        let mut names: Vec<Vec<OutputNames>> = Vec::new();
        for run in &runs {
            let variant = &plan.variants[run.variant];
            let mut list = Vec::new();
            for output in &variant.outputs {
                let fallback = format!("{{record}}-{}.npy", output.of);
                list.push(OutputNames::new(
                    output.file.as_deref().unwrap_or(&fallback),
                )?);
            }
            names.push(list);
        }
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        let mut tasks = Vec::new();
        for (index, record) in self.input.records.iter().enumerate() {
            let mut files = Vec::new();
            for (run, names) in runs.iter().zip(&names) {
                let channel = run.channel.and_then(|at| plan.record.channels.get(at));
                let words: Vec<(&str, &str)> = channel
                    .iter()
                    .map(|name| ("channel", name.as_str()))
                    .collect();
                let mut list = Vec::new();
                for name in names {
                    let path = name.path_with(record, &words)?;
                    let key = path.to_string_lossy().to_lowercase();
                    if let Some(other) = taken.insert(key, record.id().to_owned()) {
                        return Err(RunFailure::Output {
                            path: self.output.clone(),
                            what: format!(
                                "{} would hold results of both `{other}` and `{}`",
                                path.display(),
                                record.id()
                            ),
                        });
                    }
                    list.push(path);
                }
                files.push(list);
            }
            tasks.push(Task {
                index,
                record: record.clone(),
                files,
            });
        }
        // In a folder that is there already, or the question would be about folders.
        let mut there = self.output.ancestors().filter(|folder| folder.is_dir());
        let there = there.next().unwrap_or(Path::new("."));
        if let Some(task) = tasks.first() {
            for (run, files) in runs.iter().zip(&task.files) {
                let variant = &plan.variants[run.variant];
                for (output, file) in variant.outputs.iter().zip(files) {
                    if let Some(value) = variant.value(&output.value) {
                        let spacing = self.input.header.spacing;
                        let gathered = Gathered::new(value, plan.record.planes, spacing);
                        let name = file.file_name().unwrap_or_default();
                        gathered.check(&there.join(name))?;
                    }
                }
            }
        }
        Ok(tasks)
    }

    fn course(
        &self,
        plan: &ExecutionPlan,
        tasks: Vec<Task>,
        constants: &Constants,
        settings: &Settings,
        begun: Instant,
    ) -> Course {
        Course::new(Setting {
            units: units(plan),
            tasks,
            header: self.input.header.clone(),
            output: self.output.clone(),
            recipe: recipe::fingerprint(plan, &constants.prints),
            plan: Arc::new(plan.clone()),
            begun,
            listener: Arc::clone(&settings.listener),
        })
    }

    /// Runs it. Whatever happens to single records is in the summary; an error is a run that could
    /// not be begun.
    ///
    /// # Errors
    /// When the pipeline is refused, or devices or files that all records need are not there.
    pub fn run(&self, registry: &Registry, settings: &Settings) -> Result<Summary, RunFailure> {
        let mut options = settings.plan.clone();
        let status = registry.status()?;
        let mut plan = self.plan(&status, &options)?;
        let tasks = self.tasks(&plan)?;
        let constants = Constants::read(&plan, &self.folder)?;
        let mut journal = Journal::open(&self.output)?;
        self.clean(&tasks);
        let begun = Instant::now();
        let mut outcomes: Vec<Outcome> = vec![Outcome::NotStarted; tasks.len()];
        let course = self.course(&plan, tasks.clone(), &constants, settings, begun);
        if settings.resume {
            for number in done_before(&course, &journal) {
                outcomes[number] = Outcome::Skipped;
            }
        }
        let left = |outcomes: &[Outcome]| -> Vec<Task> {
            let all = tasks.iter().zip(outcomes);
            let open = all.filter(|(_, outcome)| **outcome == Outcome::NotStarted);
            open.map(|(task, _)| task.clone()).collect()
        };
        let open = left(&outcomes);
        let names: Vec<&str> = open.iter().map(|task| task.record.id()).collect();
        journal.forget(&names).map_err(|error| RunFailure::Output {
            path: self.output.clone(),
            what: format!("its list of results cannot be changed: {error}"),
        })?;
        let journal = Arc::new(Mutex::new(journal));
        (settings.listener)(News::Begun {
            records: (tasks.len() + self.input.incomplete.len()) as u64,
            skipped: (tasks.len() - open.len()) as u64,
            device: plan.device.name.clone(),
        });
        let mut changes = Vec::new();
        let mut interrupted = false;
        loop {
            let open = left(&outcomes);
            if open.is_empty() {
                break;
            }
            let course = self.course(&plan, open, &constants, settings, begun);
            let course = Arc::new(course);
            let ended = attempt(&course, &journal, &constants, registry, settings);
            for (task, outcome) in course.outcomes() {
                outcomes[course.tasks[task].index] = outcome;
            }
            let failure = match ended {
                Ok(()) => break,
                Err(RunFailure::Broken(RunError::Cancelled { .. })) => {
                    interrupted = true;
                    break;
                }
                Err(failure) => failure,
            };
            let next = self.instead(&plan, &mut options, &status, settings, &failure);
            let Some((next, change)) = next else {
                if outcomes
                    .iter()
                    .all(|outcome| matches!(outcome, Outcome::NotStarted))
                {
                    return Err(failure);
                }
                changes.push(failure.to_string());
                break;
            };
            (settings.listener)(News::Changed(change.clone()));
            changes.push(change);
            plan = next;
        }
        Ok(self.summary(&plan, outcomes, begun.elapsed(), interrupted, changes))
    }

    /// Removes what killed runs left half written, where this one will write.
    fn clean(&self, tasks: &[Task]) {
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

    /// Another plan for what is left, after a device failed.
    fn instead(
        &self,
        plan: &ExecutionPlan,
        options: &mut Options,
        status: &Status,
        settings: &Settings,
        failure: &RunFailure,
    ) -> Option<(ExecutionPlan, String)> {
        let is_device = match failure {
            RunFailure::Device(_)
            | RunFailure::Registry(_)
            | RunFailure::Broken(RunError::Start { .. } | RunError::Timeout { .. }) => true,
            RunFailure::Broken(RunError::Stage { error, .. }) => {
                matches!(**error, StageError::Device(_))
            }
            _ => false,
        };
        if !is_device || !settings.failover || plan.math != Math::Strict {
            return None;
        }
        let used: Vec<&String> = plan.device.faces.iter().collect();
        let allowed = |name: &str, card: &str| {
            options.devices.is_empty()
                || options
                    .devices
                    .iter()
                    .any(|known| known == name || known == card)
        };
        let cards = status.survey.devices.iter();
        let faces = cards.flat_map(|card| card.faces.iter().map(move |face| (face, &card.name)));
        let rest: Vec<String> = faces
            .map(|(face, card)| (face.id.to_string(), card))
            .filter(|(face, card)| !used.contains(&face) && allowed(face, card))
            .map(|(face, _)| face)
            .collect();
        if rest.is_empty() {
            return None;
        }
        options.devices = rest;
        let next = self.plan(status, options).ok()?;
        let change = format!(
            "{} was given up ({failure}); {} goes on",
            plan.device.faces.join(", "),
            next.device.faces.join(", ")
        );
        Some((next, change))
    }

    fn summary(
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
        records.extend(self.input.incomplete.iter().map(|lacking| Done {
            record: lacking.id.clone(),
            outcome: Outcome::Failed(Failure::new(format!("it {}", lacking.words()))),
        }));
        Summary {
            pipeline: plan.pipeline.clone(),
            plan: plan.hash.clone(),
            device: plan.device.name.clone(),
            faces: plan.device.faces.clone(),
            tally: tally(records.iter().map(|done| &done.outcome)),
            interrupted,
            seconds,
            mpix_per_second: pixels / 1e6 / seconds.max(1e-9),
            changes,
            records,
        }
    }

    /// Where results go.
    pub fn output(&self) -> &Path {
        &self.output
    }
}

/// Works on what is left, on one plan's devices.
fn attempt(
    course: &Arc<Course>,
    journal: &Arc<Mutex<Journal>>,
    constants: &Constants,
    registry: &Registry,
    settings: &Settings,
) -> Result<(), RunFailure> {
    let plan = &course.plan;
    let cards = std::iter::once(&plan.device).chain(&plan.others);
    let mut leases = Vec::new();
    for card in cards {
        let pools = plan.memory.pools.iter();
        let own = pools.filter(|pool| card.faces.contains(&pool.device));
        let bytes = own.map(|pool| pool.total).sum();
        let request = LeaseRequest::new(1, bytes)
            .on([card.name.as_str()])
            .within(settings.lease)
            .cancelled_by(&settings.cancel)
            .label(&plan.pipeline);
        leases.push(registry.lease(&request)?);
    }
    let wishes = Wishes {
        depth: settings.plan.depth,
        batch: settings.batch,
    };
    let parts = Parts {
        course,
        journal,
        constants,
        registry,
        wishes: &wishes,
    };
    let Schedule {
        plan,
        payloads,
        device,
        batch,
    } = parts.schedule()?;
    tracing::debug!(schedule = %plan.explanation(), "stages");
    let options = RunOptions::of(course.items(), batch)
        .with_patience(settings.patience)
        .with_race_check(settings.check_races)
        .cancelled_by(&settings.cancel);
    let mut stages = Stages::start(&plan, &device, payloads, Threads::new(), options)?;
    stages.run()?;
    Ok(())
}

/// The tasks of which the results are there already, made of the same pixels by the same work.
fn done_before(course: &Course, journal: &Journal) -> Vec<usize> {
    let mut reader = RecordReader::new();
    let mut done = Vec::new();
    for (number, task) in course.tasks.iter().enumerate() {
        let Some(line) = journal.line(task.record.id()) else {
            continue;
        };
        if line.recipe != course.recipe || !line.is_there(&course.output) {
            continue;
        }
        let is_same = line.stamp != "unknown" && line.stamp == reading::stamp(&task.record);
        if is_same || reading::content(course, &mut reader, number).as_ref() == Some(&line.content)
        {
            done.push(number);
        }
    }
    done
}
