//! One worker's part of a job: devices opened and stages started once, then batch after batch of records.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warploom_core::{Queue as _, QueueDesc, Registry, Slice};
use warploom_io::Header;
use warploom_io::records::Record;
use warploom_plan::{ExecutionPlan, Options, Pipeline, compile};

use crate::agenda::Agenda;
use crate::attempt::{at_once, start, taken};
use crate::course::{Course, Setting, Task};
use crate::error::RunFailure;
use crate::gathering;
use crate::input::sources;
use crate::journal::{Keeper, Line};
use crate::outcome::{News, Outcome};
use crate::recipe;
use crate::recorder::Recorder;
use crate::recording::{Trail, of_stages};
use crate::rooms::{Constants, Faces};
use crate::settings::Settings;
use crate::tasks::tasks;
use crate::unit::units;

/// Everything that a worker in another process has to know of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) pipeline: Pipeline,
    /// Where the constants' files are.
    pub(crate) folder: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) header: Header,
    pub(crate) options: Options,
    pub(crate) batch: Option<u64>,
    /// Units of all records together, by which the size of generations is chosen.
    pub(crate) items: u64,
    pub(crate) patience: Duration,
    pub(crate) check_races: bool,
    #[serde(default)]
    pub(crate) readers: Option<usize>,
    /// Where workers keep what they record of their stages, if somebody wants to know: a folder, and for
    /// one worker a file in it.
    pub(crate) record: Option<PathBuf>,
}

/// A device with its programs, ready for records.
pub(crate) struct Station {
    orders: Orders,
    registry: Registry,
    plan: Arc<ExecutionPlan>,
    constants: Constants,
    faces: Faces,
    recipe: String,
    settings: Mutex<Settings>,
    /// Were generations made smaller, so that somebody has to be told?
    is_smaller: AtomicBool,
    kept: Kept,
}

/// Who is told how its stages get on.
pub(crate) trait Pulse {
    /// A stage has finished or begun something.
    fn beats(&self);
    /// There was no room for more than so many records at once.
    fn settles(&self, records: u32);
}

/// How its stages ended before there was nothing left to do.
#[derive(Debug)]
pub(crate) enum Halt {
    /// There was no room, and generations are smaller from now on: what is left can be tried again.
    Smaller,
    /// Something that trying again does not mend.
    Failed(Box<RunFailure>),
}

/// What became of a record, by its place in the batch; and the line for the list of what is done.
pub(crate) type Ended = (usize, Outcome, Option<Line>);

/// How long a device that is probed may take.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// Takes the line of a record that is done, right before its end on the same thread.
type Kept = Arc<Mutex<Option<Line>>>;

impl Station {
    /// Compiles the pipeline for one face of a device, and opens it. `ceiling` is how many records at once
    /// devices like it are known to have room for.
    pub(crate) fn open(
        orders: Orders,
        registry: Registry,
        face: &str,
        ceiling: Option<u32>,
    ) -> Result<Self, RunFailure> {
        let pipeline = &orders.pipeline;
        let sources = sources(&orders.header, "the records", pipeline, &orders.folder)?;
        let mut options = orders.options.clone();
        options.devices = vec![face.to_owned()];
        let status = registry.status()?;
        let plan = compile(pipeline, &sources, Some(&status), &options);
        let plan = plan.map_err(RunFailure::Refused)?;
        let mut settings = Settings {
            plan: options,
            batch: orders.batch,
            patience: orders.patience,
            check_races: orders.check_races,
            readers: orders.readers,
            ..Settings::default()
        };
        if let Some(ceiling) = ceiling.filter(|_| orders.batch.is_none()) {
            let room = u64::from(ceiling).saturating_mul(units(&plan).len() as u64);
            let wanted = at_once(&plan, &settings, orders.items);
            settings.batch = (room < wanted).then_some(room);
        }
        let constants = Constants::read(&plan, &orders.folder)?;
        Ok(Self {
            recipe: recipe::fingerprint(&plan, &constants.prints, &status),
            constants,
            faces: Faces::open(&plan, &registry)?,
            plan: Arc::new(plan),
            orders,
            registry,
            settings: Mutex::new(settings),
            is_smaller: AtomicBool::new(false),
            kept: Kept::default(),
        })
    }

    /// The bytes that its stages would like to have of its card, and the least that will do.
    pub(crate) fn needs(&self) -> [u64; 2] {
        let settings = self.settings();
        let mut least = settings.clone();
        (least.batch, least.plan.depth) = (Some(1), Some(1));
        [&*settings, &least].map(|settings| taken(&self.plan, settings, self.orders.items))
    }

    /// The bytes that its device has free, if it tells.
    pub(crate) fn free(&self) -> Option<u64> {
        self.faces.only()?.device().memory().ok()?.free
    }

    /// Has every device bytes go there and back: something small that a device which was lost does not do.
    pub(crate) fn probe(&self) -> Result<(), RunFailure> {
        for device in self.faces.devices() {
            let Some(kind) = device.info().local_kind() else {
                continue;
            };
            let sent: Vec<u8> = (0..=255).collect();
            let place = Slice::whole(&device.alloc(kind, sent.len() as u64)?);
            let mut queue = device.queue(&QueueDesc::named("probe"))?;
            queue.upload(&sent, &place)?;
            let mut back = vec![0; sent.len()];
            queue.download(&place, &mut back)?;
            queue.record()?.wait(Some(PROBE_LIMIT))?;
            if back != sent {
                return Err(RunFailure::Foreign {
                    what: format!("{} gives other bytes back than it got", device.info().id),
                });
            }
        }
        Ok(())
    }

