//! One fault at a time.

use std::fs;
use std::time::Duration;

use warploom_core::Coded as _;
use warploom_fleet::journal::{Event, History, read};
use warploom_fleet::{FleetDevice, Incident, Outcome, Program, Reason, Record, Schedule};

use crate::Test;
use crate::faulty::{Helper, Hold, answer};
use crate::ground::{Ground, check, reason, records, rules};

pub(crate) const TESTS: &[Test] = &[
    ("nothing_wrong_is_nothing_wrong", nothing_wrong),
    ("i2_a_poison_record_among_ten_thousand", poison),
    ("memory_runs_out_above_sixteen", memory),
    ("a_fixed_batch_that_does_not_fit_fails_loudly", fixed_batch),
    ("a_device_lost_twice_is_quarantined_and_comes_back", sticky),
    (
        "a_record_that_loses_every_device_is_the_only_one_that_fails",
        cursed,
    ),
    ("a_device_that_fails_its_probes_is_given_up", failing_probes),
    ("garbage_on_the_socket_is_the_records_fault", garbage),
    ("the_work_fails_records_with_its_own_words", refused),
    ("a_batch_that_fails_as_a_whole_is_halved", spoiled),
    ("an_attempt_is_in_the_journal_before_it_is_one", journaled),
    (
        "workers_that_cannot_start_leave_records_not_started",
        broken,
    ),
    ("a_driver_that_does_not_answer_costs_its_device", stuck),
    ("a_worker_that_sees_another_device_gets_nothing", elsewhere),
    ("helpers_of_workers_die_with_them", helpers),
    ("long_records_and_answers_go_through_shared_memory", long),
    (
        "answers_larger_than_shared_memory_go_through_the_socket",
        longer,
    ),
    ("batches_larger_than_any_message_go_in_parts", parts),
    ("batches_overlap_and_end_in_any_order", overlapping),
    ("unequal_slots_finish_together", unequal),
    ("a_sink_that_fails_ends_the_run", sink),
    ("no_record_is_a_run_too", empty),
    ("a_program_that_is_no_worker_is_given_up", no_worker),
];

/// Workers of a slot wait for a mark.
fn hold(slot: usize, until: &str, buried: bool) -> Hold {
    Hold {
        slot,
        until: until.to_owned(),
        buried,
    }
}

fn nothing_wrong() {
    let ground = Ground::new();
    let all = records(1000);
    let report = ground.run(ground.fleet(4), &all);
    check(&report, &all, &[]);
    assert_eq!(report.incidents, []);
    let attempts = report.outcomes.iter().map(|outcome| match outcome {
        Outcome::Ok { attempts, .. } => *attempts,
        _ => 0,
    });
    assert!(attempts.max() == Some(1));
    // Resuming a run that is complete does nothing, and reports the same.
    let again = ground.run(ground.fleet(4), &all);
    assert_eq!(again.outcomes, report.outcomes);
    assert_eq!(again.per_slot, [0; 4]);
}

/// Test 2 of the acceptance list.
fn poison() {
    let mut ground = Ground::new();
    ground.plan.poison = vec![4321];
    let all = records(10_000);
    let report = ground.run(ground.fleet(4), &all);
    check(&report, &all, &[4321]);
    let Reason::Crashed { how, log } = reason(&report, 4321) else {
        panic!("it crashes");
    };
    assert_eq!(how, "it ended by signal 9");
    assert!(log.contains("record 4321 is poison"), "{log}");
    // From the journal: batches after the first crash in which a neighbour of the bad record ran again.
    let entries = read(&ground.path("run/journal")).unwrap();
    let charged = |event: &Event| match event {
        Event::Charged { records, .. } => Some(records.clone()),
        _ => None,
    };
    let griefs: Vec<_> = entries
        .iter()
        .filter_map(|entry| charged(&entry.event))
        .collect();
    let together = griefs[0].len();
    let suspects: Vec<u64> = griefs[0].iter().collect();
    let first = entries
        .iter()
        .position(|entry| charged(&entry.event).is_some())
        .unwrap();
    let more = entries[first..].iter().filter(|entry| match &entry.event {
        Event::Attempt { records, .. } => {
            let mut neighbours = records.iter().filter(|&record| record != 4321);
            neighbours.any(|record| suspects.contains(&record))
        }
        _ => false,
    });
    let more = more.count() as f64;
    let bound = 2.0 * (together as f64).log2().ceil();
    assert!(
        more <= bound,
        "{more} runs of neighbours; {together} were together"
    );
}

