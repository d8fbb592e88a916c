//! Buffers that several queues use at once, and claims: what queued work wants with them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_core::memory::HOST;
use warploom_core::{Account, Booking, Buffer, DeviceId, MemoryKind, Result, Slice};

use crate::block::Block;
use crate::error::{foreign, no_room};
use crate::monitor::Monitor;
use crate::range::{RangeLock, Span};

/// Host memory with locks on its ranges.
pub(crate) struct CpuBuffer {
    device: DeviceId,
    block: Block,
    lock: RangeLock,
    /// Queued uses that are not over yet. [`Buffer::with_host`] waits for none.
    pending: Monitor<usize>,
    booking: Booking,
}

impl CpuBuffer {
    /// `bytes` zeros on `account`.
    ///
    /// # Errors
    /// When the account or the allocator has no room; `free` asks what the machine has.
    pub(crate) fn alloc(
        device: DeviceId,
        account: &Arc<Account>,
        bytes: u64,
        free: impl FnOnce() -> Option<u64>,
    ) -> Result<Self> {
        let booking = account
            .book(bytes)
            .map_err(|left| no_room(device, bytes, Some(left)))?;
        let block = Block::zeroed(bytes).ok_or_else(|| no_room(device, bytes, free()))?;
        Ok(Self {
            device,
            block,
            lock: RangeLock::default(),
            pending: Monitor::default(),
            booking,
        })
    }

    /// One of ours, seen through the contract.
    pub(crate) fn of(device: DeviceId, buffer: &dyn Buffer) -> Result<&Self> {
        let any: &dyn Any = buffer;
        any.downcast_ref().ok_or_else(|| foreign(device, buffer))
    }

    /// Writes `src` where `dst` is. It waits for work in progress on these bytes, not for work
    /// that is still queued. Where the lengths differ the shorter one counts.
    pub(crate) fn store(&self, src: &[u8], dst: &Slice) {
        let range = dst.host_range();
        let _held = self.lock.acquire_one(Span::write(range.clone()));
        // SAFETY: `_held` excludes everyone else from the range, and outlives the view.
        let bytes = unsafe { self.block.exclusive(range) };
        let len = src.len().min(bytes.len());
        bytes[..len].copy_from_slice(&src[..len]);
    }

    /// Reads what is at `src`; otherwise as [`store`](Self::store).
    pub(crate) fn fetch(&self, src: &Slice, dst: &mut [u8]) {
        let range = src.host_range();
        let _held = self.lock.acquire_one(Span::read(range.clone()));
        // SAFETY: `_held` excludes writers from the range, and outlives the view.
        let bytes = unsafe { self.block.shared(range) };
        let len = dst.len().min(bytes.len());
        dst[..len].copy_from_slice(&bytes[..len]);
    }
}

impl Buffer for CpuBuffer {
    fn bytes(&self) -> u64 {
        self.booking.bytes()
    }

    fn kind(&self) -> MemoryKind {
        HOST
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.pending.wait(|pending| (*pending == 0).then_some(()));
        let all = 0..self.block.len();
        let _held = self.lock.acquire_one(Span::write(all.clone()));
        // SAFETY: `_held` excludes everyone else from the whole block, and outlives the view.
        f(unsafe { self.block.exclusive(all) });
        Ok(())
    }
}

impl fmt::Debug for CpuBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBuffer")
            .field("device", &self.device)
            .field("bytes", &self.booking.bytes())
            .finish_non_exhaustive()
    }
}

/// A queued use of a buffer's range. It keeps the buffer alive and counts as pending until it is
/// dropped, whatever became of the work.
#[derive(Debug)]
pub(crate) struct Claim {
    buffer: Arc<CpuBuffer>,
    span: Span,
    /// Which argument of the launch it is.
    index: usize,
}

