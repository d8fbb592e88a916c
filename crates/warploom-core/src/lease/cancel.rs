//! Calling a wait off from elsewhere.

use std::sync::Arc;

use super::signal::Signal;
use super::sync::{AtomicBool, Mutex, Ordering, lock};

/// A switch that calls off every wait it was given to. Clones are the same switch.
///
/// ```
/// use warploom_core::{CancelToken, LeaseCapacity, DeskDevice, LeaseDesk, LeaseError, LeaseRequest};
///
/// let gpu = DeskDevice::new("gpu0", "pci-0000-41-00.0", LeaseCapacity { slots: 1, bytes: 1 << 30 });
/// let desk = LeaseDesk::local(vec![gpu])?;
/// let token = CancelToken::new();
/// let held = desk.lease(&LeaseRequest::new(1, 0))?;
/// token.cancel();
/// let refused = desk.lease(&LeaseRequest::new(1, 0).cancelled_by(&token));
/// assert!(matches!(refused, Err(LeaseError::Cancelled { .. })));
/// # drop(held);
/// # Ok::<(), LeaseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    cancelled: AtomicBool,
    waiting: Mutex<Vec<Arc<Signal>>>,
}

impl CancelToken {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls off, for good. Whoever waits wakes up at once.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        for signal in lock(&self.0.waiting).iter() {
            signal.ring();
        }
    }

    /// Was it called off?
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Rings `signal` when called off, until the watch is dropped. A token that was called off
    /// before rings too, so there is no moment in between.
    pub(crate) fn watch(&self, signal: &Arc<Signal>) -> Watch<'_> {
        lock(&self.0.waiting).push(Arc::clone(signal));
        if self.is_cancelled() {
            signal.ring();
        }
        Watch {
            token: self,
            signal: Arc::clone(signal),
        }
    }
}

/// While it lives, its signal hears the token.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    token: &'a CancelToken,
    signal: Arc<Signal>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        lock(&self.token.0.waiting).retain(|other| !Arc::ptr_eq(other, &self.signal));
    }
}
