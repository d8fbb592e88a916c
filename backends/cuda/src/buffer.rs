//! Memory: what the driver allocated, and buffers made of it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::sys;
use warploom_core::{Buffer, DeviceError, DeviceId, MemoryKind, Result, Space, memory};

use crate::context::Context;
use crate::error::{Status, code};
use crate::handle::Foreign;
use crate::lane::Lane;

/// Device memory, freed when dropped. Whoever drops it knows that no work uses it any more.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
}

impl DeviceMemory {
    /// `None` when there is no room.
    pub(crate) fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Option<Self>> {
        let driver = context.enter()?;
        let mut address = 0;
        // SAFETY: a context is current, and the place for the answer is writable.
        let status = unsafe { driver.cuMemAlloc_v2(&raw mut address, bytes) };
        if !has_room(context, status)? {
            return Ok(None);
        }
        Ok(Some(Self {
            context: Arc::clone(context),
            address,
        }))
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Some(driver) = self.context.enter_to_free() {
            // SAFETY: allocated by `cuMemAlloc` in this context and freed once; lanes kept the
            // buffer until all work on it was done.
            let status = unsafe { driver.cuMemFree_v2(self.address) };
            self.context.check_freed(status);
        }
    }
}

/// Page-locked host memory, freed when dropped. Whoever drops it knows that no work uses it.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    context: Arc<Context>,
    address: Foreign<c_void>,
    bytes: usize,
}

impl PinnedMemory {
    /// `None` when there is no room.
    pub(crate) fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Option<Self>> {
        let driver = context.enter()?;
        let mut address = std::ptr::null_mut();
        // Portable: pinned for every CUDA context of the process, not only this one.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: a context is current, and the place for the answer is writable.
        let status = unsafe { driver.cuMemHostAlloc(&raw mut address, bytes, flags) };
        if !has_room(context, status)? {
            return Ok(None);
        }
        Ok(Some(Self {
            context: Arc::clone(context),
            address: Foreign::new(address),
            bytes,
        }))
    }

    /// The first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.address.raw().cast()
    }

    /// The memory as bytes.
    ///
    /// # Safety
    /// For as long as the slice lives nothing else touches the memory, no device either.
    #[expect(
        clippy::mut_from_ref,
        reason = "exclusivity is the caller's promise: it is a matter of devices, not of borrows"
    )]
    unsafe fn bytes(&self) -> &mut [u8] {
        // SAFETY: the driver gave `bytes` readable and writable bytes at `address`, which live as
        // long as `self`; foreign memory counts as initialised, any value of a byte is valid, and
        // exclusivity is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.bytes) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Some(driver) = self.context.enter_to_free() {
            // SAFETY: allocated by `cuMemHostAlloc` and freed once; no work on it is left.
            let status = unsafe { driver.cuMemFreeHost(self.address.raw()) };
            self.context.check_freed(status);
        }
    }
}

fn has_room(context: &Context, status: Status) -> Result<bool> {
    if status.code() == code::OUT_OF_MEMORY {
        return Ok(false);
    }
    context.check(status).map(|()| true)
}

/// A call on a lane that uses a pinned buffer.
#[derive(Debug)]
pub(crate) struct Use {
    lane: Weak<Lane>,
    issued: u64,
}

/// Calls that use a pinned buffer. The lock is also the right to touch the bytes: the host holds
/// it while it looks, a queue while it issues a call.
pub(crate) type Uses = Vec<Use>;

#[derive(Debug)]
enum Place {
    Device(DeviceMemory),
    Pinned {
        memory: PinnedMemory,
        uses: Mutex<Uses>,
    },
}

/// An allocation on a CUDA device or in page-locked host memory.
#[derive(Debug)]
pub(crate) struct CudaBuffer {
    device: DeviceId,
    kind: MemoryKind,
    bytes: u64,
    place: Place,
    // After the memory, so that it is not counted as given back before it is.
    _held: Held,
}

/// Bytes that count as held while this lives.
#[derive(Debug)]
struct Held {
    context: Arc<Context>,
    bytes: u64,
}

impl Held {
    fn new(context: &Arc<Context>, bytes: u64) -> Self {
        context.hold(bytes);
        Self {
            context: Arc::clone(context),
            bytes,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.context.give_back(self.bytes);
    }
}

/// Where the bytes of a buffer are, for a driver call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    Device(sys::CUdeviceptr),
    Host(*mut u8),
}

impl CudaBuffer {
    /// Allocates; `None` when there is no room.
    pub(crate) fn allocate(
        context: &Arc<Context>,
        kind: MemoryKind,
        bytes: u64,
    ) -> Result<Option<Self>> {
        let Ok(size) = usize::try_from(bytes) else {
            return Ok(None);
        };
        let place = if kind == memory::CUDA_PINNED {
            PinnedMemory::allocate(context, size)?.map(|memory| Place::Pinned {
                memory,
                uses: Mutex::default(),
            })
        } else {
            DeviceMemory::allocate(context, size)?.map(Place::Device)
        };
        Ok(place.map(|place| Self {
            device: context.id(),
            kind,
            bytes,
            place,
            _held: Held::new(context, bytes),
        }))
    }

    /// The address of byte `start`.
    pub(crate) fn site(&self, start: u64) -> Site {
        match &self.place {
            Place::Device(memory) => Site::Device(memory.address + start),
            Place::Pinned { memory, .. } => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                // Wrapping: callers stay inside the buffer, and computing an address is not
                // using it.
                Site::Host(memory.address().wrapping_add(start))
            }
        }
    }

    /// Can the host see it?
    pub(crate) fn is_pinned(&self) -> bool {
        self.kind.space() == Space::Pinned
    }

    /// Takes the right to issue calls on the bytes, waiting while the host has them. Device
    /// memory needs none.
    pub(crate) fn uses(&self) -> Option<MutexGuard<'_, Uses>> {
        match &self.place {
            Place::Device(_) => None,
            // A panic while the host looked leaves bytes, not a broken invariant.
            Place::Pinned { uses, .. } => Some(uses.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Notes that call `issued` of `lane` uses the buffer.
pub(crate) fn note(uses: &mut Uses, lane: &Arc<Lane>, issued: u64) {
    // One entry per lane is enough, because calls of one lane end in order.
    uses.retain(|entry| entry.lane.strong_count() > 0);
    let ours = uses
        .iter_mut()
        .find(|entry| std::ptr::eq(entry.lane.as_ptr(), Arc::as_ptr(lane)));
    match ours {
        Some(entry) => entry.issued = issued,
        None => uses.push(Use {
            lane: Arc::downgrade(lane),
            issued,
        }),
    }
}

impl Buffer for CudaBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let (Place::Pinned { memory, .. }, Some(mut uses)) = (&self.place, self.uses()) else {
            let what = format!("looking into {} memory from the host", self.kind);
            return Err(DeviceError::unsupported(self.device, what));
        };
        for entry in &*uses {
            // A lane that is gone waited for its work.
            let Some(lane) = entry.lane.upgrade() else {
                continue;
            };
            if let Some(point) = lane.point_after(entry.issued)? {
                point.wait()?;
            }
        }
        uses.clear();
        // SAFETY: all calls that used the buffer are done, and none is issued while `uses` is
        // locked, which it is until `f` returns.
        f(unsafe { memory.bytes() });
        Ok(())
    }
}
