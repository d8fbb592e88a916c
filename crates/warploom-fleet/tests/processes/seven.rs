//! The seven ways in which the pattern that this grew from was seen to break, each as a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use warploom_fleet::{Order, Schedule};

use crate::Test;
use crate::ground::{Ground, check, records};

pub(crate) const TESTS: &[Test] = &[
    (
        "seven_breakages_1_a_killed_worker_harms_nobody_else",
        killed_worker,
    ),
    (
        "seven_breakages_2_a_process_serves_one_slot_and_one_device",
        one_device,
    ),
    (
        "seven_breakages_3_a_hung_worker_is_ended_from_outside",
        hung_worker,
    ),
    (
        "seven_breakages_4_what_was_done_before_a_crash_stays_done",
        done_stays,
    ),
    ("seven_breakages_5_static_parts_are_balanced", balanced),
    // The sixth, an inherited mask that is ignored, is with the masks.
    (
        "seven_breakages_7_results_come_in_the_order_of_records",
        order,
    ),
];

/// Test 1 of the acceptance list, too.
fn killed_worker() {
    let mut ground = Ground::new();
    ground.plan.kill_once = vec![3, 40, 41, 150];
    ground.plan.service = 500;
    ground.plan.meet = 3;
    let records = records(200);
    let report = ground.run(ground.fleet(3), &records);
    check(&report, &records, &[]);
    assert!(
        report.per_slot.iter().all(|&done| done > 0),
        "{:?}",
        report.per_slot
    );
}

fn one_device() {
    let ground = Ground::new();
    let records = records(60);
    let fleet = ground.fleet(4).fixed_batch(1);
    let report = ground.run(fleet, &records);
    check(&report, &records, &[]);
    // Each worker says in its log who it is and what it was given.
    let mut devices: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for log in fs::read_dir(ground.path("run/logs")).unwrap().flatten() {
        for line in fs::read_to_string(log.path()).unwrap().lines() {
            if let Some((worker, device)) = line.split_once(" on ") {
                devices
                    .entry(worker.into())
                    .or_default()
                    .insert(device.into());
            }
        }
    }
    assert!(!devices.is_empty());
    assert!(devices.values().all(|seen| seen.len() == 1), "{devices:?}");
}

fn hung_worker() {
    let mut ground = Ground::new();
    ground.plan.hang = vec![5];
    let mut rules = crate::ground::rules();
    rules.batch_limit = Some(std::time::Duration::from_millis(700));
    let records = records(30);
    let report = ground.run(ground.fleet(2).rules(rules), &records);
    check(&report, &records, &[5]);
}

fn done_stays() {
    let mut ground = Ground::new();
    // The last record of its batch: what is before it in the batch has been answered by then.
    ground.plan.kill_once = vec![15];
    let records = records(32);
    let mut delivered = vec![0; 32];
    let fleet = ground.fleet(1).fixed_batch(16).build().unwrap();
    let report = fleet.run(&records, |delivery| {
        delivered[usize::try_from(delivery.record).unwrap()] += 1;
        Ok(())
    });
    let report = report.unwrap();
    check(&report, &records, &[]);
    assert_eq!(delivered, [1; 32]);
    let again = report.outcomes.iter().enumerate().filter(|(_, outcome)| {
        matches!(outcome, warploom_fleet::Outcome::Ok { attempts, .. } if *attempts > 1)
    });
    let again: Vec<usize> = again.map(|(record, _)| record).collect();
    // Record 15 ran again; those of the batch behind it had not been begun.
    assert!(
        again.contains(&15) && again.iter().all(|&record| record >= 15),
        "{again:?}"
    );
}

fn balanced() {
    let ground = Ground::new();
    let nine = records(9);
    let fleet = ground.fleet(4).schedule(Schedule::Balanced);
    let report = ground.run(fleet, &nine);
    check(&report, &nine, &[]);
    assert_eq!(report.per_slot, [3, 2, 2, 2]);

    let ground = Ground::new();
    let report = ground.run(ground.fleet(4).schedule(Schedule::Ceil), &nine);
    check(&report, &nine, &[]);
    assert_eq!(
        report.per_slot,
        [3, 3, 3, 0],
        "as the ancestor did, for those who ask for it"
    );
}

fn order() {
    let mut ground = Ground::new();
    ground.plan.slow = vec![20, 1, 5];
    ground.plan.service = 100;
    ground.plan.refuse = vec![0, 77];
    let records = records(300);
    let mut seen = Vec::new();
    let fleet = ground.fleet(3).order(Order::OfRecords).build().unwrap();
    let report = fleet.run(&records, |delivery| {
        seen.push(delivery.record);
        assert_eq!(delivery.answer.is_some(), delivery.outcome.is_ok());
        Ok(())
    });
    check(&report.unwrap(), &records, &[0, 77]);
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
}
