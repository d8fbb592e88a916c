//! Leases between all processes of a machine.
//!
//! Everybody serves themselves: a waiter looks into the ledger, and takes what it wants when it
//! is its turn and fits. Nobody writes another desk's lines, except to strike out the dead. So a
//! request that waits at several devices can never be granted two of them, and desks that
//! disagree about a capacity each keep to their own.
//!
//! A waiter sleeps, and wakes to see whether the ledger changed: one small read without a lock,
//! after 1 ms, then less and less often, at least every 20 ms. A release in the same process wakes
//! the next in line at once. Waking other processes through sockets was considered, and left out:
//! it would save a millisecond or two per hand-over of a lease that lasts for a whole image, and
//! polling would have to stay as the fallback.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::book::{Book, Entry, Ticket};
use super::error::LeaseError;
use super::ledger::Ledger;
use super::patience::{Crowd, Grant, Patience, Refusal};
use super::presence::Presence;
use super::request::{Ask, DeskDevice, LeaseCapacity};
use super::signal::{Signal, Woken};
use super::status::now_ms;
use super::sync::{Mutex, lock};

/// The first and the longest sleep between two looks.
const NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(20);
/// How often a waiter finds out who died, and shows that it is awake.
const ROUND: Duration = Duration::from_millis(100);
/// How long a look waits for the ledger's lock before it goes back to sleep.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a release waits for the ledger's lock before it leaves the rest to a thread.
const RELEASE: Duration = Duration::from_millis(500);
/// How long a question without a deadline of its own waits for the ledger's lock.
const STATUS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct SharedRoom {
    counters: Vec<Arc<Counter>>,
}

/// One device of the room.
#[derive(Debug)]
struct Counter {
    capacity: LeaseCapacity,
    /// The file's lock does not keep the threads of one process apart; this does.
    ledger: Mutex<Ledger>,
}

/// How an arrival ended.
enum Arrival {
    Granted(Ticket),
    Queued(Place),
    Occupied,
}

/// A place in the queue of one device.
#[derive(Clone, Copy, Debug)]
struct Place {
    ticket: Ticket,
    /// The ledger's version at the last look.
    version: u64,
    ahead: usize,
}

impl SharedRoom {
    pub(crate) fn open(devices: &[DeskDevice], dir: &std::path::Path) -> Result<Self, LeaseError> {
        let presence = Arc::new(Presence::open(dir)?);
        let counters = devices.iter().map(|device| {
            let ledger = Ledger::new(Arc::clone(&presence), dir, &device.key);
            Arc::new(Counter {
                capacity: device.capacity,
                ledger: Mutex::new(ledger),
            })
        });
        let room = Self {
            counters: counters.collect(),
        };
        // A ledger nobody can use is better known now than in the middle of a run.
        for counter in &room.counters {
            match counter.transact(&Patience::for_at_most(STATUS), |_| ()) {
                Ok(()) | Err(Refusal::Failed(LeaseError::LedgerBusy { .. })) => {}
                Err(refusal) => return Err(counter.name(refusal)),
            }
        }
        Ok(room)
    }

    pub(crate) fn acquire(&self, ask: &Ask, patience: &Patience<'_>) -> Result<Grant, Refusal> {
        if patience.is_cancelled() {
            return Err(Refusal::Cancelled);
        }
        let signal = Arc::new(Signal::default());
        let mut line = Line {
            room: self,
            places: Vec::new(),
        };
        for place in self.order(ask) {
            match self.counters[place].arrive(ask, &signal, patience)? {
                Arrival::Granted(ticket) => return Ok(Grant { place, ticket }),
                Arrival::Queued(queued) => line.places.push((place, queued)),
                Arrival::Occupied => {}
            }
        }
        if line.places.is_empty() {
            return Err(Refusal::Occupied);
        }
        line.sleep(&signal, patience)
    }

    pub(crate) fn release(&self, grant: Grant) {
        self.counters[grant.place].leave(grant.ticket, RELEASE);
    }

    pub(crate) fn book(&self, place: usize) -> Result<Book, LeaseError> {
        let counter = &self.counters[place];
        let book = counter.transact(&Patience::for_at_most(STATUS), |ledger| {
            ledger.purge();
            ledger.book().clone()
        });
        book.map_err(|refusal| counter.name(refusal))
    }

    /// Where to ask first: as the request says, or where most is free.
    fn order(&self, ask: &Ask) -> Vec<usize> {
        let mut places = ask.places.clone();
        if ask.any && places.len() > 1 {
            places.sort_by_cached_key(|&place| self.counters[place].crowding(ask));
        }
        places
    }
}

