//! Reader/writer locks on byte ranges.
//!
//! Slabs are shared: several queues work in disjoint slices of one buffer at the same time, so one
//! lock per buffer would make them wait for each other. Here only ranges that share a byte exclude
//! each other, and only when one of them is written.
//!
//! # Why nobody waits forever
//! A request lists all its ranges at once and goes ahead when no *earlier* request, whether it is
//! still waiting or already in, conflicts with it. So requests on one lock wait only for earlier
//! ones, and a writer cannot be starved by readers that keep arriving. Who needs several locks
//! takes them in one global order (see [`Claim`](crate::buffer::Claim)); then every wait leads
//! either to an earlier request on the same lock or to a later lock, and no circle can close.

use std::ops::Range;

use crate::monitor::Monitor;

/// What one request wants with one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bytes: Range<usize>,
    pub(crate) write: bool,
}

impl Span {
    pub(crate) fn read(bytes: Range<usize>) -> Self {
        let write = false;
        Self { bytes, write }
    }

    pub(crate) fn write(bytes: Range<usize>) -> Self {
        let write = true;
        Self { bytes, write }
    }

    /// Do the two share a byte that one of them changes?
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        (self.write || other.write)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// Locks on ranges of one buffer.
#[derive(Debug, Default)]
pub(crate) struct RangeLock {
    book: Monitor<Book>,
}

/// All requests that are in or waiting, oldest first. A handful at any time (queues times slices
/// per launch), so scanning a `Vec` beats any tree, and its capacity is reused for good.
#[derive(Debug, Default)]
struct Book {
    entries: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    ticket: u64,
    span: Span,
}

impl Book {
    fn enter(&mut self, spans: impl Iterator<Item = Span>) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.entries
            .extend(spans.map(|span| Entry { ticket, span }));
        ticket
    }

    /// May this request go ahead? Ranges of one request never exclude each other.
    fn clear(&self, ticket: u64) -> bool {
        let first = self.entries.partition_point(|entry| entry.ticket < ticket);
        let (earlier, rest) = self.entries.split_at(first);
        rest.iter()
            .take_while(|entry| entry.ticket == ticket)
            .all(|mine| {
                earlier
                    .iter()
                    .all(|other| !mine.span.conflicts(&other.span))
            })
    }

    fn leave(&mut self, ticket: u64) {
        self.entries.retain(|entry| entry.ticket != ticket);
    }
}

impl RangeLock {
    /// Waits until all of `spans` are free for what they are wanted for, and takes them.
    pub(crate) fn acquire(&self, spans: impl Iterator<Item = Span>) -> RangeGuard<'_> {
        let mut spans = Some(spans);
        let mut mine = None;
        let ticket = self.book.wait(|book| {
            if let Some(spans) = spans.take() {
                mine = Some(book.enter(spans));
            }
            mine.filter(|ticket| book.clear(*ticket))
        });
        RangeGuard { lock: self, ticket }
    }

    /// Takes all of `spans`, unless that would mean to wait.
    pub(crate) fn try_acquire(&self, spans: impl Iterator<Item = Span>) -> Option<RangeGuard<'_>> {
        let ticket = self.book.with(|book| {
            let ticket = book.enter(spans);
            let clear = book.clear(ticket);
            if !clear {
                book.leave(ticket);
            }
            clear.then_some(ticket)
        });
        ticket.map(|ticket| RangeGuard { lock: self, ticket })
    }

    /// One range.
    pub(crate) fn acquire_one(&self, span: Span) -> RangeGuard<'_> {
        self.acquire(std::iter::once(span))
    }
}

