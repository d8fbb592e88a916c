//! How far a run is: bars for people, lines for logs, events for programs.

mod bars;
mod events;
mod lines;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use warploom::run::{DeviceNews, News, Outcome, Summary};

use crate::args;
use crate::report::remark;
use bars::Bars;
use events::Events;
use lines::Lines;

/// What is shown.
pub(super) struct Progress {
    state: Mutex<State>,
}

struct State {
    count: Count,
    shown: Shown,
    /// What was said as it happened, and need not be said again.
    told: Vec<String>,
}

enum Shown {
    Nothing,
    Bars(Bars),
    Lines(Lines),
    Events(Events),
}

/// How far it is.
pub(super) struct Count {
    begun: Instant,
    total: u64,
    skipped: u64,
    ended: u64,
    failed: u64,
    device: String,
    devices: Vec<DeviceNews>,
}

impl Count {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            total: 0,
            skipped: 0,
            ended: 0,
            failed: 0,
            device: String::new(),
            devices: Vec::new(),
        }
    }

    fn hear(&mut self, news: &News) {
        match news {
            News::Begun {
                records,
                skipped,
                device,
            } => {
                (self.total, self.skipped) = (*records, *skipped);
                self.device.clone_from(device);
                self.begun = Instant::now();
            }
            News::Ended { done, .. } => {
                self.ended += 1;
                self.failed += u64::from(matches!(done.outcome, Outcome::Failed(_)));
            }
            News::Crew(devices) => self.devices.clone_from(devices),
            _ => {}
        }
    }

    fn done(&self) -> u64 {
        self.skipped + self.ended
    }

    /// Records a second since it began; nothing before one has ended.
    fn rate(&self) -> Option<f64> {
        let seconds = self.begun.elapsed().as_secs_f64();
        (self.ended > 0 && seconds > 0.0).then(|| self.ended as f64 / seconds)
    }

    /// Seconds that are left at this rate.
    fn left(&self) -> Option<f64> {
        let rest = self.total.saturating_sub(self.done());
        self.rate().map(|rate| rest as f64 / rate)
    }
}

/// How a device gets on: `working, 12.3/s, batch 8`.
fn words(device: &DeviceNews) -> String {
    let mut words = device.state.clone();
    if let Some(rate) = device.rate {
        // Writing to a text cannot fail.
        let _ = write!(words, ", {rate:.1}/s");
    }
    if let Some(batch) = device.batch {
        let _ = write!(words, ", batch {batch}");
    }
    words
}

impl Progress {
    pub(super) fn new(args: &args::Run) -> Self {
        let shown = match args.progress {
            args::Progress::None => Shown::Nothing,
            _ if args.quiet => Shown::Nothing,
            args::Progress::Json => Shown::Events(Events::new()),
            args::Progress::Auto if std::io::stderr().is_terminal() => Shown::Bars(Bars::new()),
            args::Progress::Auto | args::Progress::Lines => Shown::Lines(Lines::new()),
        };
        Self {
            state: Mutex::new(State {
                count: Count::new(),
                shown,
                told: Vec::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, news: &News) {
        let State { count, shown, told } = &mut *self.state();
        count.hear(news);
        match shown {
            Shown::Nothing => return,
            Shown::Bars(bars) => bars.hear(news, count),
            Shown::Lines(lines) => lines.hear(news, count),
            Shown::Events(events) => events.hear(news, count),
        }
        if let News::Changed(change) = news {
            told.push(change.clone());
        }
    }

    /// The run was called off. Before anything runs there is nothing to finish.
    pub(super) fn interrupted(&self) {
        let words = "interrupted: what is begun is finished; once more to end at once";
        let state = self.state();
        if state.count.total == 0 {
            return;
        }
        match &state.shown {
            Shown::Bars(bars) => bars.say(words),
            Shown::Events(_) => Events::interrupted(),
            Shown::Nothing | Shown::Lines(_) => remark(words),
        }
    }

    /// Takes bars away, so that the summary has the last word.
    pub(super) fn close(&self) {
        if let Shown::Bars(bars) = &self.state().shown {
            bars.close();
        }
    }

    /// Tells programs what it came to; false where people are to be told.
    pub(super) fn conclude(&self, summary: &Summary) -> bool {
        let State { shown, told, .. } = &*self.state();
        let is_told = matches!(shown, Shown::Events(_));
        if is_told {
            Events::conclude(summary, told);
        }
        is_told
    }

    /// What happened and was not said yet.
    pub(super) fn untold<'s>(&self, changes: &'s [String]) -> Vec<&'s String> {
        let told = &self.state().told;
        let untold = changes.iter().filter(|change| !told.contains(change));
        untold.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_told_as_far_as_it_is_known() {
        let mut device = DeviceNews {
            state: "starting".into(),
            ..DeviceNews::default()
        };
        assert_eq!(words(&device), "starting");
        (device.rate, device.batch) = (Some(12.34), Some(8));
        device.state = "working".into();
        assert_eq!(words(&device), "working, 12.3/s, batch 8");
    }
}
