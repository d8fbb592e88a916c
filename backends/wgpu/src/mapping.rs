//! Device memory that stays mapped into the host for its whole life.
//!
//! wgpu's own mapping is asynchronous, needs polling, and forbids submits while it lasts. The
//! memory below it is mapped anyway, from allocation to release, so this asks wgpu-hal for the
//! address once. What wgpu's mapping would have enforced becomes the rule of the `unsafe` functions
//! here: bytes are touched only while no unfinished device work touches them.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use wgpu::BufferUsages;
use wgpu::hal::{Api, Device as _};

use crate::error::scoped;

/// Numbers buffers, chunks and programs, so that each is known by one word.
pub(crate) fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A buffer and its address.
pub(crate) struct Mapped {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) id: u64,
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the address is plain memory that belongs to `buffer` and may be used from any thread; who
// uses it when is settled by the callers of the `unsafe` functions.
unsafe impl Send for Mapped {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapped {}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("id", &self.id)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Why there is no mapped memory.
#[derive(Debug)]
pub(crate) enum MapError {
    Wgpu(wgpu::Error),
    /// The driver's memory is not coherent or has no address; no known driver does this.
    Address,
}

impl Mapped {
    /// `bytes` (a multiple of 4, not 0) of memory for `usage`, which includes a `MAP` flag.
    ///
    /// wgpu fills memory it believes unwritten with zeros at its first use on the device, which
    /// would undo what the host wrote. With `MAP_WRITE` it is told here that all is written;
    /// without, the caller must have the device write the bytes before the host does.
    pub(crate) fn new(
        device: &wgpu::Device,
        usage: BufferUsages,
        bytes: u64,
    ) -> Result<Self, MapError> {
        let mapped_at_creation = usage.contains(BufferUsages::MAP_WRITE);
        let buffer = scoped(device, || {
            let buffer = device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage,
                mapped_at_creation,
            });
            if mapped_at_creation {
                buffer.unmap();
            }
            buffer
        });
        let buffer = buffer.map_err(MapError::Wgpu)?;
        let bytes = usize::try_from(bytes).map_err(|_| MapError::Address)?;
        let address = address(device, &buffer, bytes).ok_or(MapError::Address)?;
        Ok(Self {
            buffer,
            id: serial(),
            address,
            bytes,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// # Panics
    /// When the range is not within the memory.
    fn at(&self, start: u64, bytes: usize) -> NonNull<u8> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "bytes {start}.. of {} are asked for {bytes} more",
            self.bytes
        );
        // SAFETY: `start` is within the mapping, which is one allocation of `self.bytes`.
        unsafe { self.address.add(start) }
    }

    /// Writes bytes for the device.
    ///
    /// # Safety
    /// No unfinished work of the device and no other thread touches these bytes.
    pub(crate) unsafe fn write(&self, start: u64, src: &[u8]) {
        let to = self.at(start, src.len());
        // SAFETY: `at` checked the range, `src` is host memory elsewhere, and nobody else touches
        // the range (caller).
        unsafe { to.copy_from_nonoverlapping(NonNull::from(src).cast(), src.len()) };
    }

    /// Reads bytes the device wrote.
    ///
    /// # Safety
    /// The device's writes to these bytes are done, and nobody writes to them now.
    pub(crate) unsafe fn read(&self, start: u64, dst: &mut [u8]) {
        let from = self.at(start, dst.len());
        // SAFETY: `at` checked the range, `dst` is host memory elsewhere, and nobody writes to the
        // range (caller).
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *dst).cast(), dst.len()) };
    }

    /// The first `bytes` bytes themselves.
    ///
    /// # Safety
    /// While the slice lives, no work of the device and nothing else touches the bytes. The device
    /// has written all of them once.
    #[expect(
        clippy::mut_from_ref,
        reason = "exclusiveness is the caller's promise; the buffer behind is shared"
    )]
    pub(crate) unsafe fn slice(&self, bytes: u64) -> &mut [u8] {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let first = self.at(0, bytes);
        // SAFETY: `at` checked the range; the bytes are initialised and exclusive (caller), and
        // live as long as `self.buffer`.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), bytes) }
    }
}

#[cfg(target_vendor = "apple")]
fn address(device: &wgpu::Device, buffer: &wgpu::Buffer, bytes: usize) -> Option<NonNull<u8>> {
    address_by::<wgpu::hal::api::Metal>(device, buffer, bytes)
}

#[cfg(windows)]
fn address(device: &wgpu::Device, buffer: &wgpu::Buffer, bytes: usize) -> Option<NonNull<u8>> {
    address_by::<wgpu::hal::api::Vulkan>(device, buffer, bytes)
        .or_else(|| address_by::<wgpu::hal::api::Dx12>(device, buffer, bytes))
}

#[cfg(not(any(windows, target_vendor = "apple")))]
fn address(device: &wgpu::Device, buffer: &wgpu::Buffer, bytes: usize) -> Option<NonNull<u8>> {
    address_by::<wgpu::hal::api::Vulkan>(device, buffer, bytes)
}

/// `None` also when the device is not of API `A`.
fn address_by<A: Api>(
    device: &wgpu::Device,
    buffer: &wgpu::Buffer,
    bytes: usize,
) -> Option<NonNull<u8>> {
    // SAFETY: the device is used for one call and destroyed by nobody here.
    let device = unsafe { device.as_hal::<A>() }?;
    // SAFETY: the buffer is used for one call and destroyed by nobody here.
    let buffer = unsafe { buffer.as_hal::<A>() }?;
    // SAFETY: the buffer has a `MAP` usage and at least `bytes` bytes, more than 0 (`Mapped::new`);
    // races are excluded by the users of the address; it is never unmapped, and memory that is not
    // coherent is refused below.
    let mapping = unsafe { device.map_buffer(&buffer, 0..bytes as u64) }.ok()?;
    mapping.is_coherent.then_some(mapping.ptr)
}
