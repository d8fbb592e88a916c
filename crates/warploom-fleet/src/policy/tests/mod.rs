//! Decisions under every kind of trouble, in virtual time.

mod chaos;
mod limits;
mod steps;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use rstest::rstest;

use super::stock::{balanced, ceil};
use super::*;
use crate::journal::{Cause, Suspects};
use crate::record::Reason;
use world::{Faults, World};

fn devices(models: &[&str], workers: usize) -> Vec<DeviceFacts> {
    let facts = models.iter().map(|model| DeviceFacts {
        model: (*model).to_owned(),
        workers,
    });
    facts.collect()
}

fn rules() -> Rules {
    Rules {
        quarantine: Duration::from_secs(1),
        silence_limit: Duration::from_secs(20),
        ..Rules::default()
    }
}

fn run(records: usize, slots: usize, rules: Rules, faults: Faults) -> World {
    let facts = devices(&vec!["m"; slots], 1);
    let mut world = World::new(records, &facts, rules, faults);
    world.run();
    world
}

#[rstest]
#[case(9, 4, &[3, 2, 2, 2], &[3, 3, 3, 0])]
#[case(5, 4, &[2, 1, 1, 1], &[2, 2, 1, 0])]
#[case(0, 2, &[0, 0], &[0, 0])]
#[case(2, 4, &[1, 1, 0, 0], &[1, 1, 0, 0])]
#[case(8, 4, &[2, 2, 2, 2], &[2, 2, 2, 2])]
fn parts_are_balanced_or_ceiled(
    #[case] records: usize,
    #[case] slots: usize,
    #[case] even: &[usize],
    #[case] seed: &[usize],
) {
    assert_eq!(balanced(records, slots), even);
    assert_eq!(ceil(records, slots), seed);
}

#[rstest]
#[case(Schedule::Guided)]
#[case(Schedule::Balanced)]
#[case(Schedule::Ceil)]
fn without_trouble_every_record_runs_once(#[case] schedule: Schedule) {
    let rules = Rules {
        schedule,
        ..rules()
    };
    let world = run(1000, 4, rules, Faults::default());
    assert_eq!(world.ok(), 1000);
    assert!(world.runs.iter().all(|&runs| runs == 1));
    if schedule == Schedule::Balanced {
        assert_eq!(world.per_slot, [250; 4]);
    }
}

/// Test 2 of the acceptance list, as far as it is a decision.
#[rstest]
fn i2_one_bad_record_among_ten_thousand_is_found_by_halving(
    #[values(1, 2, 4)] slots: usize,
    #[values(false, true)] overlap: bool,
) {
    for bad in [0, 127, 128, 5000, 9999] {
        let faults = Faults {
            poison: vec![bad],
            overlap,
            ..Faults::default()
        };
        let world = run(10_000, slots, rules(), faults);
        assert_eq!((world.ok(), world.failed()), (9_999, 1), "{bad}");
        assert!(matches!(world.reason(bad), Some(Reason::Crashed { .. })));
        // Batches are at most 128, so at most 7 halvings; each runs two groups, and the bad record is
        // alone in three.
        let more = world.batches_with(bad) - 1;
        assert!(more <= 7 + 2, "{more} runs of the bad record");
        // Where batches overlap two are under way, and one of them has done nothing.
        let together = if overlap { 256 } else { 128_usize };
        let groups = world.extra_groups;
        let bound = 2 * together.ilog2() as usize + 2;
        assert!(groups <= bound, "{groups} groups");
        let neighbours = world.runs.iter().filter(|&&runs| runs > 1).count();
        assert!(neighbours <= together, "{neighbours} ran more than once");
    }
}

#[test]
fn a_batch_that_does_not_fit_is_halved_until_it_does() {
    let faults = Faults {
        fits: 16,
        ..Faults::default()
    };
    let world = run(4000, 2, rules(), faults);
    assert_eq!(world.ok(), 4000);
    assert_eq!(world.policy.ceiling("m"), Some(16));
    // Each lowering costs at most what both slots had at the time.
    assert!(world.lowered <= 3, "lowered {} times", world.lowered);
}

#[test]
fn one_record_that_never_fits_does_not_make_all_batches_small() {
    let faults = Faults {
        huge: vec![700],
        ..Faults::default()
    };
    let world = run(4000, 2, rules(), faults);
    assert_eq!((world.ok(), world.failed()), (3999, 1));
    assert!(matches!(
        world.reason(700),
        Some(Reason::OutOfMemory { .. })
    ));
    assert!(
        world
            .policy
            .ceiling("m")
            .is_none_or(|ceiling| ceiling >= 16)
    );
}

#[test]
fn a_size_that_somebody_fixed_is_never_made_smaller() {
    let rules = Rules {
        fixed_batch: Some(128),
        ..rules()
    };
    let faults = Faults {
        fits: 16,
        ..Faults::default()
    };
    let world = run(1000, 2, rules, faults);
    assert!(world.loud, "the run says that the size does not fit");
    assert_eq!((world.ok(), world.failed()), (0, 0));
    assert_eq!(world.policy.counts().waiting, 1000);
}

