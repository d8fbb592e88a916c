//! `warploom ops` as people and scripts meet it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]

use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;

fn run(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    for name in ["WARPLOOM_CPU_ONLY", "WARPLOOM_BACKENDS", "WARPLOOM_LOG"] {
        command.env_remove(name);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        status.code().expect("it was not killed by a signal"),
        text(stdout),
        text(stderr),
    )
}

fn answer(args: &[&str]) -> Value {
    let (code, stdout, stderr) = run(args);
    assert_eq!((code, stderr.as_str()), (0, ""));
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}:\n{stdout}"))
}

#[test]
fn the_list_has_every_operation_under_its_family() {
    let (code, stdout, stderr) = run(&["ops"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(
        stdout.starts_with("pointwise\n  affine_intensity "),
        "{stdout}"
    );
    assert!(
        stdout
            .contains("\n  watershed                     flood an image from markers (cpu-only)\n")
    );
    let listed = stdout.lines().filter(|line| line.starts_with("  ")).count();
    let data = answer(&["ops", "--json"]);
    assert_eq!(data["schema"], 1);
    assert_eq!(data["ops"].as_array().unwrap().len(), listed);
}

#[test]
fn a_page_tells_all_about_one() {
    let (code, stdout, stderr) = run(&["ops", "crop"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    insta::assert_snapshot!(stdout);
}

#[test]
fn a_page_is_data_too() {
    let data = answer(&["ops", "percentile_box", "--json"]);
    let page = &data["ops"][0];
    assert_eq!(page["name"], "percentile_box");
    assert_eq!(page["family"], "rank");
    assert_eq!(page["backends"], "all");
    assert_eq!(page["boundary"], true);
    let names: Vec<&Value> = page["params"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["name"])
        .collect();
    assert_eq!(names, ["radius", "q", "boundary"]);
    assert_eq!(page["params"][0]["required"], true);
    assert_eq!(page["params"][2]["default"], "clamp");
    assert_eq!(page["params"][2]["choices"][3], "wrap");
    assert_eq!(page["inputs"][0]["types"][0], "u8");
}

#[rstest]
#[case::near(&["ops", "gausian"], "error[WL0601]: there is no operation `gausian`; did you mean `gaussian`?\n  = help: see `warploom ops gaussian`; `warploom ops` lists them all\n")]
#[case::far(&["ops", "x"], "error[WL0601]: there is no operation `x`\n  = help: `warploom ops` lists them all\n")]
fn an_unknown_operation_ends_with_2(#[case] args: &[&str], #[case] says: &str) {
    let (code, stdout, stderr) = run(args);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", says));
}
