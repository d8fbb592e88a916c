//! A fleet, and running it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use warploom_core::LeaseDesk;

use crate::builder::FleetBuilder;
use crate::crew::{FleetDevice, Program};
use crate::error::FleetError;
use crate::health::Sentries;
use crate::journal::{Durability, History};
use crate::outcomes::Outcomes;
use crate::policy::{DeviceFacts, Policy, Rules};
use crate::record::Record;
use crate::report::{Delivery, Failure, Order, Report, Snapshot};
use crate::rundir::{self, Identity};
use crate::stop::Stopper;
use crate::supervisor::Supervisor;

/// Called now and then with how far a run is.
pub(crate) type Watcher = Box<dyn Fn(&Snapshot) + Send + Sync>;

/// Devices and the workers on them.
///
/// ```no_run
/// use warploom_fleet::{Fleet, FleetDevice, Program, Record};
///
/// let fleet = Fleet::builder(Program::this().arg("worker"))
///     .device(FleetDevice::new("cpu-a"))
///     .device(FleetDevice::new("cpu-b").workers(2))
///     .folder("run")
///     .build()?;
/// let records: Vec<Record> = (0..100_u32).map(|n| Record::new(n.to_le_bytes())).collect();
/// let report = fleet.run(&records, |_| Ok(())).map_err(|failure| failure.error)?;
/// assert!(report.is_complete());
/// # Ok::<(), warploom_fleet::FleetError>(())
/// ```
pub struct Fleet {
    pub(crate) program: Program,
    pub(crate) devices: Vec<FleetDevice>,
    pub(crate) plan: String,
    pub(crate) setup: Vec<u8>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) rules: Rules,
    pub(crate) ceilings: BTreeMap<String, u32>,
    pub(crate) earlier: Option<History>,
    pub(crate) order: Order,
    pub(crate) durability: Durability,
    pub(crate) desk: Option<LeaseDesk>,
    pub(crate) stopper: Stopper,
    pub(crate) arena: u64,
    pub(crate) beat: Duration,
    pub(crate) keep: usize,
    pub(crate) watcher: Option<Watcher>,
    pub(crate) sentries: Option<Sentries>,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("program", &self.program)
            .field("devices", &self.devices)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// A fleet whose workers are this program.
    pub fn builder(program: Program) -> FleetBuilder {
        FleetBuilder::new(program)
    }

    /// Has every record done, in a thread of its own, and gives what becomes of each to whoever asks: the same as
    /// [`run`](Self::run), as an iterator.
    ///
    /// # Errors
    /// [`FleetError::System`] when there can be no thread. What else goes wrong is the last that is given.
    ///
    /// ```no_run
    /// # use warploom_fleet::{Fleet, FleetDevice, Program, Record};
    /// let fleet = Fleet::builder(Program::this().arg("worker"))
    ///     .device(FleetDevice::new("cpu"))
    ///     .build()?;
    /// let mut outcomes = fleet.stream(vec![Record::new("a.tif"), Record::new("b.tif")])?;
    /// for delivered in &mut outcomes {
    ///     let delivered = delivered.map_err(|failure| failure.error)?;
    ///     println!("record {}: {:?}", delivered.record, delivered.outcome);
    /// }
    /// assert!(outcomes.report().is_some_and(|report| report.is_complete()));
    /// # Ok::<(), warploom_fleet::FleetError>(())
    /// ```
    pub fn stream(self, records: Vec<Record>) -> Result<Outcomes, FleetError> {
        Outcomes::begin(self, records)
    }

    /// Has every record done, and tells `sink` what became of each: those that an earlier run in the same
    /// folder settled are only in the report. A record counts as done when `sink` has taken its answer;
    /// whoever resumes a run that was killed between the two gets that answer again.
    ///
    /// The calling thread starts all workers and waits for them; they die with it.
    ///
    /// # Errors
    /// When the run cannot be begun, has to end early, or `sink` fails. What became of the records until
    /// then is in the failure. Records that fail are no error.
    pub fn run(
        &self,
        records: &[Record],
        mut sink: impl FnMut(Delivery<'_>) -> Result<(), String>,
    ) -> Result<Report, Failure> {
        let open = match &self.folder {
            None => None,
            Some(folder) => {
                let identity = Identity::of(&*self.plan, records);
                Some(rundir::open(folder, &identity, self.durability)?)
            }
        };
        let (journal, mut history, torn) = match open {
            None => (None, History::new(records.len()), None),
            Some(open) => (Some(open.journal), open.history, open.torn),
        };
        if let Some(earlier) = &self.earlier {
            history.inherit(earlier);
        }
        let mut ceilings = self.ceilings.clone();
        for ((plan, model), batch) in &history.ceilings {
            if *plan == self.plan {
                ceilings.insert(model.clone(), *batch);
            }
        }
        let facts = self.devices.iter().map(|device| DeviceFacts {
            model: device.model.clone(),
            workers: device.workers,
        });
        let facts: Vec<DeviceFacts> = facts.collect();
        let mut rules = self.rules.clone();
        rules.neighbours &= self.order == Order::AsDone;
        let policy = Policy::new(rules, &facts, &history, ceilings);
        let mut supervisor = Supervisor::new(self, records, policy, journal, &history, &mut sink);
        let ended = supervisor.run();
        let mut report = supervisor.into_report();
        report.torn = torn;
        match ended {
            Ok(()) => Ok(report),
            Err(error) => Err(Failure {
                error,
                report: Some(Box::new(report)),
            }),
        }
    }
}
