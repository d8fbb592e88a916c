//! Who owns which address: asked by running kernels, answered by the driver half.

use std::fmt;

/// What a kernel wants to do with the bytes it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Load.
    Read = 0,
    /// Store.
    Write = 1,
    /// Read, change and write back as one step.
    Atomic = 2,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic update",
        })
    }
}

/// The state space an access was made through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Space {
    /// Device memory.
    Global = 0,
    /// Memory of one block.
    Shared = 1,
    /// Memory of one thread.
    Local = 2,
    /// Constant variables of the module.
    Const = 3,
    /// Parameters of the kernel or function.
    Param = 4,
    /// An address that may belong to any of the above.
    Generic = 5,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Const => "const",
            Self::Param => "param",
            Self::Generic => "generic",
        })
    }
}

/// A stretch of memory in which every access of the asked-for kind is fine: `base..end`.
///
/// It stays mapped, and the answer stays good, until the launch that asked has returned: the engine
/// remembers it for the rest of a block. Memory that is freed while a kernel runs must therefore be
/// kept aside, and only later given back to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub base: u64,
    /// One past the last byte.
    pub end: u64,
}

/// Why an access is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No allocation was ever near this address.
    Unmapped,
    /// It starts in, or just beside, an allocation, and does not lie inside it.
    OutOfBounds {
        /// The allocation that was probably meant.
        allocation: Region,
    },
    /// The allocation it lies in has been freed.
    Freed {
        /// What was freed.
        allocation: Region,
    },
    /// It would write to constant memory.
    ReadOnly,
    /// The memory is there, but on a device this one may not reach.
    Foreign,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmapped => f.write_str("no allocation is there"),
            Self::OutOfBounds { allocation } => write!(
                f,
                "it leaves the allocation of {} bytes at {:#x}",
                allocation.end - allocation.base,
                allocation.base
            ),
            Self::Freed { allocation } => write!(
                f,
                "the allocation of {} bytes at {:#x} has been freed",
                allocation.end - allocation.base,
                allocation.base
            ),
            Self::ReadOnly => f.write_str("constant memory is read-only for kernels"),
            Self::Foreign => f.write_str("it belongs to a device that is no peer"),
        }
    }
}

/// The memory of one device, as a running kernel sees it.
///
/// Device addresses are host addresses: whatever lies in a [`Region`] that [`check`](Self::check)
/// gave out, the engine reads and writes directly.
pub trait DeviceMemory: Sync {
    /// Says whether `bytes` bytes at `address` may be accessed so, and how far around that holds.
    ///
    /// # Errors
    /// Why not. Alignment is the engine's business.
    fn check(&self, address: u64, bytes: u32, access: Access) -> Result<Region, Why>;

    /// `malloc` called by a kernel; `None` makes it return the null pointer.
    fn allocate(&self, bytes: u64) -> Option<u64> {
        let _ = bytes;
        None
    }

    /// `free` called by a kernel; never called with the null pointer.
    ///
    /// # Errors
    /// When `address` was not given out by [`allocate`](Self::allocate), or was freed before.
    fn release(&self, address: u64) -> Result<(), Why> {
        let _ = address;
        Err(Why::Unmapped)
    }
}
