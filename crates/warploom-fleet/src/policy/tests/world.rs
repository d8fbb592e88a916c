//! Workers that are no processes, in time that does not pass.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use super::super::{Action, DeviceFacts, End, Input, Moment, Policy, Rules};
use crate::health::Sign;
use crate::journal::{BatchId, History};
use crate::record::Reason;

/// What one record takes at speed 1.
pub(super) const SERVICE: Duration = Duration::from_millis(10);

/// What goes wrong.
#[expect(
    clippy::struct_excessive_bools,
    reason = "faults are there or not, in any combination"
)]
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub(super) seed: u64,
    /// Records that kill their worker.
    pub(super) poison: Vec<u64>,
    /// Records over which their worker loses its device.
    pub(super) lose: Vec<u64>,
    /// Records that hang their worker.
    pub(super) hang: Vec<u64>,
    /// Records that do not fit with anything, nor alone.
    pub(super) huge: Vec<u64>,
    /// The largest batch that fits.
    pub(super) fits: usize,
    /// Slots, and how many batches each loses its device over.
    pub(super) sticky: Vec<(usize, u32)>,
    /// Slots that crash over every batch.
    pub(super) sick: Vec<usize>,
    /// Slots whose processes do not die.
    pub(super) undead: Vec<usize>,
    pub(super) ignores_term: bool,
    pub(super) cannot_start: bool,
    /// Slots whose turn on the device comes late, if ever: in milliseconds.
    pub(super) held: Vec<(usize, Option<u64>)>,
    /// Do workers begin whatever they get at once, and end it in any order?
    pub(super) overlap: bool,
    /// With that: do they work through them one after another all the same?
    pub(super) in_turn: bool,
    /// How likely a batch's worker is killed for no reason.
    pub(super) kills: f64,
    /// Per slot.
    pub(super) speed: Vec<f64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 1,
            poison: Vec::new(),
            lose: Vec::new(),
            hang: Vec::new(),
            huge: Vec::new(),
            fits: usize::MAX,
            sticky: Vec::new(),
            sick: Vec::new(),
            undead: Vec::new(),
            ignores_term: false,
            cannot_start: false,
            held: Vec::new(),
            overlap: false,
            in_turn: false,
            kills: 0.0,
            speed: Vec::new(),
        }
    }
}

/// What a pretended worker has.
#[derive(Debug, Default)]
struct Worker {
    /// Changes with every process, so that news of the dead are not heard.
    life: u32,
    alive: bool,
    hung: bool,
    queue: VecDeque<(BatchId, Vec<u64>)>,
    /// When it will be done with what it has.
    busy: Moment,
}

type News = Reverse<(Moment, u64, usize, u32)>;

/// A policy among pretended workers.
#[derive(Debug)]
pub(super) struct World {
    pub(super) policy: Policy,
    faults: Faults,
    workers: Vec<Worker>,
    agenda: BinaryHeap<News>,
    inputs: BTreeMap<u64, Input>,
    now: Moment,
    /// When the last record was settled.
    pub(super) worked: Moment,
    serial: u64,
    outcomes: Vec<Option<Result<(), Reason>>>,
    pub(super) runs: Vec<u32>,
    pub(super) per_slot: Vec<usize>,
    /// Batches, and those that do not go on where their slot was.
    pub(super) batches: usize,
    pub(super) jumps: usize,
    next: Vec<u64>,
    pub(super) extra_groups: usize,
    charged: Vec<bool>,
    pub(super) lowered: usize,
    pub(super) asked: usize,
    pub(super) terminated: usize,
    pub(super) killed: usize,
    pub(super) abandoned: usize,
    pub(super) loud: bool,
    pub(super) told: Vec<String>,
    /// What the management of a device reports, and when.
    pub(super) signs: Vec<(Moment, usize, u64)>,
    pub(super) drain_at: Option<Moment>,
    pub(super) stop_at: Option<Moment>,
}

impl World {
    pub(super) fn new(records: usize, facts: &[DeviceFacts], rules: Rules, faults: Faults) -> Self {
        let slots: usize = facts.iter().map(|facts| facts.workers).sum();
        let history = History::new(records);
        Self {
            policy: Policy::new(rules, facts, &history, BTreeMap::new()),
            faults,
            workers: (0..slots).map(|_| Worker::default()).collect(),
            agenda: BinaryHeap::new(),
            inputs: BTreeMap::new(),
            now: Moment::ZERO,
            worked: Moment::ZERO,
            serial: 0,
            outcomes: vec![None; records],
            runs: vec![0; records],
            per_slot: vec![0; slots],
            batches: 0,
            jumps: 0,
            next: vec![0; slots],
            extra_groups: 0,
            charged: vec![false; records],
            lowered: 0,
            asked: 0,
            terminated: 0,
            killed: 0,
            abandoned: 0,
            loud: false,
            told: Vec::new(),
            signs: Vec::new(),
            drain_at: None,
            stop_at: None,
        }
    }

