//! How far a run is: a bar for people, lines for logs.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warploom::run::{News, Outcome};

use crate::report::remark;

/// How often a log gets a line.
const EVERY: Duration = Duration::from_secs(10);

/// What is shown.
pub(super) struct Progress {
    shown: Mutex<Shown>,
}

enum Shown {
    Nothing,
    Bar(ProgressBar, u64),
    Lines(Lines),
}

/// Counts for a log.
struct Lines {
    begun: Instant,
    told: Instant,
    total: u64,
    skipped: u64,
    ended: u64,
    failed: u64,
}

impl Progress {
    pub(super) fn new(wanted: bool) -> Self {
        let shown = if !wanted {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            Shown::Bar(ProgressBar::new(0), 0)
        } else {
            let now = Instant::now();
            Shown::Lines(Lines {
                begun: now,
                told: now,
                total: 0,
                skipped: 0,
                ended: 0,
                failed: 0,
            })
        };
        Self {
            shown: Mutex::new(shown),
        }
    }

    pub(super) fn hear(&self, news: &News) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *shown {
            Shown::Nothing => {}
            Shown::Bar(bar, failed) => on_bar(bar, failed, news),
            Shown::Lines(lines) => lines.hear(news),
        }
    }

    /// Takes the bar away, so that the summary has the last word.
    pub(super) fn close(&self) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Shown::Bar(bar, _) = &*shown {
            bar.finish_and_clear();
        }
    }
}

fn on_bar(bar: &ProgressBar, failed: &mut u64, news: &News) {
    match news {
        News::Begun {
            records,
            skipped,
            device,
        } => {
            let style = ProgressStyle::with_template(
                "{prefix} {wide_bar} {pos}/{len} {per_sec} {msg} {eta} left",
            );
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_prefix(device.clone());
            bar.set_length(*records);
            // What was done before is no speed.
            bar.set_position(*skipped);
            bar.reset_eta();
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        News::Ended { done, .. } => {
            if let Outcome::Failed(_) = done.outcome {
                *failed += 1;
                bar.set_message(format!("{failed} failed"));
            }
            bar.inc(1);
        }
        News::Changed(change) => bar.suspend(|| remark(format_args!("warning: {change}"))),
        _ => {}
    }
}

impl Lines {
    fn hear(&mut self, news: &News) {
        match news {
            News::Begun {
                records, skipped, ..
            } => {
                (self.total, self.skipped) = (*records, *skipped);
                self.begun = Instant::now();
                self.told = self.begun;
            }
            News::Ended { done, .. } => {
                self.ended += 1;
                self.failed += u64::from(matches!(done.outcome, Outcome::Failed(_)));
                if self.told.elapsed() >= EVERY {
                    self.told = Instant::now();
                    remark(self.line());
                }
            }
            News::Changed(change) => remark(format_args!("warning: {change}")),
            _ => {}
        }
    }

    fn line(&self) -> String {
        let done = self.skipped + self.ended;
        let rate = self.ended as f64 / self.begun.elapsed().as_secs_f64().max(1e-9);
        let left = self.total.saturating_sub(done) as f64 / rate.max(1e-9);
        format!(
            "{done}/{} records, {} failed, {rate:.1}/s, {left:.0} s left",
            self.total, self.failed
        )
    }
}
