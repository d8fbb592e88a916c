//! `warploom worker`: one device's process of a fleet.

use std::process::ExitCode;

use crate::report::{self, Problem};
use crate::settings;

#[cfg(target_os = "linux")]
pub(crate) fn run() -> ExitCode {
    match warploom::run::many::serve(settings::everything()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::print(&Problem::failure(error)),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run() -> ExitCode {
    let _ = settings::everything();
    report::print(&Problem::failure("fleets need Linux"))
}
