//! Writing behind: threads that write what is done while the next is worked on.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::{Fault, FileError};

/// Writes files in the background, with bounded memory.
///
/// Every job is answered once, with the tag it came with: written, or why not. A file that cannot be
/// written is no reason not to write others. Dropping this drops what has not been begun, finishes what
/// has, and joins all threads; [`finish`](Self::finish) writes everything first.
pub struct WriteBehind<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

type Write = Box<dyn FnOnce() -> Result<(), FileError> + Send>;

struct Job<T> {
    tag: T,
    path: PathBuf,
    bytes: u64,
    write: Write,
}

struct Shared<T> {
    most_bytes: u64,
    state: Mutex<State<T>>,
    /// There is something to write, or all is over.
    work: Condvar,
    /// Something was written.
    written: Condvar,
}

struct State<T> {
    jobs: VecDeque<Job<T>>,
    /// Bytes of jobs that wait or are being written.
    bytes: u64,
    /// How many jobs wait or are being written.
    pending: usize,
    done: VecDeque<(T, Result<(), FileError>)>,
    is_over: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that can panic happens under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                if state.is_over {
                    return;
                }
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let Job {
                tag,
                path,
                bytes,
                write,
            } = job;
            // The job is gone before its bytes are free again.
            let written = catch_unwind(AssertUnwindSafe(write));
            let written = written.unwrap_or_else(|_| {
                let fault = Fault::Write {
                    kind: std::io::ErrorKind::Other,
                    message: "writing it panicked".into(),
                };
                Err(fault.of(&path))
            });
            state = self.lock();
            state.bytes -= bytes;
            state.pending -= 1;
            state.done.push_back((tag, written));
            self.written.notify_all();
        }
    }
}

impl<T: Send + 'static> WriteBehind<T> {
    /// Starts threads that write; what waits to be written has at most so many bytes.
    pub fn start(threads: usize, most_bytes: u64) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            most_bytes,
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                bytes: 0,
                pending: 0,
                done: VecDeque::new(),
                is_over: false,
            }),
            work: Condvar::new(),
            written: Condvar::new(),
        });
        // What was started is joined by dropping, should one of them not start.
        let mut writer = Self {
            shared,
            threads: Vec::new(),
        };
        for at in 0..threads.max(1) {
            let shared = Arc::clone(&writer.shared);
            let thread = thread::Builder::new()
                .name(format!("warploom-write-{at}"))
                .spawn(move || shared.work())?;
            writer.threads.push(thread);
        }
        Ok(writer)
    }

    /// Has a file of about so many bytes written. Waits while what is before it fills the room; one that
    /// is larger than all the room waits until it is alone.
    pub fn submit(
        &self,
        tag: T,
        path: impl AsRef<Path>,
        bytes: u64,
        write: impl FnOnce() -> Result<(), FileError> + Send + 'static,
    ) {
        let mut state = self.shared.lock();
        while state.pending > 0 && state.bytes.saturating_add(bytes) > self.shared.most_bytes {
            let woken = self.shared.written.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += bytes;
        state.pending += 1;
        state.jobs.push_back(Job {
            tag,
            path: path.as_ref().to_owned(),
            bytes,
            write: Box::new(write),
        });
        drop(state);
        self.shared.work.notify_one();
    }

    /// An answer that is there already.
    pub fn try_answer(&self) -> Option<(T, Result<(), FileError>)> {
        self.shared.lock().done.pop_front()
    }

    /// The next answer, waiting for it; `None` where everything was answered.
    pub fn answer(&self) -> Option<(T, Result<(), FileError>)> {
        let mut state = self.shared.lock();
        loop {
            if let Some(answer) = state.done.pop_front() {
                return Some(answer);
            }
            if state.pending == 0 {
                return None;
            }
            let woken = self.shared.written.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Bytes that wait or are being written.
    pub fn pending_bytes(&self) -> u64 {
        self.shared.lock().bytes
    }

    /// Writes everything, and gives the answers that were not asked for yet.
    pub fn finish(self) -> Vec<(T, Result<(), FileError>)> {
        std::iter::from_fn(|| self.answer()).collect()
    }
}

impl<T: Send + 'static> Drop for WriteBehind<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        // What jobs hold may have to go back somewhere.
        drop(jobs);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // What a thread had to say it has said by its answer.
            let _ = thread.join();
        }
    }
}

impl<T: Send + 'static> fmt::Debug for WriteBehind<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteBehind({} threads)", self.threads.len())
    }
}
