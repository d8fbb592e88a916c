//! What a journal amounts to: where a run stands.

use std::collections::{BTreeMap, HashMap};

use super::event::{BatchId, Cause, Entry, Event};
use crate::record::{Outcome, Spans};

/// Where a run stands, from its journal.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    /// What became of each record, if it is known.
    pub outcomes: Vec<Option<Outcome>>,
    /// How often each record was handed to a worker.
    pub attempts: Vec<u32>,
    /// How often each record's worker came to grief while it was alone with it.
    pub alone: Vec<u32>,
    /// How often each record was under way when the coordinator died.
    pub interrupted: Vec<u32>,
    /// Records without outcome over which workers came to grief, as they were together then.
    pub suspects: Vec<Suspects>,
    /// The largest batch per plan and model of device.
    pub ceilings: BTreeMap<(String, String), u32>,
    /// How many coordinators took the run up.
    pub coordinators: u32,
    /// The first number that no batch has.
    pub next_batch: BatchId,
    /// Did the last coordinator end in order?
    pub ended: bool,
    /// Why it could not go on, if that is why it ended.
    pub broken: Option<String>,
}

/// Records that one of is to blame.
#[derive(Clone, PartialEq, Debug)]
pub struct Suspects {
    /// Which ones.
    pub records: Vec<u64>,
    /// What happened.
    pub cause: Cause,
}

impl History {
    /// A run of so many records, of which none has begun.
    pub fn new(records: usize) -> Self {
        Self {
            outcomes: vec![None; records],
            attempts: vec![0; records],
            alone: vec![0; records],
            interrupted: vec![0; records],
            ..Self::default()
        }
    }

    /// Where a run of so many records stands after these events.
    ///
    /// # Errors
    /// The number of a record that there is not, when the journal is of another run.
    pub fn of(records: usize, entries: &[Entry]) -> Result<Self, u64> {
        let mut history = Self::new(records);
        let mut open: HashMap<BatchId, Vec<u64>> = HashMap::new();
        let mut blamed: BTreeMap<BatchId, Suspects> = BTreeMap::new();
        for entry in entries {
            history.check(&entry.event)?;
            history.apply(&entry.event, &mut open, &mut blamed);
        }
        history.interrupt(open);
        for (_, mut group) in blamed {
            group
                .records
                .retain(|&record| history.outcomes[slot(record)].is_none());
            if !group.records.is_empty() {
                history.suspects.push(group);
            }
        }
        Ok(history)
    }

