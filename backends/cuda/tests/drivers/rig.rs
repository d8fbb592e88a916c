//! What scenes are made of.

use std::sync::Arc;

use warploom_core::{
    CheckedDevice, CheckedQueue, DType, GpuBackend, Kernel, KernelCode, KernelSource, Param, Queue,
    QueueDesc, Slice, memory,
};
use warploom_cuda::CudaBackend;

/// Code with the three kernels the strict driver knows.
pub(crate) const PTX: &str =
    ".version 6.4 .visible .entry fill .visible .entry add .visible .entry crash";

pub(crate) fn open(ordinal: u32) -> CheckedDevice {
    let backend = CudaBackend::load().expect("the strict driver loads");
    CheckedDevice::new(backend.open(ordinal).expect("it opens"))
}

pub(crate) fn queue(device: &CheckedDevice) -> CheckedQueue {
    device.queue(&QueueDesc::named("test")).expect("a queue")
}

pub(crate) fn device_memory(device: &CheckedDevice, bytes: usize) -> Slice {
    let buffer = device.alloc(memory::CUDA_DEVICE, bytes as u64);
    Slice::whole(&buffer.expect("room"))
}

pub(crate) fn pinned_memory(device: &CheckedDevice, bytes: usize) -> Slice {
    let buffer = device.alloc(memory::CUDA_PINNED, bytes as u64);
    Slice::whole(&buffer.expect("room"))
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| u8::try_from((at * 31 + at / 251 + seed) % 256).expect("below 256"))
        .collect()
}

pub(crate) fn content(queue: &mut CheckedQueue, slice: &Slice) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(slice.len()).expect("small")];
    queue.download(slice, &mut bytes).expect("a download");
    bytes
}

pub(crate) fn load(device: &CheckedDevice, name: &str, params: &[Param]) -> Arc<dyn Kernel> {
    // SAFETY: the strict driver's kernels check their bounds.
    let source = unsafe { KernelSource::vouch(name, KernelCode::Ptx(PTX), params, [64, 1, 1]) };
    device.kernel(&source).expect("the kernel loads")
}

pub(crate) fn fill(device: &CheckedDevice) -> Arc<dyn Kernel> {
    let number = Param::Scalar(DType::U32);
    load(device, "fill", &[Param::Write, number, number])
}
