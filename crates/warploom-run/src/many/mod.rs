//! A job on many devices: a worker process for each, every record accounted for.

mod past;
mod preview;
mod staff;
mod stream;
mod worker;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_core::{DeviceInfo, Registry, Status};
use warploom_fleet::health::Sentries;
use warploom_fleet::{
    Delivery, Fleet, FleetBuilder, FleetDevice, Outcome as Ending, Program, Record as Parcel,
    Rules, Schedule, Stopper,
};
use warploom_plan::ExecutionPlan;

use crate::attempt::requests;
use crate::ceilings::Ceilings;
use crate::course::Task;
use crate::error::RunFailure;
use crate::folder::RunFolder;
use crate::gathering::RECORDINGS;
use crate::job::{Job, done_in_time};
use crate::journal::Journal;
use crate::outcome::{Done, Failure, News, Outcome, Summary};
use crate::recipe;
use crate::recorder::Recorder;
use crate::rooms::Constants;
use crate::settings::Settings;
use crate::station::Orders;
use crate::tidings::{self, Tidings};
use crate::unit::units;
use staff::{about_devices, staff};
pub use stream::Outcomes;
use worker::Told;

/// How records get to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Split {
    /// Devices take what they can, the faster ones more.
    #[default]
    Guided,
    /// Each worker its own part, all parts equally large but for one record.
    Balanced,
    /// Each worker its own part of `ceil(records / workers)`, the last ones less or nothing.
    Ceil,
}

/// A job's workers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Crew {
    /// Cards (`gpu0`) or faces of them (`cuda:0`, `opencl:1`, `cpu:0`); a card that is named twice counts once.
    pub faces: Vec<String>,
    /// Worker processes on each; if nothing is said, as many as its memory can be leased to, and two at most.
    pub workers: Option<usize>,
    /// How records get to them.
    pub split: Split,
    /// The program that workers are; it calls [`serve`].
    pub program: Program,
    /// Who listens to what the management of devices reports, if anybody.
    pub sentries: Option<Sentries>,
}

impl Crew {
    /// Workers on each of these faces.
    pub fn new(program: Program, faces: Vec<String>) -> Self {
        Self {
            faces,
            workers: None,
            split: Split::default(),
            program,
            sentries: None,
        }
    }
}

