//! A run's state as people read it.

use std::fmt::Write as _;

use warploom::run::status::{DeviceStatus, FailedRecord, RunState, RunStatus};

use crate::output::table;

/// Failures and incidents that are told of one by one; the others are in the JSON.
const TOLD: usize = 20;
/// Lines of a worker's log that are quoted.
const QUOTED: usize = 5;

/// Everything.
pub(super) fn whole(status: &RunStatus) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{}", title(status));
    let _ = writeln!(text, "  {}", counts(status));
    if let Some(rate) = status.rate {
        let left = match status.left {
            Some(left) => format!(", {left:.0} s left"),
            None => String::new(),
        };
        let _ = writeln!(text, "  {rate:.1} records/s{left}");
    }
    text.push_str(&devices(status));
    if let Some(error) = &status.error {
        let _ = writeln!(text, "error: {error}");
    }
    if let Some(damage) = &status.damage {
        let _ = writeln!(text, "damaged: {damage}; counts are of what can be read");
    }
    for incident in last(&status.incidents) {
        let _ = writeln!(text, "warning: {incident}");
    }
    for failed in status.failures.iter().take(TOLD) {
        text.push_str(&failure(failed));
    }
    let more = status.failures.len().saturating_sub(TOLD);
    if more > 0 {
        let _ = writeln!(text, "and {more} more failed, all of which `--json` lists");
    }
    if status.state == RunState::Died {
        text.push_str("its process is gone; run again with `--resume` for the rest\n");
    }
    text
}

/// One line for logs.
pub(super) fn line(status: &RunStatus) -> String {
    let rate = status.rate;
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate:.1} records/s"));
    format!("{}: {}{rate}", status.state.word(), counts(status))
}

fn title(status: &RunStatus) -> String {
    let host = match status.host.as_str() {
        "" => String::new(),
        host => format!(" on {host}"),
    };
    let pipeline = match status.pipeline.as_str() {
        "" => &status.plan,
        pipeline => pipeline,
    };
    format!(
        "{pipeline}: {}, process {}{host}, {:.1} s, {}",
        status.state.word(),
        status.pid,
        status.seconds,
        status.run.display()
    )
}

fn counts(status: &RunStatus) -> String {
    let tally = status.tally;
    let waiting = tally.not_started.saturating_sub(status.under_way);
    let rest = if status.state == RunState::Running {
        "to go"
    } else {
        "not started"
    };
    let parts = [
        (tally.skipped, "done before"),
        (tally.failed, "failed"),
        (status.under_way, "under way"),
        (waiting, rest),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let mut text = format!("{} records: {} ok", tally.total(), tally.ok);
    for (number, word) in parts {
        let _ = write!(text, ", {number} {word}");
    }
    text
}

fn devices(status: &RunStatus) -> String {
    let mut rows = vec![
        [
            "device", "state", "workers", "ok", "failed", "at work", "batch", "rate", "trouble",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(status.devices.iter().map(row));
    if rows.len() == 1 {
        return String::new();
    }
    table(&rows, "  ")
}

fn row(device: &DeviceStatus) -> Vec<String> {
    let known = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let trouble = [(device.griefs, "grief"), (device.quarantines, "quarantine")];
    let trouble: Vec<String> = trouble
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}{}", if number == 1 { "" } else { "s" }))
        .collect();
    vec![
        device.label.clone(),
        device.state.clone(),
        known((device.workers > 0).then_some(device.workers.into())),
        device.ok.to_string(),
        device.failed.to_string(),
        device.under_way.to_string(),
        known(device.batch),
        device
            .rate
            .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}/s")),
        trouble.join(", "),
    ]
}

/// A record that failed, with the last words of its worker.
fn failure(failed: &FailedRecord) -> String {
    let FailedRecord {
        record, failure, ..
    } = failed;
    let code = failure
        .code
        .as_ref()
        .map_or_else(String::new, |code| format!("[{code}]"));
    let times = times(failure.attempts);
    let mut text = format!("failed{code}: {record}: {}{times}\n", failure.reason);
    text.push_str(&quoted(failure.log.as_deref()));
    if let Some(help) = &failure.help {
        let _ = writeln!(text, "  = help: {help}");
    }
    text
}

/// How often a record was tried, if more than once.
pub(crate) fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        times => format!(" ({times} attempts)"),
    }
}

/// The last lines of a worker's log.
pub(crate) fn quoted(log: Option<&str>) -> String {
    let lines: Vec<&str> = log.unwrap_or_default().lines().collect();
    let lines = &lines[lines.len().saturating_sub(QUOTED)..];
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "  | {line}");
    }
    text
}

/// The last of a list that may be long.
fn last(all: &[String]) -> &[String] {
    &all[all.len().saturating_sub(TOLD)..]
}
