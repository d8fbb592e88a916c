//! The race of pools of processes: ours against Python's and Dask's, in `tests/bench/pools.py`.

use anyhow::Result;

use crate::artifacts::{Artifacts, Sort};
use crate::flags;
use crate::process::Task;
use crate::project::Project;
use crate::python::Python;

const REQUIREMENTS: &str = "tests/bench/pools.txt";
const PACKAGE: &str = "warploom-fleet";
const PROGRAM: &str = "bench_fleet";

/// Measures, and answers whether the bars are met.
pub(crate) fn run(project: &Project, flags: &flags::Bench) -> Result<bool> {
    let python = Python::with(project, "pools-venv", REQUIREMENTS)?;
    let select = ["--release", "--package", PACKAGE, "--example", PROGRAM];
    let built = Artifacts::build(project, select)?;
    let ours = built.program(PACKAGE, Sort::Example, PROGRAM)?;
    let mut task: Task = python
        .package(project, "tests", "bench")
        .args(["pools", "--server"])
        .args([ours]);
    if flags.json {
        task = task.args(["--json"]);
    }
    Ok(task.args(&flags.rest).status()?.success())
}
