//! Pools of stream-ordered memory.
//!
//! A pool keeps what is given back to it for the next who asks, and returns it to the device at the
//! next synchronisation, down to its release threshold. Only the counting is done here: addresses
//! are never used again so soon, so that uses of the old one are noticed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::{Budget, charge};
use crate::driver::ffi::Handle;
use crate::driver::status::{Result, Status};

/// A pool on one device.
#[derive(Debug)]
pub(crate) struct Pool {
    handle: Handle,
    /// Place of the device in the machine.
    device: usize,
    budget: Arc<Budget>,
    /// Most bytes, if there is a limit.
    limit: Option<u64>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    threshold: u64,
    /// Nothing is kept any more.
    ended: bool,
    /// Reuse along events, by luck, and by waiting: hints that change nothing here.
    reuse: [u64; 3],
    /// What other devices may do, by their place in the machine.
    access: BTreeMap<usize, u32>,
}

/// `CUmemPool_attribute`, as far as a pool has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolAttribute {
    Reuse(usize),
    ReleaseThreshold,
    Reserved,
    ReservedHigh,
    Used,
    UsedHigh,
}

impl PoolAttribute {
    pub(crate) fn parse(number: u32) -> Result<Self> {
        Ok(match number {
            1..=3 => Self::Reuse(number as usize - 1),
            4 => Self::ReleaseThreshold,
            5 => Self::Reserved,
            6 => Self::ReservedHigh,
            7 => Self::Used,
            8 => Self::UsedHigh,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    /// Whether its value is an `int`, not a 64-bit number.
    pub(crate) fn is_int(self) -> bool {
        matches!(self, Self::Reuse(_))
    }
}

impl Pool {
    pub(crate) fn new(
        handle: Handle,
        device: usize,
        budget: &Arc<Budget>,
        limit: Option<u64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle,
            device,
            budget: Arc::clone(budget),
            limit,
            counts: Mutex::new(Counts {
                reuse: [1; 3],
                ..Counts::default()
            }),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn device(&self) -> usize {
        self.device
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an allocation.
    pub(crate) fn take(&self, bytes: u64) -> Result {
        let mut counts = self.lock();
        let used = counts.used.checked_add(charge(bytes));
        let used = used.ok_or(Status::OUT_OF_MEMORY)?;
        if self.limit.is_some_and(|limit| used > limit) {
            return Err(Status::OUT_OF_MEMORY);
        }
        if used > counts.reserved {
            self.budget.take(used - counts.reserved)?;
            counts.reserved = used;
            counts.reserved_high = counts.reserved_high.max(used);
        }
        counts.used = used;
        counts.used_high = counts.used_high.max(used);
        Ok(())
    }

    /// Counts an allocation that ends.
    pub(crate) fn give(&self, bytes: u64) {
        let mut counts = self.lock();
        counts.used -= charge(bytes);
        if counts.ended {
            self.shrink(&mut counts, 0);
        }
    }

    /// Returns to the device what is not in use, down to the threshold.
    pub(crate) fn settle(&self) {
        let mut counts = self.lock();
        let keep = counts.threshold;
        self.shrink(&mut counts, keep);
    }

    /// Returns to the device what is not in use, down to `keep`.
    pub(crate) fn trim(&self, keep: u64) {
        self.shrink(&mut self.lock(), keep);
    }

    fn shrink(&self, counts: &mut Counts, keep: u64) {
        let keep = counts.reserved.min(keep).max(counts.used);
        self.budget.give(counts.reserved - keep);
        counts.reserved = keep;
    }

    /// Ends the pool: what it does not need goes back, now and as its allocations end.
    pub(crate) fn end(&self) {
        let mut counts = self.lock();
        counts.ended = true;
        self.shrink(&mut counts, 0);
    }

    pub(crate) fn attribute(&self, attribute: PoolAttribute) -> u64 {
        let counts = self.lock();
        match attribute {
            PoolAttribute::Reuse(which) => counts.reuse[which],
            PoolAttribute::ReleaseThreshold => counts.threshold,
            PoolAttribute::Reserved => counts.reserved,
            PoolAttribute::ReservedHigh => counts.reserved_high,
            PoolAttribute::Used => counts.used,
            PoolAttribute::UsedHigh => counts.used_high,
        }
    }

    /// Only hints, the threshold and the resetting of marks can be set.
    pub(crate) fn set_attribute(&self, attribute: PoolAttribute, value: u64) -> Result {
        let mut counts = self.lock();
        match (attribute, value) {
            (PoolAttribute::Reuse(which), 0 | 1) => counts.reuse[which] = value,
            (PoolAttribute::ReleaseThreshold, _) => counts.threshold = value,
            (PoolAttribute::ReservedHigh, 0) => counts.reserved_high = counts.reserved,
            (PoolAttribute::UsedHigh, 0) => counts.used_high = counts.used,
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }

    /// What a device may do with the pool's memory: bit 0 read, bit 1 write.
    pub(crate) fn access(&self, device: usize) -> u32 {
        if device == self.device {
            return 3;
        }
        self.lock().access.get(&device).copied().unwrap_or(0)
    }

    pub(crate) fn set_access(&self, device: usize, flags: u32) -> Result {
        if device == self.device && flags != 3 {
            return Err(Status::INVALID_DEVICE);
        }
        self.lock().access.insert(device, flags);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_until_it_settles() {
        let budget = Arc::new(Budget::new(10_000));
        let pool = Pool::new(Handle(1), 0, &budget, None);
        pool.take(1000).expect("there is room");
        assert_eq!(budget.free(), 10_000 - 1024);
        pool.give(1000);
        assert_eq!(budget.free(), 10_000 - 1024, "kept for the next");
        pool.take(500).expect("it fits what is kept");
        assert_eq!(pool.attribute(PoolAttribute::Reserved), 1024);
        pool.settle();
        assert_eq!(budget.free(), 10_000 - 512);
        assert_eq!(pool.attribute(PoolAttribute::ReservedHigh), 1024);
        assert_eq!(pool.take(20_000), Err(Status::OUT_OF_MEMORY));
        assert_eq!(pool.attribute(PoolAttribute::Used), 512);
    }

    #[test]
    fn the_threshold_keeps_memory_over_a_settlement() {
        let budget = Arc::new(Budget::new(10_000));
        let pool = Pool::new(Handle(1), 0, &budget, Some(4096));
        pool.set_attribute(PoolAttribute::ReleaseThreshold, 700)
            .expect("it can be set");
        pool.take(2048).expect("there is room");
        assert_eq!(
            pool.take(2049),
            Err(Status::OUT_OF_MEMORY),
            "beyond the limit"
        );
        pool.give(2048);
        pool.settle();
        assert_eq!(budget.free(), 10_000 - 700);
        pool.trim(0);
        assert_eq!(budget.free(), 10_000);
    }
}