fn cursed() {
    for overlap in [false, true] {
        let mut ground = Ground::new();
        ground.plan.lose = vec![777];
        ground.plan.overlap = overlap;
        let all = records(2000);
        let report = ground.run(ground.fleet(2), &all);
        check(&report, &all, &[777]);
        let Reason::DeviceLost { text, log } = reason(&report, 777) else {
            panic!("{}", reason(&report, 777));
        };
        assert_eq!(text, "illegal access");
        assert!(log.contains("record 777 loses its device"), "{log}");
        // Nobody but the record is blamed: no device was put aside, and both have worked.
        let griefs = |incident: &Incident| matches!(incident, Incident::Grief { .. });
        assert!(
            report.incidents.iter().all(griefs),
            "{:?}",
            report.incidents
        );
        assert!(report.per_slot.iter().all(|&done| done > 0));
    }
}

/// Workers read the journal as their batches begin.
fn journaled() {
    for overlap in [false, true] {
        let mut ground = Ground::new();
        ground.plan.journal = Some(ground.path("run/journal"));
        ground.plan.kill_once = vec![5, 41];
        ground.plan.overlap = overlap;
        let all = records(100);
        let fleet = ground.fleet(2).fixed_batch(2);
        check(&ground.run(fleet, &all), &all, &[]);
        assert!(ground.plan.marks.join("looked-up").exists());
        assert!(!ground.plan.marks.join("not-in-the-journal").exists());
    }
}

/// Test 4 of the acceptance list.
fn memory() {
    let mut ground = Ground::new();
    ground.plan.fits = 16;
    let all = records(10_000);
    let report = ground.run(ground.fleet(2), &all);
    check(&report, &all, &[]);
    assert_eq!(report.ceilings["pretended"], 16);
    // Whoever resumes the run knows, and so does whoever is told.
    let told = read(&ground.path("run/journal")).unwrap();
    let last = told.iter().rev().find_map(|entry| match &entry.event {
        Event::Ceiling { plan, model, batch } => Some((plan.clone(), model.clone(), *batch)),
        _ => None,
    });
    assert_eq!(last, Some(("faulty".into(), "pretended".into(), 16)));
    let knowing = Ground::new();
    let mut fleet = ground.plan.clone();
    fleet.marks.clone_from(&knowing.plan.marks);
    let fleet = crate::ground::builder(&fleet, &knowing.path("run"), 1).ceiling("pretended", 16);
    assert_eq!(knowing.run(fleet, &all).incidents, []);
}

fn fixed_batch() {
    let mut ground = Ground::new();
    ground.plan.fits = 16;
    let all = records(500);
    let fleet = ground.fleet(2).fixed_batch(128).build().unwrap();
    let failure = fleet.run(&all, |_| Ok(())).unwrap_err();
    assert_eq!(failure.error.code().to_string(), "WL1007", "{failure}");
    let report = failure.report.unwrap();
    assert_eq!((report.counts.ok, report.counts.waiting), (0, 500));
    ground.nobody_is_left();
    // Nothing is spoiled: with a size that fits it goes on.
    let report = ground.run(ground.fleet(2).fixed_batch(16), &all);
    check(&report, &all, &[]);
}

/// Test 10 of the acceptance list.
fn sticky() {
    let mut ground = Ground::new();
    ground.plan.sticky = vec![(0, 2)];
    ground.plan.failing_probes = vec![(0, 1)];
    // The other slot leaves something to do until the first has done a batch.
    ground.plan.holds = vec![hold(1, "worked-0", false)];
    let all = records(2000);
    let report = ground.run(ground.fleet(2), &all);
    check(&report, &all, &[]);
    let quarantined = Incident::Quarantined {
        device: "gpu-0".into(),
        why: "it was lost 2 times in a row".into(),
    };
    let readmitted = Incident::Readmitted {
        device: "gpu-0".into(),
    };
    let lost = Incident::Grief {
        device: "gpu-0".into(),
        how: "its device was lost: illegal access".into(),
    };
    let incidents = [lost.clone(), lost, quarantined, readmitted];
    assert_eq!(report.incidents, incidents);
    assert!(
        report.per_slot[0] > 0 && report.per_slot[1] > 0,
        "{:?}",
        report.per_slot
    );
}

fn failing_probes() {
    let mut ground = Ground::new();
    ground.plan.sticky = vec![(0, 1000)];
    ground.plan.failing_probes = vec![(0, 1000)];
    // The other slot leaves something to do until the third probe has failed.
    ground.plan.holds = vec![hold(1, "probe-0.2", true)];
    let mut rules = rules();
    rules.quarantine = Duration::from_millis(50);
    let all = records(1500);
    let report = ground.run(ground.fleet(2).rules(rules), &all);
    check(&report, &all, &[]);
    let given_up = report.incidents.iter().any(|incident| match incident {
        Incident::GivenUp { device, why } => device == "gpu-0" && why.contains("still sick"),
        _ => false,
    });
    assert!(given_up, "{:?}", report.incidents);
    assert_eq!(report.per_slot[0], 0);
}

