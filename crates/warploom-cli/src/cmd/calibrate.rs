//! `warploom calibrate`: how fast the devices are, found by trying.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warploom::kernels::program::Loader;
use warploom::plan::calibration::Measured;
use warploom::plan::{Calibration, Speed};
use warploom::{DeviceInfo, Math, Registry, Status};

use crate::args;
use crate::calibration;
use crate::output;
use crate::report::{self, Problem, remark};
use crate::settings::{self, Environment};

/// What was done, as JSON.
#[derive(Serialize)]
struct Answer {
    schema: u32,
    devices: Vec<Measured>,
    failed: Vec<Failed>,
    /// The file or folder that keeps it.
    kept: Option<String>,
}

/// A device that could not be measured.
#[derive(Serialize)]
struct Failed {
    device: String,
    error: String,
}

pub(crate) fn run(args: &args::Calibrate, environment: &Environment) -> ExitCode {
    let answer = if args.show {
        shown(args, environment)
    } else {
        measured(args, environment)
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(problem) => return report::print(&problem),
    };
    let printed = if args.json {
        output::json(&answer)
    } else {
        output::text(&table(&answer.devices))
    };
    if !args.json
        && let Some(kept) = &answer.kept
    {
        remark(format_args!("kept in {kept}"));
    }
    if answer.failed.is_empty() {
        printed
    } else {
        ExitCode::FAILURE
    }
}

/// What is known of the devices that are there.
fn shown(args: &args::Calibrate, environment: &Environment) -> Result<Answer, Problem> {
    let status = Registry::linked().initialize(&settings::backends(environment)?)?;
    let known = calibration::known(environment, args.output.as_deref())?;
    let mut devices = Vec::new();
    for face in chosen(&status, &args.devices)? {
        match known.measured(face) {
            Some(measured) => devices.push(measured.clone()),
            None => remark(format_args!("{} ({}) was not measured", face.id, face.name)),
        }
    }
    Ok(Answer {
        schema: 1,
        devices,
        failed: Vec::new(),
        kept: None,
    })
}

fn measured(args: &args::Calibrate, environment: &Environment) -> Result<Answer, Problem> {
    let registry = Registry::linked();
    let status = registry.initialize(&settings::backends(environment)?)?;
    let mut found = Calibration::default();
    let mut failed = Vec::new();
    for face in chosen(&status, &args.devices)? {
        remark(format_args!("measuring {} ({})", face.id, face.name));
        match one(&registry, face) {
            Ok(speed) => found.add(face, speed, now()),
            Err(problem) => {
                remark(&problem);
                failed.push(Failed {
                    device: face.id.to_string(),
                    error: problem.to_string(),
                });
            }
        }
    }
    let kept = if found.devices.is_empty() {
        None
    } else {
        let path = calibration::keep(environment, args.output.as_deref(), &found)?;
        Some(path.display().to_string())
    };
    Ok(Answer {
        schema: 1,
        devices: found.devices,
        failed,
        kept,
    })
}

fn one(registry: &Registry, face: &DeviceInfo) -> Result<Speed, Problem> {
    let loader = Loader::new(registry.open(face.id)?, Math::Strict);
    let speed = loader.calibrate()?;
    if speed.is_plausible() {
        Ok(speed)
    } else {
        let said = format!("{} gave numbers that no device has: {speed:?}", face.id);
        Err(Problem::failure(said))
    }
}

/// The faces that were named, by themselves or as those of their card; all, when none was.
fn chosen<'s>(status: &'s Status, names: &[String]) -> Result<Vec<&'s DeviceInfo>, Problem> {
    let mut faces: Vec<&DeviceInfo> = Vec::new();
    if names.is_empty() {
        let all = status.survey.devices.iter().flat_map(|card| &card.faces);
        faces.extend(all);
    }
    for name in names {
        let card = status.device(name)?;
        let own = card.faces.iter().find(|face| face.id.to_string() == *name);
        match own {
            Some(face) => faces.push(face),
            None => faces.extend(&card.faces),
        }
    }
    faces.sort_by_key(|face| face.id);
    faces.dedup_by_key(|face| face.id);
    Ok(faces)
}

/// Seconds since 1970; 0 on a machine whose clock is before that.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn table(devices: &[Measured]) -> String {
    let head = [
        "device",
        "memory GB/s",
        "up GB/s",
        "down GB/s",
        "launch us",
        "Gop/s",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for Measured { device, speed, .. } in devices {
        let giga = |rate: f64| format!("{:.1}", rate / 1e9);
        rows.push(vec![
            device.clone(),
            giga(speed.machine.bytes_per_second),
            giga(speed.up),
            giga(speed.down),
            format!("{:.1}", speed.launch * 1e6),
            giga(speed.machine.operations_per_second),
        ]);
    }
    output::table(&rows, "")
}
