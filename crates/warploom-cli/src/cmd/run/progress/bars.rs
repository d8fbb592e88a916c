//! Bars on a terminal: one for all records, and one above it for each of several devices.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use warploom::run::News;

use super::{Count, words};
use crate::report::remark;

/// All bars.
pub(super) struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    devices: Vec<ProgressBar>,
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours, and a test draws them.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Bars {
    pub(super) fn new() -> Self {
        let all = MultiProgress::new();
        let total = all.add(ProgressBar::new(0));
        Self {
            all,
            total,
            devices: Vec::new(),
        }
    }

    pub(super) fn hear(&mut self, news: &News, count: &Count) {
        match news {
            News::Begun { .. } => {
                self.total.set_style(style(
                    "{prefix} {wide_bar} {pos}/{len} {per_sec} {msg} {eta} left",
                ));
                self.total.set_prefix(count.device.clone());
                self.total.set_length(count.total);
                // What was done before is no speed.
                self.total.set_position(count.skipped);
                self.total.reset_eta();
                self.total.enable_steady_tick(Duration::from_millis(200));
            }
            News::Ended { .. } => {
                if count.failed > 0 {
                    self.total.set_message(format!("{} failed", count.failed));
                }
                self.total.set_position(count.done());
            }
            News::Crew(_) => self.crew(count),
            News::Changed(change) => self.say(&format!("warning: {change}")),
            _ => {}
        }
    }

    fn crew(&mut self, count: &Count) {
        if self.devices.is_empty() {
            let widest = count.devices.iter().map(|device| device.label.len());
            let width = widest.max().unwrap_or(0).max("total".len());
            for device in &count.devices {
                let bar = ProgressBar::new(count.total.saturating_sub(count.skipped));
                let bar = self.all.insert_before(&self.total, bar);
                bar.set_style(style("{prefix} {wide_bar} {pos} {msg}"));
                bar.set_prefix(format!("{:width$}", device.label));
                self.devices.push(bar);
            }
            self.total.set_prefix(format!("{:width$}", "total"));
        }
        for (bar, device) in self.devices.iter().zip(&count.devices) {
            bar.set_position(device.done);
            bar.set_message(words(device));
        }
    }

    /// A line above the bars.
    pub(super) fn say(&self, line: &str) {
        self.all.suspend(|| remark(line));
    }

    pub(super) fn close(&self) {
        for bar in self.devices.iter().chain([&self.total]) {
            bar.finish_and_clear();
        }
    }
}
