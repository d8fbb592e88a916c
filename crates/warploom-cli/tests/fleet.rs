//! `warploom run --devices`: a process for each worker, of which some die.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test tells what it met")]

mod plate;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plate::{Bench, npy};
use serde_json::Value;

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

/// Steps on whole numbers, which come out the same on every device there is.
const EXACT: &str = r#"
name = "exact"
[[step]]
name = "top"
op = "maximum_box"
radius = 2
[[step]]
name = "bright"
op = "greater"
value = 300
[[step]]
name = "spots"
op = "label_box"
[[output]]
of = "spots"
write = "{record}/spots.tif"
[[output]]
of = "top"
write = "{record}/top.npy"
"#;

/// Every way to reach a device that is here.
fn faces() -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let told = command.args(["detect", "--json"]).output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let cards = told["devices"].as_array().unwrap().iter();
    let faces = cards.flat_map(|card| card["faces"].as_array().unwrap());
    let ids = faces.map(|face| face["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// The log of each slot, by its number.
fn logs(bench: &Bench, output: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for run in fs::read_dir(bench.path(output).join(".warploom")).unwrap() {
        let Ok(logs) = fs::read_dir(run.unwrap().path().join("logs")) else {
            continue;
        };
        for log in logs {
            let path = log.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.insert(name, fs::read_to_string(path).unwrap());
        }
    }
    found
}

/// Test 9 of the acceptance list, for every device that is here and all of them at once.
#[test]
fn every_device_has_its_worker_and_they_give_the_files_of_one_process() {
    let bench = Bench::new(60);
    fs::write(bench.path("spots.toml"), EXACT).unwrap();
    assert_eq!(bench.run(&["-o", "one", "-q", "--device", "cpu:0"]).0, 0);
    let faces = faces();
    let names = faces.join(",");
    eprintln!("on {names}");
    // Parts of equal size, so that every device has one.
    let mut command = bench.command(&["-o", "out", "--devices", &names, "--split", "balanced"]);
    command
        .args(["--json", "-q", "--workers-per-device", "1"])
        .env_remove("WARPLOOM_CPU_ONLY")
        .env("WARPLOOM_LOG", "warploom_run=info");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["tally"]["ok"].as_u64(), Some(60), "{answer}");
    assert_eq!(
        answer["changes"].as_array().map(Vec::len),
        Some(0),
        "{answer}"
    );
    assert!(bench.results("out") == bench.results("one"));
    // Each worker has seen its own device: the only one where a variable hides the others, else the one
    // with its number.
    let logs = logs(&bench, "out");
    assert_eq!(logs.len(), faces.len());
    for (slot, face) in faces.iter().enumerate() {
        let log = &logs[&format!("slot-{slot}")];
        let line = log.lines().find(|line| line.contains("its device is here"));
        let line = line.unwrap_or_else(|| panic!("{face}: {log}"));
        let seen = if face.starts_with("cuda:") {
            "cuda:0"
        } else {
            face
        };
        let plain = strip(line);
        assert!(plain.contains(&format!("device=\"{face}\"")), "{plain}");
        assert!(plain.contains(&format!("seen={seen}")), "{plain}");
    }
}

/// Devices that are emulated fail as they are told to, which workers inherit.
#[test]
fn every_device_that_fails_on_order_loses_no_record() {
    if !faces().iter().any(|face| face == "cuda:1") || !is_emulated() {
        eprintln!("not tried: there are no two emulated CUDA devices");
        return;
    }
    let bench = Bench::new(60);
    fs::write(bench.path("spots.toml"), EXACT).unwrap();
    assert_eq!(bench.run(&["-o", "one", "-q", "--device", "cpu:0"]).0, 0);
    let whole = bench.results("one");
    let run = |output: &str, devices: &str, order: (&str, &str)| {
        let mut command = bench.command(&["-o", output, "--devices", devices]);
        command
            .args(["--json", "-q", "--workers-per-device", "1"])
            .args(["--split", "balanced"])
            .env_remove("WARPLOOM_CPU_ONLY")
            // Orders name devices of the machine, whatever was given to us.
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env(order.0, order.1);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
        (output.status.code(), answer)
    };
    // The first card of the machine dies again and again, in the middle of batches that overlap.
    let (code, answer) = run("lost", "cuda:0,cuda:1", ("WARPLOOM_EMU_LOSE", "0@40"));
    assert_eq!(code, Some(0), "{answer}");
    assert!(answer["changes"].to_string().contains("lost"), "{answer}");
    assert!(bench.results("lost") == whole);
    // There is no room at first: stages are made smaller until they fit, and nobody else has to know.
    let orders: Vec<String> = (1..=4)
        .map(|call| format!("cuMemAlloc#{call}=OUT_OF_MEMORY"))
        .collect();
    let (code, answer) = run("tight", "cuda:0", ("WARPLOOM_EMU_FAIL", &orders.join(";")));
    assert_eq!(
        (code, answer["tally"]["ok"].as_u64()),
        (Some(0), Some(60)),
        "{answer}"
    );
    assert!(bench.results("tight") == whole);
    // There is never any room: every record fails, and says so.
    let none = ("WARPLOOM_EMU_FAIL", "cuMemAlloc#1+=OUT_OF_MEMORY");
    let (code, answer) = run("none", "cuda:0", none);
    assert_eq!(
        (code, answer["tally"]["failed"].as_u64()),
        (Some(3), Some(60)),
        "{answer}"
    );
    assert!(
        answer["records"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("does not fit")
    );
    assert!(bench.results("none").is_empty());
}

fn is_emulated() -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let told = command.args(["detect", "--json"]).output().unwrap();
    String::from_utf8_lossy(&told.stdout).contains("Warploom emulated")
}

/// A line without its colours.
fn strip(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    text
}

/// How many pipelines the processor is good for at once.
fn places() -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let told = command.args(["detect", "--json"]).output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let places = told["capacity"]["max_pipelines"]["cpu"].as_u64().unwrap();
    usize::try_from(places).unwrap()
}

#[test]
fn two_runs_at_once_share_a_device_by_the_ledger() {
    let bench = Bench::new(150);
    assert_eq!(bench.run(&["-o", "one", "-q"]).0, 0);
    let places = places();
    // Each of them wants all there is, and more.
    let workers = (places + 2).to_string();
    let crew = ["--devices", "cpu:0", "--workers-per-device", &workers];
    let mut runs = ["first", "second"].map(|output| {
        let mut command = bench.command(&crew);
        command.args(["-o", output, "--batch", "1", "-q"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    let (mut most, mut both) = (0, false);
    wait_for("the end of both", || {
        let counts = [0, 1].map(|run: usize| children(runs[run].id()).len());
        most = most.max(counts[0] + counts[1]);
        both |= counts[0] > 0 && counts[1] > 0;
        let ended = |run: &mut std::process::Child| run.try_wait().unwrap().is_some();
        let [first, second] = &mut runs;
        let first = ended(first);
        ended(second) && first
    });
    eprintln!("{most} workers at once of {places}; at the same time: {both}");
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{told}");
    }
    assert!(
        most <= places,
        "{most} workers at once, and room for {places}"
    );
    let whole = bench.results("one");
    assert!(bench.results("first") == whole && bench.results("second") == whole);
}
