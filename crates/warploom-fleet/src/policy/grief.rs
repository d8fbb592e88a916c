//! Workers that come to grief: what it says about their records, and about their device.

use super::batch::Flight;
use super::slot::Phase;
use super::stock::Group;
use super::{Action, Policy, at_mut};
use crate::journal::Cause;

impl Policy {
    pub(super) fn ready(&mut self, slot: usize, actions: &mut Vec<Action>) {
        let now = self.now;
        let Some(state) = self.slots.get_mut(slot) else {
            return;
        };
        let Phase::Starting { probe, .. } = state.phase else {
            if state.listens() {
                self.nonsense(slot, "it was ready twice".into(), actions);
            }
            return;
        };
        state.phase = Phase::Up;
        state.moves(now);
        let device = state.device;
        if probe {
            self.readmit(device, actions);
        } else {
            self.devices[device].false_starts = 0;
        }
    }

    pub(super) fn held(&mut self, slot: usize) {
        let now = self.now;
        if let Some(state) = self.slots.get_mut(slot)
            && let Phase::Starting { since, held, .. } = &mut state.phase
        {
            *since = now;
            *held = true;
        }
    }

    pub(super) fn refused(
        &mut self,
        slot: usize,
        why: String,
        wrong_device: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(state) = self.slots.get_mut(slot) else {
            return;
        };
        if !matches!(state.phase, Phase::Starting { .. }) {
            self.nonsense(slot, "it refused after it was ready".into(), actions);
            return;
        }
        state.refusal = Some((why, wrong_device));
    }

    /// A worker broke the protocol: nothing that it says after that counts.
    pub(super) fn nonsense(&mut self, slot: usize, text: String, actions: &mut Vec<Action>) {
        let now = self.now;
        if let Some(state) = self.slots.get_mut(slot)
            && state.kill(now, Some(Cause::Garbage { text }))
        {
            actions.push(Action::Kill { slot });
        }
    }

    /// A worker said that it will end.
    pub(super) fn ends_itself(&mut self, slot: usize, cause: Cause) {
        let since = self.now;
        self.slots[slot].phase = Phase::Ending {
            since,
            asked: false,
            cause: Some(cause),
        };
    }

    /// Ends workers that hang, kills those that will not end, gives up those that will not die.
    pub(super) fn look_at_clocks(&mut self, actions: &mut Vec<Action>) {
        let now = self.now;
        for slot in 0..self.slots.len() {
            if let Some(cause) = self.slots[slot].hang(now, &self.rules) {
                self.slots[slot].phase = Phase::Ending {
                    since: now,
                    asked: true,
                    cause: Some(cause),
                };
                actions.push(Action::Terminate { slot });
                continue;
            }
            if self.slots[slot].asks(now, &self.rules) {
                actions.push(Action::Ask { slot });
            }
            let due = self.slots[slot].due(&self.rules);
            if due.is_none_or(|due| due > now) {
                continue;
            }
            match &mut self.slots[slot].phase {
                // A worker that said it would end and does not is asked first.
                Phase::Ending { since, asked, .. } if !*asked => {
                    *asked = true;
                    *since = now;
                    actions.push(Action::Terminate { slot });
                }
                Phase::Starting { since, .. } => {
                    let after = now.saturating_sub(*since);
                    let why = format!("it did not start within {after:?}");
                    self.slots[slot].refusal.get_or_insert((why, false));
                    self.slots[slot].kill(now, None);
                    actions.push(Action::Kill { slot });
                }
                Phase::Ending { .. } | Phase::Retiring { .. } => {
                    self.slots[slot].kill(now, None);
                    actions.push(Action::Kill { slot });
                }
                Phase::Killed { .. } => {
                    actions.push(Action::Abandon { slot });
                    let how = "it was killed and did not die".to_owned();
                    self.gone(slot, how, "", actions);
                    self.lose_slot(slot, actions);
                }
                Phase::Empty { .. } | Phase::Up | Phase::Lost => {}
            }
        }
    }

