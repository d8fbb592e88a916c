//! `warploom apply`: one operation on images in files.

mod batch;
mod job;
mod machine;
mod outcome;

use std::process::ExitCode;

use crate::args;
use crate::output;
use crate::report::{self, Problem};
use crate::settings::Environment;
use job::Job;
use machine::Machine;

pub(crate) fn run(args: &args::Apply, environment: &Environment) -> ExitCode {
    let done = match &args.batch {
        Some(file) => batch::run(file, args, environment),
        None => run_one(args, environment),
    };
    done.unwrap_or_else(|problem| report::print(&problem))
}

fn run_one(args: &args::Apply, environment: &Environment) -> Result<ExitCode, Problem> {
    // What makes no sense is refused before a device is opened, which may take a while.
    let job = Job::new(
        args.op.as_deref().unwrap_or_default(),
        &args.params,
        &args.inputs,
        args.output.clone().unwrap_or_default(),
    )?;
    let machine = Machine::open(args, environment, Some(job.op()))?;
    report::remark(format_args!("{job}, on {machine}"));
    let report = job.run(&machine)?;
    if args.json {
        return Ok(output::json(&report));
    }
    report::remark(&report);
    Ok(ExitCode::SUCCESS)
}
