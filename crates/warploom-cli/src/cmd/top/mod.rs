//! `warploom top`: what this machine is doing: devices, leases, running plans.

mod live;
mod rows;
mod screen;
mod sight;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use warploom::watch::{Machine, metrics};

use crate::args;
use crate::output;
use crate::report::{self, Problem, remark};
use crate::settings::Environment;
use sight::Sight;

pub(crate) fn run(args: &args::Top, environment: &Environment) -> ExitCode {
    match show(args, environment) {
        Ok(code) => code,
        Err(problem) => report::print(&problem),
    }
}

/// The answer as JSON, with a version of its own: scripts depend on it.
#[derive(Serialize)]
struct Answer<'m> {
    schema: u32,
    #[serde(flatten)]
    machine: &'m Machine,
}

fn show(args: &args::Top, environment: &Environment) -> Result<ExitCode, Problem> {
    let sight = Sight::open(args, environment)?;
    if args.json || args.metrics || args.once || !std::io::stdout().is_terminal() {
        for warning in sight.warnings() {
            remark(format_args!("warning: {warning}"));
        }
        let machine = sight.look()?;
        return Ok(if args.json {
            let machine = &machine;
            output::json(&Answer { schema: 1, machine })
        } else if args.metrics {
            output::text(&metrics(&machine))
        } else {
            output::text(&rows::text(&machine, SystemTime::now()))
        });
    }
    live::run(sight, Duration::from_secs(args.every))
}