    /// A worker's process is gone: what it had goes back or is charged, and its device is judged.
    pub(super) fn gone(&mut self, slot: usize, how: String, log: &str, actions: &mut Vec<Action>) {
        let Some(state) = self.slots.get_mut(slot).filter(|slot| !slot.is_empty()) else {
            return;
        };
        let device = state.device;
        let refusal = state.refusal.take();
        let empty = Phase::Empty { from: self.now };
        let phase = std::mem::replace(&mut state.phase, empty);
        let flights = std::mem::take(&mut state.flights);
        if self.stopping {
            for flight in flights {
                self.give_back(flight, actions);
            }
            return;
        }
        match phase {
            Phase::Retiring { .. } if flights.is_empty() => {}
            Phase::Starting { .. } => self.false_start(device, refusal, how, actions),
            Phase::Killed { cause: None, .. } if flights.is_empty() => {
                if refusal.is_some() {
                    self.false_start(device, refusal, how, actions);
                }
            }
            Phase::Ending { cause, .. } | Phase::Killed { cause, .. } => {
                let cause = cause.unwrap_or(Cause::Crashed { how });
                self.grief(device, &cause, log, flights, actions);
            }
            Phase::Up | Phase::Retiring { .. } | Phase::Empty { .. } | Phase::Lost => {
                self.grief(device, &Cause::Crashed { how }, log, flights, actions);
            }
        }
        let from = self.now + self.devices[device].back_off(&self.rules);
        let given_up = self.devices[device].is_lost();
        self.slots[slot].phase = if given_up {
            Phase::Lost
        } else {
            Phase::Empty { from }
        };
    }

    /// A worker ended before it was ready.
    fn false_start(
        &mut self,
        device: usize,
        refusal: Option<(String, bool)>,
        how: String,
        actions: &mut Vec<Action>,
    ) {
        let (why, wrong_device) = refusal.unwrap_or((how, false));
        if wrong_device {
            self.give_up(device, why, actions);
            return;
        }
        if self.devices[device].is_probing() {
            self.failed_probe(device, &why, actions);
            return;
        }
        let state = &mut self.devices[device];
        state.false_starts += 1;
        if let Some(verdict) = state.verdict(&self.rules) {
            self.quarantine(device, format!("{verdict}: {why}"), actions);
        }
    }

    fn grief(
        &mut self,
        device: usize,
        cause: &Cause,
        log: &str,
        flights: impl IntoIterator<Item = Flight>,
        actions: &mut Vec<Action>,
    ) {
        let mut fresh = true;
        for flight in flights {
            if flight.begun.is_some() {
                fresh &= !flight.apart;
                self.charge(device, cause, log, flight, actions);
            } else {
                self.give_back(flight, actions);
            }
        }
        if self.devices[device].is_probing() {
            self.failed_probe(device, "a worker came to grief meanwhile", actions);
            return;
        }
        let state = &mut self.devices[device];
        state.griefs += 1;
        state.strikes += u32::from(fresh);
        // Records that run apart are suspected already: a device that one of them takes along is not.
        state.losses += u32::from(fresh && matches!(cause, Cause::DeviceLost { .. }));
        if let Some(verdict) = state.verdict(&self.rules) {
            self.quarantine(device, verdict, actions);
        }
    }

    /// One of these records may be to blame. Halves of them run by themselves, elsewhere if possible,
    /// until one is left that does it alone.
    fn charge(
        &mut self,
        device: usize,
        cause: &Cause,
        log: &str,
        flight: Flight,
        actions: &mut Vec<Action>,
    ) {
        let records = flight.open;
        if records.is_empty() {
            return;
        }
        actions.push(Action::Charge {
            device,
            batch: flight.id,
            cause: cause.clone(),
            records: records.clone(),
        });
        let [record] = records[..] else {
            self.stock.put_halves(records, Some(device));
            return;
        };
        let times = at_mut(&mut self.alone, record).map(|times| {
            *times += 1;
            *times
        });
        if times.is_none_or(|times| times >= self.rules.alone) {
            self.fail(device, record, cause.reason(log.to_owned()), actions);
        } else {
            self.stock.put_group(Group {
                records,
                avoid: Some(device),
            });
        }
    }
}