impl Claim {
    /// The claim of argument `index` on `slice`.
    pub(crate) fn new(device: DeviceId, slice: &Slice, index: usize, write: bool) -> Result<Self> {
        let any: Arc<dyn Any + Send + Sync> = Arc::<dyn Buffer>::clone(slice.buffer());
        let buffer: Arc<CpuBuffer> = any
            .downcast()
            .map_err(|_| foreign(device, &**slice.buffer()))?;
        buffer.pending.with(|pending| *pending += 1);
        let bytes = slice.host_range();
        let span = Span { bytes, write };
        Ok(Self {
            buffer,
            span,
            index,
        })
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn is_write(&self) -> bool {
        self.span.write
    }

    pub(crate) fn block(&self) -> &Block {
        &self.buffer.block
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The one order in which locks are taken, by all threads for all buffers: by address, which
    /// no two living buffers share. Within a buffer, by place.
    fn rank(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.buffer).addr(), self.span.bytes.start)
    }
}

/// Puts claims in the order in which [`locked`] takes them.
pub(crate) fn put_in_order(claims: &mut [Claim]) {
    claims.sort_unstable_by_key(Claim::rank);
}

/// Two arguments that share a byte one of them writes, if there are such. The claims are in order.
pub(crate) fn find_overlap(claims: &[Claim]) -> Option<[usize; 2]> {
    claims.iter().enumerate().find_map(|(at, one)| {
        claims[at + 1..]
            .iter()
            .take_while(|other| Arc::ptr_eq(&one.buffer, &other.buffer))
            .find(|other| one.span.conflicts(&other.span))
            .map(|other| [one.index, other.index])
    })
}

/// What to do when something is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Wait until it is gone.
    Wait,
    /// Leave it for later.
    Try,
}

