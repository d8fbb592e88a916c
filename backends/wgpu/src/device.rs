//! Opened devices.

use std::sync::Arc;

use warploom_core::{
    Buffer, Device, DeviceInfo, Kernel, KernelSource, MemoryKind, MemoryUse, Queue, QueueDesc,
    Result,
};

use crate::buffer::{Memory, WgpuBuffer};
use crate::context::Context;
use crate::kernel::WgpuKernel;
use crate::probe::Found;
use crate::queue::WgpuQueue;

#[derive(Debug)]
pub(crate) struct WgpuDevice {
    pub(crate) context: Arc<Context>,
}

impl WgpuDevice {
    pub(crate) fn open(found: Found) -> Result<Self> {
        let context = Context::open(found.info, found.adapter)?;
        tracing::debug!(device = %context.info.id, name = context.info.name, "opened");
        Ok(Self {
            context: Arc::new(context),
        })
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        self.context.memory()
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        let memory = Memory::alloc(&self.context, kind, bytes)?;
        Ok(Arc::new(WgpuBuffer { memory, kind }))
    }

    fn queue(&self, _desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        self.context.alive()?;
        Ok(Box::new(WgpuQueue::new(&self.context)))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(WgpuKernel::build(&self.context, source)?))
    }
}
