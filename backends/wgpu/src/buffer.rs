//! Memory on the device, and pinned memory that the host sees too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warploom_core::memory::WGPU_PINNED;
use warploom_core::{Booking, Buffer, DeviceError, DeviceId, MemoryKind, Result};
use wgpu::BufferUsages;

use crate::context::Context;
use crate::error::scoped;
use crate::gate::Knot;
use crate::mapping::{Mapped, serial};
use crate::transfer::WORD;

const USAGE: BufferUsages = BufferUsages::STORAGE
    .union(BufferUsages::COPY_SRC)
    .union(BufferUsages::COPY_DST);

/// An allocation. Its size is rounded up to whole words, so that words at its end can be copied and
/// bound.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) id: u64,
    pub(crate) bytes: u64,
    pub(crate) charge: Arc<Booking>,
    pub(crate) context: Arc<Context>,
    place: Place,
    /// The latest submit that touches it; kept for pinned memory only.
    last_use: AtomicU64,
    /// Is it part of a bind group that is kept?
    bound: AtomicBool,
}

#[derive(Debug)]
enum Place {
    Device(wgpu::Buffer),
    Pinned(Mapped),
}

impl Memory {
    pub(crate) fn alloc(context: &Arc<Context>, kind: MemoryKind, bytes: u64) -> Result<Arc<Self>> {
        context.reap()?;
        let full = |free| context.out_of_memory(kind, bytes, Some(free));
        let size = bytes
            .checked_next_multiple_of(WORD)
            .ok_or_else(|| full(0))?;
        let charge = context.account.book(size).map_err(full)?;
        let place = if kind == WGPU_PINNED {
            let mapped = Mapped::new(&context.device, BufferUsages::MAP_READ | USAGE, size);
            Place::Pinned(mapped.map_err(|error| context.unmapped(kind, bytes, &error))?)
        } else {
            Place::Device(device_buffer(context, kind, size)?)
        };
        let last_use = match &place {
            Place::Pinned(mapped) => context.clear(&mapped.buffer)?,
            Place::Device(_) => 0,
        };
        // Losing the device gives an unusable buffer without an error.
        context.alive()?;
        Ok(Arc::new(Self {
            id: serial(),
            bytes,
            charge: Arc::new(charge),
            context: Arc::clone(context),
            place,
            last_use: AtomicU64::new(last_use),
            bound: AtomicBool::new(false),
        }))
    }

    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        match &self.place {
            Place::Device(buffer) => buffer,
            Place::Pinned(mapped) => &mapped.buffer,
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        matches!(self.place, Place::Pinned(_))
    }

    /// A submit that touches it was made. The caller holds the gate.
    pub(crate) fn used_by(&self, index: u64) {
        self.last_use.fetch_max(index, Ordering::Relaxed);
    }

    /// It became part of a bind group that is kept.
    pub(crate) fn bound(&self) {
        self.bound.store(true, Ordering::Relaxed);
    }
}

fn device_buffer(context: &Context, kind: MemoryKind, size: u64) -> Result<wgpu::Buffer> {
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size,
        usage: USAGE,
        mapped_at_creation: false,
    };
    let made = scoped(&context.device, || {
        context.device.create_buffer(&descriptor)
    });
    made.map_err(|error| match error {
        wgpu::Error::OutOfMemory { .. } => {
            let free = context.memory().ok().and_then(|memory| memory.free);
            context.out_of_memory(kind, size, free)
        }
        error => context.failed("create_buffer", &error),
    })
}

impl Drop for Memory {
    fn drop(&mut self) {
        if *self.bound.get_mut() {
            self.context.groups.forget(self.id);
        }
    }
}

/// The handle that callers have.
#[derive(Debug)]
pub(crate) struct WgpuBuffer {
    pub(crate) memory: Arc<Memory>,
    pub(crate) kind: MemoryKind,
}

impl Buffer for WgpuBuffer {
    fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> DeviceId {
        self.memory.context.info.id
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let (memory, context) = (&*self.memory, &*self.memory.context);
        let Place::Pinned(mapped) = &memory.place else {
            let what = format!("host access to {}", self.kind);
            return Err(DeviceError::unsupported(context.info.id, what));
        };
        context.alive()?;
        context.flush_users(memory)?;
        let loan = context.gate.lend(&[memory.id]);
        let loan = loan.map_err(|Knot| context.knot())?;
        // Read under the loan: no later submit can touch the buffer any more.
        context.wait(memory.last_use.load(Ordering::Relaxed), None)?;
        // SAFETY: all submits that touch it are done (above), none can be made while the loan
        // lives, and the loan excludes other calls of this function. The device wrote all bytes
        // when the buffer was made (`Context::clear`).
        f(unsafe { mapped.slice(memory.bytes) });
        drop(loan);
        Ok(())
    }
}
