//! Who holds how many bytes, so that running out of memory is a refusal and not an accident.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of all live buffers of one opened device, against a limit.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: u64,
    live: AtomicU64,
}

/// The bytes of one buffer; they count until the buffer and all work that uses it are done.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Ledger {
    /// A limit of 0 is none.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let limit = if limit == 0 { u64::MAX } else { limit };
        let live = AtomicU64::new(0);
        Arc::new(Self { limit, live })
    }

    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, or says how many are left.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, u64> {
        let room = |live: u64| live.checked_add(bytes).filter(|sum| *sum <= self.limit);
        match self
            .live
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
        {
            Ok(_) => Ok(Charge {
                ledger: Arc::clone(self),
                bytes,
            }),
            Err(live) => Err(self.limit - live),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.live.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_to_the_byte_and_drops_give_back() {
        let ledger = Ledger::new(100);
        let first = ledger.charge(60).unwrap();
        assert_eq!(ledger.charge(41).unwrap_err(), 40);
        let second = ledger.charge(40).unwrap();
        assert_eq!(ledger.live(), 100);
        drop(first);
        assert_eq!(ledger.live(), 40);
        drop(second);
        assert_eq!(ledger.live(), 0);
        assert!(ledger.charge(u64::MAX).is_err());
    }

    #[test]
    fn an_unknown_size_is_no_limit() {
        assert!(Ledger::new(0).charge(1 << 60).is_ok());
    }
}
