//! `warploom calibrate`, and plans that go by what it found; on the processor alone.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Runs with a cache directory of its own.
fn run(cache: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command
        .env_remove("WARPLOOM_BACKENDS")
        .env_remove("WARPLOOM_LOG")
        .env("WARPLOOM_CPU_ONLY", "1")
        .env("XDG_CACHE_HOME", cache)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipelines"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

const PLAN: [&str; 4] = ["plan", "nuclei.toml", "--record", "512x512:u16"];

/// A plan without how much memory is free, which differs from moment to moment.
fn planned(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter(|line| !line.contains("that may be used"))
        .collect()
}

fn kept(cache: &Path) -> Vec<PathBuf> {
    let folder = cache.join("warploom").join("calibration");
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_is_measured_is_kept_and_planned_with() {
    let cache = tempfile::tempdir().unwrap();
    let before = run(cache.path(), &PLAN).1;
    assert!(before.contains("was not measured)"), "{before}");
    let (code, _, stderr) = run(cache.path(), &["calibrate", "--show"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("was not measured"), "{stderr}");

    let (code, stdout, stderr) = run(cache.path(), &["calibrate", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let speed = &answer["devices"][0]["speed"];
    for rate in [
        &speed["machine"]["bytes_per_second"],
        &speed["machine"]["operations_per_second"],
        &speed["up"],
        &speed["down"],
    ] {
        // A processor that moves less than 10 MB a second runs no tests.
        assert!(rate.as_f64().unwrap() > 1e7, "{answer:#}");
    }
    let launch = speed["launch"].as_f64().unwrap();
    assert!(launch > 0.0 && launch < 0.1, "{launch}");
    assert_eq!(answer["failed"], Value::Array(Vec::new()));
    assert_eq!(kept(cache.path()).len(), 1, "one file for one device");

    let after = run(cache.path(), &PLAN).1;
    assert!(
        after.contains("measured)") && !after.contains("was not"),
        "{after}"
    );
    let (code, stdout, _) = run(cache.path(), &["calibrate", "--show"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("cpu:0"), "{stdout}");
    // Another machine's cache knows nothing of it.
    let other = tempfile::tempdir().unwrap();
    let there = run(other.path(), &PLAN).1;
    assert_eq!(planned(&there), planned(&before));
}

#[test]
fn a_named_file_is_written_and_read() {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("lab.json");
    let file = file.to_str().unwrap();
    let (code, stdout, stderr) = run(cache.path(), &["calibrate", "-o", file, "--devices", "cpu"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("device"), "{stdout}");
    assert!(stderr.contains(file), "{stderr}");
    assert!(!cache.path().join("warploom").exists());
    let with = [PLAN.as_slice(), &["--calibration", file, "--json"]].concat();
    let plan: Value = serde_json::from_str(&run(cache.path(), &with).1).unwrap();
    assert_eq!(plan["estimate"]["measured"], Value::Bool(true));
    let missing = [PLAN.as_slice(), &["--calibration", "nothing.json"]].concat();
    let (code, _, stderr) = run(cache.path(), &missing);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("nothing.json") && stderr.contains("help"),
        "{stderr}"
    );
    let (code, _, stderr) = run(cache.path(), &["calibrate", "--devices", "gpu7"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn damaged_and_foreign_files_are_told_and_ignored() {
    let cache = tempfile::tempdir().unwrap();
    let plain = run(cache.path(), &PLAN);
    let (code, _, stderr) = run(cache.path(), &["calibrate"]);
    assert_eq!(code, 0, "{stderr}");
    let path = kept(cache.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let forged = String::from_utf8(whole.clone()).unwrap();
    let forged = forged.replacen("\"up\": ", "\"up\": -", 1);
    let cases: [&[u8]; 6] = [
        b"",
        &whole[..whole.len() / 2],
        b"\xff\xfe\x00",
        b"[1, 2, 3]",
        b"{\"version\": 2}",
        forged.as_bytes(),
    ];
    for bytes in cases {
        fs::write(&path, bytes).unwrap();
        let (code, stdout, stderr) = run(cache.path(), &PLAN);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(planned(&stdout), planned(&plain.1), "guesses, as before");
        assert!(
            stderr.contains("warning") && stderr.contains("is ignored"),
            "{stderr}"
        );
        assert!(stderr.contains("warploom calibrate"), "{stderr}");
    }
    // Measured anew, all is well again; what is no calibration's name is not looked at.
    fs::write(path.with_extension("txt"), "notes").unwrap();
    assert_eq!(run(cache.path(), &["calibrate"]).0, 0);
    let (_, stdout, stderr) = run(cache.path(), &PLAN);
    assert!(
        !stdout.contains("was not measured") && stderr.is_empty(),
        "{stderr}"
    );
}

#[test]
fn apply_takes_what_was_measured_and_gives_the_same_numbers() {
    let cache = tempfile::tempdir().unwrap();
    let at = |name: &str| cache.path().join(name).to_str().unwrap().to_owned();
    // A small image: npy, version 1, of u8.
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let head = "{'descr': '|u1', 'fortran_order': False, 'shape': (16, 16), }";
    npy.extend(format!("{head:<117}\n").bytes());
    npy.extend(0..=255_u8);
    fs::write(at("a.npy"), npy).unwrap();
    let apply = |out: &str, more: &[&str]| {
        let (input, output) = (at("a.npy"), at(out));
        let args = ["apply", "sobel", "-i", &input, "-o", &output];
        let (code, _, stderr) = run(cache.path(), &[&args, more].concat());
        assert_eq!(code, 0, "{stderr}");
        fs::read(output).unwrap()
    };
    let before = apply("before.npy", &[]);
    assert_eq!(run(cache.path(), &["calibrate"]).0, 0);
    assert_eq!(apply("after.npy", &[]), before);
    let file = at("lab.json");
    assert_eq!(run(cache.path(), &["calibrate", "-o", &file]).0, 0);
    assert_eq!(apply("named.npy", &["--calibration", &file]), before);
}
