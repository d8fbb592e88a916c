//! `warploom status`: how a run stands, whether it goes on, is over, or was killed.

pub(crate) mod text;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warploom::run::status::{RunState, RunStatus, look};

use crate::args;
use crate::output;
use crate::report::{self, Problem};

pub(crate) fn run(args: &args::Status) -> ExitCode {
    let told = if args.watch { watch(args) } else { once(args) };
    told.unwrap_or_else(|problem| report::print(&problem))
}

/// The answer as JSON, with a version of its own: scripts depend on it.
#[derive(Serialize)]
struct Answer<'s> {
    schema: u32,
    #[serde(flatten)]
    status: &'s RunStatus,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

fn once(args: &args::Status) -> Result<ExitCode, Problem> {
    let status = look(&args.run, now())?;
    let written = if args.json {
        let status = &status;
        output::json(&Answer { schema: 1, status })
    } else {
        output::text(&text::whole(&status))
    };
    Ok(code(&status).unwrap_or(written))
}

/// The exit code that a run's state is, if it is not that of having answered.
fn code(status: &RunStatus) -> Option<ExitCode> {
    // Records stay not started in a run that broke off, which no device was left for.
    let is_lacking = status.tally.failed + status.tally.not_started > 0;
    match status.state {
        _ if status.damage.is_some() => Some(ExitCode::FAILURE),
        RunState::Interrupted => Some(ExitCode::from(130)),
        RunState::Died => Some(ExitCode::FAILURE),
        RunState::Finished | RunState::Broken if is_lacking => Some(ExitCode::from(3)),
        _ => None,
    }
}

/// Looks until the run is over.
fn watch(args: &args::Status) -> Result<ExitCode, Problem> {
    let is_drawn = std::io::stdout().is_terminal() && !args.json;
    let mut drawn = 0;
    let mut line = String::new();
    loop {
        let status = look(&args.run, now())?;
        let is_over = status.state != RunState::Running;
        let written = if args.json {
            let status = &status;
            let answer = serde_json::to_string(&Answer { schema: 1, status });
            let answer = answer.map_err(|error| Problem::failure(error.to_string()))?;
            put(&format!("{answer}\n"))
        } else if is_drawn {
            let block = text::whole(&status);
            // Back to where it began, and everything below is gone.
            let back = match drawn {
                0 => String::new(),
                lines => format!("\u{1b}[{lines}A\u{1b}[J"),
            };
            drawn = block.lines().count();
            put(&(back + &block))
        } else if is_over {
            put(&text::whole(&status))
        } else {
            let told = std::mem::replace(&mut line, text::line(&status));
            if told == line {
                true
            } else {
                put(&format!("{line}\n"))
            }
        };
        if is_over || !written {
            return Ok(code(&status).unwrap_or(ExitCode::SUCCESS));
        }
        std::thread::sleep(Duration::from_secs(args.every));
    }
}

/// Writes to stdout; false when nobody reads there any more.
fn put(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}
