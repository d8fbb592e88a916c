//! Waiting for a lease, beside the supervisor.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use warploom_core::{CancelToken, Lease, LeaseDesk, LeaseError, LeaseRequest};

use crate::stop::Stopper;

/// What came of waiting at a slot.
pub(super) type Turn = (usize, Result<Lease, LeaseError>);

/// Waits for leases in threads, which wake the supervisor.
#[derive(Debug)]
pub(super) struct Turns {
    sender: Sender<Turn>,
    arrived: Receiver<Turn>,
}

impl Turns {
    pub(super) fn new() -> Self {
        let (sender, arrived) = channel();
        Self { sender, arrived }
    }

    /// Waits for a lease until it is there or called off.
    pub(super) fn wait(
        &self,
        slot: usize,
        desk: &LeaseDesk,
        request: &LeaseRequest,
        bell: &Stopper,
    ) -> Result<CancelToken, String> {
        let cancel = CancelToken::new();
        let request = request.clone().cancelled_by(&cancel);
        let (desk, bell, sender) = (desk.clone(), bell.clone(), self.sender.clone());
        let called_off = cancel.clone();
        let wait = move || {
            let lease = loop {
                match desk.lease(&request) {
                    // Some process that was stopped keeps the ledger's lock. That is no word about the device, so
                    // whoever waits for the device waits for the lock as well.
                    Err(error @ LeaseError::LedgerBusy { .. }) if !called_off.is_cancelled() => {
                        tracing::warn!(%error, "waiting on");
                    }
                    answer => break answer,
                }
            };
            // A supervisor that is gone drops the lease, which releases it.
            let _ = sender.send((slot, lease));
            bell.ring();
        };
        let thread = thread::Builder::new().name("fleet-lease".into());
        thread.spawn(wait).map_err(|error| error.to_string())?;
        Ok(cancel)
    }

    pub(super) fn arrived(&self) -> Option<Turn> {
        self.arrived.try_recv().ok()
    }
}
