//! A stream, and everything its unfinished work still needs.
//!
//! Every asynchronous call leaves the handles it uses here. They are let go when an event proves
//! that the work is done: at the next call on the queue, when memory is short, when somebody asks
//! for the memory in use, and at the latest when the queue ends. A lane whose work cannot be waited
//! for never ends.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use warploom_core::Result;

use crate::context::Context;
use crate::driver::Driver;
use crate::error::Status;
use crate::event::Point;
use crate::handle::Foreign;

/// Handles that gather without an event before one is recorded for them.
const BATCH: usize = 256;

/// A buffer or kernel in use.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// A stream with its unfinished work.
#[derive(Debug)]
pub(crate) struct Lane {
    context: Arc<Context>,
    stream: Foreign<sys::CUstream_st>,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    /// Calls so far.
    issued: u64,
    /// Calls before the last mark, or known to be done.
    closed: u64,
    /// What the calls since the last mark use.
    open: Vec<Keep>,
    /// Marks that were not yet seen reached, oldest first.
    marks: VecDeque<Mark>,
}

#[derive(Debug)]
struct Mark {
    /// The last call before it.
    issued: u64,
    point: Arc<Point>,
    #[expect(dead_code, reason = "held until the mark is dropped, never looked at")]
    keep: Vec<Keep>,
}

impl Lane {
    /// A new stream, which does not wait for the driver's default stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Arc<Self>> {
        let driver = context.enter()?;
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current, and the place for the answer is writable.
        let status = unsafe { driver.cuStreamCreate(&raw mut stream, flags) };
        context.check(status)?;
        Ok(Arc::new(Self {
            context: Arc::clone(context),
            stream: Foreign::new(stream),
            work: Mutex::default(),
        }))
    }

    /// Makes one asynchronous driver call and keeps what it uses until the work is done.
    ///
    /// The lock is held over the call, so that a mark made by another thread is either before the
    /// call or after it *and* its handles.
    pub(crate) fn enqueue(
        &self,
        keep: impl IntoIterator<Item = Keep>,
        call: impl FnOnce(&Driver, sys::CUstream) -> Status,
    ) -> Result<()> {
        self.reap();
        let mut work = self.lock();
        let driver = self.context.enter()?;
        let status = call(driver, self.stream.raw());
        // Kept even when the call failed: the error may be that of earlier work, with this call
        // taken nevertheless.
        work.open.extend(keep);
        work.issued += 1;
        self.context.check(status)?;
        if work.open.len() >= BATCH {
            // Only to let go of handles early; a failure is told by the next call that matters.
            let _ = self.close(&mut work);
        }
        Ok(())
    }

    /// How many calls were issued.
    pub(crate) fn issued(&self) -> u64 {
        self.lock().issued
    }

    /// Records an event after everything so far.
    pub(crate) fn mark(&self) -> Result<Arc<Point>> {
        self.reap();
        self.close(&mut self.lock())
    }

    fn close(&self, work: &mut Work) -> Result<Arc<Point>> {
        let point = Point::record(&self.context, self.stream.raw())?;
        let keep = std::mem::take(&mut work.open);
        work.closed = work.issued;
        work.marks.push_back(Mark {
            issued: work.issued,
            point: Arc::clone(&point),
            keep,
        });
        Ok(point)
    }

    /// A point after call number `issued`, or `None` when that call is known to be done.
    pub(crate) fn point_after(&self, issued: u64) -> Result<Option<Arc<Point>>> {
        self.reap();
        let mut work = self.lock();
        if issued > work.closed {
            return self.close(&mut work).map(Some);
        }
        let mark = work.marks.iter().find(|mark| mark.issued >= issued);
        Ok(mark.map(|mark| Arc::clone(&mark.point)))
    }

    /// Lets go of what finished work used.
    pub(crate) fn reap(&self) {
        let mut done = Vec::new();
        let mut work = self.lock();
        // An error is not a proof; then the handles stay until the lane ends.
        while let Some(mark) = work.marks.front()
            && matches!(mark.point.reached(), Ok(true))
        {
            done.extend(work.marks.pop_front());
        }
        // The last handle frees memory, which may take long: not under the lock.
        drop(work);
    }

    /// Waits for everything so far, then lets go of what it used.
    pub(crate) fn sync(&self) -> Result<()> {
        let issued = self.lock().issued;
        let driver = self.context.enter()?;
        // SAFETY: the stream lives as long as `self`.
        let status = unsafe { driver.cuStreamSynchronize(self.stream.raw()) };
        self.context.check(status)?;
        let mut work = self.lock();
        // Nobody else issues calls on this lane (its queue has one owner), but be exact anyway.
        let finished = work.marks.partition_point(|mark| mark.issued <= issued);
        let marks: Vec<Mark> = work.marks.drain(..finished).collect();
        let mut open = Vec::new();
        if work.issued == issued {
            open = std::mem::take(&mut work.open);
            work.closed = issued;
        }
        drop(work);
        drop((marks, open));
        Ok(())
    }

    /// Lets go of what can be let go of: what is done already or, with `wait`, everything.
    pub(crate) fn reclaim(&self, wait: bool) -> Result<()> {
        let mut work = self.lock();
        let point = if work.issued > work.closed {
            Some(self.close(&mut work)?)
        } else {
            work.marks.back().map(|mark| Arc::clone(&mark.point))
        };
        drop(work);
        if let Some(point) = point.filter(|_| wait) {
            point.wait()?;
        }
        self.reap();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        // A panic between two steps leaves handles kept too long, never too short.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let Some(driver) = self.context.enter_to_free() else {
            return;
        };
        // Its queue waited for all work, or the context is lost and nothing runs any more; in
        // any other case the queue left the lane behind.
        // SAFETY: the stream was made by `new`, nobody else has it, and it is not used again.
        let status = unsafe { driver.cuStreamDestroy_v2(self.stream.raw()) };
        self.context.check_freed(status);
    }
}
