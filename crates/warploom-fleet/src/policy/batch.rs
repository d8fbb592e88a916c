//! Batches at workers, and what workers say about them.

use super::stock::Group;
use super::{Action, End, Moment, Policy, at_mut};
use crate::journal::{BatchId, Cause};
use crate::record::Reason;

/// A batch at a worker.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: BatchId,
    /// How many records it had.
    pub(super) size: usize,
    /// Those without an outcome.
    pub(super) open: Vec<u64>,
    pub(super) begun: Option<Moment>,
    /// Was it asked about because it takes long?
    pub(super) asked: bool,
    /// Does it run by itself because something is wrong with one of its records?
    pub(super) apart: bool,
}

impl Policy {
    pub(super) fn begun(&mut self, slot: usize, batch: BatchId, actions: &mut Vec<Action>) {
        let now = self.now;
        let Some(state) = self.slots.get_mut(slot).filter(|slot| slot.listens()) else {
            return;
        };
        state.moves(now);
        // Several may be under way at once, begun in the order in which they were sent.
        let mut flights = state.flights.iter_mut();
        match flights.find(|flight| flight.begun.is_none()) {
            Some(next) if next.id == batch => next.begun = Some(now),
            _ => self.nonsense(slot, format!("it began batch {batch}"), actions),
        }
    }

    /// A record has its outcome: done, or failed for this reason.
    pub(super) fn answered(
        &mut self,
        slot: usize,
        batch: BatchId,
        record: u64,
        failure: Option<Reason>,
        actions: &mut Vec<Action>,
    ) {
        let now = self.now;
        let Some(state) = self.slots.get_mut(slot).filter(|slot| slot.listens()) else {
            return;
        };
        state.moves(now);
        let flight = state.flight(batch).filter(|flight| flight.begun.is_some());
        let place = flight.and_then(|flight| {
            let place = flight.open.iter().position(|&open| open == record)?;
            Some(flight.open.remove(place))
        });
        match (place, failure) {
            (None, _) => {
                let text = format!("it answered for record {record}, which it did not have");
                self.nonsense(slot, text, actions);
            }
            (Some(record), None) => {
                self.slots[slot].answers();
                self.settle(record);
                self.counts.ok += 1;
                let attempts = self.attempts(record);
                actions.push(Action::Accept { record, attempts });
            }
            (Some(record), Some(reason)) => {
                let device = self.slots[slot].device;
                self.fail(device, record, reason, actions);
            }
        }
    }

    pub(super) fn fail(
        &mut self,
        device: usize,
        record: u64,
        reason: Reason,
        actions: &mut Vec<Action>,
    ) {
        self.settle(record);
        self.counts.failed += 1;
        actions.push(Action::Fail {
            device,
            record,
            attempts: self.attempts(record),
            reason,
        });
    }

    fn settle(&mut self, record: u64) {
        if let Some(settled) = at_mut(&mut self.settled, record) {
            debug_assert!(!*settled, "record {record} is settled twice");
            *settled = true;
        }
    }

    pub(super) fn beat(&mut self, slot: usize, progress: u64) {
        let now = self.now;
        if let Some(state) = self.slots.get_mut(slot) {
            state.beats(now, progress);
        }
    }

    pub(super) fn over(
        &mut self,
        slot: usize,
        batch: BatchId,
        end: End,
        actions: &mut Vec<Action>,
    ) {
        let now = self.now;
        let Some(state) = self.slots.get_mut(slot).filter(|slot| slot.listens()) else {
            return;
        };
        state.moves(now);
        // A later one may end before an earlier one, if none of its records takes long.
        let is_it = |flight: &Flight| flight.id == batch && flight.begun.is_some();
        let Some(place) = state.flights.iter().position(is_it) else {
            self.nonsense(slot, format!("it ended batch {batch}"), actions);
            return;
        };
        if let End::DeviceLost { text } = end {
            // The worker ends by itself; what it had under way is charged when it has.
            self.ends_itself(slot, Cause::DeviceLost { text });
            return;
        }
        let Some(flight) = state.land(place, now) else {
            return;
        };
        match end {
            End::Finished => self.finished(slot, flight, actions),
            End::OutOfMemory { asked } => self.no_room(slot, flight, asked, actions),
            End::FixedSize { size } => self.fixed_size(slot, flight, size, actions),
            End::Failed { text } => self.batch_failed(slot, flight, &text, actions),
            End::DeviceLost { .. } => {}
        }
    }

