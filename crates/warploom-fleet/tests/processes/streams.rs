//! Outcomes as an iterator.

use warploom_core::Coded as _;
use warploom_fleet::{Delivered, Order};

use crate::Test;
use crate::faulty::{Helper, answer};
use crate::ground::{Ground, alive, check, records, rules};

pub(crate) const TESTS: &[Test] = &[
    ("a_stream_gives_every_outcome_once", every),
    ("a_stream_that_is_dropped_ends_its_run", dropped),
    ("a_stream_ends_with_what_ended_the_run", failed),
];

fn every() {
    let mut ground = Ground::new();
    ground.plan.refuse = vec![7];
    ground.plan.kill_once = vec![50];
    let all = records(200);
    let fleet = ground.fleet(2).order(Order::OfRecords).build().unwrap();
    let mut outcomes = fleet.stream(all.clone()).unwrap();
    let taken: Vec<Delivered> = outcomes.by_ref().map(Result::unwrap).collect();
    for (number, (delivered, record)) in (0..).zip(taken.iter().zip(&all)) {
        assert_eq!(delivered.record, number);
        assert_eq!(delivered.outcome.is_ok(), number != 7);
        let expected = (number != 7).then(|| answer(number, &record.body, 0));
        assert_eq!(delivered.answer, expected);
    }
    assert_eq!(taken.len(), 200);
    check(outcomes.report().unwrap(), &all, &[7]);
    assert!(outcomes.next().is_none());
    ground.nobody_is_left();
    // Of a run that is complete there is nothing left to give, but its report.
    let again = ground.fleet(2).build().unwrap().stream(all.clone());
    check(&again.unwrap().finish().unwrap(), &all, &[7]);
}

fn dropped() {
    let mut ground = Ground::new();
    ground.plan.service = 1000;
    ground.plan.helper = Helper::Left;
    let all = records(400);
    let fleet = ground.fleet(2).build().unwrap();
    let mut outcomes = fleet.stream(all.clone()).unwrap();
    let taken: Vec<u64> = outcomes
        .by_ref()
        .take(10)
        .map(|one| one.unwrap().record)
        .collect();
    drop(outcomes);
    assert_eq!(alive(&ground.plan.marks), 0, "it waits for its workers");
    // The last one was given and nobody said that it was taken: it comes again, and no other does.
    let rest = ground
        .fleet(2)
        .build()
        .unwrap()
        .stream(all.clone())
        .unwrap();
    let mut rest: Vec<u64> = rest.map(|one| one.unwrap().record).collect();
    rest.sort_unstable();
    let expected = (0..400).filter(|record| !taken[..9].contains(record));
    assert_eq!(rest, expected.collect::<Vec<_>>());
    ground.nobody_is_left();
}

fn failed() {
    let mut ground = Ground::new();
    ground.plan.broken = vec![0];
    let mut rules = rules();
    rules.quarantine = std::time::Duration::from_millis(20);
    let fleet = ground.fleet(1).rules(rules).build().unwrap();
    let mut outcomes = fleet.stream(records(3)).unwrap();
    let failure = outcomes.next().unwrap().unwrap_err();
    assert_eq!(failure.error.code().to_string(), "WL1008");
    assert!(outcomes.next().is_none() && outcomes.report().is_none());
    let again = outcomes.finish().unwrap_err();
    assert_eq!(again.error, failure.error);
    ground.nobody_is_left();
}