    pub(super) fn ok(&self) -> usize {
        let done = self
            .outcomes
            .iter()
            .filter(|outcome| **outcome == Some(Ok(())));
        done.count()
    }

    pub(super) fn failed(&self) -> usize {
        let failed = |outcome: &&Option<Result<(), Reason>>| matches!(outcome, Some(Err(_)));
        self.outcomes.iter().filter(failed).count()
    }

    pub(super) fn reason(&self, record: u64) -> Option<&Reason> {
        self.outcomes[index(record)].as_ref()?.as_ref().err()
    }

    pub(super) fn batches_with(&self, record: u64) -> u32 {
        self.runs[index(record)]
    }

    /// Goes on until the policy has nothing to do any more.
    pub(super) fn run(&mut self) {
        self.tell(Input::Tick);
        for _ in 0..2_000_000 {
            if self.policy.is_over() {
                return;
            }
            let look = self.policy.next_look();
            let news = self.agenda.peek().map(|Reverse((at, ..))| *at);
            let signs = self.signs.iter().map(|(at, ..)| *at);
            let order = [self.drain_at, self.stop_at].into_iter().flatten();
            let order = order.chain(signs).min();
            let next = [look, news, order].into_iter().flatten().min();
            let next = next.expect("somebody has something to do, or it is over");
            self.now = self.now.max(next);
            let sign = self.signs.iter().position(|(at, ..)| *at <= self.now);
            if let Some(sign) = sign {
                let (_, device, xid) = self.signs.remove(sign);
                let sign = Sign::of_xid(xid);
                self.tell(Input::Sign { device, sign });
            } else if self.drain_at.is_some_and(|at| at <= self.now) {
                self.drain_at = None;
                self.tell(Input::Drain);
            } else if self.stop_at.is_some_and(|at| at <= self.now) {
                self.stop_at = None;
                self.tell(Input::Stop);
            } else if news == Some(next) {
                let Some(Reverse((_, serial, slot, life))) = self.agenda.pop() else {
                    continue;
                };
                let input = self.inputs.remove(&serial).expect("each has its input");
                if self.workers[slot].life == life && self.workers[slot].alive {
                    self.hear(slot, input);
                }
            } else {
                self.tell(Input::Tick);
            }
        }
        panic!("the run does not end: {:?}", self.policy.counts());
    }

    fn hear(&mut self, slot: usize, input: Input) {
        if matches!(input, Input::Held { .. }) {
            // Who waits for its turn is heard of as long as it does.
            self.later(slot, 1000, Input::Held { slot });
        }
        let goes_on = match &input {
            Input::Gone { .. } => {
                self.workers[slot].alive = false;
                self.workers[slot].queue.clear();
                false
            }
            Input::Over { batch, end, .. } => {
                let queue = &mut self.workers[slot].queue;
                queue.retain(|(own, _)| own != batch);
                // What comes in an answer to this is begun when it comes.
                let waits = !queue.is_empty() && !self.faults.overlap;
                waits && !matches!(end, End::DeviceLost { .. })
            }
            _ => false,
        };
        self.tell(input);
        if goes_on {
            self.begin(slot, 0);
        }
    }

