//! CUDA: every kernel through NVIDIA's compilers, and the whole backend on emulated devices, or on
//! real ones where they are asked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Session;
use super::checks::Checks;
use super::fleets;
use crate::artifacts::{Artifacts, Sort};
use crate::cuda_check::{self, Tools};
use crate::emu::{self, EMULATOR, Machine};
use crate::process::{Task, Variables};
use crate::wheels::{self, NVRTC_12, NVRTC_13, Unpacked};
use crate::{detect, stand_ins};

/// The package of the backend.
const BACKEND: &str = "warploom-cuda";

/// How the tests of the backend begin that want an emulated device; on any other they skip
/// themselves.
const EMULATED_TESTS: &str = "emulated";

/// How the devices of the emulator are called.
const EMULATED: &str = "Warploom emulated";

/// Seeds of the emulator's delays, and the longest delay with each, in microseconds. Short ones
/// shuffle work that is close together, long ones let a whole queue run ahead of another.
const SEEDS: &[(u64, u64)] = &[
    (1, 100),
    (2, 100),
    (3, 20),
    (4, 20),
    (5, 300),
    (6, 300),
    (7, 1000),
    (8, 1000),
];

/// Detection takes well under a second; the rest is for a machine that is busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// The programs that are run here, built once.
#[derive(Debug)]
struct Programs {
    warploom: PathBuf,
    conformance: PathBuf,
    suite: PathBuf,
    launch: PathBuf,
}

/// The stage `cuda-check`.
pub(super) fn kernels(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let project = session.project;
    let tools = match Tools::fetch(project) {
        Ok(tools) => tools,
        Err(error) => {
            absent(
                session,
                checks,
                "every kernel through NVRTC and ptxas",
                &error,
            );
            return Ok(());
        }
    };
    let built = Artifacts::build(project, ["--all-targets"])?;
    let outcome = cuda_check::measure(project, &tools, &built)?;
    println!("{}", outcome.summary());
    let failed = u32::try_from(outcome.complaints.len()).unwrap_or(u32::MAX);
    checks.tally.passed += outcome.count().saturating_sub(failed);
    for complaint in &outcome.complaints {
        checks.fail("kernel", complaint);
    }
    // The backend's own tests of its compiler need one.
    let unit_tests = built.program(BACKEND, Sort::UnitTests, "warploom_cuda")?;
    let drivers = built.program(BACKEND, Sort::Test, "drivers")?;
    let libraries = std::env::join_paths([&tools.nvrtc_12.file, &tools.nvrtc_13.file])?;
    for (program, filter) in [(unit_tests, "nvrtc::"), (drivers, "machine_code")] {
        let task = Task::new(project, program)
            .args([filter])
            .variable("WARPLOOM_TEST_NVRTC", &libraries);
        checks.run(&task)?;
    }
    Ok(())
}

/// The stage `cuda`.
pub(super) fn backend(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    if session.flags.real_gpu {
        return on_real_devices(session, checks);
    }
    if !cfg!(target_os = "linux") {
        checks.skip("emulated CUDA", "the emulator runs on Linux");
        return Ok(());
    }
    // It is no default member, so the stage `clippy` has not seen it.
    let lints = ["clippy", "--package", EMULATOR, "--all-targets", "--"];
    let lints = Task::cargo(session.project, lints).args(["-D", "warnings"]);
    checks.run(&lints)?;
    let tests = ["test", "--package", EMULATOR, "--no-fail-fast"];
    checks.run(&Task::cargo(session.project, tests))?;
    let driver = emu::driver(session.project, "--all-targets")?;
    let compilers = match compilers(session) {
        Ok(compilers) => compilers,
        Err(error) => {
            absent(
                session,
                checks,
                "the CUDA backend on emulated devices",
                &error,
            );
            return Ok(());
        }
    };
    let (built, programs) = build(session)?;
    for (turn, (seed, jitter)) in SEEDS.iter().enumerate() {
        let machine = Machine {
            seed: Some(*seed),
            jitter: Some(*jitter),
            ..Machine::default()
        };
        let nvrtc = &compilers[turn % compilers.len()];
        println!(
            "seed {seed}, delays up to {jitter} us, NVRTC {}",
            nvrtc.version
        );
        let variables = emu::surroundings(&driver, nvrtc, &machine)?;
        conformance(session, checks, &programs, &variables)?;
    }
    for nvrtc in &compilers {
        let variables = emu::surroundings(&driver, nvrtc, &Machine::default())?;
        let found = found(session, &programs, &variables)?;
        match emulated(&found, 2) {
            Ok(()) => checks.pass("detect: two devices, emulated and called so"),
            Err(why) => checks.fail("detect", &why),
        }
        launch(session, checks, &programs, &variables, &found)?;
    }
    together(session, checks, &programs, &driver, &compilers[0])?;
    fleets::emulated(session, checks, &built, &driver, &compilers[1])?;
    let variables = emu::surroundings(&driver, &compilers[1], &Machine::default())?;
    image_kernels(session, checks, &built, &variables)?;
    faults(session, checks, &built, &variables)
}

