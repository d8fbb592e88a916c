//! How many bytes the buffers of one opened device hold.
//!
//! Few APIs tell how much memory is free, and many drivers allocate late, from an allocator that
//! promises more than there is: an allocation that cannot work would then fail much later, in
//! whatever comes first, or end the process. So an opened device counts what it gave out and
//! refuses to pass its size. That cannot see other processes, which is what leases are for; it
//! makes our own mistakes fail early and the same way every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The books of one opened device.
#[derive(Debug)]
pub struct Account {
    limit: u64,
    held: AtomicU64,
}

impl Account {
    /// At most `limit` bytes. 0 is a device that does not tell its size, and no limit.
    pub fn new(limit: u64) -> Arc<Self> {
        let limit = if limit == 0 { u64::MAX } else { limit };
        let held = AtomicU64::new(0);
        Arc::new(Self { limit, held })
    }

    /// Bytes held now.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes that could still be booked.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held())
    }

    /// Books `bytes` until the booking is dropped.
    ///
    /// # Errors
    /// With the bytes that are left, when these are fewer.
    pub fn book(self: &Arc<Self>, bytes: u64) -> Result<Booking, u64> {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.limit);
        // Relaxed: the number orders nothing but itself.
        let booked = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        match booked {
            Ok(_) => Ok(Booking {
                account: Arc::clone(self),
                bytes,
            }),
            Err(held) => Err(self.limit.saturating_sub(held)),
        }
    }
}

/// Booked bytes; dropping it gives them back.
#[derive(Debug)]
pub struct Booking {
    account: Arc<Account>,
    bytes: u64,
}

impl Booking {
    /// How many.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.account.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_to_the_byte_and_drops_give_back() {
        let account = Account::new(100);
        let first = account.book(60).unwrap();
        assert_eq!(account.book(41).unwrap_err(), 40);
        let second = account.book(40).unwrap();
        assert_eq!((account.held(), account.left()), (100, 0));
        assert_eq!(first.bytes(), 60);
        drop(first);
        assert_eq!((account.held(), account.left()), (40, 60));
        drop(second);
        assert_eq!(account.held(), 0);
        assert_eq!(account.book(u64::MAX).unwrap_err(), 100);
    }

    #[test]
    fn an_unknown_size_is_no_limit() {
        assert!(Account::new(0).book(1 << 60).is_ok());
    }

    #[test]
    fn many_threads_never_pass_the_limit() {
        let account = Account::new(1000);
        std::thread::scope(|scope| {
            for step in 1..=4 {
                let account = &account;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let entry = account.book(step * 100);
                        assert!(account.held() <= 1000);
                        drop(entry);
                    }
                });
            }
        });
        assert_eq!(account.held(), 0);
    }
}
