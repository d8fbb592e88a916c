//! Sentries and their threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::crew::FleetDevice;
use crate::health::{Fault, Sentries, Sign};
use crate::stop::Stopper;

/// How long a sentry waits before it comes back and is sent again.
const ROUND: Duration = Duration::from_millis(500);

/// Since when a sentry has been asked something and has not answered.
type Asked = Arc<Mutex<Option<Instant>>>;

/// The sentries of a run. Threads of those that hang are left behind: nothing ends a thread that is stuck in a driver.
#[derive(Debug)]
pub(super) struct Health {
    heard: Receiver<(usize, Sign)>,
    /// One for each device, until it has not answered in time.
    posts: Vec<Option<Asked>>,
    limit: Duration,
    is_over: Arc<AtomicBool>,
}

impl Health {
    pub(super) fn new(
        devices: &[FleetDevice],
        sentries: Option<&Sentries>,
        limit: Duration,
        bell: &Stopper,
    ) -> Self {
        let (sender, heard) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let posts = devices.iter().enumerate().map(|(at, device)| {
            let asked = Asked::default();
            let rounds = Rounds {
                at,
                asked: Arc::clone(&asked),
                sender: sender.clone(),
                bell: bell.clone(),
                is_over: Arc::clone(&is_over),
            };
            let (sentries, device) = (sentries?.clone(), device.clone());
            let thread = thread::Builder::new().name("fleet-health".into());
            let begun = thread.spawn(move || rounds.make(&sentries, &device));
            // Without it the device is judged by its workers alone.
            begun.is_ok().then_some(asked)
        });
        Self {
            posts: posts.collect(),
            heard,
            limit,
            is_over,
        }
    }

    /// What is new: which device, and what was reported.
    pub(super) fn news(&mut self) -> Vec<(usize, Sign)> {
        let mut news: Vec<(usize, Sign)> = self.heard.try_iter().collect();
        let (now, late) = (Instant::now(), self.late());
        for (at, post) in self.posts.iter_mut().enumerate() {
            let since = post.as_ref().and_then(since);
            if since.is_some_and(|since| since + late <= now) {
                // Once is enough.
                *post = None;
                let limit = self.limit;
                let sign = Sign {
                    fault: Fault::Hardware,
                    text: format!("nothing: it has not answered for {limit:?}"),
                };
                news.push((at, sign));
            }
        }
        news
    }

    /// How long until somebody has not answered in time.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let asked = self.posts.iter().flatten();
        let due = asked.map(|asked| match since(asked) {
            Some(since) => (since + self.late()).saturating_duration_since(Instant::now()),
            // It is about to be asked.
            None => self.late(),
        });
        due.min()
    }

    /// How long a sentry may be away.
    fn late(&self) -> Duration {
        self.limit + ROUND
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

fn since(asked: &Asked) -> Option<Instant> {
    *asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rounds of one sentry.
struct Rounds {
    at: usize,
    asked: Asked,
    sender: Sender<(usize, Sign)>,
    bell: Stopper,
    is_over: Arc<AtomicBool>,
}

impl Rounds {
    fn make(self, sentries: &Sentries, device: &FleetDevice) {
        let Some(mut sentry) = self.timed(|| sentries.post(device)) else {
            return;
        };
        while !self.is_over.load(Ordering::Acquire) {
            match self.timed(|| sentry.wait(ROUND)) {
                Ok(None) => {}
                Ok(Some(sign)) => {
                    if self.sender.send((self.at, sign)).is_err() {
                        return;
                    }
                    self.bell.ring();
                }
                Err(error) => {
                    tracing::debug!(device = device.id(), error, "its management is not heard");
                    return;
                }
            }
        }
    }

    /// Asks something, and notes for how long.
    fn timed<T>(&self, ask: impl FnOnce() -> T) -> T {
        let note = |since| *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = since;
        note(Some(Instant::now()));
        let answer = ask();
        note(None);
        answer
    }
}
