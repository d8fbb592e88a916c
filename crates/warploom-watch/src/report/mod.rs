//! A recording as one page that opens anywhere: no network, no fonts, no other files.
//!
//! What can be said in words and tables is in the page as it is written, so it is there without a
//! script, for readers of screens and for searching. The script draws what needs zooming: lanes,
//! throughput, memory, and the list of records. A policy in the page forbids everything else: no
//! request leaves it, and no text in it can become code.

mod data;
mod device;
mod html;
mod overview;
mod pictures;
mod tables;
mod thin;
mod tile;

use data::Data;
use html::{Text, json};

use crate::recording::Recording;

/// The report of a recording, one HTML file that needs nothing else. What does not fit together in
/// the recording is left out; see [`Recording::flaws`].
///
/// ```
/// use warploom_watch::{Recording, report};
///
/// let page = report(&Recording::new("</title><script>alert(1)</script>", "nuclei"));
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// assert!(!page.contains("<script>alert"));
/// ```
pub fn report(recording: &Recording) -> String {
    let data = json(&Data::of(recording));
    let nonce = nonce(&data);
    let title = match recording.title.as_str() {
        "" => "Warploom run",
        title => title,
    };
    let title = Text(title);
    let parts = [
        overview::header(recording),
        tile::tiles(recording),
        overview::notes(recording),
        tables::failures(recording),
        device::devices(recording),
        TIMELINE.to_owned(),
        tables::stages(recording),
        tables::edges(recording),
        pictures::thumbnails(recording),
        RECORDS.to_owned(),
    ];
    let body = parts.concat();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'">
<title>{title} · Warploom</title>
<style nonce="{nonce}">
{STYLE}</style>
</head>
<body>
<a class="skip" href="#timeline">Skip to the timeline</a>
<main>
{body}</main>
<footer>Written by Warploom {version}. This page is one file: it loads nothing and sends nothing.</footer>
<script type="application/json" id="data" nonce="{nonce}">{data}</script>
<script nonce="{nonce}">
"use strict";
{SCRIPTS}</script>
</body>
</html>
"##,
        SCRIPTS = SCRIPTS.concat(),
    )
}

const STYLE: &str = include_str!("page.css");

/// One scope: each file may use what those before it define.
const SCRIPTS: &[&str] = &[
    "(() => {\n",
    include_str!("script/number.js"),
    include_str!("script/model.js"),
    include_str!("script/view.js"),
    include_str!("script/gantt.js"),
    include_str!("script/chart.js"),
    include_str!("script/records.js"),
    include_str!("script/picture.js"),
    include_str!("script/start.js"),
    "})();\n",
];

const TIMELINE: &str = include_str!("timeline.html");
const RECORDS: &str = include_str!("records.html");

/// A number that no text inside the data can have foreseen, since it follows from all of it.
fn nonce(data: &str) -> String {
    let offset = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let hash = data.bytes().fold(offset, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    format!("{hash:032x}")
}
