//! A device that does nothing at all and allocates nothing, so that only the scheduler shows.
#![allow(
    unreachable_pub,
    dead_code,
    reason = "shared by test binaries and benches, so `pub` reads best"
)]

use std::sync::Arc;

use warploom_core::host::{FnKernel, HostHeap, Ready};
use warploom_core::{
    Arg, BackendId, Buffer, Device, DeviceId, DeviceInfo, Event, Grid, Kernel, KernelSource,
    Language, MemoryKind, MemoryUse, Queue, QueueDesc, Result, Slice, Space,
};

/// A device whose work is done when it is enqueued.
#[derive(Debug)]
pub struct IdleDevice {
    info: DeviceInfo,
    heap: HostHeap,
}

impl IdleDevice {
    pub fn open() -> Arc<dyn Device> {
        let id = DeviceId::new(BackendId::new("idle"), 0);
        let kinds = [
            MemoryKind::new("idle.device", Space::Device),
            MemoryKind::new("idle.pinned", Space::Pinned),
        ];
        let mut info = DeviceInfo::new(id, "nothing", &kinds);
        info.languages = vec![Language::Host];
        let heap = HostHeap::new(id, 1 << 30);
        Arc::new(Self { info, heap })
    }
}

impl Device for IdleDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn memory(&self) -> Result<MemoryUse> {
        Ok(self.heap.usage())
    }
    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        self.heap.alloc(kind, bytes)
    }
    fn queue(&self, _desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(IdleQueue(Arc::new(Ready(
            std::time::Duration::ZERO,
        )))))
    }
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        FnKernel::load(self.info.id, source)
    }
}

#[derive(Debug)]
struct IdleQueue(Arc<dyn Event>);

impl Queue for IdleQueue {
    fn upload(&mut self, _src: &[u8], _dst: &Slice) -> Result<()> {
        Ok(())
    }
    fn download(&mut self, _src: &Slice, _dst: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn copy(&mut self, _src: &Slice, _dst: &Slice) -> Result<()> {
        Ok(())
    }
    fn launch(&mut self, _kernel: &Arc<dyn Kernel>, _grid: Grid, _args: &[Arg]) -> Result<()> {
        Ok(())
    }
    fn record(&mut self) -> Result<Arc<dyn Event>> {
        Ok(Arc::clone(&self.0))
    }
    fn wait(&mut self, _event: &Arc<dyn Event>) -> Result<()> {
        Ok(())
    }
}
