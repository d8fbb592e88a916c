//! The one door to the device's queue, and the buffers that are with the host meanwhile.
//!
//! While the host has a pinned buffer's bytes, no submit may touch it; while a submit touches it,
//! the host may not have it. Both sides meet at one lock, which is also the lock that keeps submits
//! in the order of their numbers. A thread that would wait for a buffer it holds itself is refused,
//! because it would wait for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use warploom_core::Booking;

use crate::chunk::Chunk;
use crate::stamp::Stamp;

/// What must stay until a submit is done. wgpu keeps the memory itself alive; this keeps it
/// counted, and staging and queries unused by others.
#[derive(Debug, Default)]
pub(crate) struct Cargo {
    pub(crate) charges: Vec<Arc<Booking>>,
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) stamps: Vec<Arc<Stamp>>,
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    inside: Mutex<Inside>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    /// Buffers that are with the host, and with which thread.
    lent: HashMap<u64, ThreadId>,
    submitted: u64,
    /// Submits that may not be done yet, oldest first.
    flights: VecDeque<(u64, Cargo)>,
}

/// The calling thread holds a buffer that it now waits for.
#[derive(Debug)]
pub(crate) struct Knot;

/// The right to submit, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Entry<'a>(MutexGuard<'a, Inside>);

/// Buffers are with the host, or kept from others by one thread, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Loan<'a> {
    gate: &'a Gate,
    buffers: Vec<u64>,
}

/// What a submit does about buffers that its own thread holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// It would wait for ever.
    Refuse,
    /// They are held for this very submit.
    Pass,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until none of `buffers` is with the host.
    pub(crate) fn enter(&self, buffers: &[u64], own: Own) -> Result<Entry<'_>, Knot> {
        self.wait_for(buffers, own).map(Entry)
    }

    /// Gives `buffers` to this thread as soon as nobody else has any of them.
    pub(crate) fn lend(&self, buffers: &[u64]) -> Result<Loan<'_>, Knot> {
        let mut inside = self.wait_for(buffers, Own::Refuse)?;
        let here = thread::current().id();
        inside.lent.extend(buffers.iter().map(|id| (*id, here)));
        Ok(Loan {
            gate: self,
            buffers: buffers.to_vec(),
        })
    }

    fn wait_for(&self, buffers: &[u64], own: Own) -> Result<MutexGuard<'_, Inside>, Knot> {
        let here = thread::current().id();
        let mut inside = self.lock();
        loop {
            let mut holders = buffers.iter().filter_map(|id| inside.lent.get(id));
            match holders.find(|thread| own == Own::Refuse || **thread != here) {
                None => return Ok(inside),
                Some(thread) if *thread == here => return Err(Knot),
                Some(_) => {
                    let waited = self.returned.wait(inside);
                    inside = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Does this thread hold one of `buffers`?
    pub(crate) fn holds(&self, mut buffers: impl Iterator<Item = u64>) -> bool {
        let inside = self.lock();
        let here = Some(thread::current().id());
        buffers.any(|buffer| inside.lent.get(&buffer).copied() == here)
    }

    /// How many submits there were; the latest one's number.
    pub(crate) fn submitted(&self) -> u64 {
        self.lock().submitted
    }

    /// Lets go of what submits up to number `reached` needed.
    pub(crate) fn reap(&self, reached: u64) {
        let mut inside = self.lock();
        let done = inside
            .flights
            .partition_point(|(index, _)| *index <= reached);
        let done: Vec<_> = inside.flights.drain(..done).collect();
        // Dropping takes the locks of pools and ledgers; the gate need not be held for that.
        drop(inside);
        drop(done);
    }
}

impl Entry<'_> {
    /// The number of the submit that is to be made now.
    pub(crate) fn number(&self) -> u64 {
        self.0.submitted + 1
    }

    /// The submit was made.
    pub(crate) fn made(mut self, cargo: Cargo) -> u64 {
        self.0.submitted += 1;
        let index = self.0.submitted;
        self.0.flights.push_back((index, cargo));
        index
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut inside = self.gate.lock();
        for buffer in &self.buffers {
            inside.lent.remove(buffer);
        }
        drop(inside);
        self.gate.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_never_waits_for_itself() {
        let gate = Gate::default();
        let loan = gate.lend(&[1]).unwrap();
        assert!(gate.lend(&[1]).is_err());
        assert!(gate.enter(&[2, 1], Own::Refuse).is_err());
        assert!(gate.enter(&[2, 3], Own::Refuse).is_ok());
        assert!(gate.enter(&[1], Own::Pass).is_ok());
        assert!(gate.holds([1].into_iter()));
        drop(loan);
        assert!(gate.enter(&[1], Own::Refuse).is_ok());
    }

    #[test]
    fn a_submit_waits_for_another_threads_loan() {
        let gate = Gate::default();
        thread::scope(|scope| {
            let loan = gate.lend(&[1]).unwrap();
            let entering = scope.spawn(|| gate.enter(&[1], Own::Refuse).map(|_| ()).is_ok());
            thread::sleep(Duration::from_millis(30));
            assert!(!entering.is_finished());
            drop(loan);
            assert!(entering.join().unwrap());
        });
    }

    #[test]
    fn cargo_leaves_in_order() {
        let gate = Gate::default();
        for _ in 0..3 {
            let entry = gate.enter(&[], Own::Refuse).unwrap();
            entry.made(Cargo::default());
        }
        gate.reap(2);
        assert_eq!(gate.lock().flights.len(), 1);
        assert_eq!(gate.submitted(), 3);
    }
}
