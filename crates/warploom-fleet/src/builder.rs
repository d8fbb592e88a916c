//! How a fleet is put together.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use warploom_core::LeaseDesk;

use crate::crew::{FleetDevice, Program};
use crate::error::FleetError;
use crate::fleet::{Fleet, Watcher};
use crate::health::Sentries;
use crate::journal::{Durability, History};
use crate::policy::{Rules, Schedule};
use crate::report::{Order, Snapshot};
use crate::stop::Stopper;

/// Puts a fleet together.
pub struct FleetBuilder {
    program: Program,
    devices: Vec<FleetDevice>,
    plan: String,
    setup: Vec<u8>,
    folder: Option<PathBuf>,
    rules: Rules,
    ceilings: BTreeMap<String, u32>,
    earlier: Option<History>,
    order: Order,
    durability: Durability,
    desk: Option<LeaseDesk>,
    stopper: Option<Stopper>,
    arena: u64,
    beat: Duration,
    keep: usize,
    watcher: Option<Watcher>,
    sentries: Option<Sentries>,
}

impl fmt::Debug for FleetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBuilder")
            .field("program", &self.program)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}

impl FleetBuilder {
    pub(crate) fn new(program: Program) -> Self {
        Self {
            program,
            devices: Vec::new(),
            plan: String::new(),
            setup: Vec::new(),
            folder: None,
            rules: Rules::default(),
            ceilings: BTreeMap::new(),
            earlier: None,
            order: Order::AsDone,
            durability: Durability::default(),
            desk: None,
            stopper: None,
            arena: 64 << 20,
            beat: Duration::from_millis(250),
            keep: 64 << 10,
            watcher: None,
            sentries: None,
        }
    }

    /// Adds a device.
    #[must_use]
    pub fn device(mut self, device: FleetDevice) -> Self {
        self.devices.push(device);
        self
    }

    /// What is done to each record, by name or fingerprint: a run is resumed only with the same.
    #[must_use]
    pub fn plan(mut self, plan: impl Into<String>) -> Self {
        self.plan = plan.into();
        self
    }

    /// Bytes for all workers, which find them in [`Assigned`](crate::Assigned).
    #[must_use]
    pub fn setup(mut self, setup: impl Into<Vec<u8>>) -> Self {
        self.setup = setup.into();
        self
    }

    /// Keeps journal and logs in this folder. A run that was begun there goes on.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// How it decides.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// How records get to slots.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.rules.schedule = schedule;
        self
    }

    /// The largest batch.
    #[must_use]
    pub fn max_batch(mut self, records: u32) -> Self {
        self.rules.max_batch = records;
        self
    }

    /// The size of every batch. A device without room for it ends the run.
    #[must_use]
    pub fn fixed_batch(mut self, records: u32) -> Self {
        self.rules.fixed_batch = Some(records);
        self
    }

    /// Begins with batches of at most so many records on this model, as an earlier run found out.
    #[must_use]
    pub fn ceiling(mut self, model: impl Into<String>, records: u32) -> Self {
        self.ceilings.insert(model.into(), records);
        self
    }

    /// What runs in other folders found out about the same records: which of them bring workers to grief, how
    /// often each was tried, what fits. Outcomes are not taken over; who has them leaves those records out.
    #[must_use]
    pub fn earlier(mut self, history: History) -> Self {
        self.earlier = Some(history);
        self
    }

    /// The order in which outcomes are delivered.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// When the journal survives the loss of power.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Where workers lease what [`FleetDevice::lease`] says.
    #[must_use]
    pub fn desk(mut self, desk: LeaseDesk) -> Self {
        self.desk = Some(desk);
        self
    }

    /// Ends the run from outside.
    #[must_use]
    pub fn stopper(mut self, stopper: &Stopper) -> Self {
        self.stopper = Some(stopper.clone());
        self
    }

    /// The bytes of shared memory between the coordinator and each worker, in each direction. They cost
    /// nothing until they are used.
    #[must_use]
    pub fn arena(mut self, bytes: u64) -> Self {
        self.arena = bytes;
        self
    }

    /// How often workers show signs of life.
    #[must_use]
    pub fn beat(mut self, every: Duration) -> Self {
        self.beat = every;
        self
    }

    /// The longest answer that the journal and the report keep.
    #[must_use]
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// Is told how far the run is, about ten times a second.
    #[must_use]
    pub fn watch(mut self, watcher: impl Fn(&Snapshot) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// Who listens to what the management of devices reports.
    #[must_use]
    pub fn sentries(mut self, sentries: Sentries) -> Self {
        self.sentries = Some(sentries);
        self
    }

    /// The fleet.
    ///
    /// # Errors
    /// [`FleetError::Setup`] when it could do nothing.
    pub fn build(self) -> Result<Fleet, FleetError> {
        let refuse = |what: String| Err(FleetError::Setup { what });
        let workers: usize = self.devices.iter().map(|device| device.workers).sum();
        if workers == 0 {
            return refuse(format!(
                "{} devices and no worker on any",
                self.devices.len()
            ));
        }
        if workers > MAX_WORKERS {
            return refuse(format!("{workers} workers; {MAX_WORKERS} are the most"));
        }
        if let Some(device) = self.devices.iter().find(|device| device.workers == 0) {
            return refuse(format!("no worker on {}", device.id));
        }
        let sizes = [Some(self.rules.max_batch), self.rules.fixed_batch];
        if sizes.contains(&Some(0)) {
            return refuse("batches of no record".into());
        }
        let leases = self.devices.iter().any(|device| device.lease.is_some());
        if leases && self.desk.is_none() {
            return refuse("leases and no desk to have them of".into());
        }
        if self.arena == 0 || self.keep > MAX_KEPT {
            return refuse(format!(
                "{} bytes of shared memory and answers of {} bytes in the journal, of 1 or more and \
                 {MAX_KEPT} at most",
                self.arena, self.keep
            ));
        }
        let stopper = match self.stopper {
            Some(stopper) => stopper,
            None => Stopper::new()?,
        };
        Ok(Fleet {
            program: self.program,
            devices: self.devices,
            plan: self.plan,
            setup: self.setup,
            folder: self.folder,
            rules: self.rules,
            ceilings: self.ceilings,
            earlier: self.earlier,
            order: self.order,
            durability: self.durability,
            desk: self.desk,
            stopper,
            arena: self.arena,
            beat: self.beat,
            keep: self.keep,
            watcher: self.watcher,
            sentries: self.sentries,
        })
    }
}

/// More processes than any machine has devices for.
const MAX_WORKERS: usize = 1024;
/// What an event of the journal has room for.
const MAX_KEPT: usize = 8 << 20;
