//! The `warploom` command: the one place that prints, reads the environment and chooses exit codes.
//!
//! Exit codes are a contract: 0 done, 1 a failure nobody foresaw, 2 asked for something that makes
//! no sense, 3 some records failed or were not started, 130 interrupted.
#![forbid(unsafe_code)]

mod args;
mod calibration;
mod cmd;
mod output;
mod report;
mod settings;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let settings = match settings::Environment::read() {
        Ok(environment) => environment,
        Err(error) => return report::print(&error),
    };
    start_log(&settings, args.verbose);
    match args.command {
        args::Command::Apply(apply) => cmd::apply::run(&apply, &settings),
        args::Command::Calibrate(calibrate) => cmd::calibrate::run(&calibrate, &settings),
        args::Command::Detect(detect) => cmd::detect::run(&detect, &settings),
        args::Command::Ops(ops) => cmd::ops::run(&ops),
        args::Command::Plan(plan) => cmd::plan::plan(&plan, &settings),
        args::Command::Worker => cmd::worker::run(),
        args::Command::Run(run) => cmd::run::run(&run, &settings),
        args::Command::Status(status) => cmd::status::run(&status),
        args::Command::Check(check) => cmd::plan::check(&check),
        args::Command::Explain(explain) => cmd::explain::run(&explain),
        args::Command::Top(top) => cmd::top::run(&top, &settings),
    }
}

/// Log lines go to stderr, so that stdout stays a clean answer.
fn start_log(environment: &settings::Environment, verbose: u8) {
    // Warnings are printed by the verbs themselves, for everybody.
    let level = match verbose {
        0 => "off",
        1 => "info,warploom_core::registry=debug",
        2 => "debug",
        _ => "trace",
    };
    let filter = environment.log.as_deref().unwrap_or(level);
    let started = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    // A second subscriber can only come from a test harness, which then has its own log.
    drop(started);
}
