//! What others see of a run: a notice that `warploom top` shows.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warploom::run::{DeviceNews, News, Outcome};
use warploom::watch::Recording;
use warploom::watch::board::{Board, DeviceNotice, Notice, Phase, Pin};

use super::metrics::MetricsFile;
use crate::report::Problem;

/// How often it is written again.
const EVERY: Duration = Duration::from_millis(500);
/// The rate is that of this long.
const LATELY: Duration = Duration::from_secs(10);

/// A notice that is kept up to date; taken down when it is dropped.
pub(super) struct Posting {
    state: Mutex<State>,
}

struct State {
    notice: Notice,
    pin: Option<Pin>,
    written: Instant,
    /// When the latest records ended.
    ends: VecDeque<Instant>,
    metrics: Option<MetricsFile>,
}

impl Posting {
    /// Puts up a notice. A board that cannot be written is no reason not to run.
    pub(super) fn new(
        title: &str,
        pipeline: &str,
        total: u64,
        leases: &Path,
        metrics: Option<&Path>,
    ) -> Result<Self, Problem> {
        let notice = Notice::new(title, pipeline, total);
        let metrics = metrics.map(|path| MetricsFile::new(path, &notice));
        let metrics = metrics.transpose()?;
        let pin = Board::beside_leases(leases).pin(&notice).ok();
        Ok(Self {
            state: Mutex::new(State {
                notice,
                pin,
                written: Instant::now(),
                ends: VecDeque::new(),
                metrics,
            }),
        })
    }

    /// The run is over: its last metrics; why they could not be written.
    pub(super) fn finish(&self, recording: Option<&Recording>) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.share();
        match &state.metrics {
            Some(metrics) => metrics.finish(&state.notice, recording),
            None => Ok(()),
        }
    }

    pub(super) fn hear(&self, news: &News) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let mut is_due = state.written.elapsed() >= EVERY;
        match news {
            News::Begun {
                records,
                skipped,
                device,
            } => {
                state.notice.total = *records;
                state.notice.skipped = *skipped;
                state.notice.phase = Phase::Running;
                state.notice.devices = vec![DeviceNotice {
                    label: device.clone(),
                    ..DeviceNotice::default()
                }];
                is_due = true;
            }
            News::Ended { done, .. } => {
                let is_failed = matches!(done.outcome, Outcome::Failed(_));
                state.notice.ok += u64::from(!is_failed);
                state.notice.failed += u64::from(is_failed);
                let now = Instant::now();
                state.ends.push_back(now);
                while state.ends.front().is_some_and(|end| now - *end > LATELY) {
                    state.ends.pop_front();
                }
                let since = state
                    .ends
                    .front()
                    .map_or(0.0, |end| (now - *end).as_secs_f64());
                let rate = (state.ends.len() - 1) as f64 / since.max(1e-9);
                state.notice.rate = (since > 0.0).then_some(rate);
            }
            News::Crew(devices) => state.notice.devices = devices.iter().map(told).collect(),
            _ => {}
        }
        if is_due {
            state.share();
        }
        if let Some(metrics) = &mut state.metrics {
            metrics.update(&state.notice);
        }
        if is_due && let Some(pin) = &mut state.pin {
            state.written = Instant::now();
            // The last notice stays up when this one cannot be written.
            let _ = pin.update(&state.notice);
        }
    }
}

impl State {
    /// What one process does it does on its only device.
    fn share(&mut self) {
        if let [device] = &mut self.notice.devices[..]
            && device.workers.is_none()
        {
            (device.ok, device.failed) = (self.notice.ok, self.notice.failed);
            device.rate = self.notice.rate;
        }
    }
}

fn told(news: &DeviceNews) -> DeviceNotice {
    DeviceNotice {
        label: news.label.clone(),
        ok: news.done,
        failed: news.failed,
        rate: news.rate,
        quarantined: news.state == "quarantined",
        state: news.state.clone(),
        workers: Some(news.workers),
        batch: news.batch,
        griefs: news.griefs,
        quarantines: news.quarantines,
        ..DeviceNotice::default()
    }
}
