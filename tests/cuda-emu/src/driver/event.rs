//! Events: points in streams, recorded again and again.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::context::Context;
use super::ffi::Handle;
use super::lane::{Job, Ticket};
use super::status::{Result, Status};
use super::stream::Stream;

/// The flag of events that take no time.
pub(crate) const DISABLE_TIMING: u32 = 2;

/// An event of a context.
#[derive(Debug)]
pub(crate) struct Event {
    handle: Handle,
    context: Arc<Context>,
    timed: bool,
    last: Mutex<Option<Record>>,
}

/// One recording. Who waits, waits for the one that was last when it asked.
#[derive(Debug, Clone)]
struct Record {
    ticket: Ticket,
    at: Arc<OnceLock<Instant>>,
}

impl Event {
    pub(crate) fn new(context: &Arc<Context>, flags: u32) -> Arc<Self> {
        Arc::new(Self {
            handle: super::handle::fresh(),
            context: Arc::clone(context),
            timed: flags & DISABLE_TIMING == 0,
            last: Mutex::default(),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn last(&self) -> Option<Record> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Marks the end of what `stream`, of the same context, has so far.
    pub(crate) fn record(&self, stream: &Stream) -> Result {
        if stream.context().handle() != self.context.handle() {
            return Err(Status::INVALID_HANDLE);
        }
        let at = Arc::new(OnceLock::new());
        let clock = Arc::clone(&at);
        // Over the submission, so that the last recording is the one submitted last.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = stream.submit(Job::Always(Box::new(move |_| {
            let _ = clock.set(Instant::now());
        })));
        *last = Some(Record { ticket, at });
        Ok(())
    }

    /// Makes what `stream` gets from now on wait for the last recording, if there is one.
    pub(crate) fn hold(&self, stream: &Stream) {
        if let Some(record) = self.last() {
            stream.submit(Job::Always(Box::new(move |_| record.ticket.wait())));
        }
    }

    /// Whether the last recording, if there is one, has been reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.last().is_none_or(|record| record.ticket.is_done())
    }

    pub(crate) fn wait(&self) {
        if let Some(record) = self.last() {
            record.ticket.wait();
        }
    }

    /// Milliseconds from `start` to `self`.
    pub(crate) fn since(&self, start: &Self) -> Result<f32> {
        let point = |event: &Self| {
            let record = event.last().filter(|_| event.timed);
            let record = record.ok_or(Status::INVALID_HANDLE)?;
            if !record.ticket.is_done() {
                return Err(Status::NOT_READY);
            }
            record.at.get().copied().ok_or(Status::NOT_READY)
        };
        if start.context.device().index() != self.context.device().index() {
            return Err(Status::INVALID_HANDLE);
        }
        let (start, end) = (point(start)?, point(self)?);
        Ok(match end.checked_duration_since(start) {
            Some(time) => time.as_secs_f32() * 1e3,
            None => start.duration_since(end).as_secs_f32() * -1e3,
        })
    }
}
