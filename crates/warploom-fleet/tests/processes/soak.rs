//! Everything at once, for a while.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::Test;
use crate::ground::{Ground, check, reason, records, rules, workers};

pub(crate) const TESTS: &[Test] = &[("i2_soak_random_faults_with_a_fixed_seed", soak)];

/// The least time that random faults go on, in seconds; as many as `WARPLOOM_SOAK` says if it is set.
const SECONDS: u64 = 60;

/// How many answers there are between two kills from outside.
const ANSWERS: u64 = 900;

/// Runs of 10 000 records on 4 slots with kills, hangs, lost devices, a lack of memory and bad records. Workers are
/// killed as batches begin, and from outside in the middle of them; in every other run their batches overlap. Each
/// ends, accounts for every record, and gives the answers of an undisturbed run.
fn soak() {
    let begun = Instant::now();
    let asked = std::env::vars().find(|(name, _)| name == "WARPLOOM_SOAK");
    let seconds = asked.and_then(|(_, value)| value.parse().ok());
    let enough = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let mut round = 0;
    while round < 2 || begun.elapsed() < enough {
        round += 1;
        let mut ground = Ground::new();
        ground.plan.poison = vec![1234, 1235, 9000];
        ground.plan.refuse = vec![42];
        ground.plan.garbage = vec![5555];
        ground.plan.fits = 100;
        ground.plan.overlap = round % 2 == 0;
        // Of a thousand batches: 40 kills, 4 hangs, 30 times no memory, 10 lost devices.
        ground.plan.chances = Some(([40, 4, 30, 10], 0x5eed + round));
        let mut rules = rules();
        rules.batch_limit = Some(Duration::from_secs(2));
        rules.grace = Duration::from_millis(500);
        rules.quarantine = Duration::from_millis(100);
        rules.probes = 20;
        // Chance may kill the worker of one good record several times, alone with it.
        rules.alone = 6;
        let all = records(10_000);
        let (mut answers, mut kills) = (0, 0);
        let fleet = ground.fleet(4).rules(rules).build().unwrap();
        let report = fleet.run(&all, |_| {
            answers += 1;
            if answers % ANSWERS == 0 {
                kills += u64::from(kill_one(&ground.plan.marks, answers / ANSWERS));
            }
            Ok(())
        });
        let report = report.unwrap();
        ground.nobody_is_left();
        assert!(kills > 5, "only {kills} workers were killed from outside");
        check(&report, &all, &[42, 1234, 1235, 5555, 9000]);
        assert_eq!(reason(&report, 42).to_string(), "record 42 is not an image");
    }
}

/// Kills one of the workers that live; false if there is none.
fn kill_one(marks: &Path, choice: u64) -> bool {
    let living = workers(marks);
    let at = choice % (living.len() as u64).max(1);
    let victim = living.get(usize::try_from(at).unwrap());
    victim.is_some_and(|&pid| kill_process(pid, Signal::KILL).is_ok())
}