/// Every image kernel, against the CPU.
fn image_kernels(
    session: &Session<'_>,
    checks: &mut Checks,
    built: &Artifacts,
    variables: &Variables,
) -> Result<()> {
    let program = built.program("warploom-kernels", Sort::Test, "backends")?;
    // On the other stand-ins they have been tested.
    let mut others = stand_ins::no_drivers(session.project)?;
    others.retain(|(name, _)| *name != "CUDA_VISIBLE_DEVICES");
    let task = Task::new(session.project, program)
        .variables(&others)
        .variables(variables)
        .variable("WARPLOOM_REQUIRE", "cuda");
    checks.run(&task).map(drop)
}

/// Both versions of NVRTC.
fn compilers(session: &Session<'_>) -> Result<[Unpacked; 2]> {
    let fetch = |wheel| wheels::fetch(session.project, wheel);
    Ok([fetch(NVRTC_12)?, fetch(NVRTC_13)?])
}

/// Says that something is not there: nothing to make a fuss about, except in CI.
fn absent(session: &Session<'_>, checks: &mut Checks, what: &str, error: &anyhow::Error) {
    let why = format!("{error:#}");
    if session.ci {
        checks.fail(what, &why);
    } else {
        checks.skip(what, &why);
    }
}

fn build(session: &Session<'_>) -> Result<(Artifacts, Programs)> {
    let built = Artifacts::build(session.project, ["--all-targets"])?;
    let programs = Programs {
        warploom: built.program(detect::CLI, Sort::Bin, "warploom")?,
        conformance: built.program(BACKEND, Sort::Test, "conformance")?,
        suite: built.program("warploom-tests", Sort::Test, "suite")?,
        launch: built.program("warploom-examples", Sort::Bin, "03_launch")?,
    };
    Ok((built, programs))
}

/// The contract, case by case, on every CUDA device.
fn conformance(
    session: &Session<'_>,
    checks: &mut Checks,
    programs: &Programs,
    variables: &Variables,
) -> Result<()> {
    // Of hundreds of cases, those that fail are the ones to name.
    let task = Task::new(session.project, &programs.conformance)
        .args(["--quiet"])
        .variables(variables)
        .variable("WARPLOOM_REQUIRE", "cuda");
    checks.run(&task).map(drop)
}

/// The example that runs a kernel everywhere, which must name every CUDA device.
fn launch(
    session: &Session<'_>,
    checks: &mut Checks,
    programs: &Programs,
    variables: &Variables,
    found: &[Found],
) -> Result<()> {
    let task = Task::new(session.project, &programs.launch)
        .variables(&stand_ins::quiet_runtime(session.project)?)
        .variables(variables);
    let said = task.capture(Duration::from_mins(5))?;
    print!("{}", said.stdout);
    let right = |device: &Found| {
        let mut lines = said.stdout.lines();
        lines.any(|line| line.starts_with(&format!("{} ", device.id)) && line.contains("right"))
    };
    match found.iter().find(|device| !right(device)) {
        _ if !said.status.success() => {
            checks.fail(&task.shown(), said.stderr.trim_end());
        }
        Some(device) => checks.fail(&task.shown(), &format!("{} did not take part", device.id)),
        None => checks.pass("03_launch: every value right on every CUDA device"),
    }
    Ok(())
}

/// Every backend together: CUDA beside the other stand-ins, in one process.
fn together(
    session: &Session<'_>,
    checks: &mut Checks,
    programs: &Programs,
    driver: &Path,
    nvrtc: &Unpacked,
) -> Result<()> {
    let task = Task::new(session.project, &programs.suite)
        .variables(&session.devices()?)
        .variables(&emu::surroundings(driver, nvrtc, &Machine::default())?);
    checks.run(&task)?;
    // Whole runs, with jobs delayed in other ways each time.
    for (seed, jitter) in SEEDS {
        let machine = Machine {
            seed: Some(*seed),
            jitter: Some(*jitter),
            ..Machine::default()
        };
        let task = Task::new(session.project, &programs.suite)
            .args(["delays_of_a_driver"])
            .variables(&session.devices()?)
            .variables(&emu::surroundings(driver, nvrtc, &machine)?);
        checks.run(&task)?;
    }
    Ok(())
}

/// Devices that fail on order: lost, out of memory, out of bounds.
fn faults(
    session: &Session<'_>,
    checks: &mut Checks,
    built: &Artifacts,
    variables: &Variables,
) -> Result<()> {
    let package = session
        .project
        .package(BACKEND)
        .with_context(|| format!("this workspace has no package `{BACKEND}`"))?;
    let tests = package.targets.iter().filter(|it| it.kind == "test");
    for test in tests.filter(|it| it.name.starts_with(EMULATED_TESTS)) {
        let program = built.program(BACKEND, Sort::Test, &test.name)?;
        let task = Task::new(session.project, program)
            .variables(variables)
            .variable("WARPLOOM_REQUIRE", "cuda");
        checks.run(&task)?;
    }
    Ok(())
}

