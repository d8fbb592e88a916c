//! A backend in one file: memory is locked host memory, and queues run each call at once. A program
//! that says `use custom_backend as _;` has it.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use warploom_core::host::{FnKernel, HostHeap, Ready, copy_now};
use warploom_core::{
    Arg, BackendId, Buffer, Device, DeviceError, DeviceId, DeviceInfo, Event, GpuBackend, Grid,
    Kernel, KernelSource, Language, MemoryKind, MemoryUse, Queue, QueueDesc, Result, Slice, Space,
};

/// Its name.
pub const ID: BackendId = BackendId::new("toy");
/// Its only kind of memory.
pub const HEAP: MemoryKind = MemoryKind::new("toy.heap", Space::Shared);
const DEVICE: DeviceId = DeviceId::new(ID, 0);
warploom_core::register_backend!(ID, || Ok(Box::new(Toy)));

#[derive(Debug)]
struct Toy;
impl GpuBackend for Toy {
    fn id(&self) -> BackendId {
        ID
    }
    fn memory_kinds(&self) -> &'static [MemoryKind] {
        &[HEAP]
    }
    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        let mut info = DeviceInfo::software(DEVICE, "a locked heap", &[HEAP]);
        info.languages = vec![Language::Host];
        info.total_memory = 1 << 30;
        Ok(vec![info])
    }
    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        let info = self.probe()?.into_iter().nth(ordinal as usize);
        let none = || DeviceError::unsupported(DeviceId::new(ID, ordinal), "being there");
        let info = info.ok_or_else(none)?;
        let heap = HostHeap::new(DEVICE, info.total_memory);
        Ok(Arc::new(ToyDevice(info, heap, Instant::now())))
    }
}

#[derive(Debug)]
struct ToyDevice(DeviceInfo, HostHeap, Instant);
impl Device for ToyDevice {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }
    fn memory(&self) -> Result<MemoryUse> {
        Ok(self.1.usage())
    }
    fn alloc(&self, kind: MemoryKind, bytes: u64) -> Result<Arc<dyn Buffer>> {
        self.1.alloc(kind, bytes)
    }
    fn queue(&self, _desc: &QueueDesc) -> Result<Box<dyn Queue>> {
        Ok(Box::new(ToyQueue(self.2)))
    }
    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        FnKernel::load(DEVICE, source)
    }
}

#[derive(Debug)]
struct ToyQueue(Instant);
impl Queue for ToyQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let write = &mut |bytes: &mut [u8]| bytes[dst.host_range()].copy_from_slice(src);
        dst.buffer().with_host(write)
    }
    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        let read = &mut |bytes: &mut [u8]| dst.copy_from_slice(&bytes[src.host_range()]);
        src.buffer().with_host(read)
    }
    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        copy_now(src, dst)
    }
    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        FnKernel::run(kernel, grid, args)
    }
    fn record(&mut self) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(Ready(self.0.elapsed())))
    }
    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        event.wait(None)
    }
}
