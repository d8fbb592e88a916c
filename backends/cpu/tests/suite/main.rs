//! What this backend promises beyond the contract, seen from outside.
#![expect(clippy::unwrap_used, reason = "what serves the tests is a test")]

mod buffers;
mod device;
mod failures;
mod queues;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use warploom_core::memory::HOST;
use warploom_core::{
    Arg, Buffer, CheckedDevice, CheckedQueue, DType, GpuBackend, Grid, Kernel, KernelSource, Param,
    QueueDesc, Slice,
};
use warploom_cpu::CpuBackend;

/// Long enough for the slowest machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

const ONE: Grid = Grid::groups([1; 3]);

fn open() -> CheckedDevice {
    open_with(CpuBackend::with_threads(2))
}

fn open_with(backend: CpuBackend) -> CheckedDevice {
    CheckedDevice::new(backend.open(0).unwrap())
}

fn queue(device: &CheckedDevice, label: &str) -> CheckedQueue {
    device.queue(&QueueDesc::named(label)).unwrap()
}

fn buffer(device: &CheckedDevice, bytes: u64) -> Arc<dyn Buffer> {
    device.alloc(HOST, bytes).unwrap()
}

fn part(buffer: &Arc<dyn Buffer>, range: std::ops::Range<u64>) -> Slice {
    Slice::new(Arc::clone(buffer), range).unwrap()
}

/// `data[i] = factor * data[i] + 1`, so that neither order nor number of runs can be mistaken.
fn step(device: &CheckedDevice) -> Arc<dyn Kernel> {
    let params = [Param::ReadWrite, Param::Scalar(DType::U32)];
    let source = KernelSource::host("step", &params, |call| {
        let factor = call.scalar::<u32>(1);
        for value in call.write::<u32>(0) {
            *value = value.wrapping_mul(factor).wrapping_add(1);
        }
    });
    device.kernel(&source).unwrap()
}

/// A kernel over one written slice.
fn custom(
    device: &CheckedDevice,
    run: impl Fn(&mut [u8]) + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    let source = KernelSource::host("custom", &[Param::ReadWrite], move |call| {
        run(call.write::<u8>(0));
    });
    device.kernel(&source).unwrap()
}

fn arg(slice: Slice) -> [Arg; 1] {
    [slice.into()]
}

fn bytes_of(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    let mut all = Vec::new();
    buffer.with_host(&mut |bytes| all = bytes.to_vec()).unwrap();
    all
}

/// A place where threads meet; a thread that waits in vain panics instead of hanging.
#[derive(Default)]
struct Meeting {
    here: AtomicU32,
}

impl Meeting {
    fn of(&self, count: u32) {
        self.here.fetch_add(1, Ordering::SeqCst);
        self.until(count);
    }

    fn until(&self, count: u32) {
        let start = Instant::now();
        while self.here.load(Ordering::SeqCst) < count {
            assert!(start.elapsed() < PATIENCE, "nobody came");
            std::thread::yield_now();
        }
    }
}
