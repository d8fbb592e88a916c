//! One device: how it has behaved, and whether it gets work.

use std::time::Duration;

use super::{Action, Moment, Policy, Rules, slot::Phase};
use crate::health::{Fault, Sign};

/// Whether a device gets work.
#[derive(Clone, PartialEq, Debug)]
enum Standing {
    Fit,
    /// It gets none until then, when it is probed.
    Quarantined {
        until: Moment,
    },
    /// A worker finds out whether it works.
    Probing,
    /// It is given up.
    Lost,
}

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) model: String,
    standing: Standing,
    /// In a row: fresh batches that came to grief, all that did, losses, workers that did not start.
    pub(super) strikes: u32,
    pub(super) griefs: u32,
    pub(super) losses: u32,
    pub(super) false_starts: u32,
    /// Probes failed in a row.
    failed_probes: u32,
    /// How often it was put into quarantine.
    quarantines: u32,
}

impl Device {
    pub(super) fn new(model: String) -> Self {
        Self {
            model,
            standing: Standing::Fit,
            strikes: 0,
            griefs: 0,
            losses: 0,
            false_starts: 0,
            failed_probes: 0,
            quarantines: 0,
        }
    }

    pub(super) fn is_fit(&self) -> bool {
        self.standing == Standing::Fit
    }

    pub(super) fn is_lost(&self) -> bool {
        self.standing == Standing::Lost
    }

    pub(super) fn is_probing(&self) -> bool {
        self.standing == Standing::Probing
    }

    /// When it is to be probed.
    pub(super) fn due(&self) -> Option<Moment> {
        match self.standing {
            Standing::Quarantined { until } => Some(until),
            _ => None,
        }
    }

    /// It did a batch.
    pub(super) fn works(&mut self) {
        self.strikes = 0;
        self.griefs = 0;
        self.losses = 0;
        self.false_starts = 0;
        self.quarantines = 0;
    }

    /// What it has done too often, if anything.
    pub(super) fn verdict(&self, rules: &Rules) -> Option<String> {
        if self.losses >= rules.losses {
            Some(format!("it was lost {} times in a row", self.losses))
        } else if self.false_starts >= rules.false_starts {
            let times = self.false_starts;
            Some(format!("{times} workers in a row could not start on it"))
        } else if self.strikes >= rules.strikes {
            let times = self.strikes;
            Some(format!("{times} batches in a row came to grief on it"))
        } else if self.griefs >= rules.griefs {
            let times = self.griefs;
            Some(format!(
                "workers came to grief on it {times} times in a row"
            ))
        } else {
            None
        }
    }

    /// How long to wait before a worker is started on it again.
    pub(super) fn back_off(&self, rules: &Rules) -> Duration {
        match self.griefs + self.false_starts {
            0 => Duration::ZERO,
            times => rules.back_off * 2_u32.pow((times - 1).min(5)),
        }
    }
}

impl Policy {
    /// A device has done something too often. Its other workers finish what they have.
    pub(super) fn quarantine(&mut self, device: usize, why: String, actions: &mut Vec<Action>) {
        let state = &mut self.devices[device];
        if !matches!(state.standing, Standing::Fit) {
            return;
        }
        let until = self.now + self.rules.quarantine * 2_u32.pow(state.quarantines.min(6));
        state.quarantines += 1;
        state.standing = Standing::Quarantined { until };
        actions.push(Action::Quarantine { device, why });
        for slot in self.slots_of(device) {
            self.stock.share_out(slot);
        }
    }

    /// A device's management reported something. Only what is the hardware's fault is held against the device; a
    /// worker that came to grief over it says so itself.
    pub(super) fn sign(&mut self, device: usize, sign: Sign, actions: &mut Vec<Action>) {
        let Some(state) = self.devices.get(device) else {
            return;
        };
        let (is_probing, text) = (state.is_probing(), sign.text);
        let why = format!("its management reported {text}");
        actions.push(Action::Report { device, text });
        if sign.fault != Fault::Hardware {
            return;
        }
        if is_probing {
            self.failed_probe(device, &why, actions);
        } else {
            self.quarantine(device, why, actions);
        }
    }

    /// Probes devices whose quarantine is over.
    pub(super) fn probe(&mut self, actions: &mut Vec<Action>) {
        for device in 0..self.devices.len() {
            let due = self.devices[device].due();
            if due.is_none_or(|until| until > self.now) {
                continue;
            }
            let mut slots = self.slots_of(device).into_iter();
            let free = slots.find(|&slot| matches!(self.slots[slot].phase, Phase::Empty { .. }));
            if let Some(slot) = free {
                self.devices[device].standing = Standing::Probing;
                let since = self.now;
                self.slots[slot].reset(Phase::Starting {
                    since,
                    probe: true,
                    held: false,
                });
                actions.push(Action::Spawn { slot, probe: true });
            } else {
                // Its workers are still at what they had.
                let until = self.now + self.rules.back_off.max(Duration::from_millis(10));
                self.devices[device].standing = Standing::Quarantined { until };
            }
        }
    }

    /// A device passed its probe. It is on probation: the next mishap sends it back.
    pub(super) fn readmit(&mut self, device: usize, actions: &mut Vec<Action>) {
        let state = &mut self.devices[device];
        if !state.is_probing() {
            return;
        }
        state.standing = Standing::Fit;
        state.failed_probes = 0;
        state.false_starts = 0;
        state.strikes = self.rules.strikes.saturating_sub(1);
        state.losses = self.rules.losses.saturating_sub(1);
        state.griefs = 0;
        actions.push(Action::Readmit { device });
    }

    /// A device failed its probe.
    pub(super) fn failed_probe(&mut self, device: usize, why: &str, actions: &mut Vec<Action>) {
        let state = &mut self.devices[device];
        if !state.is_probing() {
            return;
        }
        state.failed_probes += 1;
        if state.failed_probes >= self.rules.probes {
            let why = format!("it failed {} probes: {why}", state.failed_probes);
            self.give_up(device, why, actions);
            return;
        }
        let until = self.now + self.rules.quarantine * 2_u32.pow(state.quarantines.min(6));
        state.quarantines += 1;
        state.standing = Standing::Quarantined { until };
    }

    /// A device gets nothing any more. Workers that are up on it finish what they have.
    pub(super) fn give_up(&mut self, device: usize, why: String, actions: &mut Vec<Action>) {
        if self.devices[device].is_lost() {
            return;
        }
        self.devices[device].standing = Standing::Lost;
        self.last_lost = Some((device, why.clone()));
        actions.push(Action::GiveUp { device, why });
        for slot in self.slots_of(device) {
            self.stock.share_out(slot);
            if matches!(self.slots[slot].phase, Phase::Empty { .. }) {
                self.slots[slot].phase = Phase::Lost;
            }
        }
    }

    /// The process of a slot would not die: the slot is lost, and the device with its last one.
    pub(super) fn lose_slot(&mut self, slot: usize, actions: &mut Vec<Action>) {
        self.slots[slot].phase = Phase::Lost;
        self.stock.share_out(slot);
        let device = self.slots[slot].device;
        let all = self.slots_of(device);
        if all.iter().all(|&slot| self.slots[slot].is_lost()) {
            self.give_up(device, "its last worker would not die".into(), actions);
        } else if self.devices[device].is_probing() {
            self.failed_probe(device, "the probe would not die", actions);
        }
    }

    pub(super) fn slots_of(&self, device: usize) -> Vec<usize> {
        let slots = (0..self.slots.len()).filter(|&slot| self.slots[slot].device == device);
        slots.collect()
    }
}