impl Counter {
    /// Does something with the book while the file is locked.
    ///
    /// Waits for the lock as long as `patience` lasts, asleep and without holding anything: a
    /// process that was stopped in the middle must not stop this one.
    fn transact<R>(
        &self,
        patience: &Patience<'_>,
        act: impl FnOnce(&mut Ledger) -> R,
    ) -> Result<R, Refusal> {
        let mut waiting: Option<(Instant, Duration, u64)> = None;
        loop {
            let path = {
                let mut ledger = lock(&self.ledger);
                if let Some(session) = ledger.enter()? {
                    let result = act(session.0);
                    session.commit()?;
                    return Ok(result);
                }
                ledger.path().to_owned()
            };
            let (since, nap, warned) =
                waiting.get_or_insert((Instant::now(), Duration::from_micros(20), 0));
            if patience.is_cancelled() {
                return Err(Refusal::Cancelled);
            }
            // Somebody is inside for some microseconds all the time; that is no reason to fail.
            let waited = since.elapsed();
            if patience.is_over() && waited >= GLANCE {
                return Err(LeaseError::LedgerBusy { path, waited }.into());
            }
            if waited.as_secs() / 10 > *warned {
                *warned = waited.as_secs() / 10;
                tracing::warn!(ledger = %path.display(), ?waited, "another process keeps the lease ledger locked; is it stopped?");
            }
            thread::sleep(*nap);
            *nap = (*nap * 2).min(NAP);
        }
    }

    /// What to tell when a transaction without a token failed.
    fn name(&self, refusal: Refusal) -> LeaseError {
        match refusal {
            Refusal::Failed(error) => error,
            other => LeaseError::ledger(lock(&self.ledger).path(), format!("{other:?}")),
        }
    }

    /// Takes a lease if nobody waits and it fits; else queues, if the request wants to.
    fn arrive(
        &self,
        ask: &Ask,
        signal: &Arc<Signal>,
        patience: &Patience<'_>,
    ) -> Result<Arrival, Refusal> {
        self.transact(patience, |ledger| {
            let mut free = self.is_free(ledger, ask);
            if !free {
                // Perhaps only the dead and the sleeping are in the way.
                ledger.purge();
                ledger.find_sleepers();
                free = self.is_free(ledger, ask);
            }
            if !free && !patience.queues {
                return Arrival::Occupied;
            }
            let owner = ledger.owner();
            let book = ledger.book_mut();
            let ticket = book.ticket(owner);
            book.insert(Entry {
                ticket,
                held: free,
                slots: ask.slots,
                bytes: ask.bytes,
                since_ms: now_ms(),
                label: ask.label,
            });
            if free {
                return Arrival::Granted(ticket);
            }
            ledger.wake(ticket, signal);
            Arrival::Queued(Place {
                ticket,
                // Not the one that is about to be written: the first look is always a look.
                version: ledger.version(),
                ahead: ledger.book().ahead_of(ticket, ledger.asleep()),
            })
        })
    }

    fn is_free(&self, ledger: &Ledger, ask: &Ask) -> bool {
        let book = ledger.book();
        book.waiting(ledger.asleep()) == 0 && book.has_room(ask.slots, ask.bytes, self.capacity)
    }

    /// How unwelcome a request is here: by whether it had to wait, then by load.
    fn crowding(&self, ask: &Ask) -> (bool, u64) {
        let seen = self.transact(&Patience::for_at_most(GLANCE), |ledger| {
            let busy = !self.is_free(ledger, ask);
            (busy, ledger.book().load(self.capacity))
        });
        seen.unwrap_or((true, u64::MAX))
    }

    /// Takes what a ticket waits for, if it can.
    fn look(&self, place: &mut Place, round: bool) -> Result<bool, Refusal> {
        let capacity = self.capacity;
        self.transact(&Patience::for_at_most(GLANCE), |ledger| {
            if round {
                ledger.purge();
                ledger.find_sleepers();
            }
            let ticket = place.ticket;
            place.version = ledger.version();
            place.ahead = ledger.book().ahead_of(ticket, ledger.asleep());
            let granted = ledger.book().may_take(ticket, capacity, ledger.asleep());
            if granted {
                ledger.book_mut().grant(ticket, now_ms());
                ledger.hush(ticket);
            }
            granted
        })
    }

    /// Strikes a ticket out: now, or by a thread that does not give up, should the ledger be out
    /// of reach. Either way it is done when the process ends.
    fn leave(self: &Arc<Self>, ticket: Ticket, time: Duration) {
        lock(&self.ledger).owe(ticket);
        if let Err(refusal) = self.transact(&Patience::for_at_most(time), |_| ()) {
            let error = self.name(refusal);
            tracing::warn!(%error, "a lease could not be released yet; trying on");
            self.settle_later();
        }
    }

