//! The numbers people ask for first, one to a tile. What was not measured has none.

use std::fmt::Write as _;

use warploom_core::Bytes;

use crate::figures;
use crate::recording::Recording;

use super::html::{Text, count, digits, percent, time};

/// All tiles there is something to say in.
pub(super) fn tiles(recording: &Recording) -> String {
    let tiles = [
        records(recording),
        rate(recording),
        limit(recording),
        memory(recording),
        busy(recording),
        blocked(recording),
    ];
    let tiles: String = tiles.into_iter().flatten().collect();
    format!("<section aria-label=\"Summary\">\n<dl class=\"tiles\">\n{tiles}</dl>\n</section>\n")
}

/// One number with its name, and a word or a bar about it. All but the name is markup.
fn tile(name: &str, value: &str, about: &str, share: Option<f64>) -> String {
    let mut out = format!("<div class=\"tile\"><dt>{name}</dt><dd>{value}");
    if !about.is_empty() {
        let _ = write!(out, "<small>{about}</small>");
    }
    if let Some(share) = share.filter(|share| share.is_finite()) {
        out.push_str(&meter(share, name));
    }
    out.push_str("</dd></div>\n");
    out
}

/// A bar for a share of a whole. A drawing, so that its width needs no style of its own.
pub(super) fn meter(share: f64, name: &str) -> String {
    let width = (share * 100.0).clamp(0.0, 100.0);
    format!(
        r#"<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="{}: {}"><rect class="all" width="100" height="4"/><rect class="part" width="{width:.2}" height="4"/></svg>"#,
        Text(name),
        percent(share)
    )
}

/// Bytes that were counted in floating point.
pub(super) fn bytes(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts of floats saturate, and a memory of that size is no likely one"
    )]
    let whole = value.max(0.0) as u64;
    Bytes(whole).to_string()
}

fn records(recording: &Recording) -> Option<String> {
    let tally = recording.tally();
    if tally.total() == 0 {
        return None;
    }
    let kinds = [
        (tally.failed, "failed"),
        (tally.skipped, "already done"),
        (tally.not_started, "not started"),
    ];
    let kinds = kinds.into_iter().filter(|(number, _)| *number > 0);
    let rest: Vec<String> = kinds
        .map(|(number, name)| format!("{} {name}", count(number)))
        .collect();
    let total = count(tally.total());
    let about = match rest.as_slice() {
        [] => format!("of {total}"),
        rest => format!("of {total}; {}", rest.join(", ")),
    };
    let share = tally.ok as f64 / tally.total() as f64;
    Some(tile("Records ok", &count(tally.ok), &about, Some(share)))
}

fn rate(recording: &Recording) -> Option<String> {
    let rate = recording.rate()?;
    let (about, share) = match recording.bound() {
        Some(bound) => {
            let share = rate / bound;
            let about = format!(
                "{} of the {} that the times of its stages allow",
                percent(share),
                digits(bound)
            );
            (about, Some(share))
        }
        None => ("over the whole run".to_owned(), None),
    };
    Some(tile("Records per second", &digits(rate), &about, share))
}

fn limit(recording: &Recording) -> Option<String> {
    let told = recording
        .bounds
        .iter()
        .filter(|bound| !bound.limit.is_empty());
    let limits = told.map(|bound| {
        let device = bound
            .device
            .and_then(|at| recording.devices.get(at.index()));
        match device {
            Some(device) if recording.devices.len() > 1 => {
                format!("{}: {}", device.label, bound.limit)
            }
            _ => bound.limit.clone(),
        }
    });
    let limits: Vec<String> = limits.collect();
    let (first, others) = limits.split_first()?;
    let first = format!("<span class=\"phrase\">{}</span>", Text(first));
    Some(tile(
        "Limited by",
        &first,
        &Text(&others.join("; ")).to_string(),
        None,
    ))
}

fn memory(recording: &Recording) -> Option<String> {
    let (counter, peak) = figures::tightest_memory(recording)?;
    let name = Text(&counter.name);
    let share = counter.budget.map(|budget| peak / budget);
    let about = match (counter.budget, share) {
        (Some(budget), Some(share)) => {
            format!(
                "{} of a budget of {} · {name}",
                percent(share),
                bytes(budget)
            )
        }
        _ => name.to_string(),
    };
    Some(tile("Peak memory", &bytes(peak), &about, share))
}

fn busy(recording: &Recording) -> Option<String> {
    let devices = figures::devices(recording).into_iter();
    let busy: Vec<u64> = devices.filter_map(|device| device.busy).collect();
    if busy.is_empty() || recording.wall == 0 {
        return None;
    }
    let sum: f64 = busy.iter().map(|&busy| busy as f64).sum();
    let share = sum / busy.len() as f64 / recording.wall as f64;
    let about = match busy.len() {
        1 => "of the run, work was on the device".to_owned(),
        many => format!("of the run, on average over {many} devices"),
    };
    Some(tile("Devices busy", &percent(share), &about, Some(share)))
}

fn blocked(recording: &Recording) -> Option<String> {
    let blocked = recording
        .edges
        .iter()
        .map(|edge| edge.blocked)
        .reduce(u64::saturating_add)?;
    Some(tile(
        "Blocked",
        &time(blocked),
        "the host had nothing else to do",
        None,
    ))
}
