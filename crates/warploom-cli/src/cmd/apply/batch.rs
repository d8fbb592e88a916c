//! Many jobs in one process: lines of JSON in, a line of JSON for each out.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use super::job::Job;
use super::machine::Machine;
use crate::args;
use crate::report::Problem;
use crate::settings::Environment;

/// One line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    op: String,
    #[serde(default)]
    args: Vec<String>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
}

/// Does what every line says. The exit code is 1 if one of them failed.
pub(super) fn run(
    file: &Path,
    args: &args::Apply,
    environment: &Environment,
) -> Result<ExitCode, Problem> {
    let unreadable = |error: std::io::Error| {
        Problem::usage(
            format_args!("`{}` cannot be read: {error}", file.display()),
            "--batch names a file with a JSON object on every line",
        )
    };
    let lines = BufReader::new(File::open(file).map_err(unreadable)?).lines();
    let machine = Machine::open(args, environment, None)?;
    let mut failed = false;
    for line in lines {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match run_line(&line, &machine) {
            Ok(()) => json!({"ok": true}),
            Err(problem) => {
                failed = true;
                json!({"error": problem.to_string()})
            }
        };
        // At once, so that whoever reads knows how far it came if it comes no further.
        let mut out = std::io::stdout().lock();
        match writeln!(out, "{answer}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => {
                return Err(Problem::failure(format_args!(
                    "cannot write to stdout: {error}"
                )));
            }
            Ok(()) => {}
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn run_line(line: &str, machine: &Machine) -> Result<(), Problem> {
    let line: Line = serde_json::from_str(line).map_err(|error| {
        Problem::usage(
            format_args!("a line is no job: {error}"),
            r#"write {"op": "gaussian", "args": ["sigma=2"], "inputs": ["a.npy"], "output": "b.npy"}"#,
        )
    })?;
    Job::new(&line.op, &line.args, &line.inputs, line.output)?
        .run(machine)
        .map(drop)
}