    fn tell(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.policy.step(self.now, input, &mut actions);
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Spawn { slot, .. } => self.spawn(slot),
            Action::Dispatch {
                slot,
                batch,
                records,
            } => self.dispatch(slot, batch, records),
            Action::Accept { record, .. } => self.settle(record, Ok(())),
            Action::Fail { record, reason, .. } => self.settle(record, Err(reason)),
            Action::Charge { records, .. } => {
                for record in records {
                    self.charged[index(record)] = true;
                }
            }
            Action::Return { .. } | Action::GiveUp { .. } => {}
            Action::Ceiling { .. } => self.lowered += 1,
            Action::Retire { slot } => self.later(slot, 1, gone(slot, "exit 0")),
            Action::Ask { .. } => self.asked += 1,
            Action::Terminate { slot } => {
                self.terminated += 1;
                if !self.faults.ignores_term {
                    self.later(slot, 5, gone(slot, "signal 15"));
                }
            }
            Action::Kill { slot } => {
                self.killed += 1;
                if !self.faults.undead.contains(&slot) {
                    self.later(slot, 1, gone(slot, "signal 9"));
                }
            }
            Action::Abandon { slot } => {
                self.abandoned += 1;
                self.workers[slot].alive = false;
            }
            Action::Quarantine { device, .. } => self.told.push(format!("quarantine {device}")),
            Action::Report { device, .. } => self.told.push(format!("report {device}")),
            Action::Readmit { device } => self.told.push(format!("readmit {device}")),
            Action::FixedBatch { .. } => self.loud = true,
        }
    }

    fn settle(&mut self, record: u64, outcome: Result<(), Reason>) {
        let place = &mut self.outcomes[index(record)];
        assert_eq!(*place, None, "record {record} is settled twice");
        *place = Some(outcome);
        self.worked = self.now;
    }

    fn spawn(&mut self, slot: usize) {
        let worker = &mut self.workers[slot];
        assert!(!worker.alive, "slot {slot} has a process");
        worker.life += 1;
        worker.alive = true;
        worker.hung = false;
        worker.busy = self.now;
        let news = if self.faults.cannot_start {
            gone(slot, "exit 1")
        } else {
            Input::Ready { slot }
        };
        let held = self.faults.held.iter().find(|(held, _)| *held == slot);
        match held.copied() {
            None => self.later(slot, 10, news),
            Some((_, turn)) => {
                self.later(slot, 10, Input::Held { slot });
                if let Some(turn) = turn {
                    self.later(slot, turn, news);
                }
            }
        }
    }

    fn dispatch(&mut self, slot: usize, batch: BatchId, records: Vec<u64>) {
        self.per_slot[slot] += records.len();
        self.batches += 1;
        for &record in &records {
            self.jumps += usize::from(record != self.next[slot]);
            self.next[slot] = record + 1;
        }
        let again = records.iter().any(|&record| self.charged[index(record)]);
        self.extra_groups += usize::from(again);
        self.workers[slot].queue.push_back((batch, records));
        let place = self.workers[slot].queue.len() - 1;
        if place == 0 || self.faults.overlap {
            self.begin(slot, place);
        }
    }

    fn begin(&mut self, slot: usize, place: usize) {
        if self.workers[slot].hung {
            return;
        }
        let (batch, records) = self.workers[slot].queue[place].clone();
        for &record in &records {
            self.runs[index(record)] += 1;
        }
        self.later(slot, 0, Input::Begun { slot, batch });
        let over = |end| Input::Over { slot, batch, end };
        let mut cursed = records.iter();
        if self.lose(slot) || cursed.any(|record| self.faults.lose.contains(record)) {
            let text = "illegal access".into();
            self.later(slot, 1, over(End::DeviceLost { text }));
            self.later(slot, 2, gone(slot, "exit 3"));
            return;
        }
        if self.faults.sick.contains(&slot) {
            self.later(slot, 1, gone(slot, "signal 11"));
            return;
        }
        let huge = records
            .iter()
            .any(|record| self.faults.huge.contains(record));
        if huge || records.len() > self.faults.fits {
            self.later(slot, 1, over(End::OutOfMemory { asked: 9 }));
            return;
        }
        let bad = |list: &[u64]| records.iter().position(|record| list.contains(record));
        let (poison, hang) = (bad(&self.faults.poison), bad(&self.faults.hang));
        let killed = self.chance() < self.faults.kills;
        // A worker answers half of what comes before the trouble, and then meets it.
        let stop = [poison, hang, killed.then_some(records.len() / 2)];
        let stop = stop.into_iter().flatten().min();
        let speed = self.faults.speed.get(slot).copied().unwrap_or(1.0);
        let mut at = Duration::ZERO;
        if self.faults.in_turn {
            at = self.workers[slot].busy.saturating_sub(self.now);
        }
        for &record in &records[..stop.map_or(records.len(), |stop| stop / 2)] {
            at += SERVICE.div_f64(speed);
            self.after(
                slot,
                at,
                Input::Done {
                    slot,
                    batch,
                    record,
                },
            );
        }
        self.workers[slot].busy = self.now + at;
        match stop {
            None => self.after(slot, at, over(End::Finished)),
            Some(stop) if hang == Some(stop) && poison != Some(stop) => {
                self.workers[slot].hung = true;
            }
            Some(_) => self.after(slot, at, gone(slot, "signal 9")),
        }
    }

    fn lose(&mut self, slot: usize) -> bool {
        let mut all = self.faults.sticky.iter_mut();
        let Some((_, left)) = all.find(|(at, left)| *at == slot && *left > 0) else {
            return false;
        };
        *left -= 1;
        true
    }

    fn later(&mut self, slot: usize, millis: u64, input: Input) {
        self.after(slot, Duration::from_millis(millis), input);
    }

    fn after(&mut self, slot: usize, wait: Duration, input: Input) {
        self.serial += 1;
        self.inputs.insert(self.serial, input);
        let life = self.workers[slot].life;
        let news = (self.now + wait, self.serial, slot, life);
        self.agenda.push(Reverse(news));
    }

    fn chance(&mut self) -> f64 {
        let state = &mut self.faults.seed;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn gone(slot: usize, how: &str) -> Input {
    Input::Gone {
        slot,
        how: how.to_owned(),
        log: String::new(),
    }
}

pub(super) fn index(record: u64) -> usize {
    usize::try_from(record).expect("few records")
}
