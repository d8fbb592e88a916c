//! Benches against other libraries: the racing is done in Python, in `tests/bench`, with a server
//! of ours that it starts.

use std::path::Path;

use anyhow::Result;

use crate::artifacts::{Artifacts, Sort};
use crate::flags;
use crate::oracle;
use crate::pools;
use crate::process::Task;
use crate::project::Project;
use crate::python::Python;

/// The groups that are measured this way.
pub(crate) const GROUPS: &[&str] = &[
    "ops", "seg2k", "point6", "fusion", "latency", "whole", "pools",
];

const REQUIREMENTS: &str = "tests/bench/requirements.txt";
const PACKAGE: &str = "warploom-tests";
const SERVER: &str = "bench_server";

/// Measures one group, and answers whether its bars are met. Peers that cannot be fetched are an error, because nothing is left to race.
pub(crate) fn run(project: &Project, group: &str, flags: &flags::Bench) -> Result<bool> {
    if group == "pools" {
        return pools::run(project, flags);
    }
    let python = Python::with(project, "bench-venv", REQUIREMENTS)?;
    let mut select = vec!["--release", "--package", PACKAGE, "--example", SERVER];
    // The other backends take minutes to build, so they are built when they are raced.
    let mut words = flags.rest.iter().map(|word| word.to_string_lossy());
    if !words.any(|word| word.contains("wgpu") || word.contains("cuda")) {
        select.push("--no-default-features");
    }
    let built = Artifacts::build(project, select)?;
    let server = built.program(PACKAGE, Sort::Example, SERVER)?;
    // Halide's threads are counted once per process, and one thread and two are both promised.
    let given = flags.rest.iter().any(|word| word == "--threads");
    let counts: &[&str] = if !["seg2k", "point6"].contains(&group) || given {
        &[""]
    } else {
        &["1", "2"]
    };
    let program = match group {
        "latency" | "whole" => Some(oracle::program(project)?),
        _ => None,
    };
    let mut is_met = true;
    for threads in counts {
        let mut task = task(project, &python, &server, group, threads, flags);
        if let Some(program) = &program {
            task = task.args(["--warploom"]).args([program]);
        }
        is_met &= task.status()?.success();
    }
    Ok(is_met)
}

fn task(
    project: &Project,
    python: &Python,
    server: &Path,
    group: &str,
    threads: &str,
    flags: &flags::Bench,
) -> Task {
    let mut task = python
        .package(project, "tests", "bench")
        .args([group, "--server"])
        .args([server]);
    if !threads.is_empty() {
        task = task.args(["--threads", threads]);
    }
    if flags.json {
        task = task.args(["--json"]);
    }
    task.args(&flags.rest)
}
