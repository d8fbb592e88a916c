//! Runs that are interrupted, killed and resumed, with records that hang.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test tells what it met")]

mod plate;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use plate::processes::{children, is_alive, signal, start_hung, status, wait_for};
use plate::{Bench, npy};

const ONE: [&str; 4] = ["--devices", "cpu:0", "--workers-per-device", "1"];

/// `warploom run` with nothing but these arguments.
fn run(here: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env_remove("WARPLOOM_BACKENDS")
        .env_remove("WARPLOOM_LOG")
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(here)
        .arg("run")
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Its worker hangs over it, and the coordinator is killed each time that happens: what it did is in the
/// journals of the runs before, and it fails when it has done it alone three times.
#[test]
fn a_record_that_hangs_fails_although_each_run_is_killed_over_it() {
    let bench = Bench::new(1);
    assert_eq!(bench.run(&["-o", "out", "-q"]).0, 0);
    let args = [&ONE[..], &["--resume", "--batch-limit", "1"]].concat();
    let out = bench.path("out");
    let mut kills = 0;
    let code = (0..15).find_map(|_| {
        let Some(mut child) = start_hung(&bench, 1, "out", &args) else {
            // A worker was quicker: that record was done, and is to be done again.
            let _ = fs::remove_dir_all(out.join("s001"));
            return None;
        };
        let is_failed = || status(&out).1["tally"]["failed"].as_u64() > Some(0);
        wait_for("the end of a batch", || {
            let (_, answer) = status(&out);
            answer["devices"][0]["griefs"].as_u64() > Some(0)
        });
        // What it leads to is written right after it.
        std::thread::sleep(Duration::from_millis(40));
        if is_failed() {
            return child.wait().unwrap().code();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        None
    });
    assert_eq!(code, Some(3), "it never failed; {kills} runs were killed");
    assert_eq!(kills, 2);
    let (code, answer) = status(&out);
    assert_eq!(code, 3, "{answer}");
    let failed = &answer["failures"][0];
    assert_eq!(failed["record"], "s001");
    assert!(failed["attempts"].as_u64().unwrap() >= 3, "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.contains("longer than the 1s that a batch may take"),
        "{failed}"
    );
    // What failed for good begins anew when somebody asks for it again.
    fs::remove_file(bench.input(1)).unwrap();
    bench.image(1, 1);
    assert_eq!(bench.run(&[&["-o", "out", "-q"], &args[..]].concat()).0, 0);
}

#[test]
fn a_second_interrupt_ends_at_once_and_the_run_is_told_as_interrupted() {
    for crew in [&ONE[..], &["--batch", "1"]] {
        let bench = Bench::new(1);
        // A run that was quicker than the image could be put out of reach is tried again.
        let hung = (0..15).find_map(|attempt| {
            let out = format!("out{attempt}");
            Some((start_hung(&bench, 1, &out, crew)?, bench.path(&out)))
        });
        let (mut child, out) = hung.expect("a run that hangs");
        let workers = children(child.id());
        // The first waits for what is begun, which takes for ever.
        assert!(signal("-INT", child.id()));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(workers.iter().all(|pid| is_alive(*pid)));
        assert_eq!(status(&out).1["state"], "running");
        let begun = Instant::now();
        assert!(signal("-INT", child.id()));
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(!workers.iter().any(|pid| is_alive(*pid)));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        let (code, answer) = status(&out);
        assert_eq!((code, &answer["state"]), (130, &"interrupted".into()));
        assert_eq!(answer["tally"]["not_started"], 1, "{answer}");
    }
}

#[test]
fn a_run_is_resumed_by_its_folder_from_anywhere() {
    let bench = Bench::new(6);
    let elsewhere = tempfile::tempdir().unwrap();
    for (out, crew) in [("one", &[][..]), ("many", &ONE[..2])] {
        assert_eq!(bench.run(&[&["-o", out, "-q"], crew].concat()).0, 0);
        let whole = bench.results(out);
        let results = bench.path(out);
        let folders = fs::read_dir(results.join(".warploom")).unwrap();
        let mut folders = folders.map(|entry| entry.unwrap().path());
        let folder = folders.find(|path| path.is_dir()).unwrap();
        for path in [&results, &folder] {
            fs::remove_dir_all(results.join("s003")).unwrap();
            let path = path.to_str().unwrap();
            let (code, stdout, stderr) = run(elsewhere.path(), &["--resume", path, "--json", "-q"]);
            assert_eq!(code, 0, "{stderr}");
            let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(
                (&answer["tally"]["ok"], &answer["tally"]["skipped"]),
                (&1.into(), &5.into())
            );
            assert!(bench.results(out) == whole);
            // On as many devices as before.
            let (_, answer) = status(&results);
            let workers = answer["devices"][0]["workers"].as_u64();
            assert_eq!(workers, Some(u64::from(!crew.is_empty())), "{answer}");
        }
    }
    // With more workers, and dealt otherwise: that is not in the run, and devices are.
    fs::remove_dir_all(bench.path("many/s003")).unwrap();
    let many = bench.path("many");
    let crew = ["--workers-per-device", "2", "--split", "balanced", "-q"];
    let args = [&["--resume", many.to_str().unwrap()], &crew[..]].concat();
    let (code, _, stderr) = run(elsewhere.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    let (_, answer) = status(&many);
    assert_eq!(
        answer["devices"][0]["workers"].as_u64(),
        Some(2),
        "{answer}"
    );
    // The switch alone means what it always did, and is not taken for a folder.
    let args = ["--resume", "spots.toml", "-i", "images", "-o", "one", "-q"];
    assert_eq!(run(bench.folder.path(), &args).0, 0);
    let mut told = String::new();
    let empty = bench.path("images");
    for args in [
        &["--resume"][..],
        &["--resume", "-o", "one"],
        &["--resume", empty.to_str().unwrap()],
        &[
            "spots.toml",
            "-i",
            "images",
            "-o",
            "x",
            "--batch-limit",
            "5",
        ],
        &["spots.toml", "-i", "images", "-o", "x", "--split", "ceil"],
        &[
            "--resume",
            bench.path("one").to_str().unwrap(),
            "--workers-per-device",
            "2",
        ],
    ] {
        let (code, _, stderr) = run(bench.folder.path(), args);
        assert_eq!(code, 2, "{stderr}");
        told.push_str(&stderr.replace(bench.folder.path().to_str().unwrap(), "FOLDER"));
    }
    insta::assert_snapshot!("nothing_to_resume", told);
}

/// A card has other names than its faces, and two crews on it would each lease what the other has.
#[test]
fn a_card_that_is_named_twice_is_hired_once() {
    let bench = Bench::new(6);
    for names in ["cpu:0,cpu:0", "cpu,cpu:0", "cpu:0,all,cpu"] {
        let (code, answer) = bench.told(&["-o", names, "--devices", names]);
        assert_eq!((code, answer["tally"]["ok"].as_u64()), (0, Some(6)));
        assert_eq!(answer["faces"].as_array().map(Vec::len), Some(1), "{names}");
        let (_, answer) = status(&bench.path(names));
        assert_eq!(answer["devices"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_dry_run_tells_of_every_device_and_its_workers() {
    let bench = Bench::new(9);
    let args = ["-o", "out", "--dry-run", "--devices", "cpu:0"];
    let (code, answer) = bench.told(&args);
    assert_eq!(code, 0, "{answer}");
    let [device] = &answer["devices"].as_array().unwrap()[..] else {
        panic!("{answer}");
    };
    assert_eq!(
        (&device["device"], &device["workers"]),
        (&"cpu:0".into(), &1.into())
    );
    assert!(device["bytes"].as_u64() > Some(0), "{answer}");
    let more = [&args[..], &["--workers-per-device", "3", "--batch", "2"]].concat();
    let (code, stdout, _) = bench.run(&more);
    assert_eq!(code, 0);
    assert!(stdout.contains("  3 workers on cpu:0 ("), "{stdout}");
    assert!(stdout.contains(", each with 2 images and "), "{stdout}");
    assert!(!bench.path("out").exists());
    // A device that there is not is refused as it would be in earnest.
    let (code, _, stderr) = bench.run(&["-o", "out", "--dry-run", "--devices", "gpu7"]);
    assert_eq!(code, 2, "{stderr}");
    // In one process there is nobody to tell of.
    let (_, answer) = bench.told(&["-o", "out", "--dry-run"]);
    assert!(answer.get("devices").is_none(), "{answer}");
}

/// A stack that takes longer than may pass without anything happening, plane after plane.
#[test]
fn a_record_that_takes_long_is_left_alone_while_it_gets_on() {
    const PLANES: &str = r#"
name = "planes"
foreach = "plane"
[[step]]
name = "soft"
op = "gaussian"
sigma = 2.0
[[output]]
of = "soft"
write = "{record}/soft.npy"
"#;
    let bench = Bench::new(0);
    fs::write(bench.path("spots.toml"), PLANES).unwrap();
    let mut planes = 1200;
    // As many planes as take a while on this machine, whatever it is.
    for attempt in 0.. {
        npy(
            &bench.input(0),
            "<u2",
            &format!("{planes}, 64, 64"),
            &vec![7_u16; planes * 64 * 64],
        );
        let out = format!("out{attempt}");
        let begun = Instant::now();
        let args = [&["-o", &out, "--patience", "1", "--batch", "1"], &ONE[..]].concat();
        let (code, answer) = bench.told(&args);
        assert_eq!(code, 0, "{planes} planes: {answer}");
        assert_eq!(
            answer["changes"].as_array().map(Vec::len),
            Some(0),
            "{answer}"
        );
        if begun.elapsed() > Duration::from_secs(3) {
            eprintln!("{planes} planes in {:?}", begun.elapsed());
            break;
        }
        assert!(planes < 100_000, "a machine that nothing takes long on");
        planes *= 2;
    }
}
