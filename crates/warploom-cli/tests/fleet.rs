//! `warploom run --devices`: a process for each worker, of which some die.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test tells what it met")]

mod plate;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use plate::{Bench, npy};

const CREW: [&str; 4] = ["--devices", "cpu:0", "--workers-per-device", "2"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CREW[..], more].concat()
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
    state.is_some_and(|state| state != "Z" && state != "X")
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).output();
    drop(killed);
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(2);
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not happen in two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn workers_give_the_files_of_one_process() {
    let bench = Bench::new(40);
    assert_eq!(bench.run(&["-o", "one", "-q"]).0, 0);
    for split in ["guided", "balanced", "ceil"] {
        let (code, answer) = bench.told(&with(&["-o", split, "--split", split]));
        assert_eq!(
            (code, answer["tally"]["ok"].as_u64()),
            (0, Some(40)),
            "{answer}"
        );
        assert!(bench.results(split) == bench.results("one"), "{split}");
        let (code, answer) = bench.told(&with(&["-o", split, "--resume"]));
        assert_eq!((code, answer["tally"]["skipped"].as_u64()), (0, Some(40)));
    }
    // What one process has done, workers leave out, and the other way round.
    let (code, answer) = bench.told(&with(&["-o", "one", "--resume"]));
    assert_eq!((code, answer["tally"]["skipped"].as_u64()), (0, Some(40)));
    let (code, answer) = bench.told(&["-o", "ceil", "--resume"]);
    assert_eq!((code, answer["tally"]["skipped"].as_u64()), (0, Some(40)));
}

#[test]
fn a_bad_record_fails_and_the_others_are_written() {
    let bench = Bench::new(30);
    let cut = fs::read(bench.input(7)).unwrap();
    fs::write(bench.input(7), &cut[..cut.len() - 9]).unwrap();
    npy(&bench.input(23), "<f8", "64, 48", &vec![1.0; 64 * 48]);
    let (code, answer) = bench.told(&with(&["-o", "out"]));
    assert_eq!(code, 3, "{answer}");
    assert_eq!(answer["tally"]["ok"].as_u64(), Some(28));
    let records = answer["records"].as_array().unwrap();
    for (place, code) in [(7, "WL0706"), (23, "WL0846")] {
        assert_eq!(records[place]["code"], code, "{}", records[place]);
        assert!(records[place]["help"].is_string());
    }
    assert_eq!(bench.results("out").len(), 56);
}

#[test]
fn workers_that_are_killed_lose_no_record() {
    let bench = Bench::new(300);
    assert_eq!(bench.run(&["-o", "one", "-q"]).0, 0);
    let mut child = bench.start(&with(&["-o", "out", "--batch", "1", "-q"]));
    let mut kills = 0;
    wait_for("the end", || {
        // More in a row would look like a fault of the device, which is then left alone for a while.
        let workers = children(child.id());
        if kills < 3
            && bench.results("out").len() > 150 * kills
            && let Some(worker) = workers.get(kills % workers.len().max(1))
        {
            kill(*worker);
            kills += 1;
        }
        child.try_wait().unwrap().is_some()
    });
    assert!(kills > 0, "the run was over before anything was killed");
    assert_eq!(child.wait().unwrap().code(), Some(0), "{kills} kills");
    assert!(bench.results("out") == bench.results("one"));
    eprintln!("{kills} workers killed");
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_worker_and_is_resumed() {
    let bench = Bench::new(120);
    assert_eq!(bench.run(&["-o", "one", "-q"]).0, 0);
    let whole = bench.results("one");
    let (mut kills, mut state) = (0, 7_u64);
    for round in 0.. {
        let mut child = bench.start(&with(&["-o", "out", "--resume", "-q"]));
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let delay = Duration::from_millis(100 + (state >> 33) % 500);
        let end = Instant::now() + delay;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        let workers = children(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        wait_for("the end of all workers", || {
            !workers.iter().any(|pid| is_alive(*pid))
        });
        for (path, bytes) in bench.results("out") {
            assert!(whole[&path] == bytes, "{} in round {round}", path.display());
        }
        if round > 40 {
            assert_eq!(bench.run(&with(&["-o", "out", "--resume", "-q"])).0, 0);
            break;
        }
    }
    assert!(bench.results("out") == whole);
    eprintln!("{kills} coordinators killed");
}

#[test]
fn an_interrupt_finishes_what_is_begun_and_leaves_no_worker() {
    let bench = Bench::new(400);
    let mut child = bench.start(&with(&["-o", "out", "--batch", "1"]));
    wait_for("a result", || bench.results("out").len() > 6);
    let workers = children(child.id());
    assert!(!workers.is_empty());
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!workers.iter().any(|pid| is_alive(*pid)));
    let (code, answer) = bench.told(&with(&["-o", "out", "--resume"]));
    assert_eq!(code, 0, "{answer}");
    assert!(answer["tally"]["skipped"].as_u64().unwrap() > 0);
    assert_eq!(bench.results("out").len(), 800);
}