    fn settle_later(self: &Arc<Self>) {
        if std::mem::replace(&mut lock(&self.ledger).settling, true) {
            return;
        }
        let counter = Arc::downgrade(self);
        let settle = move || {
            let mut nap = LONGEST_NAP;
            loop {
                thread::sleep(nap);
                nap = (nap * 2).min(Duration::from_secs(1));
                // The desk is gone, and its death releases everything.
                let Some(counter) = counter.upgrade() else {
                    return;
                };
                let _ = counter.transact(&Patience::for_at_most(GLANCE), |_| ());
                let mut ledger = lock(&counter.ledger);
                if !ledger.owes() {
                    ledger.settling = false;
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("warploom-lease".into());
        if let Err(error) = thread.spawn(settle) {
            tracing::warn!(%error, "no thread to release a lease; it is released with the next one");
            lock(&self.ledger).settling = false;
        }
    }
}

/// The places of one request in the queues of several devices. Dropping it withdraws them all,
/// on every way out.
struct Line<'a> {
    room: &'a SharedRoom,
    places: Vec<(usize, Place)>,
}

impl Line<'_> {
    fn sleep(mut self, signal: &Arc<Signal>, patience: &Patience<'_>) -> Result<Grant, Refusal> {
        let _watch = patience.cancel.map(|token| token.watch(signal));
        let mut nap = self.first_nap();
        let mut next_round = Instant::now() + ROUND;
        loop {
            let nap_ends = (Instant::now() + nap).min(next_round);
            let until = patience.until.map_or(nap_ends, |until| until.min(nap_ends));
            let woken = signal.wait(Some(until));
            if patience.is_cancelled() {
                return Err(Refusal::Cancelled);
            }
            let over = patience.is_over();
            let round = over || Instant::now() >= next_round;
            if round {
                next_round = Instant::now() + ROUND;
            }
            let Seen {
                granted,
                moved,
                busy,
            } = self.look(round, woken == Woken::Rung)?;
            if let Some(grant) = granted {
                return Ok(grant);
            }
            if over {
                return Err(match busy {
                    Some(error) => Refusal::Failed(error),
                    None => Refusal::Expired(self.crowd()),
                });
            }
            nap = if moved {
                self.first_nap()
            } else {
                (nap * 3 / 2).min(LONGEST_NAP)
            };
        }
    }

    /// Short for the first in line, longer for those behind.
    fn first_nap(&self) -> Duration {
        let ahead = self.places.iter().map(|(_, place)| place.ahead).min();
        let ahead = u32::try_from(ahead.unwrap_or(0)).unwrap_or(u32::MAX);
        NAP.saturating_mul(ahead.saturating_add(1)).min(LONGEST_NAP)
    }

    /// Looks at every device that changed; at all of them when it is time for a round.
    fn look(&mut self, round: bool, rung: bool) -> Result<Seen, Refusal> {
        let mut seen = Seen::default();
        for at in 0..self.places.len() {
            let (index, place) = &mut self.places[at];
            let (index, before) = (*index, place.version);
            let counter = &self.room.counters[index];
            let now = {
                let mut ledger = lock(&counter.ledger);
                if round {
                    ledger.beat();
                }
                ledger.version_now()
            };
            if !round && !rung && now == Some(before) {
                continue;
            }
            match counter.look(place, round) {
                Ok(true) => {
                    let ticket = place.ticket;
                    self.places.swap_remove(at);
                    seen.granted = Some(Grant {
                        place: index,
                        ticket,
                    });
                    return Ok(seen);
                }
                Ok(false) => seen.moved |= place.version != before,
                Err(Refusal::Failed(error @ LeaseError::LedgerBusy { .. })) => {
                    seen.busy = Some(error);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(seen)
    }

    /// Who is in the way now.
    fn crowd(&self) -> Crowd {
        let mut crowd = Crowd::default();
        for (index, place) in &self.places {
            let counter = &self.room.counters[*index];
            // Only for the message: what cannot be read is left out.
            let _ = counter.transact(&Patience::for_at_most(GLANCE), |ledger| {
                crowd.see(ledger.book(), place.ticket);
            });
        }
        crowd
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        for (index, place) in &self.places {
            self.room.counters[*index].leave(place.ticket, GLANCE);
        }
    }
}

/// What a look at all devices found.
#[derive(Default)]
struct Seen {
    granted: Option<Grant>,
    /// Did any queue change?
    moved: bool,
    /// A ledger that could not be looked at.
    busy: Option<LeaseError>,
}
