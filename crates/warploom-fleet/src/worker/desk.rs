//! Where messages to the coordinator are written.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::account::{UnderWay, account};
use super::end_now;
use crate::journal::BatchId;
use crate::wire::{Arena, Body, FromWorker, INLINE, MAX_FRAME, Shelf, push};
use crate::work::{Answers, Trouble};

/// The most bytes of a reason that are kept.
const MAX_REASON: usize = 16 << 10;

/// Where messages to the coordinator are written.
#[derive(Debug)]
pub(super) struct Desk {
    out: Mutex<Out>,
    /// Rung when the coordinator has read an answer.
    freed: Condvar,
    arena: Arena,
    progress: AtomicU64,
    /// Memory that records lay in. Asking the system for new memory for each takes longer than copying it.
    spare: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct Out {
    socket: UnixStream,
    bytes: Vec<u8>,
    shelf: Shelf,
    under_way: BTreeMap<BatchId, UnderWay>,
}

impl Desk {
    pub(super) fn new(socket: UnixStream, arena: Arena) -> Self {
        let out = Out {
            socket,
            bytes: Vec::new(),
            shelf: Shelf::new(arena.bytes()),
            under_way: BTreeMap::new(),
        };
        Self {
            out: Mutex::new(out),
            freed: Condvar::new(),
            arena,
            progress: AtomicU64::new(0),
            spare: Mutex::new(Vec::new()),
        }
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, message: &FromWorker) {
        self.out().tell(message);
    }

    pub(super) fn beat(&self) {
        let progress = self.progress.load(Ordering::Relaxed);
        self.tell(&FromWorker::Beat { progress });
    }

    /// A batch of so many records is taken.
    pub(super) fn begun(&self, batch: BatchId, records: usize) {
        let mut out = self.out();
        out.under_way.insert(batch, UnderWay::new(records));
        out.tell(&FromWorker::Begun { batch });
    }

    /// Memory for a record, with whatever is in it.
    pub(super) fn spare(&self) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    /// Writes to the log what is being done.
    pub(super) fn account(&self) {
        let text = account(&self.out().under_way, Instant::now());
        // Where there is no log there is nobody to read it.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    pub(super) fn free(&self, at: u64) {
        self.out().shelf.give(at);
        self.freed.notify_one();
    }
}

impl Answers for Desk {
    fn advance(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    fn give(&self, bodies: &mut dyn Iterator<Item = Vec<u8>>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = spare.iter().map(|body| body.capacity() as u64).sum::<u64>();
        let mut room = self.arena.bytes().saturating_sub(kept);
        for body in bodies.filter(|body| body.capacity() > INLINE) {
            let Some(rest) = room.checked_sub(body.capacity() as u64) else {
                return;
            };
            room = rest;
            spare.push(body);
        }
    }

    fn settled(&self, records: u32) {
        self.tell(&FromWorker::Settled { records });
    }

    fn done(&self, batch: BatchId, record: u64, answer: &[u8]) {
        self.advance();
        let mut out = self.out();
        out.answered(batch);
        let bytes = answer.len() as u64;
        let mut place = None;
        if answer.len() > INLINE && bytes <= self.arena.bytes() {
            // The coordinator gives back whatever it reads, so there will be room.
            place = out.shelf.take(bytes);
            while place.is_none() {
                out = self.freed.wait(out).unwrap_or_else(PoisonError::into_inner);
                place = out.shelf.take(bytes);
            }
        }
        let body = match place {
            // The lock is given up while the bytes are copied, so that signs of life go on.
            Some(at) => {
                drop(out);
                if self.arena.put(at, answer).is_err() {
                    end_now();
                }
                out = self.out();
                Body::There { at, bytes }
            }
            None if answer.len() + 64 > MAX_FRAME => {
                let limit = (MAX_FRAME as u64 - 64).max(self.arena.bytes());
                out.tell(&FromWorker::TooLong {
                    batch,
                    record,
                    bytes,
                    limit,
                });
                return;
            }
            None => Body::Here(answer.to_vec()),
        };
        out.tell(&FromWorker::Done {
            batch,
            record,
            body,
        });
    }

    fn failed(&self, batch: BatchId, record: u64, mut reason: String) {
        self.advance();
        if reason.len() > MAX_REASON {
            let mut end = MAX_REASON;
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            reason.truncate(end);
        }
        let mut out = self.out();
        out.answered(batch);
        out.tell(&FromWorker::Failed {
            batch,
            record,
            text: reason,
        });
    }

    fn over(&self, batch: BatchId, ended: &Result<(), Trouble>) {
        let mut out = self.out();
        out.under_way.remove(&batch);
        out.tell(&match ended {
            Ok(()) => FromWorker::Finished { batch },
            Err(Trouble::OutOfMemory { asked }) => FromWorker::OutOfMemory {
                batch,
                asked: *asked,
            },
            Err(Trouble::FixedSize { size }) => FromWorker::FixedSize { batch, size: *size },
            Err(Trouble::Failed(text)) => FromWorker::BatchFailed {
                batch,
                text: text.clone(),
            },
            Err(Trouble::DeviceLost(text)) => FromWorker::DeviceLost {
                batch,
                text: text.clone(),
            },
        });
    }
}

impl Out {
    fn answered(&mut self, batch: BatchId) {
        if let Some(under_way) = self.under_way.get_mut(&batch) {
            under_way.answered();
        }
    }

    fn tell(&mut self, message: &FromWorker) {
        self.bytes.clear();
        if push(&mut self.bytes, message).is_err() {
            end_now();
        }
        // A coordinator that is gone is noticed by whoever listens.
        let _ = self.socket.write_all(&self.bytes);
    }
}