/// Makes this process a worker of a fleet, until its coordinator says that there is nothing left.
///
/// # Errors
/// When it was not started by one, or cannot work.
pub fn serve(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<(), warploom_fleet::worker::WorkerError> {
    warploom_fleet::worker::serve::<worker::PipelineWork>(environment)
}

/// What there is to do, and the list of what is done.
struct Books {
    tasks: Vec<Task>,
    journal: Journal,
    outcomes: Vec<Outcome>,
    /// The numbers of tasks that are to be done.
    open: Vec<usize>,
    /// The fingerprint of what is computed.
    recipe: String,
}

impl Job {
    /// Runs it on several devices at once, a worker process for each.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the fleet cannot be started.
    pub fn run_on(
        &self,
        crew: &Crew,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Summary, RunFailure> {
        let begun = Instant::now();
        let chosen = self.chosen(crew, registry, settings)?;
        let Some((_, plan)) = chosen.first() else {
            return Err(nobody());
        };
        let Books {
            tasks,
            mut journal,
            mut outcomes,
            open,
            recipe,
        } = self.books((plan, &*registry.status()?), settings, begun)?;
        let labels: Vec<String> = chosen.iter().map(|(info, _)| info.id.to_string()).collect();
        let names: Vec<&str> = open.iter().map(|at| tasks[*at].record.id()).collect();
        let items = (open.len() * units(plan).len()) as u64;
        let staff = staff(crew, registry, settings, &chosen, items)?;
        let past = past::read(self.output(), &recipe, &names, settings);
        let mut about = self.about(plan, &names, about_devices(&chosen, &staff));
        about.recipe.clone_from(&recipe);
        let folder = RunFolder::begin(self.output(), about)?;
        let logs = folder.path().join("logs");
        (settings.listener)(News::Begun {
            records: (tasks.len() + self.input().incomplete.len()) as u64,
            skipped: (tasks.len() - open.len()) as u64,
            device: labels.join(" "),
        });
        let mut changes = past::told(&past, &names);
        for change in &changes {
            (settings.listener)(News::Changed(change.clone()));
        }
        let (mut error, mut interrupted) = (None, false);
        if !open.is_empty() {
            let devices = chosen.iter().zip(&staff);
            let devices: Vec<FleetDevice> = devices
                .map(|((info, plan), workers)| hired(info, plan, *workers, settings, items))
                .collect();
            let orders = self.orders(settings, items, &folder)?;
            let builder = begin(crew, registry, settings, (&recipe, &orders), &folder)?;
            let stopper = Stopper::new().map_err(|error| foreign(&error))?;
            let builder = builder.earlier(past).stopper(&stopper);
            let builder = devices.into_iter().fold(builder, FleetBuilder::device);
            let ceilings =
                Ceilings::new(settings.ceilings.as_deref(), &recipe, &self.input().header);
            let builder = with_ceilings(builder, &ceilings, &chosen, settings);
            let fleet = builder.build().map_err(|error| foreign(&error))?;
            let bodies = open.iter().map(|at| serde_json::to_vec(&tasks[*at].record));
            let parcels: Result<Vec<Parcel>, _> =
                bodies.map(|body| body.map(Parcel::new)).collect();
            let parcels = parcels.map_err(|error| RunFailure::Foreign {
                what: error.to_string(),
            })?;
            let sink = |delivery: Delivery<'_>| {
                let index = open[usize::try_from(delivery.record).unwrap_or(usize::MAX)];
                let outcome = outcome_of(&delivery, &mut journal, &logs)?;
                outcomes[index] = outcome.clone();
                (settings.listener)(News::Ended {
                    index,
                    done: Done {
                        record: tasks[index].record.id().to_owned(),
                        outcome,
                    },
                    at: begun.elapsed(),
                });
                Ok(())
            };
            let ran = heeding(&stopper, settings, || fleet.run(&parcels, sink));
            let report = match ran {
                Ok(report) => Some(report),
                Err(failure) => {
                    error = Some(Failure {
                        attempts: 0,
                        ..Failure::of(&failure.error)
                    });
                    failure.report.map(|report| *report)
                }
            };
            if let Some(report) = report {
                interrupted = report.interrupted;
                for (model, records) in &report.ceilings {
                    ceilings.keep(model, *records);
                }
                changes.extend(report.incidents.iter().map(tidings::incident));
            }
        }
        let mut summary = self.summary(plan, outcomes, begun.elapsed(), interrupted, changes);
        summary.device = labels.join(", ");
        summary.faces = labels;
        summary.error = error;
        if settings.record {
            summary.recording = Some(self.chronicle(&folder, &open, &summary, begun.elapsed()));
        }
        folder.conclude(&mut summary);
        Ok(summary)
    }

    /// Each card that was named, once, by the face that the compiler chooses, with its plan. A card that was named
    /// twice, as a card and by a face or by two of them, is the one that was named first: two crews would each lease
    /// what the other has.
    fn chosen(
        &self,
        crew: &Crew,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Vec<(DeviceInfo, ExecutionPlan)>, RunFailure> {
        let status = registry.status()?;
        let mut chosen = Vec::new();
        let mut cards = BTreeSet::new();
        for name in &crew.faces {
            let mut options = settings.plan.clone();
            options.devices = vec![name.clone()];
            let plan = self.plan(&status, &options)?;
            if !cards.insert(plan.device.name.clone()) {
                continue;
            }
            let face = plan.device.faces.first().cloned().unwrap_or_default();
            let mut faces = status.survey.devices.iter().flat_map(|card| &card.faces);
            let info = faces.find(|info| info.id.to_string() == face);
            let info = info.ok_or_else(|| RunFailure::Foreign {
                what: format!("{face} is not there"),
            })?;
            chosen.push((info.clone(), plan));
        }
        Ok(chosen)
    }

    /// What there is to do, and the list of what is done.
    fn books(
        &self,
        (plan, status): (&ExecutionPlan, &Status),
        settings: &Settings,
        begun: Instant,
    ) -> Result<Books, RunFailure> {
        let tasks = self.tasks(plan)?;
        let constants = Constants::read(plan, self.folder())?;
        let mut journal = Journal::open(self.output())?;
        self.clean(&tasks);
        let mut outcomes: Vec<Outcome> = vec![Outcome::NotStarted; tasks.len()];
        if settings.resume {
            let recorder = Arc::new(Recorder::new(begun, false, tasks.len()));
            let tasks = tasks.clone();
            let course = self.course((plan, status), tasks, &constants, settings, &recorder);
            for number in done_in_time(course, &journal, settings)? {
                outcomes[number] = Outcome::Skipped;
            }
        }
        let open: Vec<usize> = (0..tasks.len())
            .filter(|at| outcomes[*at] == Outcome::NotStarted)
            .collect();
        let names: Vec<&str> = open.iter().map(|at| tasks[*at].record.id()).collect();
        self.forget(&mut journal, &names)?;
        Ok(Books {
            tasks,
            journal,
            outcomes,
            open,
            recipe: recipe::fingerprint(plan, &constants.prints, status),
        })
    }

    /// What every worker has to know.
    fn orders(
        &self,
        settings: &Settings,
        items: u64,
        run: &RunFolder,
    ) -> Result<Vec<u8>, RunFailure> {
        let recordings = absolute(&run.path().join(RECORDINGS));
        let orders = Orders {
            pipeline: self.pipeline().clone(),
            folder: absolute(self.folder()),
            output: absolute(self.output()),
            header: self.input().header.clone(),
            options: settings.plan.clone(),
            batch: settings.batch,
            items,
            patience: settings.patience,
            check_races: settings.check_races,
            readers: settings.readers,
            record: settings.record.then_some(recordings),
        };
        let sent = serde_json::to_vec(&orders).map_err(|error| foreign(&error))?;
        let arrives: Result<Orders, _> = serde_json::from_slice(&sent);
        if !arrives.is_ok_and(|arrived| arrived.pipeline == orders.pipeline) {
            let what =
                "a pipeline with a number that is not finite, which cannot be told to workers";
            return Err(foreign(&what));
        }
        Ok(sent)
    }
}

fn nobody() -> RunFailure {
    RunFailure::Foreign {
        what: "no device was named".to_owned(),
    }
}

fn foreign(error: &dyn std::fmt::Display) -> RunFailure {
    RunFailure::Foreign {
        what: error.to_string(),
    }
}

/// A device with so many workers, and what each of them leases.
fn hired(
    info: &DeviceInfo,
    plan: &ExecutionPlan,
    workers: usize,
    settings: &Settings,
    items: u64,
) -> FleetDevice {
    let device = FleetDevice::of(info).workers(workers);
    match requests(plan, settings, items).into_iter().next() {
        Some(request) => device.lease(request),
        None => device,
    }
}

/// A fleet that notes down what it does in the folder of the run.
fn begin(
    crew: &Crew,
    registry: &Registry,
    settings: &Settings,
    (recipe, orders): (&str, &[u8]),
    run: &RunFolder,
) -> Result<FleetBuilder, RunFailure> {
    let rules = Rules {
        schedule: match crew.split {
            Split::Guided => Schedule::Guided,
            Split::Balanced => Schedule::Balanced,
            Split::Ceil => Schedule::Ceil,
        },
        silence_limit: settings.patience,
        batch_limit: settings.batch_limit,
        ..Rules::default()
    };
    let tidings = Tidings::new(Arc::clone(&settings.listener));
    let builder = Fleet::builder(crew.program.clone())
        .setup(orders)
        .plan(recipe)
        // A folder of its own for each run: which records are done is in our list.
        .folder(run.path())
        .watch(move |snapshot| tidings.hear(snapshot))
        .rules(rules)
        .desk(registry.desk()?);
    let builder = match &crew.sentries {
        Some(sentries) => builder.sentries(sentries.clone()),
        None => builder,
    };
    Ok(builder)
}

/// Begins with what earlier runs found out, wherever their results are; not where somebody insists on a size.
fn with_ceilings(
    builder: FleetBuilder,
    ceilings: &Ceilings<'_>,
    chosen: &[(DeviceInfo, ExecutionPlan)],
    settings: &Settings,
) -> FleetBuilder {
    if settings.batch.is_some() {
        return builder;
    }
    let known = chosen.iter().filter_map(|(info, _)| {
        let records = ceilings.known(&info.name)?;
        Some((info.name.clone(), records))
    });
    known.fold(builder, |builder, (model, records)| {
        tracing::info!(
            model,
            records,
            "an earlier run found out what it has room for"
        );
        builder.ceiling(model, records)
    })
}

/// Runs something that ends when the run is called off.
fn heeding<T>(stopper: &Stopper, settings: &Settings, run: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_draining = false;
            while !over.load(Ordering::Acquire) {
                if settings.stop.is_cancelled() {
                    stopper.stop();
                    return;
                }
                if settings.cancel.is_cancelled() && !is_draining {
                    stopper.drain();
                    is_draining = true;
                }
                std::thread::sleep(GLANCE);
            }
        });
        // Also when it panics, or nobody would ever see that.
        let _over = Over(&over);
        run()
    })
}

/// Says that something is over, however it ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// How often it is looked whether the run was called off.
const GLANCE: Duration = Duration::from_millis(50);

/// What became of a record; one that is done goes on the list first.
fn outcome_of(
    delivery: &Delivery<'_>,
    journal: &mut Journal,
    logs: &Path,
) -> Result<Outcome, String> {
    Ok(match delivery.outcome {
        Ending::Ok { .. } => {
            let told: Option<Told> = delivery
                .answer
                .and_then(|answer| serde_json::from_slice(answer).ok());
            let told = told.ok_or("a worker's answer makes no sense")?;
            if let Some(line) = &told.line {
                journal.add(line).map_err(|error| error.to_string())?;
            }
            Outcome::Ok { files: told.files }
        }
        Ending::Failed { reason, attempts } => {
            Outcome::Failed(tidings::failure(reason, *attempts, Some(logs)))
        }
        Ending::NotStarted { .. } => Outcome::NotStarted,
    })
}

/// Workers may be started elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
