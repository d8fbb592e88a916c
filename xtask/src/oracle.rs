//! `cargo xtask oracle`: every operation against numpy, scipy and scikit-image, and every other
//! device against the processor. The comparing is done in Python, in `tests/oracle`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::artifacts::{Artifacts, Sort};
use crate::detect::{CLI, passed_on};
use crate::emu::{self, Machine};
use crate::flags;
use crate::process::{Task, Variables};
use crate::project::Project;
use crate::python::Python;
use crate::setup::Parts;
use crate::stand_ins;
use crate::wheels::{self, NVRTC_13};

const REQUIREMENTS: &str = "tests/oracle/requirements.txt";

/// The Python that has the references.
pub(crate) fn python(project: &Project) -> Result<Python> {
    Python::with(project, "oracle-venv", REQUIREMENTS)
}

/// The program, optimised: there are some ten thousand cases.
pub(crate) fn program(project: &Project) -> Result<PathBuf> {
    let built = Artifacts::build(project, ["--release", "--package", CLI])?;
    built.program(CLI, Sort::Bin, "warploom")
}

/// The check of one device.
pub(crate) fn task(
    project: &Project,
    python: &Python,
    program: &Path,
    device: &str,
) -> Result<Task> {
    let task = python
        .package(project, "tests", "oracle")
        .args(["--device", device, "--warploom"])
        .args([program]);
    Ok(task.variables(&surroundings(project, device)?))
}

/// What a device needs to be there: the stand-ins, or the emulator.
fn surroundings(project: &Project, device: &str) -> Result<Variables> {
    match device.split_once(':') {
        Some(("cpu", _)) => Ok(Vec::new()),
        Some(("opencl" | "wgpu", _)) => stand_ins::several_devices(project, &Parts::installed()),
        Some(("cuda", _)) => {
            let driver = emu::driver(project, "--lib")?;
            let nvrtc = wheels::fetch(project, NVRTC_13)?;
            emu::surroundings(&driver, &nvrtc, &Machine::default())
        }
        _ => bail!("`{device}` is no device: one is named as in cpu:0, opencl:0, wgpu:0, cuda:0"),
    }
}

pub(crate) fn run(project: &Project, flags: &flags::Oracle) -> Result<ExitCode> {
    let python = python(project)?;
    if flags.alone {
        let task = python.package(project, "tests", "oracle");
        return Ok(passed_on(task.args(&flags.rest).status()?));
    }
    let device = flags.device.as_deref().unwrap_or("cpu:0");
    let program = program(project)?;
    let mut task = task(project, &python, &program, device)?.args(&flags.rest);
    if !flags.rest.iter().any(|word| word == "--keep") {
        // The commands that repeat a failure need their images.
        task = task.args(["--keep"]).args([project.target.join("oracle")]);
    }
    Ok(passed_on(task.status()?))
}
