//! Every decision of a fleet, and none of its effects.
//!
//! A [`Policy`] is told what happened and when, and answers with what to do. It starts no process, reads
//! no clock and writes no file, so a year of crashes is a second of tests. What it guarantees, whatever
//! it is told in whatever order: a record is settled at most once; a record that is not settled is
//! either waiting or under way at exactly one slot; and a run without work left ends.

mod batch;
mod device;
mod dispatch;
mod grief;
mod news;
mod pile;
mod rules;
mod sight;
mod slot;
mod stock;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use news::{Action, End, Input};
pub use rules::{Rules, Schedule};

use crate::journal::{BatchId, History};
use device::Device;
use slot::Slot;
use stock::Stock;

/// Time since the run began, as the coordinator counts it.
pub type Moment = Duration;

/// A device as decisions see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFacts {
    /// Its model: devices of one model have room for the same batches.
    pub model: String,
    /// How many workers share it.
    pub workers: usize,
}

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Records that were done.
    pub ok: u64,
    /// Records that failed.
    pub failed: u64,
    /// Records at workers.
    pub under_way: u64,
    /// Records that wait.
    pub waiting: u64,
}

/// The decisions of one run.
#[derive(Debug)]
pub struct Policy {
    rules: Rules,
    slots: Vec<Slot>,
    devices: Vec<Device>,
    stock: Stock,
    /// Per record: how often it was handed to a worker.
    attempts: Vec<u32>,
    /// Per record: how often it brought a worker to grief alone.
    alone: Vec<u32>,
    settled: Vec<bool>,
    counts: Counts,
    ceilings: BTreeMap<String, u32>,
    /// The largest batch that each model has finished.
    proven: BTreeMap<String, u32>,
    next_batch: BatchId,
    draining: bool,
    stopping: bool,
    now: Moment,
    /// The device that was given up last.
    last_lost: Option<(usize, String)>,
}

impl Policy {
    /// A run on these devices that stands where `history` says. `ceilings` are per model.
    pub fn new(
        rules: Rules,
        facts: &[DeviceFacts],
        history: &History,
        ceilings: BTreeMap<String, u32>,
    ) -> Self {
        let mut slots = Vec::new();
        let mut devices = Vec::new();
        for (device, facts) in facts.iter().enumerate() {
            devices.push(Device::new(facts.model.clone()));
            slots.extend((0..facts.workers).map(|_| Slot::new(device)));
        }
        let stock = Stock::new(&rules, slots.len(), history);
        let settled: Vec<bool> = history.outcomes.iter().map(Option::is_some).collect();
        let tally = |wanted: fn(&crate::Outcome) -> bool| {
            let matching = history.outcomes.iter().flatten().filter(|&o| wanted(o));
            matching.count() as u64
        };
        let counts = Counts {
            ok: tally(crate::Outcome::is_ok),
            failed: tally(crate::Outcome::is_failed),
            under_way: 0,
            waiting: 0,
        };
        Self {
            rules,
            slots,
            devices,
            stock,
            attempts: history.attempts.clone(),
            alone: history.alone.clone(),
            settled,
            counts,
            ceilings,
            proven: BTreeMap::new(),
            next_batch: history.next_batch,
            draining: false,
            stopping: false,
            now: Moment::ZERO,
            last_lost: None,
        }
    }

    /// Takes in what happened at `now`, and puts what to do at the end of `actions`. What is about a slot
    /// or a record that there is not, or that has nothing to do with it, changes nothing or ends the worker
    /// that said it.
    pub fn step(&mut self, now: Moment, input: Input, actions: &mut Vec<Action>) {
        self.now = self.now.max(now);
        match input {
            Input::Ready { slot } => self.ready(slot, actions),
            Input::Held { slot } => self.held(slot),
            Input::Refused {
                slot,
                why,
                wrong_device,
            } => self.refused(slot, why, wrong_device, actions),
            Input::Begun { slot, batch } => self.begun(slot, batch, actions),
            Input::Done {
                slot,
                batch,
                record,
            } => self.answered(slot, batch, record, None, actions),
            Input::Failed {
                slot,
                batch,
                record,
                reason,
            } => self.answered(slot, batch, record, Some(reason), actions),
            Input::Over { slot, batch, end } => self.over(slot, batch, end, actions),
            Input::Beat { slot, progress } => self.beat(slot, progress),
            Input::Settled { slot, records } => self.settled_at(slot, records, actions),
            Input::Nonsense { slot, text } => self.nonsense(slot, text, actions),
            Input::Gone { slot, how, log } => self.gone(slot, how, &log, actions),
            Input::Sign { device, sign } => self.sign(device, sign, actions),
            Input::Drain => self.draining = true,
            Input::Stop => self.stop(actions),
            Input::Tick => {}
        }
        self.look_at_clocks(actions);
        self.hand_out(actions);
    }

    /// When [`Input::Tick`] is due, if nothing else happens.
    pub fn next_look(&self) -> Option<Moment> {
        let slots = self.slots.iter().filter_map(|slot| slot.due(&self.rules));
        let devices = self.devices.iter().filter_map(Device::due);
        let wanted = self.wants_workers();
        let starts = self.slots.iter().filter_map(Slot::starts_at);
        // What could have been started by now was not because there is nothing for it.
        let later = devices
            .chain(starts)
            .filter(|&due| wanted && due > self.now);
        slots.chain(later).min()
    }

    /// Is there nothing left to do and nobody left to wait for?
    pub fn is_over(&self) -> bool {
        let idle = self.slots.iter().all(Slot::is_empty);
        idle && (self.draining || self.stock.is_empty() || self.all_lost())
    }

    /// How far the run has come.
    pub fn counts(&self) -> Counts {
        let under_way = self.slots.iter().map(Slot::under_way).sum();
        Counts {
            under_way,
            waiting: self.stock.len(),
            ..self.counts
        }
    }

    /// How often a record was handed to a worker.
    pub fn attempts(&self, record: u64) -> u32 {
        at(&self.attempts, record).copied().unwrap_or(0)
    }

    /// Is every device given up? Then the one that was last, and why.
    pub fn lost(&self) -> Option<(usize, &str)> {
        let (device, why) = self.last_lost.as_ref()?;
        self.all_lost().then_some((*device, why.as_str()))
    }

    /// How fast a slot is, in records a second, once it has shown it.
    pub fn rate(&self, slot: usize) -> Option<f64> {
        self.slots.get(slot)?.rate
    }

    /// The batch size a model settled at, where memory had a say.
    pub fn ceiling(&self, model: &str) -> Option<u32> {
        self.ceilings.get(model).copied()
    }

    fn all_lost(&self) -> bool {
        self.devices.iter().all(Device::is_lost) || self.slots.iter().all(Slot::is_lost)
    }

    fn stop(&mut self, actions: &mut Vec<Action>) {
        self.draining = true;
        self.stopping = true;
        for slot in 0..self.slots.len() {
            if self.slots[slot].kill(self.now, None) {
                actions.push(Action::Kill { slot });
            }
        }
    }
}

/// What a list has for a record.
fn at<T>(list: &[T], record: u64) -> Option<&T> {
    list.get(usize::try_from(record).ok()?)
}

fn at_mut<T>(list: &mut [T], record: u64) -> Option<&mut T> {
    list.get_mut(usize::try_from(record).ok()?)
}
