//! How much of a device's memory is spoken for.

use std::sync::{Mutex, PoisonError};

use super::arena::ALIGN;
use crate::driver::status::{Result, Status};

/// What an allocation of so many bytes costs: the device hands out whole units.
pub(crate) fn charge(bytes: u64) -> u64 {
    bytes.div_ceil(ALIGN).saturating_mul(ALIGN)
}

/// The memory of one device, counted.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    used: Mutex<u64>,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            used: Mutex::new(0),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn free(&self) -> u64 {
        self.total - *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self, bytes: u64) -> Result {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let after = used.checked_add(bytes).filter(|after| *after <= self.total);
        *used = after.ok_or(Status::OUT_OF_MEMORY)?;
        Ok(())
    }

    pub(crate) fn give(&self, bytes: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used
            .checked_sub(bytes)
            .expect("no more is given back than was taken");
    }
}
