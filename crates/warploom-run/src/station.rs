//! One worker's part of a job: devices opened once, then batch after batch of records.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warploom_core::Registry;
use warploom_io::Header;
use warploom_io::records::Record;
use warploom_plan::{ExecutionPlan, Options, Pipeline, compile};

use crate::attempt::start;
use crate::course::{Course, Setting};
use crate::error::RunFailure;
use crate::input::sources;
use crate::journal::{Keeper, Line};
use crate::outcome::{News, Outcome};
use crate::recipe;
use crate::recorder::Recorder;
use crate::rooms::{Constants, Faces};
use crate::settings::Settings;
use crate::tasks::tasks;
use crate::unit::units;

/// Everything that a worker in another process has to know of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The pipeline, as its file has it.
    pub(crate) pipeline: String,
    /// Where the constants' files are.
    pub(crate) folder: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) header: Header,
    pub(crate) options: Options,
    pub(crate) batch: Option<u64>,
    pub(crate) patience: Duration,
    pub(crate) check_races: bool,
}

/// A device with its programs, ready for records.
pub(crate) struct Station {
    orders: Orders,
    registry: Registry,
    plan: Arc<ExecutionPlan>,
    constants: Constants,
    faces: Faces,
    settings: Settings,
}

/// What became of a record, by its place in the batch; and the line for the list of what is done.
pub(crate) type Ended = (usize, Outcome, Option<Line>);

impl Station {
    /// Compiles the pipeline for one face of a device, and opens it.
    pub(crate) fn open(orders: Orders, registry: Registry, face: &str) -> Result<Self, RunFailure> {
        let pipeline = Pipeline::from_toml(&orders.pipeline).map_err(RunFailure::Refused)?;
        let sources = sources(&orders.header, "the records", &pipeline, &orders.folder)?;
        let mut options = orders.options.clone();
        options.devices = vec![face.to_owned()];
        let status = registry.status()?;
        let plan = compile(&pipeline, &sources, Some(&status), &options);
        let plan = plan.map_err(RunFailure::Refused)?;
        let settings = Settings {
            plan: options,
            batch: orders.batch,
            patience: orders.patience,
            check_races: orders.check_races,
            ..Settings::default()
        };
        Ok(Self {
            constants: Constants::read(&plan, &orders.folder)?,
            faces: Faces::open(&plan, &registry)?,
            plan: Arc::new(plan),
            orders,
            registry,
            settings,
        })
    }

    /// Works on records, and tells of each as it ends. What is wrong with one of them is its outcome.
    pub(crate) fn work(
        &self,
        records: &[Record],
        tell: Arc<dyn Fn(Ended) + Send + Sync>,
    ) -> Result<(), RunFailure> {
        let (orders, plan) = (&self.orders, &self.plan);
        let tasks = tasks(plan, records, &orders.output, &orders.header)?;
        let kept: Arc<std::sync::Mutex<Option<Line>>> = Arc::default();
        // A record's line comes right before its end, on the same thread.
        let last = Arc::clone(&kept);
        let keeper: Keeper = Arc::new(move |line| {
            let mut last = last
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            *last = Some(line.clone());
            Ok(())
        });
        let course = Arc::new(Course::new(Setting {
            units: units(plan),
            header: orders.header.clone(),
            output: orders.output.clone(),
            recipe: recipe::fingerprint(plan, &self.constants.prints),
            plan: Arc::clone(plan),
            recorder: Arc::new(Recorder::new(Instant::now(), false, tasks.len())),
            tasks,
            listener: Arc::new(move |news| {
                if let News::Ended { index, done, .. } = news {
                    let line = match &done.outcome {
                        Outcome::Ok { .. } => {
                            let mut last = kept.lock();
                            let last = last.as_mut().map(|last| last.take());
                            last.ok().flatten()
                        }
                        _ => None,
                    };
                    tell((index, done.outcome, line));
                }
            }),
        }));
        let devices = (&self.registry, &self.faces);
        let (mut stages, ..) = start(&course, &keeper, &self.constants, devices, &self.settings)?;
        stages.run()?;
        Ok(())
    }
}
