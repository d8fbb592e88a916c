//! A job on many devices: a worker process for each, every record accounted for.

mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_core::{BackendId, DeskDevice, DeviceInfo, Registry};
use warploom_fleet::{
    Delivery, Fleet, FleetBuilder, FleetDevice, Outcome as Ending, Program, Record as Parcel,
    Rules, Schedule, Stopper,
};
use warploom_plan::ExecutionPlan;

use crate::attempt::{requests, taken};
use crate::course::Task;
use crate::error::RunFailure;
use crate::folder::{AboutDevice, RunFolder};
use crate::gathering::RECORDINGS;
use crate::job::{Job, done_before};
use crate::journal::Journal;
use crate::outcome::{Done, News, Outcome, Summary};
use crate::recorder::Recorder;
use crate::rooms::Constants;
use crate::settings::Settings;
use crate::station::Orders;
use crate::tidings::{self, Tidings};
use crate::unit::units;
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
    /// The faces of devices: `cuda:0`, `opencl:1`, `cpu:0`.
    pub faces: Vec<String>,
    /// Worker processes on each; if nothing is said, as many as its memory can be leased to, and two at most.
    pub workers: Option<usize>,
    /// How records get to them.
    pub split: Split,
    /// The program that workers are; it calls [`serve`].
    pub program: Program,
}

