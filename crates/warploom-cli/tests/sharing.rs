//! Several `warploom run` at once, which share a device by the ledger of leases.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test tells what it met")]

mod plate;

use std::io::Read as _;
use std::process::{Command, Stdio};

use plate::Bench;
use plate::processes::{Stopped, children, signal, stand_still, wait_for};
use serde_json::Value;

/// Runs that share a ledger with each other and with nobody else.
struct Neighbours {
    bench: Bench,
    leases: tempfile::TempDir,
}

impl Neighbours {
    fn new(images: u32) -> Self {
        let bench = Bench::new(images);
        let leases = tempfile::tempdir().unwrap();
        Self { bench, leases }
    }

    fn start(&self, output: &str, workers: usize, more: &[&str]) -> Stopped {
        let workers = workers.to_string();
        let crew = ["--devices", "cpu:0", "--workers-per-device", &workers];
        let mut command = self.bench.command(&crew);
        command
            .args(["-o", output, "--batch", "1", "-q"])
            .args(more);
        command.env("WARPLOOM_LEASES", self.leases.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Stopped(command.spawn().unwrap())
    }

    /// A run that has begun, and stands still with what it has until it is told to go on.
    fn hold(&self, output: &str, workers: usize) -> Stopped {
        let run = self.start(output, workers, &[]);
        wait_for("a worker of the first", || !children(run.0.id()).is_empty());
        stand_still(run.0.id(), self.leases.path());
        run
    }
}

/// How many pipelines the processor is good for at once.
fn places() -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let told = command.args(["detect", "--json"]).output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let places = told["capacity"]["max_pipelines"]["cpu"].as_u64().unwrap();
    usize::try_from(places).unwrap()
}

fn has_ended(run: &mut Stopped) -> bool {
    run.0.try_wait().unwrap().is_some()
}

fn all_is_well(mut run: Stopped) {
    let mut told = String::new();
    let mut errors = run.0.stderr.take().unwrap();
    errors.read_to_string(&mut told).unwrap();
    assert_eq!(run.0.wait().unwrap().code(), Some(0), "{told}");
}

#[test]
fn two_runs_at_once_share_a_device_by_the_ledger() {
    let runs = Neighbours::new(150);
    assert_eq!(runs.bench.run(&["-o", "one", "-q"]).0, 0);
    let places = places();
    // The first leaves a place if there are two, and cannot be over before the second has begun; that wants all
    // there is, and more.
    let mut is_held = places > 1;
    let mut first = if is_held {
        runs.hold("first", places - 1)
    } else {
        runs.start("first", 1, &[])
    };
    let mut second = runs.start("second", places + 2, &[]);
    let (mut most, mut both) = (0, false);
    wait_for("the end of both", || {
        let counts = [&first, &second].map(|run| children(run.0.id()).len());
        most = most.max(counts[0] + counts[1]);
        both |= counts[0] > 0 && counts[1] > 0;
        if both && is_held {
            is_held = false;
            assert!(signal("-CONT", first.0.id()));
        }
        let first = has_ended(&mut first);
        has_ended(&mut second) && first
    });
    all_is_well(first);
    all_is_well(second);
    if places > 1 {
        assert!(both, "they did not run at the same time");
    } else {
        eprintln!("one after the other: the processor has one place");
    }
    assert!(
        most <= places,
        "{most} workers at once, and room for {places}"
    );
    let whole = runs.bench.results("one");
    assert!(runs.bench.results("first") == whole && runs.bench.results("second") == whole);
}

/// Each of two runs has a place and wants the other's for a part of its records: neither waits for it when there is
/// nothing else to do.
#[test]
fn parts_that_get_no_place_of_their_own_are_done_in_another() {
    let places = places();
    if places < 2 {
        eprintln!("skipped: the processor has one place, and two runs are never on it at once");
        return;
    }
    let runs = Neighbours::new(30);
    assert_eq!(runs.bench.run(&["-o", "one", "-q"]).0, 0);
    let held = runs.hold("held", places - 1);
    for split in ["balanced", "ceil"] {
        let mut run = runs.start(split, places + 1, &["--split", split]);
        wait_for("the end beside one that stands still", || {
            has_ended(&mut run)
        });
        all_is_well(run);
        assert!(runs.bench.results(split) == runs.bench.results("one"));
    }
    assert!(signal("-CONT", held.0.id()));
    all_is_well(held);
    assert!(runs.bench.results("held") == runs.bench.results("one"));
}