    /// Records without an outcome, in their order.
    pub fn open(&self) -> impl Iterator<Item = u64> + '_ {
        let outcomes = self.outcomes.iter().zip(0..);
        outcomes.filter_map(|(outcome, record)| outcome.is_none().then_some(record))
    }

    /// Takes over what an earlier run of the same records found out, as far as they have no outcome here:
    /// attempts and griefs add up, and who was under suspicion still is. Outcomes and numbers of batches are
    /// each run's own.
    pub fn inherit(&mut self, earlier: &Self) {
        fn add(own: &mut [u32], more: &[u32]) {
            for (own, more) in own.iter_mut().zip(more) {
                *own = own.saturating_add(*more);
            }
        }
        add(&mut self.attempts, &earlier.attempts);
        add(&mut self.alone, &earlier.alone);
        add(&mut self.interrupted, &earlier.interrupted);
        let known: Vec<u64> = self
            .suspects
            .iter()
            .flat_map(|it| it.records.clone())
            .collect();
        for group in &earlier.suspects {
            let is_open = |record: &u64| {
                let outcome = self.outcomes.get(slot(*record));
                outcome.is_some_and(Option::is_none) && !known.contains(record)
            };
            let records: Vec<u64> = group.records.iter().copied().filter(is_open).collect();
            if !records.is_empty() {
                let cause = group.cause.clone();
                self.suspects.push(Suspects { records, cause });
            }
        }
        for (of, batch) in &earlier.ceilings {
            self.ceilings.entry(of.clone()).or_insert(*batch);
        }
    }

    fn check(&self, event: &Event) -> Result<(), u64> {
        let end = self.outcomes.len() as u64;
        match event {
            Event::Ok { record, .. } | Event::Failed { record, .. } if *record >= end => {
                Err(*record)
            }
            Event::Attempt { records, .. }
            | Event::Charged { records, .. }
            | Event::Returned { records, .. }
                if !records.all_below(end) =>
            {
                let beyond = records.iter().find(|&record| record >= end);
                Err(beyond.unwrap_or(end))
            }
            _ => Ok(()),
        }
    }

    fn apply(
        &mut self,
        event: &Event,
        open: &mut HashMap<BatchId, Vec<u64>>,
        blamed: &mut BTreeMap<BatchId, Suspects>,
    ) {
        match event {
            Event::Began { .. } => {
                self.interrupt(std::mem::take(open));
                self.coordinators += 1;
                self.ended = false;
                self.broken = None;
            }
            Event::Attempt { batch, records, .. } => {
                for record in records.iter() {
                    self.attempts[slot(record)] += 1;
                }
                open.insert(*batch, records.iter().collect());
                self.next_batch = self.next_batch.max(batch.saturating_add(1));
            }
            Event::Ok {
                record,
                attempts,
                result,
            } => self.settle(*record, || Outcome::Ok {
                attempts: *attempts,
                result: result.clone(),
            }),
            Event::Failed {
                record,
                attempts,
                reason,
            } => self.settle(*record, || Outcome::Failed {
                reason: reason.clone(),
                attempts: *attempts,
            }),
            Event::Charged {
                batch,
                cause,
                records,
            } => {
                open.remove(batch);
                self.charge(*batch, cause, records, blamed);
            }
            Event::Returned { batch, records } => {
                // What another batch of the same worker still holds stays open.
                if let Some(held) = open.get_mut(batch) {
                    let back: Vec<u64> = records.iter().collect();
                    held.retain(|record| !back.contains(record));
                }
            }
            Event::Ceiling { plan, model, batch } => {
                self.ceilings.insert((plan.clone(), model.clone()), *batch);
            }
            Event::Ended { .. } => self.ended = true,
            Event::Quarantined { .. }
            | Event::Readmitted { .. }
            | Event::GivenUp { .. }
            | Event::Signed { .. } => {}
            Event::Broken { why } => self.broken = Some(why.clone()),
        }
    }

    /// The first outcome is the outcome, whatever is read after it.
    fn settle(&mut self, record: u64, outcome: impl FnOnce() -> Outcome) {
        self.outcomes[slot(record)].get_or_insert_with(outcome);
    }

    fn charge(
        &mut self,
        batch: BatchId,
        cause: &Cause,
        records: &Spans,
        blamed: &mut BTreeMap<BatchId, Suspects>,
    ) {
        let records: Vec<u64> = records.iter().collect();
        if let [only] = records[..] {
            self.alone[slot(only)] += 1;
        }
        for group in blamed.values_mut() {
            group.records.retain(|record| !records.contains(record));
        }
        let cause = cause.clone();
        blamed.insert(batch, Suspects { records, cause });
    }

    /// What was under way when a coordinator died is nobody's fault that is known.
    fn interrupt(&mut self, open: HashMap<BatchId, Vec<u64>>) {
        for record in open.into_values().flatten() {
            let at = slot(record);
            if self.outcomes[at].is_none() {
                self.interrupted[at] += 1;
            }
        }
    }
}

