//! Text tables and JSON on stdout. A reader that goes away early is no failure.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use serde::Serialize;

use crate::report::remark;

/// Columns as wide as their widest cell, two spaces apart, nothing after the last.
pub(crate) fn table(rows: &[Vec<String>], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let text: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{indent}{}\n", text.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Prints an answer.
pub(crate) fn text(answer: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(answer.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            remark(format_args!("error: cannot write to stdout: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints an answer as JSON.
pub(crate) fn json(answer: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(answer) {
        Ok(answer) => text(&(answer + "\n")),
        Err(error) => {
            remark(format_args!("error: cannot write JSON: {error}"));
            ExitCode::FAILURE
        }
    }
}
