//! Who gets what, and how much of it.

use super::batch::Flight;
use super::slot::Phase;
use super::{Action, Policy, at_mut};

/// The guided share: a third of what would be fair, so that whoever turns out slower leaves the rest.
const GUIDED: f64 = 3.0;
/// While nobody knows how fast a slot is, it gets this part of a fair share.
const PILOT: usize = 16;

impl Policy {
    /// Is there something for workers to do that nobody has?
    pub(super) fn wants_workers(&self) -> bool {
        !self.draining && !self.stock.is_empty()
    }

    /// Gives work to whoever can take some, starts workers that are missing, retires those that are idle
    /// for good.
    pub(super) fn hand_out(&mut self, actions: &mut Vec<Action>) {
        if self.wants_workers() {
            self.relieve();
            // In turns, so that nobody takes a second batch before everybody had a first.
            for round in 0..self.rules.credits.max(1) {
                for slot in 0..self.slots.len() {
                    if self.slots[slot].flights.len() <= round {
                        self.feed(slot, actions);
                    }
                }
            }
        }
        if self.wants_workers() {
            self.probe(actions);
            self.start(actions);
        }
        self.retire(actions);
    }

    /// Where a worker has done its own part, the parts of those that still wait for their turn on a device are for
    /// anybody. Two runs that each have a place, and wait for the other's for the rest of their parts, would wait for
    /// ever.
    fn relieve(&mut self) {
        let idle = |slot: usize| {
            let state = &self.slots[slot];
            let can_work = state.is_up() && self.devices[state.device].is_fit();
            can_work && state.flights.is_empty() && !self.stock.has_work_for(slot)
        };
        if (0..self.slots.len()).any(idle) {
            for slot in 0..self.slots.len() {
                if self.slots[slot].is_held() {
                    self.stock.share_out(slot);
                }
            }
        }
    }

    fn feed(&mut self, slot: usize, actions: &mut Vec<Action>) {
        let state = &self.slots[slot];
        let device = state.device;
        let open = state.is_up() && self.devices[device].is_fit();
        if !open || state.flights.iter().any(|flight| flight.apart) {
            return;
        }
        if state.flights.is_empty() {
            let nothing_else = self.stock.fresh_for(slot) == 0;
            if let Some(group) = self.stock.take_group(device, nothing_else) {
                self.send(slot, group.records, true, actions);
                return;
            }
        } else if state.rate.is_none() && self.rules.fixed_batch.is_none() {
            return;
        }
        let size = self.batch_size(slot);
        let records = self.stock.take(slot, size);
        if !records.is_empty() {
            self.send(slot, records, false, actions);
        }
    }

    fn send(&mut self, slot: usize, records: Vec<u64>, apart: bool, actions: &mut Vec<Action>) {
        for &record in &records {
            if let Some(attempts) = at_mut(&mut self.attempts, record) {
                *attempts += 1;
            }
        }
        let id = self.next_batch;
        self.next_batch += 1;
        let now = self.now;
        let state = &mut self.slots[slot];
        if state.flights.is_empty() {
            state.moves(now);
        }
        state.batch = Some(records.len() as u64);
        state.flights.push_back(Flight {
            id,
            size: records.len(),
            open: records.clone(),
            begun: None,
            asked: false,
            apart,
        });
        actions.push(Action::Dispatch {
            slot,
            batch: id,
            records,
        });
    }

    /// How many records the slot gets next.
    pub(super) fn batch_size(&self, slot: usize) -> usize {
        let left = self.stock.fresh_for(slot);
        if let Some(fixed) = self.rules.fixed_batch {
            return (fixed.max(1) as usize).min(left);
        }
        let model = &self.devices[self.slots[slot].device].model;
        let ceiling = self.ceilings.get(model).copied().unwrap_or(u32::MAX);
        let quick = self.slots[slot].rate.map_or(u32::MAX, |rate| {
            let records = rate * self.rules.batch_time.as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "rates are positive, and what is too large becomes the largest number"
            )]
            let records = records as u32;
            records
        });
        let most = self.rules.max_batch.min(ceiling).min(quick).max(1) as usize;
        let wanted = if self.stock.shares(slot) {
            self.guided(slot, left)
        } else {
            left
        };
        wanted.clamp(1, most).min(left)
    }

    fn guided(&self, slot: usize, left: usize) -> usize {
        let workers = self.slots.iter().filter(|slot| !slot.is_lost());
        let rates: Vec<Option<f64>> = workers.map(|slot| slot.rate).collect();
        let Some(own) = self.slots[slot].rate else {
            return left / (PILOT * rates.len().max(1));
        };
        let known: Vec<f64> = rates.iter().copied().flatten().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let all: f64 = rates.iter().map(|rate| rate.unwrap_or(mean)).sum();
        let share = left as f64 * own / (GUIDED * all.max(f64::MIN_POSITIVE));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rates are positive, and the share is at most the number of records"
        )]
        let share = share.ceil() as usize;
        share
    }

    /// Starts workers, no more of them than there are records for.
    fn start(&mut self, actions: &mut Vec<Action>) {
        let is_there = |phase: &Phase| matches!(phase, Phase::Starting { .. } | Phase::Up);
        let there = self.slots.iter().filter(|slot| is_there(&slot.phase));
        let mut there = there.count() as u64;
        let records = self.stock.len() + self.counts().under_way;
        for slot in 0..self.slots.len() {
            let Phase::Empty { from } = self.slots[slot].phase else {
                continue;
            };
            let fit = self.devices[self.slots[slot].device].is_fit();
            if from > self.now || !fit || there >= records || !self.stock.has_work_for(slot) {
                continue;
            }
            let since = self.now;
            self.slots[slot].reset(Phase::Starting {
                since,
                probe: false,
                held: false,
            });
            there += 1;
            actions.push(Action::Spawn { slot, probe: false });
        }
    }

    /// Ends workers that will get nothing any more: at the end of the run, and on devices that get none.
    fn retire(&mut self, actions: &mut Vec<Action>) {
        let nothing_left = self.stock.is_empty() && self.counts().under_way == 0;
        let over = nothing_left || self.draining;
        for slot in 0..self.slots.len() {
            let state = &mut self.slots[slot];
            let useless = over || !self.devices[state.device].is_fit();
            match state.phase {
                Phase::Up if state.flights.is_empty() && useless => {
                    state.phase = Phase::Retiring { since: self.now };
                    actions.push(Action::Retire { slot });
                }
                Phase::Starting { .. } if over => {
                    state.kill(self.now, None);
                    actions.push(Action::Kill { slot });
                }
                _ => {}
            }
        }
    }
}