/// The same on the cards of this machine, with their own driver and nothing in front of it but a
/// compiler.
fn on_real_devices(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let (built, programs) = build(session)?;
    let found = found(session, &programs, &Vec::new())?;
    if let Some(device) = found.iter().find(|device| device.is_emulated()) {
        let why = format!("{} is {}, which is no real card", device.id, device.name);
        checks.fail("real CUDA devices", &why);
        return Ok(());
    }
    if found.is_empty() {
        checks.skip("real CUDA devices", "detection finds none on this machine");
        return Ok(());
    }
    println!("the CUDA driver of this machine, and nothing emulated:");
    for device in &found {
        println!("  {}  {}", device.id, device.name);
    }
    let mut compilers: Vec<(String, Variables)> = Vec::new();
    if found.iter().all(|device| device.compiles) {
        compilers.push(("as installed".into(), Vec::new()));
    } else {
        checks.skip("NVRTC as installed", "none is installed");
    }
    for wheel in [NVRTC_12, NVRTC_13] {
        match wheels::fetch(session.project, wheel) {
            Ok(nvrtc) => compilers.push((nvrtc.version.clone(), emu::loading(&[nvrtc.folder()])?)),
            Err(error) => absent(session, checks, wheel.name, &error),
        }
    }
    for (version, variables) in &compilers {
        println!("NVRTC {version}");
        conformance(session, checks, &programs, variables)?;
        launch(session, checks, &programs, variables, &found)?;
        image_kernels(session, checks, &built, variables)?;
    }
    let task = Task::new(session.project, &programs.suite);
    checks.run(&task).map(drop)
}

/// A CUDA device, as `warploom detect` tells of it.
#[derive(Debug, PartialEq)]
struct Found {
    id: String,
    name: String,
    kind: String,
    software: bool,
    /// Takes CUDA C, because there is an NVRTC.
    compiles: bool,
}

impl Found {
    fn is_emulated(&self) -> bool {
        self.name.starts_with(EMULATED)
    }
}

/// The CUDA devices a process sees with these variables.
fn found(session: &Session<'_>, programs: &Programs, variables: &Variables) -> Result<Vec<Found>> {
    let task = Task::new(session.project, &programs.warploom)
        .args(["detect", "--json"])
        .variables(&stand_ins::quiet_runtime(session.project)?)
        .variables(variables);
    let said = task.capture(DEADLINE)?;
    let document = serde_json::from_str(&said.stdout)
        .with_context(|| format!("`{}` said:\n{}{}", task.shown(), said.stdout, said.stderr))?;
    Ok(cuda_devices(&document))
}

/// The CUDA faces of all devices; kind and software are said of the device.
fn cuda_devices(document: &Value) -> Vec<Found> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for device in list(&document["devices"]) {
        for face in list(&device["faces"]) {
            if face["backend"] == "cuda" {
                found.push(Found {
                    id: text(&face["id"]),
                    name: text(&face["name"]),
                    kind: text(&device["kind"]),
                    software: device["software"] == true,
                    compiles: list(&face["languages"]).contains(&"CudaC".into()),
                });
            }
        }
    }
    found
}

/// Whether there are so many devices, and whether all of them say what they are.
fn emulated(found: &[Found], count: usize) -> Result<(), String> {
    if found.len() != count {
        return Err(format!("{count} devices expected, but: {found:?}"));
    }
    let honest =
        |device: &Found| device.is_emulated() && device.kind == "virtual" && device.software;
    match found.iter().find(|device| !honest(device)) {
        Some(device) => Err(format!("not called emulated: {device:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(kind: &str) -> Value {
        let name = "Warploom emulated GPU";
        let cuda = |id: &str| {
            json!({
                "id": id, "backend": "cuda", "name": name, "languages": ["CudaC", "Ptx"],
            })
        };
        let opencl = json!({"id": "opencl:0", "backend": "opencl", "name": "other"});
        json!({"devices": [
            {"kind": kind, "software": true, "faces": [cuda("cuda:0"), opencl]},
            {"kind": "virtual", "software": true, "faces": [cuda("cuda:1")]},
        ]})
    }

    #[test]
    fn emulated_devices_are_called_so() {
        let found = cuda_devices(&document("virtual"));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].id, "cuda:1");
        assert!(found[1].compiles);
        assert_eq!(emulated(&found, 2), Ok(()));
        assert!(emulated(&found, 3).unwrap_err().contains("3 devices"));
        let lying = cuda_devices(&document("discrete"));
        assert!(emulated(&lying, 2).unwrap_err().contains("cuda:0"));
    }

    #[test]
    fn both_compilers_have_half_of_at_least_eight_seeds() {
        assert!(SEEDS.len() >= 8 && SEEDS.len().is_multiple_of(2));
        let mut seeds: Vec<u64> = SEEDS.iter().map(|(seed, _)| *seed).collect();
        seeds.dedup();
        assert_eq!(seeds.len(), SEEDS.len());
    }
}