/// Ranges that are taken; dropping it gives them back.
#[derive(Debug)]
#[must_use = "the ranges are given back at once when this is dropped"]
pub(crate) struct RangeGuard<'a> {
    lock: &'a RangeLock,
    ticket: u64,
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        self.lock.book.change(|book| book.leave(self.ticket));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[rstest::rstest]
    #[case(Span::read(0..8), Span::read(0..8), false)]
    #[case(Span::read(0..8), Span::write(7..9), true)]
    #[case(Span::write(0..8), Span::write(8..16), false)]
    #[case(Span::write(0..16), Span::read(4..5), true)]
    #[case(Span::write(4..5), Span::write(0..16), true)]
    fn spans_conflict_when_they_share_a_written_byte(
        #[case] a: Span,
        #[case] b: Span,
        #[case] conflict: bool,
    ) {
        assert_eq!(a.conflicts(&b), conflict);
        assert_eq!(b.conflicts(&a), conflict);
    }

    #[test]
    fn what_does_not_conflict_is_held_at_once() {
        let lock = RangeLock::default();
        let _a = lock.acquire([Span::write(0..8), Span::read(64..96)].into_iter());
        let _b = lock.acquire_one(Span::write(8..16));
        let _c = lock.acquire_one(Span::read(80..100));
        // A request may name the same bytes twice; it does not wait for itself.
        let _d = lock.acquire([Span::read(16..20), Span::write(16..20)].into_iter());
    }

    #[test]
    fn a_conflict_waits_for_the_release() {
        let lock = RangeLock::default();
        let released = AtomicBool::new(false);
        let held = lock.acquire_one(Span::read(0..100));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _mine = lock.acquire_one(Span::write(99..101));
                assert!(released.load(SeqCst));
            });
            while lock.book.with(|book| book.entries.len()) < 2 {
                thread::yield_now();
            }
            released.store(true, SeqCst);
            drop(held);
        });
        assert!(lock.book.with(|book| book.entries.is_empty()));
    }

    #[test]
    fn trying_takes_all_or_leaves_no_trace() {
        let lock = RangeLock::default();
        let held = lock.acquire_one(Span::write(0..8));
        let spans = || [Span::write(8..16), Span::read(7..8)].into_iter();
        assert!(lock.try_acquire(spans()).is_none());
        assert_eq!(lock.book.with(|book| book.entries.len()), 1);
        drop(held);
        let held = lock.try_acquire(spans());
        assert!(held.is_some());
        assert!(lock.try_acquire(spans()).is_none());
    }

    #[test]
    fn a_waiting_writer_is_not_overtaken_by_later_readers() {
        let lock = RangeLock::default();
        let (tell, told) = mpsc::channel();
        let first = lock.acquire_one(Span::read(0..10));
        thread::scope(|scope| {
            let writer = tell.clone();
            scope.spawn(|| {
                let _in = lock.acquire_one(Span::write(0..10));
                writer.send("writer").unwrap();
                drop(writer);
            });
            while lock.book.with(|book| book.entries.len()) < 2 {
                thread::yield_now();
            }
            scope.spawn(|| {
                let _in = lock.acquire_one(Span::read(0..10));
                tell.send("reader").unwrap();
                drop(tell);
            });
            while lock.book.with(|book| book.entries.len()) < 3 {
                thread::yield_now();
            }
            assert!(told.recv_timeout(Duration::from_millis(10)).is_err());
            drop(first);
            let order: Vec<&str> = told.iter().collect();
            assert_eq!(order, ["writer", "reader"]);
        });
    }

    #[test]
    fn the_book_does_not_grow_when_locks_come_and_go() {
        let lock = RangeLock::default();
        drop(lock.acquire((0..8).map(|n| Span::write(n..n + 1))));
        let room = lock.book.with(|book| book.entries.capacity());
        for _ in 0..1000 {
            drop(lock.acquire((0..8).map(|n| Span::write(n..n + 1))));
        }
        assert_eq!(lock.book.with(|book| book.entries.capacity()), room);
    }

    /// A small generator, so that a failure can be repeated from its seed.
    fn random(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 33).unwrap()
    }

    #[test]
    fn random_requests_on_two_locks_never_meet_and_all_end() {
        const BYTES: usize = 24;
        const ROUNDS: usize = if cfg!(miri) { 40 } else { 4000 };
        // Per byte: the number of readers in it, or -1 for a writer.
        let bytes: [[AtomicI32; BYTES]; 2] =
            std::array::from_fn(|_| std::array::from_fn(|_| AtomicI32::new(0)));
        let locks = [RangeLock::default(), RangeLock::default()];
        thread::scope(|scope| {
            for seed in 1..=4_u64 {
                let (bytes, locks) = (&bytes, &locks);
                scope.spawn(move || {
                    let mut state = seed << 32 | 0x9E37_79B9;
                    for _ in 0..ROUNDS {
                        let spans: [Span; 2] = std::array::from_fn(|_| {
                            let start = random(&mut state) % BYTES;
                            let end = start + 1 + random(&mut state) % (BYTES - start);
                            let write = random(&mut state).is_multiple_of(2);
                            let bytes = start..end;
                            Span { bytes, write }
                        });
                        let _held: [RangeGuard<'_>; 2] =
                            std::array::from_fn(|at| locks[at].acquire_one(spans[at].clone()));
                        for (span, bytes) in spans.iter().zip(bytes) {
                            for byte in &bytes[span.bytes.clone()] {
                                if span.write {
                                    assert_eq!(byte.swap(-1, SeqCst), 0, "seed {seed}");
                                } else {
                                    assert!(byte.fetch_add(1, SeqCst) >= 0, "seed {seed}");
                                }
                            }
                        }
                        for (span, bytes) in spans.iter().zip(bytes) {
                            for byte in &bytes[span.bytes.clone()] {
                                if span.write {
                                    assert_eq!(byte.swap(0, SeqCst), -1, "seed {seed}");
                                } else {
                                    assert!(byte.fetch_sub(1, SeqCst) > 0, "seed {seed}");
                                }
                            }
                        }
                    }
                });
            }
        });
        assert!(
            locks
                .iter()
                .all(|lock| lock.book.with(|b| b.entries.is_empty()))
        );
    }
}
