//! Workers that hang: when they are ended, and what they say before.

use std::time::Duration;

use warploom_fleet::Reason;
use warploom_fleet::journal::{Cause, Event, read};

use crate::Test;
use crate::ground::{Ground, check, reason, records, rules};

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_that_ignores_sigterm_is_killed", ignores_term),
    ("a_silent_worker_is_ended_though_its_heart_beats", silent),
    ("a_worker_that_is_silent_says_where_it_is", asked),
];

/// Test 3 of the acceptance list.
fn ignores_term() {
    let mut ground = Ground::new();
    ground.plan.hang = vec![7];
    ground.plan.ignore_term = true;
    let mut rules = rules();
    rules.batch_limit = Some(Duration::from_millis(500));
    rules.grace = Duration::from_millis(200);
    let all = records(20);
    let report = ground.run(ground.fleet(2).rules(rules), &all);
    check(&report, &all, &[7]);
    assert!(matches!(reason(&report, 7), Reason::Late { .. }));
    // How long each hang took, by the journal: limit and grace, and no more than a busy machine adds.
    let entries = read(&ground.path("run/journal")).unwrap();
    let hangs = entries.iter().filter_map(|entry| match &entry.event {
        Event::Charged {
            batch,
            cause: Cause::Late { .. },
            ..
        } => Some((entry.at, *batch)),
        _ => None,
    });
    let took = hangs.map(|(ended, hung)| {
        let begun = entries.iter().find_map(|entry| match entry.event {
            Event::Attempt { batch, .. } if batch == hung => Some(entry.at),
            _ => None,
        });
        ended - begun.unwrap()
    });
    let took: Vec<u64> = took.collect();
    assert!(took.len() >= 3, "{took:?}");
    // Clocks of journals are those of calendars, in milliseconds.
    assert!(took.iter().all(|&took| took >= 690), "{took:?}");
    assert!(took.iter().min() < Some(&1500), "{took:?}");
    assert!(took.iter().all(|&took| took < 8000), "{took:?}");
}

fn silent() {
    let mut ground = Ground::new();
    ground.plan.hang = vec![2];
    let mut rules = rules();
    rules.silence_limit = Duration::from_millis(800);
    let all = records(10);
    let report = ground.run(ground.fleet(1).rules(rules), &all);
    check(&report, &all, &[2]);
    let Reason::Hung { after, .. } = reason(&report, 2) else {
        panic!("it hangs");
    };
    assert_eq!(*after, Duration::from_millis(800));
}

/// It is asked from outside before it is ended, and what it says is quoted.
fn asked() {
    let mut ground = Ground::new();
    ground.plan.hang = vec![2];
    let mut rules = rules();
    rules.silence_limit = Duration::from_millis(2400);
    rules.alone = 1;
    let all = records(3);
    let report = ground.run(ground.fleet(1).rules(rules).fixed_batch(1), &all);
    check(&report, &all, &[2]);
    let Reason::Hung { log, .. } = reason(&report, 2) else {
        panic!("it hangs");
    };
    assert!(log.contains("asked what it is doing"), "{log}");
    let batch = log.lines().find(|line| line.contains("batch 2: begun"));
    let batch = batch.expect("the batch that hangs");
    assert!(batch.contains("0 of 1 records answered"), "{batch}");
    assert!(log.contains("thread `fleet-ear` runs"), "{log}");
    assert_eq!(log.matches("asked what").count(), 1, "{log}");
}