/// Test 10 of the acceptance list, as far as it is a decision.
#[test]
fn a_device_lost_twice_in_a_row_is_put_aside_and_taken_back_after_a_probe() {
    let faults = Faults {
        sticky: vec![(0, 2)],
        ..Faults::default()
    };
    let world = run(40_000, 2, rules(), faults);
    assert_eq!(world.ok(), 40_000);
    assert_eq!(world.told, ["quarantine 0", "readmit 0"]);
    assert!(
        world.per_slot[0] > 1000,
        "it worked again: {:?}",
        world.per_slot
    );
}

/// What one record does every time is not the devices' fault: they go on with the others.
#[rstest]
#[case(1, false)]
#[case(2, false)]
#[case(2, true)]
#[case(4, true)]
fn a_record_that_loses_every_device_fails_alone(#[case] slots: usize, #[case] overlap: bool) {
    let faults = Faults {
        lose: vec![3333],
        overlap,
        ..Faults::default()
    };
    let world = run(10_000, slots, rules(), faults);
    assert_eq!((world.ok(), world.failed()), (9_999, 1));
    assert!(matches!(
        world.reason(3333),
        Some(Reason::DeviceLost { .. })
    ));
    assert!(world.told.is_empty(), "{:?}", world.told);
    assert!(world.policy.lost().is_none());
}

#[test]
fn a_device_that_never_works_is_given_up_and_fails_no_record() {
    let faults = Faults {
        sick: vec![0],
        ..Faults::default()
    };
    let world = run(4000, 3, rules(), faults);
    assert_eq!((world.ok(), world.failed()), (4000, 0));
    assert_eq!(world.told.first().map(String::as_str), Some("quarantine 0"));
}

#[test]
fn without_any_device_records_are_not_started() {
    let faults = Faults {
        cannot_start: true,
        ..Faults::default()
    };
    let world = run(50, 2, rules(), faults);
    assert_eq!((world.ok(), world.failed()), (0, 0));
    assert_eq!(world.policy.counts().waiting, 50);
    assert!(world.policy.lost().is_some());
}

/// Test 11 of the acceptance list, as far as it is a decision.
#[test]
fn unequal_slots_end_together_when_guided_and_show_the_straggler_when_not() {
    let faults = Faults {
        speed: vec![1.0, 4.0],
        ..Faults::default()
    };
    let time = |schedule| {
        let rules = Rules {
            schedule,
            ..rules()
        };
        let world = run(2000, 2, rules, faults.clone());
        assert_eq!(world.ok(), 2000);
        world.worked.as_secs_f64()
    };
    let ideal = 2000.0 * world::SERVICE.as_secs_f64() / 5.0;
    let guided = time(Schedule::Guided) / ideal;
    let balanced = time(Schedule::Balanced) / ideal;
    assert!(guided < 1.10, "guided takes {guided:.2} of the ideal time");
    assert!(balanced > 2.4, "the straggler takes {balanced:.2}");
}

#[test]
fn what_hangs_is_ended_and_what_will_not_end_is_killed() {
    let faults = Faults {
        hang: vec![33],
        ignores_term: true,
        ..Faults::default()
    };
    let rules = rules();
    let world = run(100, 2, rules.clone(), faults);
    assert_eq!((world.ok(), world.failed()), (99, 1));
    assert!(matches!(world.reason(33), Some(Reason::Hung { .. })));
    assert!(world.killed > 0 && world.killed == world.terminated);
    // Each was asked once what it was doing, before it was ended.
    assert_eq!(world.asked, world.terminated);
}

#[test]
fn a_process_that_will_not_die_costs_its_slot_and_nothing_else() {
    let faults = Faults {
        hang: vec![3],
        undead: vec![0],
        ignores_term: true,
        ..Faults::default()
    };
    let world = run(400, 3, rules(), faults);
    assert_eq!((world.ok(), world.failed()), (399, 1));
    assert_eq!(world.abandoned, 1);
}

#[test]
fn batches_are_as_large_as_the_device_is_fast() {
    let history = History::new(10_000);
    let rules = Rules {
        batch_time: Duration::from_secs(2),
        ..rules()
    };
    let mut policy = Policy::new(rules, &devices(&["m", "m"], 1), &history, BTreeMap::new());
    let mut sizes = [0.1, 1.0, 9.7, 1e9].map(|rate| {
        policy.slots[0].rate = Some(rate);
        policy.slots[1].rate = Some(rate);
        policy.batch_size(0)
    });
    assert_eq!(sizes, [1, 2, 19, 128]);
    // Who insists on a size has it, however long it takes.
    policy.rules.fixed_batch = Some(50);
    policy.slots[0].rate = Some(0.1);
    sizes[0] = policy.batch_size(0);
    assert_eq!(sizes[0], 50);
}

