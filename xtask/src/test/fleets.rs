//! Fleets on emulated CUDA devices: as many as there are, and as many as were given to us.

use std::path::Path;

use anyhow::Result;

use super::Session;
use super::checks::Checks;
use crate::artifacts::{Artifacts, Sort};
use crate::emu::{self, Machine};
use crate::process::Task;
use crate::wheels::Unpacked;
use crate::{detect, stand_ins};

/// Two cards, and two instances of a divided one.
const DIVIDED: &str = "uuid=GPU-aaaa0000000000000000000000000001;\
    uuid=GPU-aabb0000000000000000000000000002;\
    uuid=GPU-cc000000000000000000000000000003,mig=MIG-10000000000000000000000000000001;\
    uuid=GPU-cc000000000000000000000000000003,mig=MIG-20000000000000000000000000000002,\
    pci=77:00.0";

/// What may be inherited of them, and what it leaves: by UUID, by its beginning, an instance, one
/// twice, an entry that means nothing, nothing at all.
const MASKS: &[(&str, &str)] = &[
    ("GPU-aabb0000-0000-0000-0000-000000000002,0", "cuda=2"),
    ("GPU-AAAA", "cuda=1"),
    ("MIG-2", "cuda=1"),
    ("0,1,0", "cuda=0"),
    ("1,9,0", "cuda=1"),
    ("", "cuda=0"),
];

/// A worker process on each of several devices: each sees its own by its driver's name, whatever was
/// inherited, and all write the files of one process.
pub(super) fn emulated(
    session: &Session<'_>,
    checks: &mut Checks,
    built: &Artifacts,
    driver: &Path,
    nvrtc: &Unpacked,
) -> Result<()> {
    let program = built.program(detect::CLI, Sort::Test, "fleet")?;
    let mut others = stand_ins::no_drivers(session.project)?;
    others.retain(|(name, _)| *name != "CUDA_VISIBLE_DEVICES");
    // How many there are, what of them was given to us, and what that leaves.
    for (devices, given, left) in [
        ("2", None, "cuda=2"),
        ("8", None, "cuda=8"),
        ("8", Some("5,2,7"), "cuda=3"),
    ] {
        let machine = Machine {
            devices: Some(devices.to_owned()),
            ..Machine::default()
        };
        let mut task = Task::new(session.project, &program)
            .args(["every_device", "--nocapture"])
            .variables(&others)
            .variables(&emu::surroundings(driver, nvrtc, &machine)?)
            .variable("WARPLOOM_TEST_FACES", left);
        if let Some(given) = given {
            task = task.variable("CUDA_VISIBLE_DEVICES", given);
        }
        checks.run(&task)?;
    }
    // What a process inherits, in all the ways in which it can be said.
    let program = built.program("warploom-tests", Sort::Test, "fleet")?;
    let machine = Machine {
        devices: Some(DIVIDED.to_owned()),
        ..Machine::default()
    };
    for (given, left) in MASKS {
        let task = Task::new(session.project, &program)
            .args(["--nocapture"])
            .variables(&others)
            .variables(&emu::surroundings(driver, nvrtc, &machine)?)
            .variable("CUDA_VISIBLE_DEVICES", given)
            .variable("WARPLOOM_TEST_FACES", left);
        checks.run(&task)?;
    }
    Ok(())
}
