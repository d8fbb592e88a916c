//! News in an order that no world would send them in.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::devices;
use super::world::index;
use crate::health::Sign;
use crate::record::Reason;

fn input() -> impl Strategy<Value = Input> {
    let slot = 0_usize..5;
    let batch = 0_u64..12;
    let record = 0_u64..26;
    let end = prop_oneof![
        4 => Just(End::Finished),
        1 => Just(End::OutOfMemory { asked: 0 }),
        1 => Just(End::FixedSize { size: 3 }),
        1 => Just(End::DeviceLost { text: "lost".into() }),
        1 => Just(End::Failed { text: "bad".into() }),
    ];
    prop_oneof![
        6 => slot.clone().prop_map(|slot| Input::Ready { slot }),
        1 => (slot.clone(), any::<bool>()).prop_map(|(slot, wrong_device)| Input::Refused {
            slot, why: "no".into(), wrong_device
        }),
        6 => (slot.clone(), batch.clone()).prop_map(|(slot, batch)| Input::Begun { slot, batch }),
        9 => (slot.clone(), batch.clone(), record.clone())
            .prop_map(|(slot, batch, record)| Input::Done { slot, batch, record }),
        2 => (slot.clone(), batch.clone(), record).prop_map(|(slot, batch, record)| Input::Failed {
            slot, batch, record, reason: Reason::Unanswered
        }),
        4 => (slot.clone(), batch, end).prop_map(|(slot, batch, end)| Input::Over {
            slot, batch, end
        }),
        2 => (slot.clone(), any::<u64>()).prop_map(|(slot, progress)| Input::Beat {
            slot, progress
        }),
        1 => slot.clone().prop_map(|slot| Input::Nonsense { slot, text: "?".into() }),
        4 => slot.prop_map(|slot| Input::Gone {
            slot, how: "gone".into(), log: String::new()
        }),
        1 => (0_usize..5).prop_map(|slot| Input::Held { slot }),
        1 => (0_usize..3, 0_u64..130).prop_map(|(device, xid)| Input::Sign {
            device, sign: Sign::of_xid(xid)
        }),
        1 => Just(Input::Tick),
        1 => Just(Input::Drain),
        1 => Just(Input::Stop),
    ]
}

impl Policy {
    /// Where every record is that is not settled: how often, for each.
    fn places(&self) -> HashMap<u64, usize> {
        let mut places = HashMap::new();
        let flights = self.slots.iter().flat_map(|slot| &slot.flights);
        let at_slots = flights.flat_map(|flight| flight.open.iter().copied());
        for record in at_slots.chain(self.stock.all()) {
            *places.entry(record).or_default() += 1;
        }
        places
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever is said by whom in whatever order, a record is in one place until it is settled, and is
    /// settled once.
    #[test]
    fn i2_a_record_is_in_one_place(
        steps in proptest::collection::vec((input(), 0_u64..4000), 0..120),
        static_parts in any::<bool>(),
        fixed in proptest::option::of(1_u32..5),
    ) {
        let records = 24;
        let rules = Rules {
            schedule: if static_parts { Schedule::Balanced } else { Schedule::Guided },
            max_batch: 6,
            fixed_batch: fixed,
            quarantine: Duration::from_secs(1),
            ..Rules::default()
        };
        let history = History::new(records);
        let mut policy = Policy::new(rules, &devices(&["a", "b"], 2), &history, BTreeMap::new());
        let mut settled = vec![0; records];
        let mut dispatched = vec![0; records];
        let mut now = Duration::ZERO;
        for (input, wait) in steps {
            now += Duration::from_millis(wait);
            let mut actions = Vec::new();
            policy.step(now, input, &mut actions);
            for action in actions {
                match action {
                    Action::Accept { record, attempts } | Action::Fail { record, attempts, .. } => {
                        settled[index(record)] += 1;
                        prop_assert_eq!(attempts, dispatched[index(record)]);
                    }
                    Action::Dispatch { records, slot, .. } => {
                        prop_assert!(slot < 4 && !records.is_empty());
                        for record in records {
                            dispatched[index(record)] += 1;
                        }
                    }
                    _ => {}
                }
            }
            let places = policy.places();
            for record in 0..records as u64 {
                let times = places.get(&record).copied().unwrap_or(0);
                prop_assert_eq!(times + settled[index(record)], 1, "record {}", record);
            }
            let counts = policy.counts();
            let sum = counts.ok + counts.failed + counts.under_way + counts.waiting;
            prop_assert_eq!(sum, records as u64);
            if let Some(look) = policy.next_look() {
                prop_assert!(look > now || policy.slots.iter().any(|slot| !slot.is_empty()));
            }
        }
    }
}
