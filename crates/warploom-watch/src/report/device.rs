//! The devices of a run, side by side.

use std::fmt::Write as _;

use crate::figures;
use crate::recording::{DeviceNo, Occasion, Recording, Unit};

use super::html::{Text, count, digits, percent, time};
use super::tile::{bytes, meter};

/// What stands for a number that nobody measured.
const UNKNOWN: &str = "–";

/// A table with a row for each.
pub(super) fn devices(recording: &Recording) -> String {
    if recording.devices.is_empty() {
        return String::new();
    }
    let rows: String = (0..recording.devices.len())
        .zip(figures::devices(recording))
        .map(|(at, figures)| row(recording, DeviceNo::at(at), &figures))
        .collect();
    let balance = figures::imbalance(recording).map_or_else(String::new, |share| {
        format!(
            "<p class=\"lead\">Imbalance: for the last {} of the work, the device that finished first stood idle.</p>\n",
            percent(share)
        )
    });
    format!(
        r#"<section aria-labelledby="devices">
<h2 id="devices">Devices</h2>
{balance}<div class="scroll"><table>
<thead><tr><th scope="col">Device</th><th scope="col">Faces</th><th scope="col" class="n">Records ok</th><th scope="col" class="n">Records/s</th><th scope="col" class="n">Busy</th><th scope="col" class="n">Peak memory</th><th scope="col" class="n">Last record</th><th scope="col">Trouble</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>
</section>
"#
    )
}

fn row(recording: &Recording, at: DeviceNo, figures: &figures::DeviceFigures) -> String {
    let device = &recording.devices[at.index()];
    let (peak, of_budget) = memory(recording, at);
    let wall = recording.wall;
    let busy = figures
        .busy
        .filter(|_| wall > 0)
        .map(|busy| busy as f64 / wall as f64);
    let bar = busy.map_or_else(String::new, |share| meter(share, "busy"));
    let busy = busy.map_or_else(|| UNKNOWN.to_owned(), percent);
    let rate = match figures.last {
        Some(last) if last > 0 && figures.ok > 0 => digits(figures.ok as f64 / (last as f64 / 1e9)),
        _ => UNKNOWN.to_owned(),
    };
    let last = figures.last.map_or_else(|| UNKNOWN.to_owned(), time);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "<tr><th scope=\"row\">{}<small>{}</small></th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{rate}</td><td class=\"n\">{busy}{bar}</td><td class=\"n\">{peak}<small>{of_budget}</small></td><td class=\"n\">{last}</td><td>{}</td></tr>",
        Text(&device.label),
        Text(&device.name),
        Text(&device.faces.join(" ")),
        count(figures.ok),
        trouble(recording, at, figures),
    );
    text
}

/// The most memory that was in use there, and what that is of its budget.
fn memory(recording: &Recording, at: DeviceNo) -> (String, String) {
    let here = recording.counters.iter();
    let here = here.filter(|counter| counter.unit == Unit::Bytes && counter.device == Some(at));
    let peaks = here.filter_map(|counter| Some((figures::peak(counter)?, counter.budget)));
    match peaks.reduce(|most, next| if next.0 > most.0 { next } else { most }) {
        Some((peak, Some(budget))) => {
            let share = format!("{} of {}", percent(peak / budget), bytes(budget));
            (bytes(peak), share)
        }
        Some((peak, None)) => (bytes(peak), String::new()),
        None => (UNKNOWN.to_owned(), String::new()),
    }
}

fn trouble(recording: &Recording, at: DeviceNo, figures: &figures::DeviceFigures) -> String {
    let of = |occasion| {
        let marks = recording.marks.iter();
        marks
            .filter(|mark| mark.device == Some(at) && mark.occasion == occasion)
            .count() as u64
    };
    let kinds = [
        (figures.failed, "failed"),
        (figures.retries, "tried again"),
        (of(Occasion::Lost), "lost"),
        (of(Occasion::Quarantine), "quarantined"),
    ];
    let kinds = kinds.into_iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = kinds
        .map(|(number, word)| format!("{} {word}", count(number)))
        .collect();
    if words.is_empty() {
        UNKNOWN.to_owned()
    } else {
        words.join(", ")
    }
}
