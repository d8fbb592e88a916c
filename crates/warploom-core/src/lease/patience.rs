//! How long somebody is ready to wait, and what makes them stop.

use std::time::{Duration, Instant};

use super::book::{Book, Ticket};
use super::cancel::CancelToken;
use super::error::LeaseError;
use super::request::LeaseRequest;
use super::status::Holder;

/// How long somebody is ready to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'a> {
    /// Queue up at all?
    pub(crate) queues: bool,
    /// Until when; `None` is for ever.
    pub(crate) until: Option<Instant>,
    pub(crate) cancel: Option<&'a CancelToken>,
}

impl<'a> Patience<'a> {
    pub(crate) fn of(request: &'a LeaseRequest, queues: bool) -> Self {
        // A deadline beyond the clock's range is none.
        let until = request
            .deadline()
            .and_then(|deadline| Instant::now().checked_add(deadline));
        Self {
            queues,
            until,
            cancel: request.cancel(),
        }
    }

    /// Waits this long and hears no token: for work that has to be done either way.
    pub(crate) fn for_at_most(time: Duration) -> Self {
        Self {
            queues: false,
            until: Instant::now().checked_add(time),
            cancel: None,
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// A place in a book that is now held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    /// Index of the device.
    pub(crate) place: usize,
    pub(crate) ticket: Ticket,
}

/// Why a room gave nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It would have had to wait, and did not want to.
    Occupied,
    /// The time was over.
    Expired(Crowd),
    Cancelled,
    Failed(LeaseError),
}

impl From<LeaseError> for Refusal {
    fn from(error: LeaseError) -> Self {
        Self::Failed(error)
    }
}

/// Who was in the way when the time was over.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// The waiters ahead, where they were fewest.
    pub(crate) ahead: Option<usize>,
    pub(crate) holders: Vec<Holder>,
}

impl Crowd {
    /// Adds one device at which `ticket` waited.
    pub(crate) fn see(&mut self, book: &Book, ticket: Ticket) {
        let ahead = book.ahead_of(ticket, &[]);
        self.ahead = Some(self.ahead.map_or(ahead, |other| other.min(ahead)));
        let held = book.entries().iter().filter(|entry| entry.held);
        self.holders.extend(held.map(Holder::of));
    }
}
