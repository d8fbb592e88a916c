//! Records that wait, as runs of neighbours.

use std::collections::BTreeMap;

/// Records that wait, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Pile {
    /// Where each run begins, and the first number behind it.
    runs: BTreeMap<u64, u64>,
    len: usize,
}

impl Pile {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every record, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(&start, &end)| start..end)
    }

    pub(super) fn contains(&self, record: u64) -> bool {
        let before = self.runs.range(..=record).next_back();
        before.is_some_and(|(_, &end)| record < end)
    }

    /// The longest run, and of those that are equally long the first.
    pub(super) fn longest(&self) -> Option<(u64, u64)> {
        let runs = self.runs.iter().map(|(&start, &end)| (start, end));
        runs.rev().max_by_key(|(start, end)| end - start)
    }

    /// Takes the first ones.
    pub(super) fn take_first(&mut self, count: usize) -> Vec<u64> {
        let mut taken = Vec::with_capacity(count.min(self.len));
        while taken.len() < count
            && let Some((&start, _)) = self.runs.first_key_value()
        {
            self.take_run(start, count, &mut taken);
        }
        taken
    }

    /// Takes neighbours from `at` on, until `taken` has `count` or there is a gap.
    pub(super) fn take_run(&mut self, at: u64, count: usize, taken: &mut Vec<u64>) {
        let run = self.runs.range(..=at).next_back();
        let Some((&start, &end)) = run.filter(|(_, end)| at < **end) else {
            return;
        };
        let wanted = count.saturating_sub(taken.len()) as u64;
        if wanted == 0 {
            return;
        }
        let stop = end.min(at.saturating_add(wanted));
        self.runs.remove(&start);
        if start < at {
            self.runs.insert(start, at);
        }
        if stop < end {
            self.runs.insert(stop, end);
        }
        taken.extend(at..stop);
        self.len -= usize::try_from(stop - at).unwrap_or(usize::MAX);
    }

    fn insert(&mut self, record: u64) {
        if self.contains(record) {
            return;
        }
        let before = self.runs.range(..record).next_back();
        let start = before.filter(|(_, end)| **end == record);
        let start = start.map_or(record, |(&start, _)| start);
        let end = self.runs.remove(&(record + 1)).unwrap_or(record + 1);
        self.runs.insert(start, end);
        self.len += 1;
    }
}

impl Extend<u64> for Pile {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, records: I) {
        for record in records {
            self.insert(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A pile is the set of what was put there and not taken.
        #[test]
        fn a_pile_is_a_set(steps in proptest::collection::vec((0_u64..40, 0_usize..9, 0_u8..3), 0..60)) {
            let (mut pile, mut set) = (Pile::default(), BTreeSet::new());
            for (record, count, what) in steps {
                let mut taken = Vec::new();
                match what {
                    0 => {
                        pile.extend([record, record + 1]);
                        set.extend([record, record + 1]);
                    }
                    1 => taken = pile.take_first(count),
                    _ => {
                        pile.take_run(record, count, &mut taken);
                        let neighbours = taken.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                        prop_assert!(neighbours && taken.first().is_none_or(|first| *first == record));
                    }
                }
                if what == 1 {
                    let first: Vec<u64> = set.iter().copied().take(count).collect();
                    prop_assert_eq!(&taken, &first);
                }
                for record in taken {
                    prop_assert!(set.remove(&record));
                }
                prop_assert_eq!(pile.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((pile.len(), pile.is_empty()), (set.len(), set.is_empty()));
                let runs = pile.runs.iter().zip(pile.runs.iter().skip(1));
                prop_assert!(runs.into_iter().all(|((_, end), (start, _))| end < start), "runs that touch");
            }
        }
    }
}
