//! A crew of threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_core::DeviceError;

use super::crew::{Crew, Job, Note, Outcome, Post, Watch};
use super::error::RunError;
use super::tray::{Hand, ROOM, Tray};
use crate::model::StageId;

/// The name of the thread that runs the plan. Host stages on it take no thread of their own and
/// cost no change of threads; while they run, nothing is enqueued, and no deadline is looked at.
pub const DRIVER: &str = "driver";

/// How long a watcher waits before it looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// Events of one queue that the host waits for, oldest first.
#[derive(Debug, Default)]
struct Line {
    watches: VecDeque<Watch>,
    /// Is somebody waiting for the first of them?
    handed: bool,
    watcher: Option<Hand<Watch>>,
}

/// A crew of threads: one for each thread that host stages name, and one for each queue whose events
/// the host waits for while it waits for others too.
#[derive(Debug)]
pub struct Threads {
    begun: Instant,
    inbox: Arc<Tray<Note>>,
    lanes: Vec<Hand<Job>>,
    /// Stages and where they run; `None` is here.
    places: Vec<(usize, Option<usize>)>,
    here: Vec<Post>,
    /// News from here, which needs no waking.
    own: VecDeque<Note>,
    running: usize,
    lines: Vec<Line>,
}

impl Default for Threads {
    fn default() -> Self {
        Self::new()
    }
}

impl Threads {
    /// A crew without threads; they come with the stages.
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            inbox: Tray::new(),
            lanes: Vec::new(),
            places: Vec::new(),
            here: Vec::new(),
            own: VecDeque::with_capacity(ROOM),
            running: 0,
            lines: Vec::new(),
        }
    }

    /// The lane on which a stage runs; `None` is here.
    fn lane_of(&self, stage: StageId) -> Option<usize> {
        let mut places = self.places.iter();
        let (_, lane) = places.find(|(known, _)| *known == stage.index())?;
        *lane
    }

    /// The queue whose first event is the only thing to wait for.
    fn only_line(&self) -> Option<usize> {
        if self.running > 0 {
            return None;
        }
        let mut waiting = self.lines.iter().enumerate();
        let mut waiting = waiting
            .by_ref()
            .filter(|(_, line)| !line.watches.is_empty());
        let (at, line) = waiting.next()?;
        (waiting.next().is_none() && !line.handed).then_some(at)
    }

    fn hand_over(&mut self) {
        for line in &mut self.lines {
            let Some(first) = line.watches.front().filter(|_| !line.handed) else {
                continue;
            };
            if line.watcher.is_none() {
                let inbox = Arc::clone(&self.inbox);
                let watcher = Hand::hire("watcher", move |watch: Watch, tray: &Tray<Watch>| {
                    look_out(&watch, tray, &inbox);
                });
                // Without a watcher, looking now and then has to do.
                line.watcher = watcher.ok();
            }
            if let Some(watcher) = &line.watcher {
                watcher.tray.put(first.clone());
                line.handed = true;
            }
        }
    }
}

fn look_out(watch: &Watch, tray: &Tray<Watch>, inbox: &Tray<Note>) {
    let outcome = loop {
        match watch.event.wait(Some(GLANCE)) {
            Err(DeviceError::Timeout { .. }) if tray.is_closed() => return,
            Err(DeviceError::Timeout { .. }) => {}
            other => break other,
        }
    };
    inbox.put(note_of(watch, outcome));
}

fn note_of(watch: &Watch, outcome: Result<(), DeviceError>) -> Note {
    Note {
        stage: watch.stage,
        generation: watch.generation,
        outcome: Outcome::Seen(outcome),
        span: None,
    }
}

