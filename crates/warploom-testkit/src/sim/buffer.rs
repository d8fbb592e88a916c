//! Memory of a simulated device.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use warploom_core::{Booking, Buffer, DeviceError, DeviceId, MemoryKind, Result, Space};

use super::engine::{Stepped, World};
use super::memory::Content;
use crate::fake::Call;

#[derive(Debug)]
pub(super) struct SimBuffer {
    world: Arc<World>,
    kind: MemoryKind,
    bytes: u64,
    content: Arc<Content>,
    /// Held while the host has the bytes.
    lent: Mutex<()>,
    /// Keeps the device's count right.
    pub(super) booking: Option<Booking>,
}

impl SimBuffer {
    pub(super) fn new(world: &Arc<World>, kind: MemoryKind, bytes: u64) -> Result<Self> {
        let room = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory {
            device: world.card.info.id,
            kind,
            asked: bytes,
            free: None,
        })?;
        Ok(Self {
            world: Arc::clone(world),
            kind,
            bytes,
            content: Arc::new(Content::new(room)),
            lent: Mutex::default(),
            booking: None,
        })
    }

    pub(super) fn content(buffer: &Arc<dyn Buffer>) -> Result<Arc<Content>> {
        let any: &dyn Any = &**buffer;
        let own: Option<&Self> = any.downcast_ref();
        own.map(|own| Arc::clone(&own.content)).ok_or_else(|| {
            let what = format!("a {} buffer, which is not simulated", buffer.kind());
            DeviceError::unsupported(buffer.device(), what)
        })
    }
}

impl Buffer for SimBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> DeviceId {
        self.world.card.info.id
    }

    fn with_host(&self, f: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.world.card.enter(Call::WithHost)?;
        if !self.kind.space().host_visible() {
            let what = format!("host access to {}", self.kind);
            return Err(DeviceError::unsupported(self.device(), what));
        }
        if !self.world.is_loose {
            self.world.submit_all();
            while self.world.touches(&self.content) {
                if self.world.step() == Stepped::Stuck {
                    let text = "work on the buffer never ends";
                    return Err(DeviceError::driver(self.device(), "with_host", text));
                }
            }
        }
        let _lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy, so that simulated work may touch the buffer meanwhile, as hardware would.
        let mut copy = aligned(&self.content.bytes());
        f(&mut bytemuck::cast_slice_mut(&mut copy)[..self.content.bytes().len()]);
        let bytes: &[u8] = bytemuck::cast_slice(&copy);
        let mut content = self.content.bytes();
        let len = content.len();
        content.copy_from_slice(&bytes[..len]);
        Ok(())
    }
}

/// The bytes at an address that suits any element.
fn aligned(bytes: &[u8]) -> Vec<u128> {
    let mut words = vec![0_u128; bytes.len().div_ceil(size_of::<u128>())];
    let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    room[..bytes.len()].copy_from_slice(bytes);
    words
}

impl Drop for SimBuffer {
    fn drop(&mut self) {
        if self.kind.space() == Space::Device {
            self.world.card.give_back(self.bytes);
        }
    }
}