/// What neighbours share is read once: of the slots' ways through the records few steps are jumps.
#[rstest]
#[case::equal(&[1.0, 1.0, 1.0, 1.0])]
#[case::unequal(&[1.0, 4.0, 2.0, 1.0])]
fn slots_go_on_where_they_were(#[case] speed: &[f64]) {
    let ways = |neighbours| {
        let faults = Faults {
            speed: speed.to_vec(),
            ..Faults::default()
        };
        let rules = Rules {
            neighbours,
            ..rules()
        };
        let world = run(10_000, 4, rules, faults);
        assert_eq!(world.ok(), 10_000);
        assert!(world.runs.iter().all(|&runs| runs == 1));
        (world.jumps, world.batches, world.worked)
    };
    let (first_come, _, time) = ways(false);
    let (jumps, batches, near_time) = ways(true);
    assert!(jumps * 4 < batches, "{jumps} jumps in {batches} batches");
    assert!(
        jumps * 3 < first_come,
        "{jumps} jumps instead of {first_come}"
    );
    // It costs nothing: who gets how many is decided as before.
    let ratio = near_time.as_secs_f64() / time.as_secs_f64();
    assert!((0.98..1.02).contains(&ratio), "{ratio:.3} of the time");
}

#[test]
fn draining_finishes_what_is_under_way_and_begins_nothing() {
    let facts = devices(&["m", "m"], 1);
    let mut world = World::new(1000, &facts, rules(), Faults::default());
    world.drain_at = Some(Duration::from_millis(300));
    world.run();
    let counts = world.policy.counts();
    assert!(counts.ok > 0 && counts.waiting > 0 && counts.under_way == 0);
    assert_eq!(counts.ok + counts.waiting, 1000);
    assert!(world.policy.is_over());
}

#[test]
fn stopping_gives_back_what_is_under_way() {
    let facts = devices(&["m", "m"], 2);
    let mut world = World::new(1000, &facts, rules(), Faults::default());
    world.stop_at = Some(Duration::from_millis(300));
    world.run();
    let counts = world.policy.counts();
    assert_eq!(counts.ok + counts.waiting, 1000);
    assert_eq!(world.failed(), 0);
}

#[test]
fn suspects_of_an_earlier_run_go_on_being_halved() {
    let mut history = History::new(64);
    history.suspects.push(Suspects {
        records: (0..8).collect(),
        cause: Cause::Crashed { how: "x".into() },
    });
    history.interrupted[20] = 3;
    let rules = rules();
    let mut policy = Policy::new(rules, &devices(&["m"], 1), &history, BTreeMap::new());
    let mut actions = Vec::new();
    policy.step(Moment::ZERO, Input::Tick, &mut actions);
    policy.step(Moment::ZERO, Input::Ready { slot: 0 }, &mut actions);
    let first = actions.iter().find_map(|action| match action {
        Action::Dispatch { records, .. } => Some(records.clone()),
        _ => None,
    });
    assert_eq!(first, Some(vec![0, 1, 2, 3]));
}

#[test]
fn a_worker_that_sees_another_device_ends_its_device() {
    let history = History::new(4);
    let mut policy = Policy::new(rules(), &devices(&["m"], 1), &history, BTreeMap::new());
    let mut actions = Vec::new();
    policy.step(Moment::ZERO, Input::Tick, &mut actions);
    let refused = Input::Refused {
        slot: 0,
        why: "it sees GPU-b".into(),
        wrong_device: true,
    };
    policy.step(Moment::ZERO, refused, &mut actions);
    let gone = Input::Gone {
        slot: 0,
        how: "exit 1".into(),
        log: String::new(),
    };
    policy.step(Moment::ZERO, gone, &mut actions);
    assert_eq!(policy.lost(), Some((0, "it sees GPU-b")));
    assert!(policy.is_over());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever goes wrong: the run ends, and every record has the outcome it deserves.
    #[test]
    fn i2_every_record_gets_the_outcome_it_deserves(
        seed in any::<u64>(),
        records in 1_usize..400,
        slots in 1_usize..6,
        workers in 1_usize..3,
        poison in proptest::collection::vec(0_u64..400, 0..3),
        hang in proptest::collection::vec(0_u64..400, 0..2),
        fits in 1_usize..200,
        kills in 0.0_f64..0.1,
        ignores_term in any::<bool>(),
        overlap in any::<bool>(),
    ) {
        let inside = |list: Vec<u64>| -> Vec<u64> {
            list.into_iter().filter(|&record| record < records as u64).collect()
        };
        let (poison, hang) = (inside(poison), inside(hang));
        let faults = Faults {
            seed, fits, kills, ignores_term, overlap,
            poison: poison.clone(),
            hang: hang.clone(),
            ..Faults::default()
        };
        // Random kills may meet one record alone several times; what is tested here is not that luck.
        let rules = Rules { alone: 6, griefs: 40, strikes: 20, probes: 50, ..rules() };
        let facts = devices(&vec!["m"; slots], workers);
        let mut world = World::new(records, &facts, rules, faults);
        world.run();
        for record in 0..records as u64 {
            let bad = poison.contains(&record) || hang.contains(&record);
            prop_assert_eq!(world.reason(record).is_some(), bad, "record {}", record);
        }
        prop_assert_eq!(world.ok() + world.failed(), records);
    }
}