    fn finished(&mut self, slot: usize, flight: Flight, actions: &mut Vec<Action>) {
        let state = &mut self.slots[slot];
        let done = flight.size - flight.open.len();
        if let Some(begun) = flight.begun {
            state.measured(begun, self.now);
        }
        let at = state.device;
        let device = &mut self.devices[at];
        if done > 0 {
            device.works();
            let size = u32::try_from(flight.size).unwrap_or(u32::MAX);
            let proven = self.proven.entry(device.model.clone()).or_default();
            *proven = (*proven).max(size);
        }
        for record in flight.open {
            self.fail(at, record, Reason::Unanswered, actions);
        }
    }

    /// The device has no room for a batch. Smaller ones are tried, and once a size has been done only the
    /// records of this batch are made smaller: then it is their fault, not the size's.
    fn no_room(&mut self, slot: usize, flight: Flight, asked: u64, actions: &mut Vec<Action>) {
        let at = self.slots[slot].device;
        let model = self.devices[at].model.clone();
        let size = u32::try_from(flight.size).unwrap_or(u32::MAX);
        if flight.open.is_empty() {
            return;
        }
        if self.rules.fixed_batch.is_some() && size > 1 && !flight.apart {
            let batch = self.rules.fixed_batch.unwrap_or(size);
            self.fixed_size(slot, flight, batch, actions);
            return;
        }
        if size == 1 {
            for record in flight.open {
                let model = model.clone();
                self.fail(at, record, Reason::OutOfMemory { asked, model }, actions);
            }
            return;
        }
        actions.push(Action::Return {
            batch: flight.id,
            records: flight.open.clone(),
        });
        let proven = self.proven.get(&model).copied().unwrap_or(0);
        if flight.apart || size <= proven {
            self.stock.put_halves(flight.open, None);
        } else {
            self.stock.put_back(flight.open);
        }
        let lower = (size.next_power_of_two() / 2).max(proven).max(1);
        let ceiling = self.ceilings.get(&model).copied();
        if size > proven && ceiling.is_none_or(|old| lower < old) {
            self.set_ceiling(&model, lower, actions);
        } else if ceiling.is_some_and(|old| old < proven) {
            self.set_ceiling(&model, proven, actions);
        }
    }

    /// Somebody insists on a size that does not fit: the run ends loudly, and nobody is to blame.
    fn fixed_size(&mut self, slot: usize, flight: Flight, batch: u32, actions: &mut Vec<Action>) {
        let device = self.slots[slot].device;
        self.give_back(flight, actions);
        if !self.draining {
            self.draining = true;
            actions.push(Action::FixedBatch { device, batch });
        }
    }

    /// A worker has made itself smaller: batches for its model are no larger than what it has room for, and
    /// whoever starts on that model is told.
    pub(super) fn settled_at(&mut self, slot: usize, records: u32, actions: &mut Vec<Action>) {
        let now = self.now;
        let Some(state) = self.slots.get_mut(slot).filter(|slot| slot.listens()) else {
            return;
        };
        state.moves(now);
        let model = self.devices[state.device].model.clone();
        let records = records.max(1);
        if self.ceilings.get(&model).is_none_or(|old| records < *old) {
            self.set_ceiling(&model, records, actions);
        }
    }

    fn set_ceiling(&mut self, model: &str, batch: u32, actions: &mut Vec<Action>) {
        self.ceilings.insert(model.to_owned(), batch);
        let model = model.to_owned();
        actions.push(Action::Ceiling { model, batch });
    }

    /// The work failed for a batch as a whole: its halves may tell which record it was.
    fn batch_failed(&mut self, slot: usize, flight: Flight, text: &str, actions: &mut Vec<Action>) {
        if let [record] = flight.open[..] {
            let text = text.to_owned();
            let device = self.slots[slot].device;
            self.fail(device, record, Reason::Work { text }, actions);
            return;
        }
        if flight.open.is_empty() {
            return;
        }
        actions.push(Action::Return {
            batch: flight.id,
            records: flight.open.clone(),
        });
        self.stock.put_halves(flight.open, None);
    }

    /// Gives a batch that was not begun back. Records that ran apart go on doing so.
    pub(super) fn give_back(&mut self, flight: Flight, actions: &mut Vec<Action>) {
        if flight.open.is_empty() {
            return;
        }
        actions.push(Action::Return {
            batch: flight.id,
            records: flight.open.clone(),
        });
        if flight.apart {
            self.stock.put_group(Group {
                records: flight.open,
                avoid: None,
            });
        } else {
            self.stock.put_back(flight.open);
        }
    }
}