impl Crew for Threads {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn adopt(&mut self, posts: Vec<Post>) -> Result<(), RunError> {
        let mut threads: Vec<(String, Vec<Post>)> = Vec::new();
        for post in posts {
            let stage = post.stage().index();
            if post.thread() == DRIVER {
                self.places.push((stage, None));
                self.here.push(post);
                continue;
            }
            let known = threads.iter().position(|(name, _)| name == post.thread());
            let at = known.unwrap_or_else(|| {
                threads.push((post.thread().to_owned(), Vec::new()));
                threads.len() - 1
            });
            self.places.push((stage, Some(self.lanes.len() + at)));
            threads[at].1.push(post);
        }
        for (name, mut posts) in threads {
            let (inbox, begun) = (Arc::clone(&self.inbox), self.begun);
            let lane = Hand::hire(&name, move |job: Job, _: &Tray<Job>| {
                if let Some(note) = perform(&mut posts, job, begun) {
                    inbox.put(note);
                }
            });
            let lane = lane.map_err(|error| RunError::Thread {
                name: name.clone(),
                reason: error.to_string(),
            })?;
            self.lanes.push(lane);
        }
        Ok(())
    }

    fn start(&mut self, job: Job) {
        if let Some(lane) = self.lane_of(job.stage) {
            self.running += 1;
            self.lanes[lane].tray.put(job);
        } else {
            self.own.extend(perform(&mut self.here, job, self.begun));
        }
    }

    fn watch(&mut self, watch: Watch) {
        if self.lines.len() <= watch.queue {
            self.lines.resize_with(watch.queue + 1, || Line {
                watches: VecDeque::with_capacity(ROOM),
                ..Line::default()
            });
        }
        self.lines[watch.queue].watches.push_back(watch);
    }

    fn poll(&mut self) -> Option<Note> {
        if let Some(note) = self.own.pop_front() {
            return Some(note);
        }
        // The lock is worth taking only when somebody could have put something there.
        let is_expected = self.running > 0 || self.lines.iter().any(|line| line.handed);
        let note = is_expected.then(|| self.inbox.next()).flatten();
        if let Some(note) = note {
            if matches!(note.outcome, Outcome::Seen(_)) {
                let is_first = |line: &&mut Line| {
                    let first = line.watches.front();
                    first.is_some_and(|w| (w.stage, w.generation) == (note.stage, note.generation))
                };
                if let Some(line) = self.lines.iter_mut().find(is_first) {
                    line.watches.pop_front();
                    line.handed = false;
                }
            } else {
                self.running -= 1;
            }
            return Some(note);
        }
        for line in self.lines.iter_mut().filter(|line| !line.handed) {
            let Some(first) = line.watches.front() else {
                continue;
            };
            let outcome = match first.event.is_done() {
                Ok(false) => continue,
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            };
            let watch = line.watches.pop_front()?;
            return Some(note_of(&watch, outcome));
        }
        None
    }

    fn rest(&mut self, timeout: Duration) {
        if let Some(line) = self.only_line()
            && let Some(first) = self.lines[line].watches.front()
        {
            match first.event.wait(Some(timeout)) {
                Err(DeviceError::Timeout { .. }) => {}
                outcome => {
                    let note = note_of(first, outcome);
                    self.lines[line].watches.pop_front();
                    self.own.push_back(note);
                }
            }
            return;
        }
        self.hand_over();
        self.inbox.rest(timeout);
    }

    fn abandon(&mut self, stage: StageId) {
        if let Some(lane) = self.lane_of(stage) {
            self.lanes[lane].leave();
        }
    }

    fn dismiss(&mut self) {
        for lane in &mut self.lanes {
            lane.retire();
        }
        for line in &mut self.lines {
            line.watches.clear();
            if let Some(watcher) = &mut line.watcher {
                watcher.retire();
            }
        }
    }
}

/// Runs a stage that one of the posts is for, with the time since `begun` where it is wanted.
fn perform(posts: &mut [Post], job: Job, begun: Instant) -> Option<Note> {
    let post = posts.iter_mut().find(|post| post.stage() == job.stage)?;
    let begin = job.is_timed.then(|| begun.elapsed());
    let outcome = post.perform(job.batch);
    Some(Note {
        stage: job.stage,
        generation: job.batch.generation,
        outcome,
        span: begin.map(|begin| (begin, begun.elapsed())),
    })
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.dismiss();
    }
}
