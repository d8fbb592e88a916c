//! A crew of threads.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warploom_core::DeviceError;

use super::crew::{Crew, Job, Note, Outcome, Post, Watch};
use super::error::RunError;

/// The name of the thread that runs the plan. Host stages on it take no thread of their own and
/// cost no change of threads; while they run, nothing is enqueued.
pub const DRIVER: &str = "driver";

/// How long a watcher waits before it looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// What several threads hand to one.
#[derive(Debug)]
struct Tray<T> {
    content: Mutex<Content<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Content<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Tray<T> {
    fn new(room: usize) -> Arc<Self> {
        Arc::new(Self {
            content: Mutex::new(Content {
                items: VecDeque::with_capacity(room),
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn content(&self) -> MutexGuard<'_, Content<T>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, item: T) {
        self.content().items.push_back(item);
        self.changed.notify_one();
    }

    /// The next item; `None` when the tray is closed and empty.
    fn take(&self) -> Option<T> {
        let mut content = self.content();
        loop {
            if let Some(item) = content.items.pop_front() {
                return Some(item);
            }
            if content.closed {
                return None;
            }
            content = self
                .changed
                .wait(content)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until something is there, at most `timeout`.
    fn rest(&self, timeout: Duration) {
        let content = self.content();
        let empty = |content: &mut Content<T>| content.items.is_empty();
        // Whether it was woken or the time is up, the caller looks.
        drop(self.changed.wait_timeout_while(content, timeout, empty));
    }

    fn close(&self) {
        self.content().closed = true;
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.content().closed
    }
}

/// A thread and what it is to do.
#[derive(Debug)]
struct Hand<T> {
    tray: Arc<Tray<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Hand<T> {
    fn hire(
        name: &str,
        mut work: impl FnMut(T, &Tray<T>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let tray = Tray::new(ROOM);
        let own = Arc::clone(&tray);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                while let Some(item) = own.take() {
                    work(item, &own);
                }
            })?;
        Ok(Self {
            tray,
            thread: Some(thread),
        })
    }
}

impl<T> Hand<T> {
    fn retire(&mut self) {
        self.tray.close();
        if let Some(thread) = self.thread.take() {
            // Payloads' panics are caught, so the thread ends of itself.
            let _ = thread.join();
        }
    }
}

/// More than is ever on the way at once, so that trays do not grow.
const ROOM: usize = 64;

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
            inbox: Tray::new(ROOM),
            lanes: Vec::new(),
            places: Vec::new(),
            here: Vec::new(),
            own: VecDeque::with_capacity(ROOM),
            running: 0,
            lines: Vec::new(),
        }
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
            let inbox = Arc::clone(&self.inbox);
            let lane = Hand::hire(&name, move |job: Job, _: &Tray<Job>| {
                if let Some(note) = perform(&mut posts, job) {
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
        let place = self
            .places
            .iter()
            .find(|(stage, _)| *stage == job.stage.index());
        match place {
            Some((_, Some(lane))) => {
                self.running += 1;
                self.lanes[*lane].tray.put(job);
            }
            _ => {
                self.own.extend(perform(&mut self.here, job));
            }
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
        let note = is_expected
            .then(|| self.inbox.content().items.pop_front())
            .flatten();
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

    fn dismiss(&mut self) {
        for lane in &mut self.lanes {
            // What was not begun is not begun any more.
            lane.tray.content().items.clear();
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

fn perform(posts: &mut [Post], job: Job) -> Option<Note> {
    let post = posts.iter_mut().find(|post| post.stage() == job.stage)?;
    Some(Note {
        stage: job.stage,
        generation: job.batch.generation,
        outcome: post.perform(job.batch),
    })
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.dismiss();
    }
}
