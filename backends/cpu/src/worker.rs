//! The thread behind a queue.
//!
//! Going from this thread to one of the pool and back costs as much as a small kernel. So the
//! thread goes there once for many: in a *turn*, a thread of the pool works off launch after
//! launch, and whatever short command is between them. It never waits there for what must come first:
//! that ends the turn and is left to the queue's own thread. Only when nothing is left it stays for a
//! moment, in which a stream of launches brings the next one; and so that this does not find half of the
//! pool asleep, other threads stay awake with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::{Event, Result};

use crate::buffer::{Claim, Patience, locked};
use crate::device::{Core, Pool};
use crate::error::panicked;
use crate::kernel;
use crate::link::{Command, Link, Operands, Todo};

/// After this long a turn ends if another queue wants threads too, so that queues take turns when there are more
/// of them than threads. Coming back costs a few per cent of it.
const TURN: Duration = Duration::from_micros(300);

/// Threads that stay awake with the one that looks for more, at most; they wake others faster than one could.
const AWAKE: usize = 3;

/// Copies up to this size are short enough for a thread of the pool; the others belong on the
/// queue's own, where they overlap with kernels.
const SHORT: usize = 64 << 10;

/// The thread's side of a queue.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) core: Arc<Core>,
    /// Where its kernels run.
    pub(crate) pool: Arc<Pool>,
    pub(crate) link: Arc<Link>,
}

impl Worker {
    /// Works until the queue is closed and all is done.
    pub(crate) fn run(self) {
        let mut todo = Todo::default();
        while self.link.next(&mut todo) {
            while let Some((command, _)) = todo.current() {
                if matches!(command, Command::Launch { .. }) {
                    let _place = self.pool.enter();
                    self.pool.threads.install(|| self.turn(&mut todo));
                }
                // What ended the turn, if anything did, has to wait, and does it here.
                self.perform(&mut todo, Patience::Wait);
            }
        }
    }

    fn turn(&self, todo: &mut Todo) {
        let start = Instant::now();
        loop {
            let is_over = start.elapsed() >= TURN && self.pool.is_wanted();
            // Who waits for the end of the last launch should not wait for a change of threads as well.
            if is_over && !matches!(todo.current(), Some((Command::Record(_), _))) {
                return;
            }
            let is_done = self.perform(todo, Patience::Try);
            let must_wait = !is_done && todo.current().is_some();
            if must_wait || !is_done && !self.look(todo) {
                return;
            }
        }
    }

    /// Looks for more for a moment; false when nothing has come.
    fn look(&self, todo: &mut Todo) -> bool {
        let over = AtomicBool::new(false);
        let mut look = || {
            let found = self.link.soon(todo);
            over.store(true, Ordering::Relaxed);
            found
        };
        let others = self.pool.threads.current_num_threads() - 1;
        match others.min(AWAKE) {
            0 => look(),
            others => rayon::join(look, || self.stay(others, &over)).0,
        }
    }

    /// Keeps so many threads awake until it is over.
    fn stay(&self, threads: usize, over: &AtomicBool) {
        let stay = || {
            while !over.load(Ordering::Relaxed) && !self.pool.is_wanted() {
                thread::yield_now();
            }
        };
        // Once it is over there is nobody to wake.
        if threads == 1 || over.load(Ordering::Relaxed) {
            stay();
        } else {
            rayon::join(stay, || self.stay(threads - 1, over));
        }
    }

    /// Does one command; false when there is none, or when it would have to wait and must not.
    fn perform(&self, todo: &mut Todo, patience: Patience) -> bool {
        let Some((command, operands)) = todo.current() else {
            return false;
        };
        let execute = || self.execute(command, operands, patience);
        // A kernel's panic is caught before; this is for destructors: of what it threw, and below
        // of what it had captured.
        let outcome = self.guarded(execute).unwrap_or(Some(Ok(())));
        let Some(outcome) = outcome else {
            return false;
        };
        if let Err(error) = outcome {
            self.link.fail(error);
        }
        self.guarded(|| todo.finish());
        true
    }

    /// Runs `f`; when it panics, the queue has failed.
    fn guarded<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let payload = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(result) => return Some(result),
            Err(payload) => payload,
        };
        self.link.fail(panicked(self.core.id()));
        // What was thrown may panic as it is dropped, and what that throws, too. Two are enough.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        None
    }

    /// The outcome of a command; nothing when it would have to wait and must not.
    fn execute(
        &self,
        command: &Command,
        operands: &Operands,
        patience: Patience,
    ) -> Option<Result<()>> {
        let fault = self.link.fault();
        match command {
            Command::Record(event) => {
                event.finish(fault.map(|()| self.core.now()));
                Some(Ok(()))
            }
            // After a failure nothing runs: it would work on bytes that were never made.
            _ if fault.is_err() => Some(Ok(())),
            Command::Wait(event) => match patience {
                Patience::Wait => Some(event.wait(None)),
                Patience::Try => match event.is_done() {
                    Ok(false) => None,
                    outcome => Some(outcome.map(|_| ())),
                },
            },
            Command::Copy => copy(&operands.claims, patience).then_some(Ok(())),
            Command::Launch { kernel, grid } => {
                // One that waits wants threads; one that is tried has them.
                let _place = (patience == Patience::Wait).then(|| self.pool.enter());
                let pool = &self.pool.threads;
                // SAFETY: `CpuQueue::launch` puts the claims in order and refuses overlaps.
                unsafe { kernel::run(pool, kernel, *grid, operands, patience) }
            }
        }
    }
}

/// Copies between two claims; false when that would have to wait and must not.
fn copy(claims: &[Claim], patience: Patience) -> bool {
    let [one, other] = claims else { return true };
    let (src, dst) = if one.is_write() {
        (other, one)
    } else {
        (one, other)
    };
    let (from, to) = (&src.span().bytes, &dst.span().bytes);
    if patience == Patience::Try && from.len() > SHORT {
        return false;
    }
    locked(claims, patience, &mut || {
        // SAFETY: `locked` excludes other commands and the host: writers from both ranges, readers
        // from the written one.
        unsafe { src.block().copy(from.clone(), dst.block(), to.clone()) }
    })
}
