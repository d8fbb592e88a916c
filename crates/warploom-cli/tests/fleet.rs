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
use std::process::Command;
use std::time::{Duration, Instant};

use plate::processes::{children, is_alive, signal, status, wait_for, wait_within};
use plate::{Bench, Files, npy};
use serde_json::Value;

const CREW: [&str; 4] = ["--devices", "cpu:0", "--workers-per-device", "2"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CREW[..], more].concat()
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
    // The processor has one worker if nothing is said.
    let (code, answer) = bench.told(&["-o", "usual", "--devices", "cpu:0"]);
    assert_eq!((code, answer["tally"]["ok"].as_u64()), (0, Some(40)));
    assert!(bench.results("usual") == bench.results("one"));
    let (_, answer) = status(&bench.path("usual"));
    let workers = answer["devices"].as_array().unwrap();
    let workers: Vec<_> = workers.iter().map(|one| one["workers"].as_u64()).collect();
    assert_eq!(workers, [Some(1)], "{answer}");
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
    let (code, answer) = bench.told(&with(&["-o", "out", "--metrics", "m.prom"]));
    assert_eq!(code, 3, "{answer}");
    assert_eq!(answer["tally"]["ok"].as_u64(), Some(28));
    let metrics = fs::read_to_string(bench.path("m.prom")).unwrap();
    let mut lines = metrics.lines().filter(|line| line.contains("cpu:0"));
    let failed = lines.find(|line| line.contains("outcome=\"failed\""));
    assert!(failed.is_some_and(|line| line.ends_with(" 2")), "{metrics}");
    let records = answer["records"].as_array().unwrap();
    for (place, code) in [(7, "WL0706"), (23, "WL0846")] {
        assert_eq!(records[place]["code"], code, "{}", records[place]);
        assert_eq!(records[place]["attempts"], 1, "{}", records[place]);
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
            signal("-9", *worker);
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
    const KILLS: u32 = 8;
    let bench = Bench::new(120);
    assert_eq!(bench.run(&["-o", "one", "-q"]).0, 0);
    let whole = bench.results("one");
    let (mut kills, mut state) = (0, 7_u64);
    for round in 0.. {
        let out = format!("out{round}");
        let args = with(&["-o", &out, "--resume", "-q"]);
        // Again and again, until it comes to its end or has been killed often enough.
        loop {
            let mut child = bench.start(&args);
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let delay = Duration::from_millis(50 + (state >> 33) % 400);
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
            wait_within(Duration::from_secs(1), "the end of all workers", || {
                !workers.iter().any(|pid| is_alive(*pid))
            });
            for (path, bytes) in bench.results(&out) {
                assert!(whole[&path] == bytes, "{} of {out}", path.display());
            }
            if kills >= KILLS {
                assert_eq!(bench.run(&args).0, 0);
                break;
            }
        }
        assert!(bench.results(&out) == whole);
        if kills >= KILLS {
            break;
        }
        assert!(round < 40, "it is over before it can be killed");
    }
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

/// Are so many devices here as somebody says that there have to be? `cuda=2` is exactly, `opencl>=3` at least
/// so many.
fn check(faces: &[String]) {
    let mut variables = std::env::vars();
    let Some((_, rules)) = variables.find(|(name, _)| name == "WARPLOOM_TEST_FACES") else {
        eprintln!("on whatever is here: nobody said in WARPLOOM_TEST_FACES what has to be");
        return;
    };
    for rule in rules.split(',') {
        let (name, number) = rule.split_once('=').unwrap();
        let number: usize = number.parse().unwrap();
        let start = format!("{}:", name.trim_end_matches('>'));
        let count = faces.iter().filter(|face| face.starts_with(&start)).count();
        let is_so = count == number || (name.ends_with('>') && count > number);
        assert!(is_so, "{rule} was expected, and there are {faces:?}");
    }
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
    check(&faces);
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

/// An order to have no room so often. A device looks for room three times before it says that there is none.
fn full(times: u32) -> String {
    let calls = (1..=3 * times).map(|call| format!("cuMemAlloc#{call}=OUT_OF_MEMORY"));
    calls.collect::<Vec<_>>().join(";")
}

/// Devices that are emulated fail as they are told to, which workers inherit.
#[test]
fn every_device_that_fails_on_order_loses_no_record() {
    let Some((bench, whole)) = on_emulated_cards(60) else {
        return;
    };
    let run = |output: &str, more: &[&str], order: (&str, &str)| {
        let mut command = bench.command(&["-o", output]);
        command
            .args(["--json", "-q", "--workers-per-device", "1"])
            .args(["--split", "balanced"])
            .args(more)
            .env_remove("WARPLOOM_CPU_ONLY")
            // Orders name devices of the machine, whatever was given to us.
            .env_remove("CUDA_VISIBLE_DEVICES")
            // What one of them finds out the others do not know, but for one.
            .env(
                "XDG_CACHE_HOME",
                bench.path("caches").join(output.trim_end_matches("-too")),
            )
            .env(order.0, order.1);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
        (output.status.code(), answer, told)
    };
    let first = ["--devices", "cuda:0"];
    // The first card of the machine dies again and again, in the middle of batches that overlap.
    let both = ["--devices", "cuda:0,cuda:1"];
    let (code, answer, _) = run("lost", &both, ("WARPLOOM_EMU_LOSE", "0@40"));
    assert_eq!(code, Some(0), "{answer}");
    assert!(answer["changes"].to_string().contains("lost"), "{answer}");
    assert!(bench.results("lost") == whole);
    // There is no room at first: stages are made smaller until they fit, and it is said how small.
    let (once, twice) = (full(1), full(2));
    let (code, answer, _) = run("tight", &first, ("WARPLOOM_EMU_FAIL", &twice));
    assert_eq!(
        (code, answer["tally"]["ok"].as_u64()),
        (Some(0), Some(60)),
        "{answer}"
    );
    assert!(bench.results("tight") == whole);
    let settled = room(&answer).unwrap_or_else(|| panic!("{answer}"));
    assert!((2..10).contains(&settled), "{answer}");
    let told = status(&bench.path("tight")).1["incidents"].to_string();
    assert!(told.contains("has room for"), "{told}");
    // It is remembered: who resumes begins as small, and there is less room still.
    for number in 0..60 {
        fs::remove_dir_all(bench.path(&format!("tight/s{number:03}"))).unwrap();
    }
    let again = [&first[..], &["--resume"]].concat();
    let (code, answer, _) = run("tight", &again, ("WARPLOOM_EMU_FAIL", &once));
    assert_eq!(
        (code, room(&answer)),
        (Some(0), Some(settled / 2)),
        "{answer}"
    );
    assert!(bench.results("tight") == whole);
    // Also for results elsewhere.
    let (code, answer, _) = run("tight-too", &first, ("WARPLOOM_EMU_FAIL", &once));
    assert_eq!(code, Some(0), "{answer}");
    assert!(room(&answer).is_none_or(|room| room < settled), "{answer}");
    // It runs out of memory in the middle, with one record in a batch: it is done all the same.
    let middle = ("WARPLOOM_EMU_FAIL", "cuLaunchKernel#7=OUT_OF_MEMORY");
    let (code, answer, _) = run("middle", &first, middle);
    assert_eq!(
        (code, answer["tally"]["ok"].as_u64()),
        (Some(0), Some(60)),
        "{answer}"
    );
    assert!(room(&answer).is_some(), "{answer}");
    assert!(bench.results("middle") == whole);
    // There is never any room: every record fails, and says so.
    let none = ("WARPLOOM_EMU_FAIL", "cuMemAlloc#1+=OUT_OF_MEMORY");
    let (code, answer, _) = run("none", &first, none);
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
    // A size that somebody insists on is never made smaller: the run ends, and no record is to blame.
    let fixed = [&first[..], &["--batch", "128"]].concat();
    let (code, answer, told) = run("fixed", &fixed, none);
    assert_eq!(code, Some(3), "{answer}");
    assert_eq!(answer["tally"]["not_started"].as_u64(), Some(60));
    assert_eq!(answer["error"]["code"], "WL1007", "{answer}");
    assert!(
        told.contains("error[WL1007]: batches of 128 records"),
        "{told}"
    );
    assert_eq!(status(&bench.path("fixed")).0, 3);
    assert!(bench.results("fixed").is_empty());
    assert!(bench.results("none").is_empty());
}

/// How many records at once a device is said to have room for, if it had a say.
fn room(answer: &Value) -> Option<u32> {
    let changes = answer["changes"].as_array().unwrap().iter();
    let mut words = changes.filter_map(|change| {
        let words = change.as_str()?.split_once(" has room for ")?.1;
        words.split(' ').next()?.parse().ok()
    });
    words.next()
}

/// Images and what becomes of them on the processor; nothing where there are no two emulated CUDA devices.
fn on_emulated_cards(images: u32) -> Option<(Bench, Files)> {
    let faces = faces();
    check(&faces);
    if !faces.iter().any(|face| face == "cuda:1") || !is_emulated() {
        let mut variables = std::env::vars();
        let is_wanted =
            variables.any(|(name, value)| name == "WARPLOOM_TEST_FACES" && value.contains("cuda="));
        assert!(!is_wanted, "there are no two emulated CUDA devices");
        eprintln!("not tried: there are no two emulated CUDA devices");
        return None;
    }
    let bench = Bench::new(images);
    fs::write(bench.path("spots.toml"), EXACT).unwrap();
    assert_eq!(bench.run(&["-o", "one", "-q", "--device", "cpu:0"]).0, 0);
    let whole = bench.results("one");
    Some((bench, whole))
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
