//! The top of the page: what was run, how it went, what to know about it.

use std::fmt::Write as _;

use crate::recording::{Occasion, Recording, Tally};

use super::html::{Text, count, time};

/// Title, pipeline, time, and the verdict.
pub(super) fn header(recording: &Recording) -> String {
    let title = match recording.title.as_str() {
        "" => "Warploom run",
        title => title,
    };
    let (sort, verdict) = verdict(recording.tally());
    let mut facts = String::new();
    if !recording.pipeline.is_empty() {
        let _ = write!(
            facts,
            "<li>pipeline <strong>{}</strong></li>",
            Text(&recording.pipeline)
        );
    }
    if !recording.plan.is_empty() {
        let plan = Text(&recording.plan);
        let _ = write!(
            facts,
            "<li>plan <code class=\"clip\" title=\"{plan}\">{plan}</code></li>"
        );
    }
    if recording.started > 0 {
        let (iso, text) = date(recording.started);
        let _ = write!(facts, "<li><time datetime=\"{iso}\">{text}</time></li>");
    }
    if recording.wall > 0 {
        let _ = write!(
            facts,
            "<li>took <strong>{}</strong></li>",
            time(recording.wall)
        );
    }
    format!(
        r#"<header>
<div><h1>{}</h1><ul class="facts">{facts}</ul></div>
<div class="aside"><p class="verdict {sort}">{verdict}</p><button type="button" id="theme" aria-label="Switch between light and dark">◐</button></div>
</header>
"#,
        Text(title)
    )
}

fn verdict(tally: Tally) -> (&'static str, String) {
    let total = tally.total();
    let records = |number: u64| {
        format!(
            "{} record{}",
            count(number),
            if number == 1 { "" } else { "s" }
        )
    };
    if total == 0 {
        return ("none", "no records".to_owned());
    }
    if tally.failed > 0 {
        return (
            "bad",
            format!("{} of {} failed", count(tally.failed), records(total)),
        );
    }
    if tally.not_started > 0 {
        return (
            "warn",
            format!(
                "{} of {} not started",
                count(tally.not_started),
                records(total)
            ),
        );
    }
    let all = if total == 1 {
        records(total)
    } else {
        format!("all {}", records(total))
    };
    ("good", format!("{all} ok"))
}

/// Milliseconds since 1970 for machines and for people, in UTC; the script makes it local time.
fn date(ms: u64) -> (String, String) {
    let (seconds, days) = (ms / 1_000, ms / 86_400_000);
    // Days since 1 March of the year 0, whose leap day is its last day; eras have 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (
        year + era * 400,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = if month <= 2 { year + 1 } else { year };
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let date = format!("{year:04}-{month:02}-{day:02}");
    (
        format!("{date}T{hour:02}:{minute:02}:{second:02}Z"),
        format!("{date} {hour:02}:{minute:02} UTC"),
    )
}

/// What people should know about the whole run, and moments worth a flag.
pub(super) fn notes(recording: &Recording) -> String {
    let mut lines = String::new();
    for note in &recording.notes {
        let _ = writeln!(lines, "<li>{}</li>", Text(note));
    }
    for mark in recording
        .marks
        .iter()
        .filter(|mark| mark.occasion != Occasion::Note)
    {
        let device = mark.device.and_then(|at| recording.devices.get(at.index()));
        let device = device.map_or_else(String::new, |device| format!("{}: ", Text(&device.label)));
        let _ = writeln!(
            lines,
            "<li><span class=\"tag {0}\">{0}</span> at {1}: {device}{2}</li>",
            mark.occasion.word(),
            time(mark.at),
            Text(&mark.text)
        );
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "<section class=\"notes\" aria-labelledby=\"notes\">\n<h2 id=\"notes\">Worth knowing</h2>\n<ul>\n{lines}</ul>\n</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_000, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_709_210_096_000, "2024-02-29T12:34:56Z"),
            (1_795_132_800_000, "2026-11-20T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(date(ms).0, text);
        }
    }

    #[test]
    fn the_verdict_is_the_worst_that_happened() {
        let tally = |ok, failed, skipped, not_started| Tally {
            ok,
            failed,
            skipped,
            not_started,
        };
        let cases = [
            (tally(0, 0, 0, 0), ("none", "no records")),
            (tally(1, 0, 0, 0), ("good", "1 record ok")),
            (tally(90, 0, 6, 0), ("good", "all 96 records ok")),
            (tally(90, 0, 0, 6), ("warn", "6 of 96 records not started")),
            (tally(90, 1, 0, 5), ("bad", "1 of 96 records failed")),
        ];
        for (tally, (sort, text)) in cases {
            assert_eq!(verdict(tally), (sort, text.to_owned()));
        }
    }
}
