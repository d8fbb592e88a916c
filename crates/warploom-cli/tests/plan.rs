//! `warploom plan`, `check` and `explain` as people and scripts meet them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs in the folder of the example pipelines, on the processor alone.
fn run(args: &[&str]) -> (i32, String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command
        .env_remove("WARPLOOM_BACKENDS")
        .env_remove("WARPLOOM_LOG");
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env("WARPLOOM_CPU_ONLY", "1")
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_plan_is_told_drawn_and_sent() {
    let plan = ["plan", "nuclei.toml", "--record", "512x512:u16"];
    let (code, stdout, stderr) = run(&plan);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("nuclei: on cpu"), "{stdout}");
    let with = |flag: &'static str| run(&[plan.as_slice(), &[flag]].concat());
    let (code, stdout, _) = with("--json");
    let data: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &data["pipeline"]), (0, &Value::from("nuclei")));
    assert!(with("--explain").1.contains("\nwhy\n"));
    assert!(with("--dot").1.starts_with("digraph"));
    let (code, stdout, _) = run(&["plan", "--schema"]);
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, schema["type"].as_str()), (0, Some("object")));
}

#[test]
fn refusals_point_at_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[[step]]\nop = \"gaussian\"\nsigma = -2\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = run(&["plan", path, "--record", "64x64:u8"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    insta::assert_snapshot!(stderr.replace(path, "bad.toml"));
    let (code, stdout, _) = run(&["check", path, "--record", "64x64:u8", "--json"]);
    let data: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 2);
    assert_eq!(
        (data[0]["line"].as_u64(), data[0]["code"].as_str()),
        (Some(3), Some("WL0606"))
    );
    // Without records, the file by itself is fine.
    assert_eq!(run(&["check", path]).0, 0);
}

#[test]
fn what_makes_no_sense_is_exit_code_2() {
    for args in [
        &["plan", "nuclei.toml"] as &[&str],
        &["plan", "nothing.toml", "--record", "64x64:u8"],
        &["plan", "nuclei.toml", "--record", "64by64"],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "64x64:u8",
            "--budget",
            "lots",
        ],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "64x64:u8",
            "--devices",
            "gpu9",
        ],
        &[
            "plan",
            "nuclei.toml",
            "--record",
            "2048x2048:u16",
            "--budget",
            "1MiB",
        ],
        &["explain", "WL9999"],
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains("help"), "{args:?}: {stderr}");
    }
}

#[test]
fn every_example_checks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let (code, _, stderr) = run(&["check", path.to_str().unwrap()]);
            assert_eq!(code, 0, "{stderr}");
            count += 1;
        }
    }
    assert!(count >= 5);
}

#[test]
fn codes_are_explained() {
    let (code, stdout, _) = run(&["explain", "wl0331"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(stdout);
    let (code, stdout, _) = run(&["explain", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 0);
    assert!(all.len() > 100, "{}", all.len());
}
