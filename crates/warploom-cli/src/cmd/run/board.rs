//! What others see of a run: a notice that `warploom top` shows.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warploom::run::{News, Outcome};
use warploom::watch::board::{Board, DeviceNotice, Notice, Phase, Pin};

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
}

impl Posting {
    /// Puts up a notice. A board that cannot be written is no reason not to run.
    pub(super) fn new(title: &str, pipeline: &str, total: u64) -> Self {
        let notice = Notice::new(title, pipeline, total);
        let pin = Board::default().pin(&notice).ok();
        Self {
            state: Mutex::new(State {
                notice,
                pin,
                written: Instant::now(),
                ends: VecDeque::new(),
            }),
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
            _ => {}
        }
        if is_due && let Some(pin) = &mut state.pin {
            if let Some(device) = state.notice.devices.first_mut() {
                (device.ok, device.failed) = (state.notice.ok, state.notice.failed);
                device.rate = state.notice.rate;
            }
            state.written = Instant::now();
            // The last notice stays up when this one cannot be written.
            let _ = pin.update(&state.notice);
        }
    }
}
