//! Traces, reports and metrics that cannot be written: a run is refused before it begins, or has its answer
//! all the same.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

mod plate;

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use plate::Bench;
use plate::processes::wait_for;

#[test]
fn a_paper_that_cannot_be_written_is_refused_before_anything_runs() {
    let bench = Bench::new(2);
    fs::create_dir(bench.path("folder")).unwrap();
    fs::write(bench.path("file"), "").unwrap();
    let mut told = String::new();
    for (what, path) in [
        ("--report", "no/such/folder/r.html"),
        ("--trace", "no/such/folder/t.json"),
        ("--report", "folder"),
        ("--trace", "file/t.json"),
    ] {
        let (code, stdout, stderr) = bench.run(&["-o", "out", what, path]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(!bench.path("out").exists(), "nothing ran");
        told.push_str(&stderr);
    }
    insta::assert_snapshot!("unwritable_paper", told);
    let left = fs::read_dir(bench.folder.path()).unwrap();
    let mut left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.all(|name| !name.contains(".part")));
}

/// The device that is always full can be opened, and not written to.
#[test]
fn a_paper_that_fails_after_the_run_takes_nobodys_answer_away() {
    let bench = Bench::new(9);
    for (out, code, failed) in [("good", 0, 0), ("bad", 3, 1)] {
        if failed > 0 {
            let cut = fs::read(bench.input(3)).unwrap();
            fs::write(bench.input(3), &cut[..cut.len() - 9]).unwrap();
        }
        for paper in ["--report", "--trace"] {
            let args = ["-o", out, paper, "/dev/full"];
            let (exit, stdout, stderr) = bench.run(&[&args[..], &["--json", "-q"]].concat());
            assert_eq!(exit, code, "{stderr}");
            let answer: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(answer["tally"]["failed"], failed, "{answer}");
            assert_eq!(answer["tally"]["ok"], 9 - failed, "{answer}");
            let told = answer["changes"][0].as_str().unwrap();
            assert!(told.contains(" to /dev/full: "), "{told}");
            assert!(stderr.contains(&format!("warning: {told}")), "{stderr}");
            assert_eq!(stderr.contains("failed[WL0706]: s003"), failed > 0);
            // Events stay one JSON value a line.
            let (exit, _, stderr) = bench.run(&[&args[..], &["--progress", "json"]].concat());
            assert_eq!(exit, code);
            let events = stderr
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            let events: Vec<Value> = events.collect();
            assert_eq!(events.last().unwrap()["event"], "finished");
            let told = &events[events.len() - 2];
            assert_eq!(told["event"], "changed", "{told}");
        }
    }
}

/// Their folder goes away while the run goes on.
#[test]
fn metrics_and_reports_that_lose_their_folder_are_warnings() {
    let bench = Bench::new(300);
    fs::create_dir(bench.path("papers")).unwrap();
    let papers = ["--metrics", "papers/m.prom", "--report", "papers/r.html"];
    let args = [&["-o", "out", "--batch", "1", "--json", "-q"], &papers[..]].concat();
    let mut command = bench.command(&args);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    wait_for("the first results", || {
        bench.results("out").len() > 4 || child.try_wait().unwrap().is_some()
    });
    fs::remove_dir_all(bench.path("papers")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["tally"]["ok"], 300);
    let changes = answer["changes"].to_string();
    assert!(changes.contains("cannot write the report to papers/r.html"));
    assert!(changes.contains("cannot write metrics to papers/m.prom"));
}
