//! Devices to test on, and small things to do with them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_core::memory::WGPU_DEVICE;
use warploom_core::{
    Arg, Buffer, CheckedDevice, CheckedQueue, DType, DeviceInfo, GpuBackend, Grid, Kernel,
    KernelSource, MemoryKind, Param, Queue, QueueDesc, Slice,
};

/// The backend, or a printed reason why there is none.
pub(crate) fn backend() -> Option<Box<dyn GpuBackend>> {
    match warploom_wgpu::ENTRY.load() {
        Ok(backend) => Some(backend),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// What is listed; prints a reason when that is nothing.
pub(crate) fn listed() -> Vec<DeviceInfo> {
    let Some(backend) = backend() else {
        return Vec::new();
    };
    let listed = backend.probe().unwrap();
    if listed.is_empty() {
        println!("skipped: wgpu finds no device");
    }
    listed
}

/// The first device, opened.
pub(crate) fn device() -> Option<CheckedDevice> {
    let info = listed().into_iter().next()?;
    let device = backend()?.open(info.id.ordinal).unwrap();
    Some(CheckedDevice::new(device))
}

pub(crate) fn queue(device: &CheckedDevice) -> CheckedQueue {
    device.queue(&QueueDesc::named("test")).unwrap()
}

pub(crate) fn part(buffer: &Arc<dyn Buffer>, start: u64, len: u64) -> Slice {
    Slice::new(Arc::clone(buffer), start..start + len).unwrap()
}

/// A buffer that holds `bytes`.
pub(crate) fn filled(
    device: &CheckedDevice,
    queue: &mut CheckedQueue,
    kind: MemoryKind,
    bytes: &[u8],
) -> Arc<dyn Buffer> {
    let buffer = device.alloc(kind, bytes.len() as u64).unwrap();
    queue.upload(bytes, &Slice::whole(&buffer)).unwrap();
    buffer
}

/// All bytes of a buffer.
pub(crate) fn content(queue: &mut CheckedQueue, buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    let mut bytes = vec![0xee; usize::try_from(buffer.bytes()).unwrap()];
    queue.download(&Slice::whole(buffer), &mut bytes).unwrap();
    bytes
}

/// Repeatable noise.
#[derive(Debug)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len)
            .map(|_| u8::try_from(self.below(256)).unwrap())
            .collect()
    }
}

/// Adds a number to each word. Every work group takes some time over it, also those that have no
/// word: more groups are more time. (A longer loop is not: llvmpipe silently ends the loops of a
/// work item after 65 535 rounds in all.)
pub(crate) fn add(device: &CheckedDevice) -> Arc<dyn Kernel> {
    let code = "
        struct P { by: u32, none: u32 }
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<uniform> p: P;
        @compute @workgroup_size(64)
        fn add(@builtin(global_invocation_id) i: vec3<u32>) {
            var waste = i.x;
            for (var n = 0u; n < 20000u; n++) { waste = waste * 1664525u + 1013904223u; }
            // No compiler knows that the last number is 0.
            if (i.x < arrayLength(&a)) { a[i.x] += p.by + (waste & p.none); }
        }";
    let scalar = Param::Scalar(DType::U32);
    let params = [Param::ReadWrite, scalar, scalar];
    let source = KernelSource::wgsl("add", code, &params, [64, 1, 1]);
    device.kernel(&source).unwrap()
}

/// Runs the kernel above on all of a buffer of at most 64 words.
pub(crate) fn run_add(
    queue: &mut dyn Queue,
    kernel: &Arc<dyn Kernel>,
    buffer: &Arc<dyn Buffer>,
    by: u32,
    groups: u32,
) {
    let args = [Slice::whole(buffer).into(), Arg::U32(by), Arg::U32(0)];
    let grid = Grid::groups([groups, 1, 1]);
    queue.launch(kernel, grid, &args).unwrap();
}

/// How many groups of the kernel above take about `wanted`.
pub(crate) fn groups_for(
    device: &CheckedDevice,
    kernel: &Arc<dyn Kernel>,
    wanted: Duration,
) -> u32 {
    let mut queue = queue(device);
    let buffer = device.alloc(WGPU_DEVICE, 4).unwrap();
    let mut timed = |groups| {
        let begun = Instant::now();
        run_add(&mut queue, kernel, &buffer, 1, groups);
        queue.record().unwrap().wait(None).unwrap();
        begun.elapsed()
    };
    // The first launch may compile.
    timed(1);
    let mut groups = 16;
    while timed(groups) < wanted && groups < 1 << 15 {
        groups *= 2;
    }
    groups
}
