//! Records that wait for a slot.

use std::collections::{BTreeSet, VecDeque};

use super::pile::Pile;
use super::{Rules, Schedule};
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
    shared: Pile,
    /// For one slot each.
    own: Vec<Pile>,
    groups: VecDeque<Group>,
    /// For the end: whatever takes the coordinator down with it has nothing left to spoil then.
    last: VecDeque<Group>,
    /// Does each slot go on where it was, as long as there are neighbours?
    neighbours: bool,
    /// The record behind the last one that each slot took of what is for all.
    next: Vec<Option<u64>>,
}

impl Stock {
    pub(super) fn new(rules: &Rules, slots: usize, history: &History) -> Self {
        let (mut groups, mut last) = (VecDeque::new(), VecDeque::new());
        let mut apart = BTreeSet::new();
        for suspects in &history.suspects {
            apart.extend(&suspects.records);
            groups.extend(halves(suspects.records.clone(), None));
        }
        for record in history.open() {
            let times = super::at(&history.interrupted, record).copied();
            if times.is_some_and(|times| times >= rules.interruptions) && apart.insert(record) {
                last.push_back(Group {
                    records: vec![record],
                    avoid: None,
                });
            }
        }
        let fresh: Vec<u64> = history.open().filter(|r| !apart.contains(r)).collect();
        let mut stock = Self {
            shared: Pile::default(),
            own: vec![Pile::default(); slots],
            groups,
            last,
            neighbours: rules.neighbours,
            next: vec![None; slots],
        };
        let sizes = match rules.schedule {
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
        let own: usize = self.own.iter().map(Pile::len).sum();
        let groups = self.groups.iter().chain(&self.last);
        let groups: usize = groups.map(|group| group.records.len()).sum();
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
        self.fresh_for(slot) > 0 || !self.groups.is_empty() || !self.last.is_empty()
    }

    /// Does this slot take its share of a common pile?
    pub(super) fn shares(&self, slot: usize) -> bool {
        self.own[slot].is_empty()
    }

    /// Takes `count` records that this slot may have, neighbours of its last ones if it can.
    pub(super) fn take(&mut self, slot: usize, count: usize) -> Vec<u64> {
        if !self.own[slot].is_empty() {
            return self.own[slot].take_first(count);
        }
        if !self.neighbours {
            return self.shared.take_first(count);
        }
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some(at) = self.place(slot, count - taken.len())
        {
            self.shared.take_run(at, count, &mut taken);
            self.next[slot] = taken.last().map(|last| last + 1);
        }
        taken
    }

    /// Where a slot goes on: where it was, else in the longest run. If another slot is on its way through that
    /// one, it gets the first half of it.
    fn place(&self, slot: usize, count: usize) -> Option<u64> {
        if let Some(next) = self.next[slot].filter(|&next| self.shared.contains(next)) {
            return Some(next);
        }
        let (start, end) = self.shared.longest()?;
        let others = self.next.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != slot);
        if !others.any(|(_, next)| *next == Some(start)) {
            return Some(start);
        }
        let behind = end.saturating_sub(count as u64).max(start);
        Some(behind.min(start + (end - start) / 2))
    }

    /// Takes a group that did not come to grief on `device`, or any if `any`, those for the end last.
    pub(super) fn take_group(&mut self, device: usize, any: bool) -> Option<Group> {
        let elsewhere = |group: &Group| group.avoid != Some(device);
        let place = self.groups.iter().position(elsewhere);
        match place.or((any && !self.groups.is_empty()).then_some(0)) {
            Some(place) => self.groups.remove(place),
            None if any => self.last.pop_front(),
            None => None,
        }
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
        self.shared.extend(own.iter());
        self.next[slot] = None;
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
        let own = self.own.iter().flat_map(Pile::iter);
        let groups = self.groups.iter().chain(&self.last);
        let groups = groups.flat_map(|group| &group.records);
        self.shared.iter().chain(own).chain(groups.copied())
    }
}
