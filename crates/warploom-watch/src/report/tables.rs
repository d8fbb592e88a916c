//! What is said in tables: failures, stages, edges.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::figures;
use crate::recording::{Outcome, Recording};

use super::html::{Text, count, percent, time};
use super::tile::meter;

/// Names of records that are listed under one reason; the list of records has all of them.
const NAMES: usize = 12;

/// Failures, those with the same reason together, the most frequent first.
pub(super) fn failures(recording: &Recording) -> String {
    let mut groups: Vec<(&str, Option<&str>, Vec<&str>)> = Vec::new();
    let mut known = HashMap::new();
    for record in &recording.records {
        let Outcome::Failed { reason, code } = &record.outcome else {
            continue;
        };
        let place = *known.entry((reason, code)).or_insert_with(|| {
            groups.push((reason, code.as_deref(), Vec::new()));
            groups.len() - 1
        });
        groups[place].2.push(&record.name);
    }
    if groups.is_empty() {
        return String::new();
    }
    // Stable: of equally frequent ones the first that occurred comes first.
    groups.sort_by_key(|(_, _, names)| usize::MAX - names.len());
    let mut items = String::new();
    for (reason, code, names) in groups {
        let code = code.map_or_else(String::new, |code| format!("<code>{}</code> ", Text(code)));
        let listed = names
            .iter()
            .take(NAMES)
            .map(|name| format!("<li>{}</li>", Text(name)));
        let listed: String = listed.collect();
        let more = match names.len() {
            0..=NAMES => String::new(),
            many => format!(
                "<li class=\"more\">and {} more</li>",
                count((many - NAMES) as u64)
            ),
        };
        let _ = writeln!(
            items,
            "<li><p><strong class=\"times\">{}×</strong> {code}{}</p><ul class=\"names\">{listed}{more}</ul></li>",
            count(names.len() as u64),
            Text(reason),
        );
    }
    format!(
        "<section class=\"failures\" aria-labelledby=\"failures\">\n<h2 id=\"failures\">Failures</h2>\n<ol>\n{items}</ol>\n</section>\n"
    )
}

/// Where the time went, stage by stage.
pub(super) fn stages(recording: &Recording) -> String {
    let stages = figures::stages(recording);
    if stages.is_empty() {
        return String::new();
    }
    let most = stages
        .iter()
        .map(|stage| stage.total)
        .max()
        .unwrap_or(0)
        .max(1);
    let mut rows = String::new();
    for stage in &stages {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\"><i class=\"swatch\" data-stage=\"{name}\"></i>{name}</th><td class=\"n\">{}</td><td class=\"n\">{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            count(stage.spans as u64),
            time(stage.total),
            meter(stage.total as f64 / most as f64, &stage.name),
            time(stage.median),
            time(stage.p95),
            time(stage.longest),
            name = Text(&stage.name),
        );
    }
    format!(
        r#"<section aria-labelledby="stages">
<h2 id="stages">Where the time went</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">Stage</th><th scope="col" class="n">Times</th><th scope="col" class="n">In all</th><th scope="col" class="n">Median</th><th scope="col" class="n">95 % below</th><th scope="col" class="n">Longest</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>
</section>
"#
    )
}

/// What stages waited for, the dearest first.
pub(super) fn edges(recording: &Recording) -> String {
    if recording.edges.is_empty() {
        return String::new();
    }
    let mut edges: Vec<_> = recording.edges.iter().collect();
    edges.sort_by_key(|edge| (u64::MAX - edge.blocked, u64::MAX - edge.waits));
    let sum = edges
        .iter()
        .map(|edge| edge.blocked)
        .fold(0, u64::saturating_add);
    let most = edges.first().map_or(1, |edge| edge.blocked.max(1));
    let several = recording.devices.len() > 1;
    let mut rows = String::new();
    for edge in edges {
        let device = edge.device.filter(|_| several);
        let device = device.and_then(|at| recording.devices.get(at.index()));
        let device = device.map_or_else(String::new, |device| {
            format!("<small>{}</small>", Text(&device.label))
        });
        let share = if sum == 0 {
            "–".to_owned()
        } else {
            percent(edge.blocked as f64 / sum as f64)
        };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}{device}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}{}</td><td class=\"n\">{share}</td></tr>",
            Text(&edge.name),
            Text(&edge.guards),
            count(edge.waits),
            time(edge.blocked),
            meter(edge.blocked as f64 / most as f64, &edge.name),
        );
    }
    format!(
        r#"<section aria-labelledby="edges">
<h2 id="edges">What was waited for</h2>
<p class="lead">Each rule that guards a resource, how often somebody was told to wait because of it, and how long the host had nothing else to do.</p>
<div class="scroll"><table>
<thead><tr><th scope="col">Edge</th><th scope="col">Guards</th><th scope="col" class="n">Waits</th><th scope="col" class="n">Blocked</th><th scope="col" class="n">Share</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>
</section>
"#
    )
}
