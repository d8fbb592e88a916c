//! How long things may take, and how long they took.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::*;
use super::world::{self, Faults};
use super::{devices, rules, run};
use crate::record::Reason;

#[test]
fn who_takes_long_with_a_batch_is_asked_once() {
    let history = History::new(40);
    let rules = Rules {
        batch_limit: Some(Duration::from_secs(8)),
        fixed_batch: Some(20),
        ..rules()
    };
    let mut policy = Policy::new(rules, &devices(&["m"], 1), &history, BTreeMap::new());
    let mut actions = Vec::new();
    policy.step(Moment::ZERO, Input::Tick, &mut actions);
    policy.step(Moment::ZERO, Input::Ready { slot: 0 }, &mut actions);
    let begun = Input::Begun { slot: 0, batch: 0 };
    policy.step(Moment::ZERO, begun, &mut actions);
    actions.clear();
    // It answers once a second: never silent, and late in the end.
    for second in 1..8 {
        let now = Duration::from_secs(second);
        assert!(
            policy
                .next_look()
                .is_some_and(|look| look > now || second == 6)
        );
        let done = Input::Done {
            slot: 0,
            batch: 0,
            record: second,
        };
        policy.step(now, done, &mut actions);
        let asked = actions.contains(&Action::Ask { slot: 0 });
        assert_eq!(asked, second == 6, "after {second} s");
        actions.clear();
    }
    policy.step(Duration::from_secs(8), Input::Tick, &mut actions);
    assert!(actions.contains(&Action::Terminate { slot: 0 }));
    actions.clear();
    let gone = Input::Gone {
        slot: 0,
        how: "signal 15".into(),
        log: String::new(),
    };
    policy.step(Duration::from_secs(8), gone, &mut actions);
    // It was never silent: that is not what it is charged with.
    let charged = actions.iter().find_map(|action| match action {
        Action::Charge { cause, .. } => Some(cause.to_string()),
        _ => None,
    });
    let said = "its batch of 20 records took longer than 8s";
    assert_eq!(charged.as_deref(), Some(said));
}

/// Pipelines take every batch as it comes, while the one before is still at work: the second one's time is not
/// the first one's.
#[test]
fn a_batch_that_waits_behind_another_has_all_its_time() {
    let rules = Rules {
        batch_limit: Some(Duration::from_millis(300)),
        fixed_batch: Some(20),
        ..rules()
    };
    // A batch takes 200 ms.
    let faults = Faults {
        overlap: true,
        in_turn: true,
        ..Faults::default()
    };
    let world = run(2000, 2, rules.clone(), faults.clone());
    assert_eq!((world.ok(), world.terminated), (2000, 0));
    assert_eq!(world.asked, 0);
    assert!(world.runs.iter().all(|&runs| runs == 1));
    // One that takes longer by itself is ended, and it is said why.
    let rules = Rules {
        fixed_batch: None,
        batch_limit: Some(Duration::from_millis(15)),
        ..rules
    };
    let slow = Faults {
        speed: vec![0.1],
        ..faults
    };
    let world = run(1, 1, rules, slow);
    let late = Reason::Late {
        limit: Duration::from_millis(15),
        log: String::new(),
    };
    assert_eq!(world.reason(0), Some(&late));
}

#[test]
fn batches_that_overlap_are_measured_once() {
    let faults = Faults {
        overlap: true,
        ..Faults::default()
    };
    let world = run(2000, 1, rules(), faults);
    assert_eq!(world.ok(), 2000);
    // Two at once, each at full speed: twice as fast as one, and not four times.
    let rate = world.policy.rate(0).expect("it has worked");
    let single = 1.0 / world::SERVICE.as_secs_f64();
    assert!(
        (1.5..2.6).contains(&(rate / single)),
        "{rate} records a second"
    );
}
