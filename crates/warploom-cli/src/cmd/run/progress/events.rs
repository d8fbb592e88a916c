//! Events for programs: one JSON value a line.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warploom::run::{DeviceNews, Done, Failure, News, Summary, Tally};

use super::Count;
use crate::report::remark;

/// How often it is told how far it is.
const EVERY: Duration = Duration::from_secs(1);

/// When it was told last how far it is.
pub(super) struct Events {
    told: Instant,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'e> {
    Begun {
        records: u64,
        skipped: u64,
        device: &'e str,
    },
    Ended {
        index: usize,
        #[serde(flatten)]
        done: &'e Done,
    },
    Changed {
        text: &'e str,
    },
    Progress {
        done: u64,
        total: u64,
        failed: u64,
        rate: Option<f64>,
        left: Option<f64>,
        devices: &'e [DeviceNews],
    },
    Interrupted,
    Finished {
        tally: Tally,
        interrupted: bool,
        seconds: f64,
        /// Why it ended before every record had an outcome.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'e Failure>,
    },
}

/// An event and when it happened.
#[derive(Serialize)]
struct Stamped<'e> {
    /// Milliseconds since 1970.
    at: u64,
    #[serde(flatten)]
    event: Event<'e>,
}

fn put(event: Event<'_>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    if let Ok(line) = serde_json::to_string(&Stamped { at, event }) {
        remark(line);
    }
}

impl Events {
    pub(super) fn new() -> Self {
        let told = Instant::now();
        Self { told }
    }

    pub(super) fn hear(&mut self, news: &News, count: &Count) {
        match news {
            News::Begun {
                records,
                skipped,
                device,
            } => put(Event::Begun {
                records: *records,
                skipped: *skipped,
                device,
            }),
            News::Ended { index, done, .. } => put(Event::Ended {
                index: *index,
                done,
            }),
            News::Changed(text) => put(Event::Changed { text }),
            _ => {}
        }
        if self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            progress(count);
        }
    }

    pub(super) fn interrupted() {
        put(Event::Interrupted);
    }

    /// The last words: what was not told as it happened, and what it came to.
    pub(super) fn conclude(summary: &Summary, told: &[String]) {
        for text in summary.changes.iter().filter(|text| !told.contains(text)) {
            put(Event::Changed { text });
        }
        put(Event::Finished {
            tally: summary.tally,
            interrupted: summary.interrupted,
            seconds: summary.seconds,
            error: summary.error.as_ref(),
        });
    }
}

fn progress(count: &Count) {
    put(Event::Progress {
        done: count.done(),
        total: count.total,
        failed: count.failed,
        rate: count.rate(),
        left: count.left(),
        devices: &count.devices,
    });
}
