//! What devices say about themselves.

use std::ffi::c_int;

use super::device::{Device, PROCESSORS};
use super::status::{Result, Status};

/// Threads of a block.
pub(crate) const MAX_THREADS: u32 = 1024;

/// Threads of a block in each direction.
pub(crate) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];

/// Blocks of a grid in each direction.
pub(crate) const MAX_GRID: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];

/// Bytes of shared memory of a block.
pub(crate) const MAX_SHARED: u32 = 48 << 10;

/// The same for kernels that ask for more.
pub(crate) const MAX_SHARED_OPTIN: u32 = 99 << 10;

/// Bytes of shared memory of a processor.
pub(crate) const PROCESSOR_SHARED: u32 = 100 << 10;

/// Threads of a processor.
pub(crate) const PROCESSOR_THREADS: u32 = 1536;

/// Blocks of a processor.
pub(crate) const BLOCKS: u32 = 16;

/// Registers of a processor, and of a block.
pub(crate) const REGISTERS: u32 = 65_536;

/// Bytes of a row that 2D copies take.
pub(crate) const MAX_PITCH: u64 = 0x7fff_ffff;

/// One more than the last attribute a driver knows.
const UNKNOWN: u32 = 162;

/// `CUdevice_attribute`. What is not emulated is zero, which says that it is not there.
pub(crate) fn attribute(device: &Device, number: u32) -> Result<c_int> {
    let spec = device.spec();
    let value = match number {
        1 => MAX_THREADS,
        2..=4 => MAX_BLOCK[number as usize - 2],
        5..=7 => MAX_GRID[number as usize - 5],
        8 => MAX_SHARED,
        // Constant memory.
        9 => 64 << 10,
        // Threads of a warp; alignment of rows of textures.
        10 | 51 => 32,
        11 => u32::try_from(MAX_PITCH).unwrap_or(u32::MAX),
        12 | 82 => REGISTERS,
        // Clock in kHz, of the processors and of the memory.
        13 | 36 => 1_000_000,
        // Alignment of textures.
        14 => 512,
        // There are: copies beside kernels (15), host memory for kernels (19), kernels beside each
        // other (31), one address space (41), priorities of streams (78), caches (79, 80), host
        // memory to be registered, at its own address (91, 99), and pools of memory (115).
        15 | 19 | 31 | 41 | 78..=80 | 91 | 99 | 115 => 1,
        16 => PROCESSORS,
        33 => u32::from(spec.pci.bus),
        34 => u32::from(spec.pci.device),
        // Bits of the memory bus; bytes of the cache.
        37 => 256,
        38 => 4 << 20,
        39 => PROCESSOR_THREADS,
        // Engines for copies, one in each direction; single against double precision.
        40 | 87 => 2,
        50 => spec.pci.domain,
        75 => spec.capability.0,
        76 => spec.capability.1,
        81 => PROCESSOR_SHARED,
        97 => MAX_SHARED_OPTIN,
        106 => BLOCKS,
        0 | UNKNOWN.. => return Err(Status::INVALID_VALUE),
        _ => 0,
    };
    Ok(c_int::try_from(value).unwrap_or(c_int::MAX))
}

/// Priorities of streams, the least important first.
pub(crate) const PRIORITIES: (c_int, c_int) = (0, -5);
