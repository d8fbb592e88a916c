//! How many bytes the buffers of one opened device hold.
//!
//! OpenCL has no portable call for free memory, and its runtimes allocate late: some at the first
//! command that uses a buffer, `PoCL` from an allocator that promises more than there is. An
//! allocation that cannot work would then fail much later, in whatever command comes first, or end
//! the process. So every opened device counts what it gave out and refuses to pass the device's
//! size. That cannot see other processes; it makes our own mistakes fail early and the same way
//! every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The books of one opened device.
#[derive(Debug)]
pub(crate) struct Account {
    /// 0 when the device does not tell; then nothing is refused.
    total: u64,
    /// Bytes that count against `total`.
    bounded: AtomicU64,
    /// Bytes that do not: host memory beside a device with memory of its own.
    free_standing: AtomicU64,
}

impl Account {
    pub(crate) fn new(total: u64) -> Arc<Self> {
        Arc::new(Self {
            total,
            bounded: AtomicU64::new(0),
            free_standing: AtomicU64::new(0),
        })
    }

    /// All bytes held.
    pub(crate) fn held(&self) -> u64 {
        let free_standing = self.free_standing.load(Ordering::Relaxed);
        self.bounded.load(Ordering::Relaxed) + free_standing
    }

    /// Books `bytes` until the entry is dropped, or returns what is left.
    pub(crate) fn book(self: &Arc<Self>, bytes: u64, bounded: bool) -> Result<Entry, u64> {
        let column = self.column(bounded);
        let limit = if bounded && self.total > 0 {
            self.total
        } else {
            u64::MAX
        };
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        // Relaxed: the counters order nothing but themselves.
        match column.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Entry {
                account: Arc::clone(self),
                bytes,
                bounded,
            }),
            Err(held) => Err(limit.saturating_sub(held)),
        }
    }

    fn column(&self, bounded: bool) -> &AtomicU64 {
        if bounded {
            &self.bounded
        } else {
            &self.free_standing
        }
    }
}

/// Booked bytes; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Entry {
    account: Arc<Account>,
    bytes: u64,
    bounded: bool,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let column = self.account.column(self.bounded);
        column.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_is_given_back() {
        let account = Account::new(100);
        let first = account.book(60, true).unwrap();
        assert_eq!(account.book(41, true).unwrap_err(), 40);
        let pinned = account.book(1000, false).unwrap();
        assert_eq!(account.held(), 1060);
        drop(first);
        let all = account.book(100, true).unwrap();
        assert_eq!(account.book(1, true).unwrap_err(), 0);
        drop((pinned, all));
        assert_eq!(account.held(), 0);
    }

    #[test]
    fn sums_do_not_wrap() {
        let account = Account::new(0);
        let _all = account.book(u64::MAX, true).unwrap();
        assert_eq!(account.book(1, true).unwrap_err(), 0);
    }

    #[test]
    fn threads_never_pass_the_bound_together() {
        let account = Account::new(1000);
        let won: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let entries: Vec<_> = (0..100)
                            .filter_map(|_| account.book(7, true).ok())
                            .collect();
                        let count = entries.len();
                        std::mem::forget(entries);
                        count
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(won, 1000 / 7);
    }
}