fn garbage() {
    let mut ground = Ground::new();
    ground.plan.garbage = vec![11];
    let all = records(40);
    let report = ground.run(ground.fleet(2), &all);
    check(&report, &all, &[11]);
    let text = reason(&report, 11).to_string();
    assert!(text.contains("broke the protocol"), "{text}");
}

fn refused() {
    let mut ground = Ground::new();
    ground.plan.refuse = vec![1, 8];
    ground.plan.forget = vec![5];
    let all = records(10);
    let report = ground.run(ground.fleet(1), &all);
    check(&report, &all, &[1, 5, 8]);
    assert_eq!(reason(&report, 8).to_string(), "record 8 is not an image");
    assert_eq!(*reason(&report, 5), Reason::Unanswered);
}

fn spoiled() {
    let mut ground = Ground::new();
    ground.plan.spoil = vec![100];
    let all = records(400);
    let report = ground.run(ground.fleet(2), &all);
    check(&report, &all, &[100]);
    assert_eq!(
        reason(&report, 100).to_string(),
        "record 100 spoils its batch"
    );
}

fn broken() {
    let mut ground = Ground::new();
    ground.plan.broken = vec![0, 1];
    let mut rules = rules();
    rules.quarantine = Duration::from_millis(20);
    let fleet = ground.fleet(2).rules(rules).build().unwrap();
    let failure = fleet.run(&records(5), |_| Ok(())).unwrap_err();
    assert_eq!(failure.error.code().to_string(), "WL1008");
    assert!(
        failure
            .error
            .to_string()
            .contains("the driver is not there"),
        "{failure}"
    );
    assert_eq!(failure.report.unwrap().counts.waiting, 5);
    ground.nobody_is_left();
    // Whoever reads the journal learns why it ended, until somebody takes the run up again.
    let entries = read(&ground.path("run/journal")).unwrap();
    let history = History::of(5, &entries).unwrap();
    assert!(history.ended);
    assert_eq!(history.broken, Some(failure.error.to_string()));
    ground.plan.broken.clear();
    let all = records(5);
    check(&ground.run(ground.fleet(2), &all), &all, &[]);
    let entries = read(&ground.path("run/journal")).unwrap();
    assert_eq!(History::of(5, &entries).unwrap().broken, None);
}

fn stuck() {
    let mut ground = Ground::new();
    ground.plan.stuck = vec![0];
    let mut rules = rules();
    rules.start_limit = Duration::from_millis(300);
    rules.quarantine = Duration::from_millis(20);
    rules.probes = 1;
    let fleet = ground.fleet(1).rules(rules).build().unwrap();
    let failure = fleet.run(&records(5), |_| Ok(())).unwrap_err();
    assert_eq!(failure.error.code().to_string(), "WL1008");
    let text = failure.error.to_string();
    assert!(text.contains("it did not start within"), "{text}");
    assert_eq!(failure.report.unwrap().counts.waiting, 5);
    ground.nobody_is_left();
}

fn elsewhere() {
    let mut ground = Ground::new();
    ground.plan.elsewhere = vec![0];
    // The other slot leaves something to do until the one that sees another device is gone.
    ground.plan.holds = vec![hold(1, "elsewhere-0", true)];
    let all = records(20);
    let report = ground.run(ground.fleet(2), &all);
    check(&report, &all, &[]);
    assert_eq!(report.per_slot[0], 0);
    let why = "it was assigned gpu-0 and sees gpu-of-another".to_owned();
    let device = "gpu-0".to_owned();
    assert_eq!(report.incidents, [Incident::GivenUp { device, why }]);
}

fn helpers() {
    let mut ground = Ground::new();
    ground.plan.helper = Helper::Left;
    ground.plan.kill_once = vec![3];
    let all = records(30);
    // `run` demands that the helpers, which would live for a quarter of an hour, are gone.
    check(&ground.run(ground.fleet(2), &all), &all, &[]);
    let marks = fs::read_dir(ground.plan.marks.join("pids"))
        .unwrap()
        .count();
    assert!(marks >= 4, "{marks} processes left a mark");
}

fn long() {
    let ground = Ground::new();
    let all: Vec<Record> = (0..40_u8)
        .map(|number| Record::new(vec![number; 100_000 + usize::from(number)]))
        .collect();
    let mut answers = 0;
    let fleet = ground.fleet(2).keep(1000).arena(1 << 20).build().unwrap();
    let report = fleet.run(&all, |delivery| {
        let place = usize::try_from(delivery.record).unwrap();
        let expected = answer(delivery.record, &all[place].body, 0);
        assert!(delivery.answer == Some(&*expected), "record {place}");
        answers += 1;
        Ok(())
    });
    let report = report.unwrap();
    assert_eq!((answers, report.counts.ok), (40, 40));
    let kept = report.outcomes.iter().any(|outcome| match outcome {
        Outcome::Ok { result, .. } => result.bytes().is_some(),
        _ => true,
    });
    assert!(!kept, "answers of 100 kB are not kept in memory");
}

