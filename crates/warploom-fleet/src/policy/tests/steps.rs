//! Decisions step by step.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rstest::rstest;

use super::super::*;
use super::world::{Faults, World};
use super::{devices, rules};

#[test]
fn a_size_that_a_worker_cannot_make_smaller_ends_the_run_and_one_it_found_is_shared() {
    let mut policy = Policy::new(
        rules(),
        &devices(&["A", "A"], 1),
        &History::new(100),
        BTreeMap::new(),
    );
    let step = |policy: &mut Policy, input| {
        let mut actions = Vec::new();
        policy.step(Duration::ZERO, input, &mut actions);
        actions
    };
    step(&mut policy, Input::Tick);
    let sent = step(&mut policy, Input::Ready { slot: 0 });
    let [Action::Dispatch { batch, records, .. }] = &sent[..] else {
        panic!("{sent:?}");
    };
    let (batch, count) = (*batch, records.len());
    let settled = |records| Input::Settled { slot: 0, records };
    let told = step(&mut policy, settled(4));
    let lower = Action::Ceiling {
        model: "A".into(),
        batch: 4,
    };
    assert_eq!(told, [lower]);
    // What is known already, or more than that, is no news.
    assert_eq!(step(&mut policy, settled(4)), []);
    assert_eq!(step(&mut policy, settled(9)), []);
    assert_eq!(policy.ceiling("A"), Some(4));
    step(&mut policy, Input::Begun { slot: 0, batch });
    let end = End::FixedSize { size: 64 };
    let over = Input::Over {
        slot: 0,
        batch,
        end,
    };
    let told = step(&mut policy, over);
    assert!(
        told.contains(&Action::FixedBatch {
            device: 0,
            batch: 64
        }),
        "{told:?}"
    );
    assert!(matches!(&told[0], Action::Return { records, .. } if records.len() == count));
    assert_eq!(policy.counts().failed, 0);
    assert_eq!(policy.counts().waiting, 100);
}

/// Only what is the hardware's fault puts a device aside, and a probe takes it back.
#[rstest]
#[case::program(31, &["report 0"])]
#[case::contained(94, &["report 0"])]
#[case::unknown(777, &["report 0"])]
#[case::hardware(79, &["report 0", "quarantine 0", "readmit 0"])]
fn what_management_reports_is_judged_by_whose_fault_it_is(#[case] xid: u64, #[case] told: &[&str]) {
    let facts = devices(&["m", "m"], 1);
    let mut world = World::new(2000, &facts, rules(), Faults::default());
    world.signs = vec![(Duration::from_millis(500), 0, xid)];
    world.run();
    assert_eq!((world.ok(), world.failed()), (2000, 0));
    assert_eq!(world.told, told);
    assert!(world.runs.iter().all(|&runs| runs == 1));
}

#[test]
fn what_was_under_way_when_coordinators_died_is_done_last_and_alone() {
    let mut history = History::new(9);
    history.interrupted[1] = 3;
    let mut policy = Policy::new(rules(), &devices(&["m"], 1), &history, BTreeMap::new());
    let mut batches = Vec::new();
    let mut inputs = VecDeque::from([Input::Tick, Input::Ready { slot: 0 }]);
    while let Some(input) = inputs.pop_front() {
        let mut actions = Vec::new();
        policy.step(Moment::ZERO, input, &mut actions);
        for action in actions {
            let Action::Dispatch {
                slot,
                batch,
                records,
            } = action
            else {
                continue;
            };
            inputs.push_back(Input::Begun { slot, batch });
            inputs.extend(records.iter().map(|&record| Input::Done {
                slot,
                batch,
                record,
            }));
            let end = End::Finished;
            inputs.push_back(Input::Over { slot, batch, end });
            batches.push(records);
        }
    }
    assert_eq!(batches.last(), Some(&vec![1]));
    assert_eq!(batches.concat().len(), 9);
}

/// Two runs with fixed parts and a place each, where each waits for the other's place with the rest: whoever is done
/// with its own part does that of the one that waits.
#[rstest]
fn a_part_whose_turn_never_comes_is_done_by_others(
    #[values(Schedule::Balanced, Schedule::Ceil)] schedule: Schedule,
    #[values(0, 1, 2)] held: usize,
) {
    let rules = Rules {
        schedule,
        ..rules()
    };
    let faults = Faults {
        held: vec![(held, None)],
        ..Faults::default()
    };
    let mut world = World::new(1000, &devices(&["m", "n", "o"], 1), rules, faults);
    world.run();
    assert_eq!((world.ok(), world.failed()), (1000, 0));
    assert!(world.runs.iter().all(|&runs| runs == 1));
    assert_eq!(world.per_slot[held], 0);
}

/// As long as the others have parts of their own to do, nobody's part is touched.
#[test]
fn a_part_whose_turn_comes_in_time_stays_with_its_slot() {
    let rules = Rules {
        schedule: Schedule::Balanced,
        ..rules()
    };
    let faults = Faults {
        held: vec![(1, Some(500))],
        ..Faults::default()
    };
    let mut world = World::new(200, &devices(&["m"], 2), rules, faults);
    world.run();
    assert_eq!(world.ok(), 200);
    assert_eq!(world.per_slot, [100, 100]);
}