/// Calls `run` while every range of `claims` is locked as claimed; false when a lock was not to
/// be had without waiting, and that was not wanted. The claims are in order: buffer by buffer, all
/// ranges of one buffer at once.
pub(crate) fn locked(claims: &[Claim], patience: Patience, run: &mut dyn FnMut()) -> bool {
    let Some(first) = claims.first() else {
        run();
        return true;
    };
    let here = |claim: &&Claim| Arc::ptr_eq(&claim.buffer, &first.buffer);
    let (same, rest) = claims.split_at(claims.iter().take_while(here).count());
    let (lock, spans) = (
        &first.buffer.lock,
        same.iter().map(|claim| claim.span.clone()),
    );
    // The guards live on the stack of this recursion: no list to allocate, and a panic in `run`
    // gives every lock back.
    let held = match patience {
        Patience::Wait => Some(lock.acquire(spans)),
        Patience::Try => lock.try_acquire(spans),
    };
    held.is_some_and(|_held| locked(rest, patience, run))
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.buffer.pending.change(|pending| *pending -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::ID;

    const DEVICE: DeviceId = DeviceId::new(ID, 0);

    fn buffer(bytes: u64) -> Arc<dyn Buffer> {
        let account = Account::new(u64::MAX);
        Arc::new(CpuBuffer::alloc(DEVICE, &account, bytes, || None).unwrap())
    }

    fn claim(buffer: &Arc<dyn Buffer>, range: std::ops::Range<u64>, write: bool) -> Claim {
        let slice = Slice::new(Arc::clone(buffer), range).unwrap();
        Claim::new(DEVICE, &slice, 0, write).unwrap()
    }

    #[test]
    fn an_account_is_exact() {
        let account = Account::new(100);
        let alloc = |bytes| CpuBuffer::alloc(DEVICE, &account, bytes, || None);
        let first = alloc(60).unwrap();
        assert_eq!((account.held(), account.left()), (60, 40));
        assert_eq!(alloc(41).unwrap_err(), no_room(DEVICE, 41, Some(40)));
        let second = alloc(40).unwrap();
        assert_eq!(account.left(), 0);
        drop((first, second));
        assert_eq!(account.held(), 0);
        assert_eq!(
            alloc(u64::MAX).unwrap_err(),
            no_room(DEVICE, u64::MAX, Some(100))
        );
    }

    #[test]
    fn what_the_allocator_refuses_is_not_charged() {
        let account = Account::new(u64::MAX);
        let error = CpuBuffer::alloc(DEVICE, &account, 1 << 63, || Some(7)).unwrap_err();
        assert_eq!(error, no_room(DEVICE, 1 << 63, Some(7)));
        assert_eq!(account.held(), 0);
    }

    #[test]
    fn the_host_waits_for_claims() {
        let buffer = buffer(16);
        let claim = claim(&buffer, 0..4, true);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let host = scope.spawn(|| {
                buffer
                    .with_host(&mut |_| assert!(over.load(Ordering::SeqCst)))
                    .unwrap();
            });
            thread::yield_now();
            over.store(true, Ordering::SeqCst);
            drop(claim);
            host.join().unwrap();
        });
    }

    #[test]
    fn disjoint_claims_run_together() {
        let buffer = buffer(16);
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for range in [0..8, 8..16] {
                let claim = claim(&buffer, range, true);
                let both = &both;
                scope.spawn(move || {
                    locked(&[claim], Patience::Wait, &mut || {
                        both.wait();
                    });
                });
            }
        });
    }

    #[test]
    fn claims_in_opposite_order_do_not_deadlock() {
        let (a, b) = (buffer(8), buffer(8));
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        thread::scope(|scope| {
            for pair in [[&a, &b], [&b, &a]] {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let mut claims = pair.map(|buffer| claim(buffer, 0..8, true));
                        put_in_order(&mut claims);
                        locked(&claims, Patience::Wait, &mut || {
                            for claim in &claims {
                                let all = claim.span().bytes.clone();
                                // SAFETY: `locked` excludes everyone else here.
                                let bytes = unsafe { claim.block().exclusive(all) };
                                bytes[0] ^= 1;
                            }
                        });
                    }
                });
            }
        });
        a.with_host(&mut |bytes| assert_eq!(bytes[0], 0)).unwrap();
    }

    #[test]
    fn trying_takes_every_lock_or_none() {
        let (a, b) = (buffer(8), buffer(8));
        let mut both = [&a, &b].map(|buffer| claim(buffer, 0..8, true));
        put_in_order(&mut both);
        for one in [&a, &b].map(|buffer| [claim(buffer, 4..8, false)]) {
            locked(&one, Patience::Wait, &mut || {
                let ran = locked(&both, Patience::Try, &mut || panic!("it is locked"));
                assert!(!ran);
            });
        }
        let mut ran = false;
        assert!(locked(&both, Patience::Try, &mut || ran = true));
        assert!(ran);
    }

    #[test]
    fn a_panic_gives_the_locks_back() {
        let buffer = buffer(8);
        let claims = [claim(&buffer, 0..8, true)];
        let caught = std::panic::catch_unwind(|| {
            locked(&claims, Patience::Wait, &mut || panic!("on purpose"))
        });
        assert!(caught.is_err());
        assert!(locked(&claims, Patience::Try, &mut || {}));
    }

    #[test]
    fn overlaps_are_found_only_where_something_is_written() {
        let (a, b) = (buffer(16), buffer(16));
        let find = |spans: &[(&Arc<dyn Buffer>, u64, u64, bool)]| {
            let mut claims: Vec<Claim> = spans
                .iter()
                .enumerate()
                .map(|(index, (buffer, start, end, write))| {
                    let slice = Slice::new(Arc::clone(buffer), *start..*end).unwrap();
                    Claim::new(DEVICE, &slice, index, *write).unwrap()
                })
                .collect();
            put_in_order(&mut claims);
            find_overlap(&claims)
        };
        assert_eq!(find(&[(&a, 0, 8, true), (&b, 0, 8, true)]), None);
        assert_eq!(find(&[(&a, 0, 8, false), (&a, 4, 12, false)]), None);
        assert_eq!(find(&[(&a, 0, 8, true), (&a, 8, 16, true)]), None);
        assert_eq!(
            find(&[(&a, 0, 16, false), (&a, 2, 4, false), (&a, 14, 16, true)]),
            Some([0, 2])
        );
    }
}