/// Numbers of records were checked against a list in memory.
fn slot(record: u64) -> usize {
    usize::try_from(record).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Answer, Reason};

    fn spans(records: &[u64]) -> Spans {
        records.iter().copied().collect()
    }

    fn attempt(batch: BatchId, records: &[u64]) -> Event {
        Event::Attempt {
            batch,
            slot: 0,
            records: spans(records),
        }
    }

    fn ok(record: u64) -> Event {
        Event::Ok {
            record,
            attempts: 1,
            result: Answer::Kept(vec![7]),
        }
    }

    fn crash() -> Cause {
        Cause::Crashed {
            how: "signal 9".into(),
        }
    }

    fn after(records: usize, events: Vec<Event>) -> History {
        let entries = events.into_iter().map(|event| Entry { at: 0, event });
        History::of(records, &entries.collect::<Vec<_>>()).expect("of this run")
    }

    #[test]
    fn what_was_under_way_is_interrupted_and_open() {
        let history = after(
            4,
            vec![
                Event::Began { earlier: 0 },
                attempt(0, &[0, 1]),
                attempt(1, &[2, 3]),
                ok(0),
                Event::Returned {
                    batch: 1,
                    records: spans(&[3]),
                },
            ],
        );
        assert_eq!(history.open().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(history.interrupted, [0, 1, 1, 0]);
        assert_eq!(history.attempts, [1, 1, 1, 1]);
        assert_eq!(history.next_batch, 2);
    }

    #[test]
    fn blame_narrows_and_outcomes_clear_it() {
        let charged = |batch, records: &[u64]| Event::Charged {
            batch,
            cause: crash(),
            records: spans(records),
        };
        let history = after(
            6,
            vec![
                attempt(0, &[0, 1, 2, 3]),
                charged(0, &[0, 1, 2, 3]),
                attempt(1, &[0, 1]),
                charged(1, &[0, 1]),
                attempt(2, &[0]),
                charged(2, &[0]),
                attempt(3, &[1]),
                ok(1),
            ],
        );
        let groups: Vec<_> = history
            .suspects
            .iter()
            .map(|group| &group.records)
            .collect();
        assert_eq!(groups, [&vec![2, 3], &vec![0]]);
        assert_eq!(history.alone, [1, 0, 0, 0, 0, 0]);
        assert_eq!(history.interrupted, [0; 6]);
    }

    #[test]
    fn what_an_earlier_run_found_out_is_taken_over_and_its_outcomes_are_not() {
        let charged = |batch, records: &[u64]| Event::Charged {
            batch,
            cause: crash(),
            records: spans(records),
        };
        let mut history = after(
            4,
            vec![attempt(0, &[0]), ok(0), attempt(1, &[3]), charged(1, &[3])],
        );
        let ceiling = Event::Ceiling {
            plan: "p".into(),
            model: "m".into(),
            batch: 8,
        };
        let told = vec![
            attempt(7, &[0, 1]),
            charged(7, &[0, 1]),
            attempt(8, &[2]),
            ok(2),
            attempt(9, &[3]),
            charged(9, &[3]),
            ceiling,
        ];
        history.inherit(&after(4, told));
        assert_eq!(history.open().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(history.attempts, [2, 1, 1, 2]);
        assert_eq!(history.alone, [0, 0, 0, 2]);
        let groups = history.suspects.iter().map(|group| &group.records[..]);
        assert_eq!(groups.collect::<Vec<_>>(), [&[3][..], &[1]]);
        assert_eq!(history.ceilings[&("p".into(), "m".into())], 8);
        assert_eq!(history.next_batch, 2);
    }

    #[test]
    fn the_first_outcome_stays() {
        let failed = Event::Failed {
            record: 0,
            attempts: 3,
            reason: Reason::Unanswered,
        };
        let history = after(1, vec![ok(0), failed]);
        assert!(history.outcomes[0].as_ref().is_some_and(Outcome::is_ok));
    }

    #[test]
    fn a_record_of_another_run_is_named() {
        let entries = [Entry {
            at: 0,
            event: attempt(0, &[1, 2, 3]),
        }];
        assert_eq!(History::of(3, &entries), Err(3));
        let huge = [Entry {
            at: 0,
            event: ok(u64::MAX),
        }];
        assert_eq!(History::of(3, &huge), Err(u64::MAX));
    }
}
