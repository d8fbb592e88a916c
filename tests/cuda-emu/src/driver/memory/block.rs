//! One allocation.

use std::sync::Arc;

use super::pool::Pool;
use crate::driver::ffi::Handle;
use crate::engine::Region;

/// A stretch of memory that was asked for at once.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) home: Home,
    pub(crate) state: State,
}

/// Whose memory it is.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    /// A device's.
    Device {
        /// Its place in the machine.
        device: usize,
        /// The context it was made in, with which it ends.
        context: Handle,
        /// Who asked for it.
        origin: Origin,
    },
    /// The host's, page-locked by us.
    Pinned { context: Handle, flags: u32 },
    /// The host's, made by the caller and page-locked by us.
    Registered { context: Handle, flags: u32 },
}

/// Who asked for device memory.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// `cuMemAlloc`.
    Call,
    /// `cuMemAllocAsync`, out of a pool.
    Pool(Arc<Pool>),
    /// A module, for a variable.
    Variable { constant: bool },
    /// A kernel that called `malloc`.
    Heap,
}

/// Whether it can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The stream that allocates it has not come so far.
    Pending,
    /// Yes.
    Live,
    /// No longer.
    Freed,
}

impl Block {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes
    }

    pub(crate) fn region(&self) -> Region {
        Region {
            base: self.base,
            end: self.end(),
        }
    }

    pub(crate) fn context(&self) -> Handle {
        match self.home {
            Home::Device { context, .. }
            | Home::Pinned { context, .. }
            | Home::Registered { context, .. } => context,
        }
    }

    /// The device it is on, by its place in the machine.
    pub(crate) fn device(&self) -> Option<usize> {
        match self.home {
            Home::Device { device, .. } => Some(device),
            _ => None,
        }
    }
}
