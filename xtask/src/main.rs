//! `cargo xtask`: what a person or a CI machine does with this workspace, one command each.
//!
//! It depends on no crate of ours, so that it still runs when they do not compile, and it only
//! ever talks to them through cargo and the `warploom` binary.
#![forbid(unsafe_code)]
#![expect(
    clippy::format_push_string,
    reason = "the texts are tables of twenty lines: reading well beats allocating less"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "this program is for people: it prints, and it reads the environment it was started in"
)]

mod arm;
mod artifacts;
mod bench;
mod cuda_check;
mod demo;
mod detect;
mod emu;
mod flags;
mod gate;
mod help;
mod hide;
mod load;
mod nearest;
mod oracle;
mod peers;
mod pools;
mod process;
mod project;
mod python;
mod rivals;
mod setup;
mod stand_ins;
mod targets;
mod test;
mod tidy;
mod wheels;

use std::process::ExitCode;

use flags::Request;
use project::Project;

fn main() -> ExitCode {
    let request = match flags::parse(std::env::args_os().skip(1)) {
        Ok(request) => request,
        Err(usage) => {
            eprintln!("error: {usage}");
            eprintln!("help: `cargo xtask --help` lists the commands");
            return ExitCode::from(2);
        }
    };
    match run(request) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(request: Request) -> anyhow::Result<ExitCode> {
    if let Request::Help(topic) = request {
        print!("{}", help::text(topic));
        return Ok(ExitCode::SUCCESS);
    }
    let project = Project::find()?;
    match request {
        Request::Help(_) => Ok(ExitCode::SUCCESS),
        Request::Setup { check } => setup::run(check),
        Request::Detect(flags) => detect::run(&project, &flags),
        Request::Test(flags) => Ok(test::run(&project, flags)),
        Request::Bench(flags) => bench::run(&project, &flags),
        Request::Demo => demo::run(&project),
        Request::CudaCheck(flags) => cuda_check::run(&project, &flags),
        Request::Emu(flags) => emu::run(&project, &flags),
        Request::Oracle(flags) => oracle::run(&project, &flags),
        Request::Arm { filter } => arm::run(&project, filter.as_deref()),
        Request::Tidy => tidy::run(&project),
    }
}
