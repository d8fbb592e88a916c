//! A device that does nothing at all, so that only what stands in front of it shows.
#![allow(
    unreachable_pub,
    reason = "shared by test binaries, so `pub` reads best"
)]

use std::sync::Arc;
use std::time::Duration;

use warploom_core::host::{FnKernel, HostHeap, Ready};
use warploom_core::{
    Arg, BackendId, Buffer, Device, DeviceId, DeviceInfo, Event, Grid, Kernel, KernelSource,
    Language, Limits, MemoryKind, MemoryUse, Queue, QueueDesc, Result, Slice, memory,
};

pub const NULL: BackendId = BackendId::new("null");

#[derive(Debug)]
pub struct NullDevice {
    info: DeviceInfo,
    heap: HostHeap,
}

impl NullDevice {
    /// Device `ordinal`, with limits small enough to be met in a test.
    pub fn open(ordinal: u32) -> Arc<dyn Device> {
        let id = DeviceId::new(NULL, ordinal);
        let kinds = [memory::CUDA_DEVICE, memory::CUDA_PINNED];
        let mut info = DeviceInfo::new(id, "nothing", &kinds);
        // The second is never compiled: it lets tests state work groups, which host kernels lack.
        info.languages = vec![Language::Host, Language::OpenClC];
        info.total_memory = 1 << 20;
        info.limits = Limits {
            max_alloc: 1 << 16,
            max_binding: 1 << 12,
            max_slices: 4,
            max_group_items: 64,
            max_group: [64, 64, 8],
            max_groups: [100, 100, 10],
            slice_align: 16,
            ..Limits::default()
        };
        let heap = HostHeap::new(id, 1 << 20);
        Arc::new(Self { info, heap })
    }
}

impl Device for NullDevice {
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
        Ok(Box::new(NullQueue))
    }
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        FnKernel::load(self.info.id, source)
    }
}

#[derive(Debug)]
struct NullQueue;

impl Queue for NullQueue {
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
        Ok(Arc::new(Ready(Duration::ZERO)))
    }
    fn wait(&mut self, _event: &Arc<dyn Event>) -> Result<()> {
        Ok(())
    }
}
