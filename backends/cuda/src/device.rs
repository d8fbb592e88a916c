//! An opened device.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use warploom_core::{
    Buffer, CodeCache, Device, DeviceInfo, Kernel, KernelSource, MemoryKind, MemoryUse, Queue,
    QueueDesc, Result,
};

use crate::buffer::CudaBuffer;
use crate::clock::Clock;
use crate::context::Context;
use crate::kernel::CudaKernel;
use crate::lane::Lane;
use crate::nvrtc::NvrtcChoice;
use crate::queue::CudaQueue;

/// What a device and its queues share.
#[derive(Debug)]
pub(crate) struct Opened {
    context: Arc<Context>,
    clock: Clock,
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// Compute capability, 75 for 7.5.
    capability: u32,
    nvrtc: NvrtcChoice,
    cache: Option<CodeCache>,
}

impl Opened {
    pub(crate) fn new(
        context: Arc<Context>,
        capability: u32,
        nvrtc: NvrtcChoice,
        cache: Option<CodeCache>,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            clock: Clock::start(&context)?,
            context,
            lanes: Mutex::default(),
            capability,
            nvrtc,
            cache,
        }))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn capability(&self) -> u32 {
        self.capability
    }

    pub(crate) fn nvrtc(&self) -> &NvrtcChoice {
        &self.nvrtc
    }

    /// Where compiled kernels are kept.
    pub(crate) fn cache(&self) -> Option<&CodeCache> {
        self.cache.as_ref()
    }

    /// Remembers a lane, to ask it for memory later.
    pub(crate) fn watch(&self, lane: &Arc<Lane>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(lane));
    }

    /// Has every lane let go of what finished work used; with `wait`, of all it keeps.
    fn reclaim(&self, wait: bool) -> Result<()> {
        let lanes: Vec<Arc<Lane>> = {
            let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.iter().filter_map(Weak::upgrade).collect()
        };
        lanes.iter().try_for_each(|lane| lane.reclaim(wait))
    }
}

/// An opened CUDA device.
#[derive(Debug)]
pub(crate) struct CudaDevice {
    info: DeviceInfo,
    opened: Arc<Opened>,
}

impl CudaDevice {
    pub(crate) fn new(info: DeviceInfo, opened: Arc<Opened>) -> Self {
        Self { info, opened }
    }

    /// Allocates; buffers that callers dropped but queues still keep are given back first when
    /// there is no room otherwise.
    fn find_room(&self, kind: MemoryKind, bytes: u64) -> Result<Option<CudaBuffer>> {
        let context = self.opened.context();
        for wait in [false, true] {
            let buffer = CudaBuffer::allocate(context, kind, bytes)?;
            if buffer.is_some() {
                return Ok(buffer);
            }
            self.opened.reclaim(wait)?;
        }
        CudaBuffer::allocate(context, kind, bytes)
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUse> {
        self.opened.reclaim(false)?;
        let (free, total) = self.opened.context().memory()?;
        Ok(MemoryUse {
            total,
            free: Some(free),
            ours: self.opened.context().held(),
        })
    }

    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        if let Some(buffer) = self.find_room(kind, bytes)? {
            return Ok(Arc::new(buffer));
        }
        Err(self.opened.context().no_room(kind, bytes))
    }

    fn queue(&self, desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(CudaQueue::new(&self.opened, desc)?))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(CudaKernel::build(&self.opened, source)?))
    }
}
