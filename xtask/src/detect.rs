//! `warploom detect`, built with every backend and run as it is.

use std::process::{ExitCode, ExitStatus};

use anyhow::{Result, bail};

use crate::flags;
use crate::process::Task;
use crate::project::Project;
use crate::stand_ins;

/// The package of the `warploom` binary.
pub(crate) const CLI: &str = "warploom-cli";

pub(crate) fn run(project: &Project, flags: &flags::Detect) -> Result<ExitCode> {
    let quiet = stand_ins::quiet_runtime(project)?;
    let status = task(project, flags)?.variables(&quiet).status()?;
    Ok(passed_on(status))
}

/// Builds where needed and detects; standard output stays free of anything of cargo's.
pub(crate) fn task(project: &Project, flags: &flags::Detect) -> Result<Task> {
    if project.package(CLI).is_none() {
        bail!("this workspace has no package `{CLI}`");
    }
    let mut args = vec!["run", "--quiet", "--package", CLI, "--bin", "warploom"];
    // The default of the CLI is every backend.
    if let Some(features) = &flags.features {
        args.extend(["--no-default-features", "--features", features]);
    }
    args.extend(["--", "detect"]);
    if flags.json {
        args.push("--json");
    }
    Ok(Task::cargo(project, args).args(&flags.rest))
}

/// The same exit code, so that a script can tell a wrong question from a failure.
pub(crate) fn passed_on(status: ExitStatus) -> ExitCode {
    match status.code().map(u8::try_from) {
        Some(Ok(code)) => ExitCode::from(code),
        // Ended by a signal.
        _ => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Package;

    fn project() -> Project {
        let cli = Package {
            name: CLI.into(),
            ..Package::default()
        };
        Project {
            root: ".".into(),
            target: "target".into(),
            cargo: "cargo".into(),
            packages: vec![cli],
        }
    }

    #[test]
    fn every_backend_unless_told_otherwise() {
        let plain = task(&project(), &flags::Detect::default()).unwrap();
        assert_eq!(
            plain.shown(),
            "cargo run --quiet --package warploom-cli --bin warploom -- detect"
        );
        let flags = flags::Detect {
            json: true,
            features: Some("cpu,opencl".into()),
            rest: vec!["--cpu-only".into()],
        };
        assert_eq!(
            task(&project(), &flags).unwrap().shown(),
            "cargo run --quiet --package warploom-cli --bin warploom --no-default-features \
             --features cpu,opencl -- detect --json --cpu-only"
        );
    }
}
