//! What is done: the actions that the policy decides on.

use rustix::process::Signal;
use warploom_core::Lease;

use super::child::Child;
use super::{Station, Supervisor};
use crate::error::FleetError;
use crate::policy::{Action, Input};
use crate::record::Record;
use crate::wire::{Assignment, Limits, Start};

impl Supervisor<'_> {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Spawn { slot, probe } => self.start(slot, probe),
            Action::Dispatch {
                slot,
                batch,
                records,
            } => self.dispatch(slot, batch, &records),
            Action::Accept { record, attempts } => {
                let answer = std::mem::take(&mut self.answer);
                let kept = self
                    .ledger
                    .accept(record, attempts, &answer, &mut self.clock);
                self.answer = answer;
                self.note(kept);
            }
            Action::Fail {
                device,
                record,
                attempts,
                reason,
            } => {
                tracing::warn!(record, attempts, %reason, "a record failed");
                self.ledger.failed_on(&self.fleet.devices[device].id);
                let kept = self.ledger.fail(record, attempts, reason, &mut self.clock);
                self.note(kept);
            }
            Action::Retire { slot } => {
                if let Some(child) = self.stations[slot].child() {
                    child.retire();
                }
            }
            Action::Ask { slot } => {
                if let Some(child) = self.stations[slot].child() {
                    child.ask();
                }
            }
            Action::Terminate { slot } => self.signal(slot, Signal::TERM),
            Action::Kill { slot } => self.signal(slot, Signal::KILL),
            Action::Abandon { slot } => {
                let station = std::mem::replace(&mut self.stations[slot], Station::Empty);
                if let Station::Running(child) | Station::Closing(child, _) = station {
                    self.ledger.undead(child.pid());
                    self.undead.push(*child);
                }
            }
            Action::FixedBatch { device, batch } => {
                let device = &self.fleet.devices[device];
                self.error.get_or_insert(FleetError::FixedBatch {
                    batch,
                    device: device.id.clone(),
                    model: device.model.clone(),
                });
            }
            other => {
                let written = self.ledger.write(other);
                self.note(written);
            }
        }
    }

    fn signal(&mut self, slot: usize, signal: Signal) {
        match &mut self.stations[slot] {
            Station::Running(child) | Station::Closing(child, _) => child.signal(signal),
            Station::Waiting { cancel, .. } => cancel.cancel(),
            Station::Empty => {}
        }
    }

    /// Starts a worker, after it has its lease if it needs one.
    fn start(&mut self, slot: usize, probe: bool) {
        let device = &self.fleet.devices[self.places[slot]];
        let Some((request, desk)) = device.lease.as_ref().zip(self.fleet.desk.as_ref()) else {
            self.spawn(slot, probe, None);
            return;
        };
        match self.turns.wait(slot, desk, request, &self.fleet.stopper) {
            Ok(cancel) => self.stations[slot] = Station::Waiting { cancel, probe },
            Err(how) => self.gone(slot, how, String::new()),
        }
    }

    pub(super) fn spawn(&mut self, slot: usize, probe: bool, lease: Option<Lease>) {
        let fleet = self.fleet;
        let device = &fleet.devices[self.places[slot]];
        let environment = device.mask.variables().iter();
        let start = Start {
            coordinator: std::process::id(),
            assignment: Assignment {
                slot: u32::try_from(slot).unwrap_or(u32::MAX),
                device: device.id.clone(),
                model: device.model.clone(),
                ordinal: device.ordinal,
                identity: device.identity.clone(),
                ceiling: self.policy.ceiling(&device.model),
            },
            setup: fleet.setup.clone(),
            probe,
            limits: Limits {
                beat: u64::try_from(fleet.beat.as_millis()).unwrap_or(u64::MAX),
                arena: fleet.arena,
            },
            environment: environment
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        };
        let folder = fleet.folder.as_ref();
        let log = folder.map(|folder| crate::rundir::log(folder, slot));
        match Child::spawn(&fleet.program, start, log.as_deref(), lease) {
            Ok(child) => {
                tracing::debug!(
                    slot,
                    pid = child.pid(),
                    device = device.id,
                    "a worker started"
                );
                self.stations[slot] = Station::Running(Box::new(child));
            }
            Err(error) => {
                let how = format!(
                    "{} cannot be started: {error}",
                    fleet.program.path.display()
                );
                self.gone(slot, how, String::new());
            }
        }
    }

    /// Sends a batch, after the journal knows of it.
    fn dispatch(&mut self, slot: usize, batch: u64, records: &[u64]) {
        let attempted = match self.ledger.attempt(batch, slot, records) {
            Ok(attempted) => attempted,
            Err(error) => {
                self.note(Err(error));
                return;
            }
        };
        let all = self.records;
        let wanted = records.iter().filter_map(|&number| {
            let record = all.get(usize::try_from(number).ok()?)?;
            Some((number, record))
        });
        let wanted: Vec<(u64, &Record)> = wanted.collect();
        let Some(child) = self.stations[slot].child() else {
            return;
        };
        if let Err(length) = child.send(&attempted, &wanted) {
            let what = format!(
                "a batch whose message has {length} bytes, more than one can have: give the fleet more \
                 shared memory or smaller batches"
            );
            self.error.get_or_insert(FleetError::Setup { what });
            self.tell(Input::Stop);
        }
    }
}
