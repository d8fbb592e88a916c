//! Ending a run from outside.

use std::sync::atomic::{AtomicU64, Ordering};

use warploom_fleet::Stopper;

use crate::Test;
use crate::faulty::Helper;
use crate::ground::{Ground, check, records};

pub(crate) const TESTS: &[Test] = &[
    ("i7_draining_finishes_what_is_under_way", drain),
    ("i7_stopping_ends_everything_at_once", stop),
    ("i7_a_panic_in_the_sink_leaves_nobody", panicking),
];

fn drain() {
    let mut ground = Ground::new();
    ground.plan.service = 1000;
    let all = records(5000);
    let stopper = Stopper::new().unwrap();
    let seen = AtomicU64::new(0);
    let fleet = ground.fleet(2).stopper(&stopper).build().unwrap();
    let report = fleet.run(&all, |_| {
        if seen.fetch_add(1, Ordering::Relaxed) == 20 {
            stopper.drain();
        }
        Ok(())
    });
    let report = report.unwrap();
    ground.nobody_is_left();
    assert!(report.interrupted && !report.is_complete());
    assert!(report.counts.ok >= 20 && report.counts.failed == 0);
    assert_eq!(report.counts.ok, seen.into_inner());
    let rest = ground.run(ground.fleet(2), &all);
    check(&rest, &all, &[]);
    let earlier = report.counts.ok;
    let later: u64 = rest.per_slot.iter().sum();
    assert_eq!(earlier + later, 5000, "nothing was done twice");
}

fn stop() {
    let mut ground = Ground::new();
    // Two workers that will never end by themselves, nor when they are asked to.
    ground.plan.hang = vec![0, 1];
    ground.plan.ignore_term = true;
    let stopper = Stopper::new().unwrap();
    let all = records(2);
    let (marks, other) = (ground.plan.marks.join("pids"), stopper.clone());
    let watcher = std::thread::spawn(move || {
        // Both have been started.
        while std::fs::read_dir(&marks).map_or(0, Iterator::count) < 2 {
            std::thread::yield_now();
        }
        other.drain();
        other.stop();
    });
    let report = ground.run(ground.fleet(2).stopper(&stopper), &all);
    watcher.join().unwrap();
    assert_eq!((report.counts.waiting, report.counts.failed), (2, 0));
    assert!(report.interrupted);
}

fn panicking() {
    let mut ground = Ground::new();
    ground.plan.helper = Helper::Left;
    let all = records(100);
    let fleet = ground.fleet(3).build().unwrap();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fleet.run(&all, |_| panic!("the sink is broken"))
    }));
    assert!(ended.is_err());
    ground.nobody_is_left();
}
