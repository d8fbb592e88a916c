//! The account of a run: what was delivered, journaled and reported.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::Clock;
use crate::error::FleetError;
use crate::fleet::Fleet;
use crate::journal::{BatchId, Event, History, Holder, Journal};
use crate::policy::{Action, Policy};
use crate::record::{Answer, Outcome, Reason};
use crate::report::{Delivery, Incident, Order, Report};

/// A batch that the journal knows of. Nothing else is sent to a worker: a record that takes everything down with
/// it would be new each time.
#[derive(Debug)]
pub(super) struct Attempted {
    pub(super) batch: BatchId,
}

/// The account of a run.
pub(super) struct Ledger<'a> {
    fleet: &'a Fleet,
    journal: Option<Journal>,
    sink: &'a mut dyn FnMut(Delivery<'_>) -> Result<(), String>,
    outcomes: Vec<Option<Outcome>>,
    /// What came before its turn, with its answer.
    early: BTreeMap<u64, (Outcome, Option<Vec<u8>>)>,
    /// The first record whose turn has not come.
    turn: u64,
    /// Has the sink failed? Then it gets nothing more.
    shut: bool,
    per_slot: Vec<u64>,
    /// Records that failed, by device.
    failed: BTreeMap<String, u64>,
    incidents: Vec<Incident>,
    ceilings: BTreeMap<String, u32>,
    first: Result<(), FleetError>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        journal: Option<Journal>,
        history: &History,
        sink: &'a mut dyn FnMut(Delivery<'_>) -> Result<(), String>,
        slots: usize,
    ) -> Self {
        let mut ledger = Self {
            fleet,
            journal,
            sink,
            outcomes: history.outcomes.clone(),
            early: BTreeMap::new(),
            turn: 0,
            shut: false,
            per_slot: vec![0; slots],
            failed: BTreeMap::new(),
            incidents: Vec::new(),
            ceilings: BTreeMap::new(),
            first: Ok(()),
        };
        let earlier = history.coordinators;
        let began = ledger.push(Event::Began { earlier });
        let devices = fleet.devices.iter();
        let slots =
            devices.flat_map(|device| std::iter::repeat_n(device.id.clone(), device.workers));
        let signed = Event::Signed {
            holder: Holder::this(),
            slots: slots.collect(),
        };
        ledger.first = began.and_then(|()| ledger.push(signed));
        ledger
    }

    /// What was done about devices, in its order.
    pub(super) fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    pub(super) fn per_slot(&self) -> &[u64] {
        &self.per_slot
    }

    pub(super) fn done_at(&mut self, slot: usize) {
        self.per_slot[slot] += 1;
    }

    pub(super) fn failed(&self) -> &BTreeMap<String, u64> {
        &self.failed
    }

    pub(super) fn failed_on(&mut self, device: &str) {
        *self.failed.entry(device.to_owned()).or_default() += 1;
    }

    pub(super) fn undead(&mut self, pid: u32) {
        tracing::error!(pid, "a worker was killed and did not die");
        self.incidents.push(Incident::Undead { pid });
    }

    /// Adds an event to the journal, if there is one.
    pub(super) fn push(&mut self, event: Event) -> Result<(), FleetError> {
        match &mut self.journal {
            Some(journal) => journal.push(event),
            None => Ok(()),
        }
    }

    pub(super) fn commit(&mut self) -> Result<(), FleetError> {
        std::mem::replace(&mut self.first, Ok(()))?;
        match &mut self.journal {
            Some(journal) => journal.commit(),
            None => Ok(()),
        }
    }

    /// Waits for no disk from now on. One that has gigabytes of others to write takes longer for a line than
    /// whoever asked twice to stop should have to wait.
    pub(super) fn hurry(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.hurry();
        }
    }

    /// Writes down that a batch is about to go to a worker.
    pub(super) fn attempt(
        &mut self,
        batch: BatchId,
        slot: usize,
        records: &[u64],
    ) -> Result<Attempted, FleetError> {
        self.push(Event::Attempt {
            batch,
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            records: records.iter().copied().collect(),
        })?;
        self.commit()?;
        Ok(Attempted { batch })
    }

    pub(super) fn close(&mut self) -> Result<(), FleetError> {
        match &mut self.journal {
            Some(journal) => journal.finish(),
            None => Ok(()),
        }
    }

    pub(super) fn due_in(&self) -> Option<Duration> {
        self.journal.as_ref()?.due_in()
    }

    /// A record was done.
    pub(super) fn accept(
        &mut self,
        record: u64,
        attempts: u32,
        answer: &[u8],
        clock: &mut Clock,
    ) -> Result<(), FleetError> {
        let result = if answer.len() <= self.fleet.keep {
            Answer::Kept(answer.to_vec())
        } else {
            Answer::Delivered {
                bytes: answer.len() as u64,
                crc: crc32fast::hash(answer),
            }
        };
        let outcome = Outcome::Ok { attempts, result };
        let is_due = self.is_turn_of(record);
        match self.fleet.order {
            Order::AsDone => self.deliver(record, outcome, Some(answer), clock),
            Order::OfRecords if is_due => {
                self.deliver(record, outcome, Some(answer), clock)?;
                self.deliver_turns(clock)
            }
            Order::OfRecords => {
                // What the journal keeps is at hand; only longer answers are copied.
                let long = (answer.len() > self.fleet.keep).then(|| answer.to_vec());
                self.early.insert(record, (outcome, long));
                self.deliver_turns(clock)
            }
        }
    }

    /// A record failed.
    pub(super) fn fail(
        &mut self,
        record: u64,
        attempts: u32,
        reason: Reason,
        clock: &mut Clock,
    ) -> Result<(), FleetError> {
        let outcome = Outcome::Failed { reason, attempts };
        match self.fleet.order {
            Order::AsDone => self.deliver(record, outcome, None, clock),
            Order::OfRecords => {
                self.early.insert(record, (outcome, None));
                self.deliver_turns(clock)
            }
        }
    }

    /// Is it the first record that has no outcome yet? Most are, and need not be kept until their turn.
    fn is_turn_of(&mut self, record: u64) -> bool {
        let settled = |turn: u64| {
            let place = usize::try_from(turn).unwrap_or(usize::MAX);
            matches!(self.outcomes.get(place), Some(Some(_)))
        };
        while settled(self.turn) {
            self.turn += 1;
        }
        self.turn == record
    }

    /// Delivers everything whose turn it is.
    fn deliver_turns(&mut self, clock: &mut Clock) -> Result<(), FleetError> {
        loop {
            let place = usize::try_from(self.turn).unwrap_or(usize::MAX);
            match self.outcomes.get(place) {
                None => return Ok(()),
                Some(Some(_)) => self.turn += 1,
                Some(None) => {
                    let Some((outcome, long)) = self.early.remove(&self.turn) else {
                        return Ok(());
                    };
                    self.deliver_early(self.turn, outcome, long, clock)?;
                }
            }
        }
    }

    fn deliver_early(
        &mut self,
        record: u64,
        outcome: Outcome,
        long: Option<Vec<u8>>,
        clock: &mut Clock,
    ) -> Result<(), FleetError> {
        let short = match &outcome {
            Outcome::Ok { result, .. } => result.bytes().map(<[u8]>::to_vec),
            _ => None,
        };
        let answer = long.or(short);
        self.deliver(record, outcome, answer.as_deref(), clock)
    }

    /// Delivers what still waits for records that will have no outcome now.
    pub(super) fn finish(&mut self, clock: &mut Clock) -> Result<(), FleetError> {
        while let Some((record, (outcome, long))) = self.early.pop_first() {
            self.deliver_early(record, outcome, long, clock)?;
        }
        Ok(())
    }

    /// Delivers an outcome, and only then counts it: who takes it may fail.
    fn deliver(
        &mut self,
        record: u64,
        outcome: Outcome,
        answer: Option<&[u8]>,
        clock: &mut Clock,
    ) -> Result<(), FleetError> {
        if self.shut {
            return Ok(());
        }
        let delivery = Delivery {
            record,
            outcome: &outcome,
            answer,
        };
        let taken = clock.deafly(|| (self.sink)(delivery));
        if let Err(reason) = taken {
            self.shut = true;
            return Err(FleetError::Sink { record, reason });
        }
        let event = match &outcome {
            Outcome::Ok { attempts, result } => Event::Ok {
                record,
                attempts: *attempts,
                result: result.clone(),
            },
            Outcome::Failed { reason, attempts } => Event::Failed {
                record,
                attempts: *attempts,
                reason: reason.clone(),
            },
            Outcome::NotStarted { .. } => return Ok(()),
        };
        self.push(event)?;
        let place = usize::try_from(record).unwrap_or(usize::MAX);
        if let Some(place) = self.outcomes.get_mut(place) {
            *place = Some(outcome);
        }
        Ok(())
    }

    /// Writes down what was decided about batches and devices.
    pub(super) fn write(&mut self, action: Action) -> Result<(), FleetError> {
        let name = |device: usize| self.fleet.devices[device].id.clone();
        let event = match action {
            Action::Charge {
                device,
                batch,
                cause,
                records,
            } => {
                self.incidents.push(Incident::Grief {
                    device: name(device),
                    how: cause.to_string(),
                });
                tracing::warn!(
                    batch,
                    records = records.len(),
                    ?cause,
                    "a worker came to grief"
                );
                Event::Charged {
                    batch,
                    cause,
                    records: records.into_iter().collect(),
                }
            }
            Action::Return { batch, records } => Event::Returned {
                batch,
                records: records.into_iter().collect(),
            },
            Action::Ceiling { model, batch } => {
                tracing::info!(model, batch, "batches are made smaller");
                self.ceilings.insert(model.clone(), batch);
                self.incidents.push(Incident::Ceiling {
                    model: model.clone(),
                    batch,
                });
                Event::Ceiling {
                    plan: self.fleet.plan.clone(),
                    model,
                    batch,
                }
            }
            Action::Quarantine { device, why } => {
                let device = name(device);
                tracing::warn!(device, why, "a device is in quarantine");
                self.incidents.push(Incident::Quarantined {
                    device: device.clone(),
                    why: why.clone(),
                });
                Event::Quarantined { device, why }
            }
            Action::Report { device, text } => {
                let device = name(device);
                tracing::warn!(device, text, "its management reported something");
                self.incidents.push(Incident::Reported { device, text });
                return Ok(());
            }
            Action::Readmit { device } => {
                let device = name(device);
                tracing::info!(device, "a device passed its probe");
                self.incidents.push(Incident::Readmitted {
                    device: device.clone(),
                });
                Event::Readmitted { device }
            }
            Action::GiveUp { device, why } => {
                let device = name(device);
                tracing::error!(device, why, "a device is given up");
                self.incidents.push(Incident::GivenUp {
                    device: device.clone(),
                    why: why.clone(),
                });
                Event::GivenUp { device, why }
            }
            _ => return Ok(()),
        };
        self.push(event)
    }

    pub(super) fn report(self, policy: &Policy, interrupted: bool) -> Report {
        let outcomes = self.outcomes.into_iter().zip(0..);
        let outcomes = outcomes.map(|(outcome, record)| {
            let attempts = policy.attempts(record);
            outcome.unwrap_or(Outcome::NotStarted { attempts })
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        // Counted here and not by the policy, which does not know whether a result was taken.
        let tally = |wanted: fn(&Outcome) -> bool| {
            let matching = outcomes.iter().filter(|&outcome| wanted(outcome));
            matching.count() as u64
        };
        let (ok, failed) = (tally(Outcome::is_ok), tally(Outcome::is_failed));
        let counts = crate::policy::Counts {
            ok,
            failed,
            under_way: 0,
            waiting: outcomes.len() as u64 - ok - failed,
        };
        Report {
            outcomes,
            counts,
            ceilings: self.ceilings,
            per_slot: self.per_slot,
            incidents: self.incidents,
            interrupted,
            torn: None,
        }
    }
}
