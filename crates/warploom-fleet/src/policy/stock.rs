//! Records that wait for a slot.

use std::collections::{BTreeSet, VecDeque};

use super::Schedule;
use crate::journal::History;

/// Records that have to run by themselves, apart from everything else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Group {
    pub(super) records: Vec<u64>,
    /// The device they came to grief on: others are tried first.
    pub(super) avoid: Option<usize>,
}

/// Everything that waits.
#[derive(Debug)]
pub(super) struct Stock {
    /// For whoever comes.
    shared: BTreeSet<u64>,
    /// For one slot each.
    own: Vec<BTreeSet<u64>>,
    groups: VecDeque<Group>,
}

impl Stock {
    pub(super) fn new(
        schedule: Schedule,
        slots: usize,
        history: &History,
        interruptions: u32,
    ) -> Self {
        let mut groups = VecDeque::new();
        let mut apart = BTreeSet::new();
        for suspects in &history.suspects {
            apart.extend(&suspects.records);
            groups.extend(halves(suspects.records.clone(), None));
        }
        for record in history.open() {
            let times = super::at(&history.interrupted, record).copied();
            if times.is_some_and(|times| times >= interruptions) && apart.insert(record) {
                groups.push_back(Group {
                    records: vec![record],
                    avoid: None,
                });
            }
        }
        let fresh: Vec<u64> = history.open().filter(|r| !apart.contains(r)).collect();
        let mut stock = Self {
            shared: BTreeSet::new(),
            own: vec![BTreeSet::new(); slots],
            groups,
        };
        let sizes = match schedule {
            Schedule::Guided => Vec::new(),
            Schedule::Balanced => balanced(fresh.len(), slots),
            Schedule::Ceil => ceil(fresh.len(), slots),
        };
        let mut rest = fresh.into_iter();
        for (own, size) in stock.own.iter_mut().zip(sizes) {
            own.extend(rest.by_ref().take(size));
        }
        stock.shared.extend(rest);
        stock
    }

    /// How many records wait.
    pub(super) fn len(&self) -> u64 {
        let own: usize = self.own.iter().map(BTreeSet::len).sum();
        let groups: usize = self.groups.iter().map(|group| group.records.len()).sum();
        (self.shared.len() + own + groups) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records this slot may take from.
    pub(super) fn fresh_for(&self, slot: usize) -> usize {
        match self.own[slot].len() {
            0 => self.shared.len(),
            own => own,
        }
    }

    /// Is there anything for this slot to do?
    pub(super) fn has_work_for(&self, slot: usize) -> bool {
        self.fresh_for(slot) > 0 || !self.groups.is_empty()
    }

    /// Does this slot take its share of a common pile?
    pub(super) fn shares(&self, slot: usize) -> bool {
        self.own[slot].is_empty()
    }

    /// Takes the first `count` records that this slot may have.
    pub(super) fn take(&mut self, slot: usize, count: usize) -> Vec<u64> {
        let pile = match self.own[slot].len() {
            0 => &mut self.shared,
            _ => &mut self.own[slot],
        };
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some(record) = pile.pop_first()
        {
            taken.push(record);
        }
        taken
    }

    /// Takes a group that did not come to grief on `device`, or any if `any`.
    pub(super) fn take_group(&mut self, device: usize, any: bool) -> Option<Group> {
        let elsewhere = |group: &Group| group.avoid != Some(device);
        let place = self.groups.iter().position(elsewhere);
        let place = place.or((any && !self.groups.is_empty()).then_some(0))?;
        self.groups.remove(place)
    }

    /// Records come back for anybody.
    pub(super) fn put_back(&mut self, records: impl IntoIterator<Item = u64>) {
        self.shared.extend(records);
    }

    /// Records come back that have to run by themselves.
    pub(super) fn put_group(&mut self, group: Group) {
        if !group.records.is_empty() {
            self.groups.push_back(group);
        }
    }

    /// Records that must run together by themselves come back in two halves.
    pub(super) fn put_halves(&mut self, records: Vec<u64>, avoid: Option<usize>) {
        self.groups.extend(halves(records, avoid));
    }

    /// What a slot had for itself is for anybody now.
    pub(super) fn share_out(&mut self, slot: usize) {
        let own = std::mem::take(&mut self.own[slot]);
        self.shared.extend(own);
    }
}

fn halves(mut records: Vec<u64>, avoid: Option<usize>) -> impl Iterator<Item = Group> {
    let second = records.split_off(records.len().div_ceil(2));
    let groups = [records, second].map(|records| Group { records, avoid });
    groups.into_iter().filter(|group| !group.records.is_empty())
}

/// Sizes that differ by one at most.
pub(super) fn balanced(records: usize, slots: usize) -> Vec<usize> {
    let (each, more) = (records / slots.max(1), records % slots.max(1));
    (0..slots)
        .map(|slot| each + usize::from(slot < more))
        .collect()
}

/// Sizes of ceil(records / slots) as long as there is something.
pub(super) fn ceil(records: usize, slots: usize) -> Vec<usize> {
    let each = records.div_ceil(slots.max(1));
    (0..slots)
        .map(|slot| records.saturating_sub(slot * each).min(each))
        .collect()
}

#[cfg(test)]
impl Stock {
    /// Every record that waits, as often as it does.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let own = self.own.iter().flatten();
        let groups = self.groups.iter().flat_map(|group| &group.records);
        self.shared.iter().chain(own).chain(groups).copied()
    }
}