fn longer() {
    let mut ground = Ground::new();
    ground.plan.answer = 300_000;
    let all = records(12);
    let fleet = ground.fleet(2).arena(4096).keep(1 << 20);
    let report = ground.run(fleet, &all);
    for (number, (outcome, record)) in (0..).zip(report.outcomes.iter().zip(&all)) {
        let Outcome::Ok { result, .. } = outcome else {
            panic!("record {number}: {outcome:?}");
        };
        let expected = answer(number, &record.body, 300_000);
        assert!(result.bytes() == Some(&*expected));
    }
}

fn parts() {
    let mut ground = Ground::new();
    ground.plan.answer = 100_000;
    // 12 records of 9 MB, of which shared memory has room for none; and answers of which it has room for one.
    let all: Vec<Record> = (0..12_u8)
        .map(|number| Record::new(vec![number; 9 << 20]))
        .collect();
    let fleet = ground.fleet(1).arena(150_000).fixed_batch(12).keep(1 << 20);
    let report = ground.run(fleet, &all);
    for (number, (outcome, record)) in (0..).zip(report.outcomes.iter().zip(&all)) {
        let Outcome::Ok {
            result,
            attempts: 1,
        } = outcome
        else {
            panic!("record {number}: {outcome:?}");
        };
        assert!(result.bytes() == Some(&*answer(number, &record.body, 100_000)));
    }
}

fn overlapping() {
    let mut ground = Ground::new();
    ground.plan.overlap = true;
    ground.plan.service = 100;
    ground.plan.poison = vec![700];
    ground.plan.garbage = vec![901];
    ground.plan.hang = vec![1200];
    ground.plan.kill_once = vec![20, 333];
    ground.plan.refuse = vec![15];
    ground.plan.sticky = vec![(1, 1)];
    ground.plan.fits = 40;
    let mut rules = rules();
    rules.batch_limit = Some(Duration::from_secs(1));
    let all = records(2000);
    let report = ground.run(ground.fleet(2).rules(rules), &all);
    check(&report, &all, &[15, 700, 901, 1200]);
}

/// Test 11 of the acceptance list. The bounds are wide because sleeping workers on a busy machine are late;
/// the decision itself is tested in virtual time.
fn unequal() {
    let run = |schedule, count| {
        let mut ground = Ground::new();
        ground.plan.service = 8000;
        ground.plan.slow = vec![4, 1];
        ground.plan.meet = 2;
        let all = records(count);
        let report = ground.run(ground.fleet(2).schedule(schedule), &all);
        check(&report, &all, &[]);
        report.per_slot
    };
    let guided = run(Schedule::Guided, 300);
    assert!(
        guided[1] > 2 * guided[0],
        "the faster slot does more: {guided:?}"
    );
    assert_eq!(run(Schedule::Balanced, 60), [30, 30]);
}

fn sink() {
    let ground = Ground::new();
    let all = records(50);
    let fleet = ground.fleet(2).build().unwrap();
    let failure = fleet.run(&all, |delivery| match delivery.record {
        9 => Err("the disk is full".into()),
        _ => Ok(()),
    });
    let failure = failure.unwrap_err();
    assert_eq!(failure.error.code().to_string(), "WL1010");
    let report = failure.report.unwrap();
    assert!(matches!(report.outcomes[9], Outcome::NotStarted { .. }));
    ground.nobody_is_left();
    check(&ground.run(ground.fleet(2), &all), &all, &[]);
}

fn empty() {
    let ground = Ground::new();
    let report = ground.run(ground.fleet(2), &[]);
    assert!(report.is_complete() && report.outcomes.is_empty());
    let error = ground.fleet(0).build().unwrap_err();
    assert_eq!(error.code().to_string(), "WL1005");
}

fn no_worker() {
    let ground = Ground::new();
    for program in [
        Program::new("true"),
        Program::new("there-is-no-such-program"),
    ] {
        let mut rules = rules();
        rules.quarantine = Duration::from_millis(10);
        let fleet = warploom_fleet::Fleet::builder(program)
            .device(FleetDevice::new("gpu-0"))
            .rules(rules)
            .build()
            .unwrap();
        let failure = fleet.run(&records(3), |_| Ok(())).unwrap_err();
        assert_eq!(failure.error.code().to_string(), "WL1008", "{failure}");
    }
    ground.nobody_is_left();
}
