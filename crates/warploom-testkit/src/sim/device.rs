//! An opened simulated device.

use std::sync::Arc;

use warploom_core::host::FnKernel;
use warploom_core::{
    Account, Buffer, Device, DeviceError, DeviceInfo, Kernel, KernelSource, MemoryKind, MemoryUse,
    Queue, QueueDesc, Result, Space,
};

use super::buffer::SimBuffer;
use super::engine::World;
use super::queue::SimQueue;
use crate::fake::Call;

#[derive(Debug)]
pub(super) struct SimDevice {
    pub(super) world: Arc<World>,
    /// What buffers of this opening hold.
    pub(super) account: Arc<Account>,
}

impl Device for SimDevice {
    fn info(&self) -> &DeviceInfo {
        &self.world.card.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        if let Some(lost) = self.world.card.lost() {
            return Err(lost);
        }
        let (total, used) = (self.world.card.info.total_memory, self.world.card.used());
        Ok(MemoryUse {
            total,
            free: Some(total.saturating_sub(used)),
            ours: self.account.held(),
        })
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let card = &self.world.card;
        card.enter(Call::Alloc)?;
        let full = |free| DeviceError::OutOfMemory {
            device: card.info.id,
            kind,
            asked: bytes,
            free: Some(free),
        };
        if kind.space() == Space::Device {
            card.take(bytes, card.info.total_memory).map_err(full)?;
        }
        let mut buffer = SimBuffer::new(&self.world, kind, bytes)?;
        buffer.booking = Some(self.account.book(bytes).map_err(full)?);
        Ok(Arc::new(buffer))
    }

    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        self.world.card.enter(Call::Queue)?;
        Ok(Box::new(SimQueue {
            world: Arc::clone(&self.world),
            line: self.world.line_on(&desc.label, Some(desc.class)),
        }))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        self.world.card.enter(Call::Kernel)?;
        FnKernel::load(self.world.card.info.id, source)
    }
}
