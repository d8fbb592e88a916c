//! Streams: lanes that callers hold.

use std::sync::Arc;

use super::context::Context;
use super::ffi::Handle;
use super::lane::{Job, Kind, Lane, Ticket};
use super::status::Result;

/// The flag of streams that do not wait for the legacy default stream.
pub(crate) const NON_BLOCKING: u32 = 1;

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    handle: Handle,
    context: Arc<Context>,
    lane: Arc<Lane>,
    priority: i32,
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, kind: Kind, priority: i32) -> Arc<Self> {
        Arc::new(Self {
            handle: super::handle::fresh(),
            context: Arc::clone(context),
            lane: context.open_lane(kind),
            priority,
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn priority(&self) -> i32 {
        self.priority
    }

    pub(crate) fn flags(&self) -> u32 {
        match self.lane.kind() {
            Kind::NonBlocking => NON_BLOCKING,
            Kind::Legacy | Kind::Blocking => 0,
        }
    }

    /// Adds a job behind all before it.
    pub(crate) fn submit(&self, job: Job) -> Ticket {
        self.context.submit(&self.lane, job)
    }

    /// Adds a job and waits for it.
    ///
    /// # Errors
    /// The fault of the context, whoever caused it.
    pub(crate) fn submit_and_wait(&self, job: Job) -> Result {
        self.submit(job).wait();
        self.context.check()
    }

    /// Waits for everything so far.
    pub(crate) fn synchronise(&self) -> Result {
        for ticket in self.context.pending(&self.lane) {
            ticket.wait();
        }
        self.context.settle();
        self.context.check()
    }

    /// Whether everything so far is done.
    pub(crate) fn is_idle(&self) -> bool {
        self.context.pending(&self.lane).is_empty()
    }
}

impl Drop for Stream {
    /// What was submitted is still done.
    fn drop(&mut self) {
        self.lane.close();
    }
}
