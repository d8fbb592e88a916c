//! A job on many devices: a worker process for each, every record accounted for.

mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_core::{BackendId, DeskDevice, DeviceInfo, Registry};
use warploom_fleet::{
    Delivery, Fleet, FleetDevice, Incident, Outcome as Ending, Program, Reason, Record as Parcel,
    Rules, Schedule, Stopper,
};
use warploom_plan::ExecutionPlan;

use crate::attempt::{requests, taken};
use crate::course::Task;
use crate::error::RunFailure;
use crate::job::{Job, done_before};
use crate::journal::{FOLDER, Journal};
use crate::outcome::{Done, Failure, News, Outcome, Summary};
use crate::recorder::Recorder;
use crate::rooms::Constants;
use crate::settings::Settings;
use crate::station::Orders;
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
        (settings.listener)(News::Begun {
            records: (tasks.len() + self.input().incomplete.len()) as u64,
            skipped: (tasks.len() - open.len()) as u64,
            device: labels.join(" "),
        });
        let mut changes = Vec::new();
        let mut interrupted = false;
        if !open.is_empty() {
            let items = (open.len() * units(plan).len()) as u64;
            let fleet = self.fleet(crew, registry, settings, &chosen, items)?;
            let bodies = open.iter().map(|at| serde_json::to_vec(&tasks[*at].record));
            let parcels: Result<Vec<Parcel>, _> =
                bodies.map(|body| body.map(Parcel::new)).collect();
            let parcels = parcels.map_err(|error| RunFailure::Foreign {
                what: error.to_string(),
            })?;
            let sink = |delivery: Delivery<'_>| {
                let index = open[usize::try_from(delivery.record).unwrap_or(usize::MAX)];
                let outcome = outcome_of(&delivery, &mut journal)?;
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
                changes.extend(report.incidents.iter().map(incident));
            }
        }
        let mut summary = self.summary(plan, outcomes, begun.elapsed(), interrupted, changes);
        summary.device = labels.join(", ");
        summary.faces = labels;
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

    fn fleet(
        &self,
        crew: &Crew,
        registry: &Registry,
        settings: &Settings,
        chosen: &[(DeviceInfo, ExecutionPlan)],
        items: u64,
    ) -> Result<(Stopper, Fleet), RunFailure> {
        let foreign = |error: &dyn std::fmt::Display| RunFailure::Foreign {
            what: error.to_string(),
        };
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
        };
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
        // A folder of its own for each run: which records are done is in our list.
        let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let stamp = stamp.map_or(0, |since| since.as_millis());
        let folder = self
            .output()
            .join(FOLDER)
            .join(format!("run-{stamp}-{}", std::process::id()));
        let setup = serde_json::to_vec(&orders).map_err(|error| foreign(&error))?;
        let desk = registry.desk()?;
        let mut builder = Fleet::builder(crew.program.clone())
            .setup(setup)
            .plan(&chosen[0].1.hash)
            .folder(folder)
            .rules(rules)
            .desk(desk.clone())
            .stopper(&stopper);
        for (info, plan) in chosen {
            let mut device = FleetDevice::of(info);
            let lent = desk.devices().iter();
            let lent = lent.clone().find(|one| one.name == plan.device.name);
            let bytes = taken(plan, settings, items);
            let fitting = lent.map_or(1, |one| fitting(info, one, bytes));
            device = device.workers(crew.workers.unwrap_or(fitting));
            if let Some(request) = requests(plan, settings, items).into_iter().next() {
                device = device.lease(request);
            }
            builder = builder.device(device);
        }
        let fleet = builder.build().map_err(|error| foreign(&error))?;
        Ok((stopper, fleet))
    }
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
fn outcome_of(delivery: &Delivery<'_>, journal: &mut Journal) -> Result<Outcome, String> {
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
        Ending::Failed { reason, .. } => Outcome::Failed(match reason {
            Reason::Work { text } => {
                serde_json::from_str(text).unwrap_or_else(|_| Failure::new(text))
            }
            other => Failure::new(other.to_string()),
        }),
        Ending::NotStarted { .. } => Outcome::NotStarted,
    })
}

fn incident(incident: &Incident) -> String {
    match incident {
        Incident::Grief { device, how } => format!("a worker on {device} came to grief: {how}"),
        Incident::Quarantined { device, why } => {
            format!("{device} got no work for a while: {why}")
        }
        Incident::Readmitted { device } => format!("{device} works again"),
        Incident::GivenUp { device, why } => format!("{device} was given up: {why}"),
        Incident::Undead { pid } => format!("process {pid} was killed and did not die"),
        Incident::Ceiling { model, batch } => {
            format!("{model} has room for {batch} records at once")
        }
    }
}

/// Workers may be started elsewhere.
fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
