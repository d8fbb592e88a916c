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
    assert!(reason.contains("no progress for 1s"), "{failed}");
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
    ] {
        let (code, _, stderr) = run(bench.folder.path(), args);
        assert_eq!(code, 2, "{stderr}");
        told.push_str(&stderr.replace(bench.folder.path().to_str().unwrap(), "FOLDER"));
    }
    insta::assert_snapshot!("nothing_to_resume", told);
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
