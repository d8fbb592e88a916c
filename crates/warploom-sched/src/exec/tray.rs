//! A thread and what it is handed.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};

/// More than is ever on the way at once, so that trays do not grow.
pub(super) const ROOM: usize = 64;

/// What several threads hand to one.
#[derive(Debug)]
pub(super) struct Tray<T> {
    content: Mutex<Content<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Content<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Tray<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            content: Mutex::new(Content {
                items: VecDeque::with_capacity(ROOM),
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn content(&self) -> MutexGuard<'_, Content<T>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, item: T) {
        self.content().items.push_back(item);
        self.changed.notify_one();
    }

    /// The next item, if there is one now.
    pub(super) fn next(&self) -> Option<T> {
        self.content().items.pop_front()
    }

    /// The next item; `None` when the tray is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
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
    pub(super) fn rest(&self, timeout: Duration) {
        let content = self.content();
        let empty = |content: &mut Content<T>| content.items.is_empty();
        // Whether it was woken or the time is up, the caller looks.
        drop(self.changed.wait_timeout_while(content, timeout, empty));
    }

    /// Nothing comes any more, and what was not begun is not begun.
    fn close(&self) {
        let mut content = self.content();
        content.items.clear();
        content.closed = true;
        drop(content);
        if !is_mute() {
            self.changed.notify_all();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.content().closed
    }
}

/// Is the wake-up left out, to see whether anybody would notice?
#[cfg(not(all(test, warploom_shuttle)))]
fn is_mute() -> bool {
    false
}

#[cfg(all(test, warploom_shuttle))]
use super::interleavings::is_mute;

/// A thread and its tray.
#[derive(Debug)]
pub(super) struct Hand<T> {
    pub(super) tray: Arc<Tray<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Hand<T> {
    pub(super) fn hire(
        name: &str,
        mut work: impl FnMut(T, &Tray<T>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let tray = Tray::new();
        let own = Arc::clone(&tray);
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
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
    /// Nobody waits for the thread any more. It ends after what it is doing; until then it has its
    /// own part in everything that it uses.
    pub(super) fn leave(&mut self) {
        self.tray.close();
        self.thread = None;
    }

    /// Waits for what the thread is doing, and for its end.
    pub(super) fn retire(&mut self) {
        self.tray.close();
        if let Some(thread) = self.thread.take() {
            // Payloads' panics are caught, so the thread ends of itself.
            let _ = thread.join();
        }
    }
}