impl Crew {
    /// Workers on each of these faces.
    pub fn new(program: Program, faces: Vec<String>) -> Self {
        Self {
            faces,
            workers: None,
            split: Split::default(),
            program,
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
            return Err(RunFailure::Foreign {
                what: "no device was named".to_owned(),
            });
        };
        let Books {
            tasks,
            mut journal,
            mut outcomes,
            open,
        } = self.books(plan, settings, begun)?;
        let labels: Vec<String> = chosen.iter().map(|(info, _)| info.id.to_string()).collect();
        let names: Vec<&str> = open.iter().map(|at| tasks[*at].record.id()).collect();
        let items = (open.len() * units(plan).len()) as u64;
        let staff = staff(crew, registry, settings, &chosen, items)?;
        let about = self.about(plan, &names, about_devices(&chosen, &staff));
        let folder = RunFolder::begin(self.output(), about)?;
        let logs = folder.path().join("logs");
        (settings.listener)(News::Begun {
            records: (tasks.len() + self.input().incomplete.len()) as u64,
            skipped: (tasks.len() - open.len()) as u64,
            device: labels.join(" "),
        });
        let mut changes = Vec::new();
        let mut interrupted = false;
        if !open.is_empty() {
            let devices = chosen.iter().zip(&staff);
            let devices: Vec<FleetDevice> = devices
                .map(|((info, plan), workers)| hired(info, plan, *workers, settings, items))
                .collect();
            let hash = &plan.hash;
            let orders = self.orders(settings, items, &folder)?;
            let fleet = begin(crew, registry, settings, (hash, &orders), devices, &folder)?;
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
            let (stopper, fleet) = fleet;
            let over = AtomicBool::new(false);
            let ran = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Acquire) {
                        if settings.cancel.is_cancelled() {
                            stopper.drain();
                            return;
                        }
                        std::thread::sleep(GLANCE);
                    }
                });
                let ran = fleet.run(&parcels, sink);
                over.store(true, Ordering::Release);
                ran
            });
            let report = match ran {
                Ok(report) => Some(report),
                Err(failure) => {
                    changes.push(failure.error.to_string());
                    failure.report.map(|report| *report)
                }
            };
            if let Some(report) = report {
                interrupted = report.interrupted;
                changes.extend(report.incidents.iter().map(tidings::incident));
            }
        }
        let mut summary = self.summary(plan, outcomes, begun.elapsed(), interrupted, changes);
        summary.device = labels.join(", ");
        summary.faces = labels;
        if settings.record {
            summary.recording = Some(self.chronicle(&folder, &open, &summary, begun.elapsed()));
        }
        folder.conclude(&mut summary);
        Ok(summary)
    }

    /// Each device that was named, by the face that the compiler chooses, with its plan.
    fn chosen(
        &self,
        crew: &Crew,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Vec<(DeviceInfo, ExecutionPlan)>, RunFailure> {
        let status = registry.status()?;
        let mut chosen = Vec::new();
        for name in &crew.faces {
            let mut options = settings.plan.clone();
            options.devices = vec![name.clone()];
            let plan = self.plan(&status, &options)?;
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
        plan: &ExecutionPlan,
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
            let course = self.course(plan, tasks.clone(), &constants, settings, &recorder);
            for number in done_before(&course, &journal) {
                outcomes[number] = Outcome::Skipped;
            }
        }
        let open: Vec<usize> = (0..tasks.len())
            .filter(|at| outcomes[*at] == Outcome::NotStarted)
            .collect();
        let names: Vec<&str> = open.iter().map(|at| tasks[*at].record.id()).collect();
        journal.forget(&names).map_err(|error| RunFailure::Output {
            path: self.output().to_owned(),
            what: format!("its list of results cannot be changed: {error}"),
        })?;
        Ok(Books {
            tasks,
            journal,
            outcomes,
            open,
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
            pipeline: self
                .text()
                .ok_or_else(|| foreign(&"a pipeline without a file"))?
                .to_owned(),
            folder: absolute(self.folder()),
            output: absolute(self.output()),
            header: self.input().header.clone(),
            options: settings.plan.clone(),
            batch: settings.batch,
            items,
            patience: settings.patience,
            check_races: settings.check_races,
            record: settings.record.then_some(recordings),
        };
        serde_json::to_vec(&orders).map_err(|error| foreign(&error))
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

/// A fleet that notes down what it does in the folder of the run, and what ends it.
fn begin(
    crew: &Crew,
    registry: &Registry,
    settings: &Settings,
    (plan, orders): (&str, &[u8]),
    devices: Vec<FleetDevice>,
    run: &RunFolder,
) -> Result<(Stopper, Fleet), RunFailure> {
    let stopper = Stopper::new().map_err(|error| foreign(&error))?;
    let rules = Rules {
        schedule: match crew.split {
            Split::Guided => Schedule::Guided,
            Split::Balanced => Schedule::Balanced,
            Split::Ceil => Schedule::Ceil,
        },
        silence_limit: settings.patience,
        ..Rules::default()
    };
    let tidings = Tidings::new(Arc::clone(&settings.listener));
    let builder = Fleet::builder(crew.program.clone())
        .setup(orders)
        .plan(plan)
        // A folder of its own for each run: which records are done is in our list.
        .folder(run.path())
        .watch(move |snapshot| tidings.hear(snapshot))
        .rules(rules)
        .desk(registry.desk()?)
        .stopper(&stopper);
    let builder = devices.into_iter().fold(builder, FleetBuilder::device);
    let fleet = builder.build().map_err(|error| foreign(&error))?;
    Ok((stopper, fleet))
}

/// How many workers each device gets.
fn staff(
    crew: &Crew,
    registry: &Registry,
    settings: &Settings,
    chosen: &[(DeviceInfo, ExecutionPlan)],
    items: u64,
) -> Result<Vec<usize>, RunFailure> {
    let desk = registry.desk()?;
    let each = chosen.iter().map(|(info, plan)| {
        let mut lent = desk.devices().iter();
        let lent = lent.find(|one| one.name == plan.device.name);
        let bytes = taken(plan, settings, items);
        let fitting = lent.map_or(1, |one| fitting(info, one, bytes));
        crew.workers.unwrap_or(fitting)
    });
    Ok(each.collect())
}

fn about_devices(chosen: &[(DeviceInfo, ExecutionPlan)], staff: &[usize]) -> Vec<AboutDevice> {
    let devices = chosen.iter().zip(staff);
    let devices = devices.map(|((info, _), workers)| AboutDevice {
        label: info.id.to_string(),
        name: info.name.clone(),
        id: info.id.to_string(),
        workers: u32::try_from(*workers).unwrap_or(u32::MAX),
    });
    devices.collect()
}

/// How many workers a device is good for: while one is at the end of its stages another fills the gap, and
/// more than two would only take memory. The processor, also where it plays a GPU, is at work with all its
/// cores for one.
fn fitting(info: &DeviceInfo, lent: &DeskDevice, bytes: u64) -> usize {
    const MOST: u64 = 2;
    if info.id.backend == BackendId::CPU || lent.only_when_named {
        return 1;
    }
    let room = lent.capacity.bytes.checked_div(bytes).unwrap_or(MOST);
    let most = room.min(lent.capacity.slots.into()).clamp(1, MOST);
    usize::try_from(most).unwrap_or(1)
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
        Ending::Failed { reason, .. } => Outcome::Failed(tidings::failure(reason, Some(logs))),
        Ending::NotStarted { .. } => Outcome::NotStarted,
    })
}

/// Workers may be started elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
