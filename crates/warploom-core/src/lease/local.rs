//! Leases between the threads of one process.
//!
//! Whoever leaves grants, under one lock. So a grant is never lost between two threads, and a
//! waiter sleeps until it is served, called off or out of time.

use std::sync::Arc;

use super::book::{Book, Owner, Ticket};
use super::patience::{Crowd, Grant, Patience, Refusal};
use super::queues::Queues;
use super::request::{Ask, LeaseCapacity};
use super::signal::{Signal, Woken};
use super::status::now_ms;
use super::sync::{Mutex, lock};

#[derive(Debug)]
pub(crate) struct LocalRoom {
    owner: Owner,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Tickets are numbered across devices, so a request has one ticket wherever it waits.
    next: u64,
    queues: Queues,
    /// Everybody who sleeps, or was granted and has not noticed yet.
    sleepers: Vec<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    ticket: Ticket,
    granted: Option<usize>,
    signal: Arc<Signal>,
}

impl State {
    /// Wakes those who were served.
    fn wake(&mut self, served: Vec<(Ticket, usize)>) {
        for (ticket, place) in served {
            let sleeper = self.sleepers.iter_mut().find(|s| s.ticket == ticket);
            let Some(sleeper) = sleeper else {
                unreachable!("a sleeper leaves the queues before the list");
            };
            sleeper.granted = Some(place);
            sleeper.signal.ring();
        }
    }
}

impl LocalRoom {
    pub(crate) fn new(capacities: Vec<LeaseCapacity>) -> Self {
        Self {
            owner: Owner {
                id: 0,
                pid: std::process::id(),
            },
            state: Mutex::new(State {
                next: 0,
                queues: Queues::new(capacities),
                sleepers: Vec::new(),
            }),
        }
    }

    pub(crate) fn acquire(&self, ask: &Ask, patience: &Patience<'_>) -> Result<Grant, Refusal> {
        if patience.is_cancelled() {
            return Err(Refusal::Cancelled);
        }
        let mut state = lock(&self.state);
        let ticket = Ticket {
            number: state.next,
            owner: self.owner,
        };
        state.next += 1;
        if let Some(place) = state.queues.take(ask, ticket, now_ms()) {
            return Ok(Grant { place, ticket });
        }
        if !patience.queues {
            return Err(Refusal::Occupied);
        }
        let signal = Arc::new(Signal::default());
        state.queues.wait(ask, ticket, now_ms());
        state.sleepers.push(Sleeper {
            ticket,
            granted: None,
            signal: Arc::clone(&signal),
        });
        drop(state);
        self.sleep(ticket, &signal, patience)
    }

    fn sleep(
        &self,
        ticket: Ticket,
        signal: &Arc<Signal>,
        patience: &Patience<'_>,
    ) -> Result<Grant, Refusal> {
        let _watch = patience.cancel.map(|token| token.watch(signal));
        loop {
            let woken = signal.wait(patience.until);
            let mut state = lock(&self.state);
            let at = state.sleepers.iter().position(|s| s.ticket == ticket);
            let Some(at) = at else {
                unreachable!("only its own thread takes a sleeper out of the list");
            };
            let granted = state.sleepers[at].granted;
            // Called off beats granted: whoever called off does not expect a lease any more.
            // Granted beats too late: the lease is there, and giving it up helps nobody.
            let refusal = if patience.is_cancelled() {
                Refusal::Cancelled
            } else if let Some(place) = granted {
                state.sleepers.swap_remove(at);
                return Ok(Grant { place, ticket });
            } else if woken == Woken::Rung {
                continue;
            } else {
                let mut crowd = Crowd::default();
                for &place in state.queues.places_of(ticket) {
                    crowd.see(state.queues.book(place), ticket);
                }
                Refusal::Expired(crowd)
            };
            let served = match granted {
                Some(place) => state.queues.release(ticket, place, now_ms()),
                None => state.queues.withdraw(ticket, now_ms()),
            };
            state.sleepers.swap_remove(at);
            state.wake(served);
            return Err(refusal);
        }
    }

    pub(crate) fn release(&self, grant: Grant) {
        let mut state = lock(&self.state);
        let served = state.queues.release(grant.ticket, grant.place, now_ms());
        state.wake(served);
    }

    pub(crate) fn book(&self, place: usize) -> Book {
        lock(&self.state).queues.book(place).clone()
    }
}