    /// What is to be written for each of these records.
    pub(crate) fn tasks(&self, records: &[Record]) -> Result<Vec<Task>, RunFailure> {
        let orders = &self.orders;
        tasks(&self.plan, records, &orders.output, &orders.header)
    }

    /// A course over these tasks, which tells of each as it ends. What is wrong with one of them is its
    /// outcome.
    pub(crate) fn course(
        &self,
        tasks: Vec<Task>,
        tell: impl Fn(Ended) + Send + Sync + 'static,
    ) -> Arc<Course> {
        let kept = Arc::clone(&self.kept);
        let listener = move |news| {
            if let News::Ended { index, done, .. } = news {
                let line = match &done.outcome {
                    Outcome::Ok { .. } => {
                        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.take()
                    }
                    _ => None,
                };
                tell((index, done.outcome, line));
            }
        };
        Arc::new(Course::new(Setting {
            units: units(&self.plan),
            header: self.orders.header.clone(),
            output: self.orders.output.clone(),
            recipe: self.recipe.clone(),
            plan: Arc::clone(&self.plan),
            recorder: Arc::new(Recorder::new(Instant::now(), false, tasks.len())),
            tasks,
            listener: Arc::new(listener),
        }))
    }

    /// Where courses go that its stages are to work through.
    pub(crate) fn agenda(&self) -> Arc<Agenda> {
        let recorder = Recorder::new(Instant::now(), self.orders.record.is_some(), 0);
        let output = self.orders.output.clone();
        let items = self.orders.items;
        Arc::new(Agenda::stream(&self.plan, recorder, output, items))
    }

    /// Keeps its stages at work until the agenda is closed or something goes wrong.
    pub(crate) fn work(&self, agenda: &Arc<Agenda>, pulse: &dyn Pulse) -> Result<(), Halt> {
        let kept = Arc::clone(&self.kept);
        let keeper: Keeper = Arc::new(move |line| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(line.clone());
            Ok(())
        });
        let devices = (&self.registry, &self.faces);
        let (mut stages, plan, batch) = loop {
            let settings = self.settings().clone();
            match start(agenda, &keeper, &self.constants, devices, &settings) {
                Ok(begun) => break begun,
                Err(failure) if failure.is_lack_of_memory() && self.shrink() => {
                    tracing::warn!(%failure, "generations are made smaller");
                    pulse.beats();
                }
                Err(failure) => {
                    agenda.close(true);
                    return Err(Halt::Failed(Box::new(failure)));
                }
            }
        };
        if self.is_smaller.swap(false, Ordering::AcqRel) {
            let records = batch / (units(&self.plan).len() as u64).max(1);
            pulse.settles(u32::try_from(records).unwrap_or(u32::MAX).max(1));
        }
        let ended = loop {
            match stages.turn() {
                // Whoever reads may be waiting for more to do.
                Ok(true) if stages.is_failing() => agenda.close(true),
                // It only comes back when a stage began or finished something.
                Ok(true) => pulse.beats(),
                Ok(false) => break Ok(()),
                Err(error) => break Err(RunFailure::Broken(error)),
            }
        };
        agenda.close(true);
        let trail = Trail::new(&plan, stages.summary(), batch);
        // What the device did is known when its queues were waited for.
        drop(stages);
        self.keep(&agenda.recorder, trail);
        ended.map_err(|failure| {
            if failure.is_lack_of_memory() && self.shrink() {
                tracing::warn!(%failure, "generations are made smaller");
                return Halt::Smaller;
            }
            Halt::Failed(Box::new(failure))
        })
    }

    /// The size of generations that somebody insists on, if it could be smaller.
    pub(crate) fn fixed_size(&self) -> Option<u32> {
        let fixed = self.orders.batch.filter(|batch| *batch > 1)?;
        Some(u32::try_from(fixed).unwrap_or(u32::MAX))
    }

    /// Keeps what its stages did, if somebody wants to know.
    fn keep(&self, recorder: &Recorder, trail: Trail) {
        let Some(path) = &self.orders.record else {
            return;
        };
        let recording = of_stages(&self.plan, recorder.take(), trail);
        // A report without it is still a report.
        if let Err(error) = gathering::keep(path, recording, recorder.now()) {
            tracing::warn!(%error, "what the stages did cannot be kept");
        }
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There was no room: the next generations are smaller, and in the end there is one at a time. False when
    /// they cannot be, or somebody insists on their size and number.
    fn shrink(&self) -> bool {
        let mut settings = self.settings();
        let wanted = at_once(&self.plan, &settings, self.orders.items);
        let is_smaller = if self.orders.batch.is_none() && wanted > 1 {
            settings.batch = Some(wanted / 2);
            true
        } else {
            self.orders.options.depth.is_none() && settings.plan.depth.replace(1) != Some(1)
        };
        // Whoever insists on a size keeps it, and need not be told.
        if is_smaller && self.orders.batch.is_none() {
            self.is_smaller.store(true, Ordering::Release);
        }
        is_smaller
    }
}
