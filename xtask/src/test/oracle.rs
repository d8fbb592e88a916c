//! Operations against numpy, scipy and scikit-image, and every other device against the processor.
//!
//! The processor gets a few cases of every operation that have every element type, shape, boundary
//! and parameter among them; the other devices, which compile a kernel for nearly every case, two of
//! each, and one of them the same in fast mode against the bound each page states. `cargo xtask
//! oracle` has all the cases.

use anyhow::Result;

use super::Session;
use super::checks::Checks;
use crate::artifacts::{Artifacts, Sort};
use crate::{detect, oracle};

pub(super) fn stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let project = session.project;
    let python = match oracle::python(project) {
        Ok(python) => python,
        Err(error) if session.ci => return Err(error),
        Err(error) => {
            checks.skip("the references", &format!("{error:#}"));
            return Ok(());
        }
    };
    let selftest = python.package(project, "tests", "oracle");
    checks.run(&selftest.args(["--selftest"]))?;
    let built = Artifacts::build(project, ["--all-targets"])?;
    let program = built.program(detect::CLI, Sort::Bin, "warploom")?;
    for (device, mode) in [
        ("cpu:0", None),
        ("opencl:0", None),
        ("opencl:0", Some("--fast")),
        ("wgpu:0", None),
        ("cuda:0", None),
    ] {
        if let Some(why) = missing(session, device) {
            checks.skip(device, &why);
            continue;
        }
        match oracle::task(project, &python, &program, device) {
            Ok(task) => drop(checks.run(&task.args([amount(device)]).args(mode))?),
            Err(error) if session.ci => return Err(error),
            Err(error) => checks.skip(device, &format!("{error:#}")),
        }
    }
    Ok(())
}

/// How many cases a device gets.
fn amount(device: &str) -> &'static str {
    if device.starts_with("cpu") {
        "--quick"
    } else {
        "--sparse"
    }
}

/// Why a device cannot be asked, if it cannot.
fn missing(session: &Session<'_>, device: &str) -> Option<String> {
    match device {
        "opencl:0" | "wgpu:0" if !session.ci => session.parts.complaint(),
        "cuda:0" if !cfg!(target_os = "linux") => Some("the emulator is for Linux".into()),
        _ => None,
    }
}
