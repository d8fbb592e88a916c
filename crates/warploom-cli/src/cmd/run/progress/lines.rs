//! Lines for logs.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use warploom::run::News;

use super::{Count, words};
use crate::report::remark;

/// How often a log gets a line.
const EVERY: Duration = Duration::from_secs(10);

/// When the last line was written.
pub(super) struct Lines {
    told: Instant,
}

impl Lines {
    pub(super) fn new() -> Self {
        let told = Instant::now();
        Self { told }
    }

    pub(super) fn hear(&mut self, news: &News, count: &Count) {
        match news {
            News::Begun { .. } => self.told = Instant::now(),
            News::Changed(change) => remark(format_args!("warning: {change}")),
            _ if self.told.elapsed() >= EVERY => {
                self.told = Instant::now();
                remark(line(count));
            }
            _ => {}
        }
    }
}

fn line(count: &Count) -> String {
    let mut line = format!(
        "{}/{} records, {} failed",
        count.done(),
        count.total,
        count.failed
    );
    if let Some((rate, left)) = count.rate().zip(count.left()) {
        // Writing to a text cannot fail.
        let _ = write!(line, ", {rate:.1}/s, {left:.0} s left");
    }
    for device in &count.devices {
        let _ = write!(line, "; {} {}", device.label, words(device));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom::run::DeviceNews;

    #[test]
    fn a_line_has_the_devices_and_no_rate_before_there_is_one() {
        let mut count = Count::new();
        (count.total, count.skipped) = (9, 2);
        let device = |label: &str, state: &str| DeviceNews {
            label: label.into(),
            state: state.into(),
            ..DeviceNews::default()
        };
        count.devices = vec![
            device("cuda:0", "starting"),
            device("cuda:1", "quarantined"),
        ];
        assert_eq!(
            line(&count),
            "2/9 records, 0 failed; cuda:0 starting; cuda:1 quarantined"
        );
        (count.ended, count.failed) = (3, 1);
        assert!(
            line(&count).starts_with("5/9 records, 1 failed, "),
            "{}",
            line(&count)
        );
    }
}
