//! Devices and kernels for the tests.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::memory::{OPENCL_DEVICE, OPENCL_PINNED};
use warploom_core::{
    Arg, Buffer, CheckedDevice, CheckedQueue, GpuBackend, Grid, Kernel, KernelCode, KernelSource,
    LoadError, Param, Queue, QueueDesc, Slice,
};
use warploom_opencl::OpenClBackend;

/// Long enough for a busy machine, short enough to notice a hang.
pub(crate) const SOON: Option<Duration> = Some(Duration::from_mins(2));

pub(crate) const CODE: &str = r"
__kernel void scale(__global float *data, float by, uint count) {
    uint at = get_global_id(0);
    if (at < count) data[at] *= by;
}
__kernel void number(__global uint *data, uint from, uint count) {
    uint at = get_global_id(0);
    if (at < count) data[at] = from + at;
}
__kernel void add(__global const uint *a, __global const uint *b, __global uint *sum, uint count) {
    uint at = get_global_id(0);
    if (at < count) sum[at] = a[at] + b[at];
}
__kernel void churn(__global float *data, uint rounds) {
    if (get_global_id(0) > 0) return;
    float x = data[0];
    for (uint i = 0; i < rounds; i++) x = x * 1.0000001f + 0.5f;
    data[0] = x;
    data[1] = 1.0f;
}
__kernel void plane(__global uint *data, uint width, uint height, uint depth) {
    uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < width && y < height && z < depth)
        data[(z * height + y) * width + x] = (z << 20) | (y << 10) | x;
}
__kernel void blend(__global const float *a, __global const float *b, __global float *out, uint count) {
    uint at = get_global_id(0);
    if (at < count) {
        float sum = a[at] * b[at] + a[at];
        out[at] = sqrt(sum * sum + b[at] * b[at]) / (1.0f + b[at]) - a[at] * 0.3f;
    }
}
";

const U32: Param = Param::Scalar(warploom_core::DType::U32);
const F32: Param = Param::Scalar(warploom_core::DType::F32);

/// A kernel of [`CODE`].
pub(crate) fn source(name: &'static str) -> KernelSource<'static> {
    let (params, group): (&[Param], _) = match name {
        "scale" => (&[Param::ReadWrite, F32, U32], [64, 1, 1]),
        "number" => (&[Param::Write, U32, U32], [64, 1, 1]),
        "add" | "blend" => (&[Param::Read, Param::Read, Param::Write, U32], [64, 1, 1]),
        "churn" => (&[Param::ReadWrite, U32], [1, 1, 1]),
        "plane" => (&[Param::Write, U32, U32, U32], [8, 4, 2]),
        other => panic!("no kernel {other}"),
    };
    // SAFETY: each kernel above returns outside the extent it is given, and the tests give the
    // extents of their slices.
    unsafe { KernelSource::vouch(name, KernelCode::OpenClC(CODE), params, group) }
}

/// The backend, or the reason why there is none.
pub(crate) fn backend() -> Option<OpenClBackend> {
    match OpenClBackend::load() {
        Ok(backend) => Some(backend),
        Err(LoadError::Absent { reason }) => {
            println!("skipped: {reason}");
            None
        }
        Err(error) => panic!("OpenCL is broken here: {error}"),
    }
}

/// Runs `test` on every device. Programs of the tests stay out of the user's cache.
pub(crate) fn each(test: impl Fn(&Rig)) {
    let Some(backend) = backend() else { return };
    let backend = backend.without_cache();
    let found = backend.probe().expect("devices are listed");
    if found.is_empty() {
        println!("skipped: the drivers list no device");
    }
    for info in found {
        println!("on {} ({})", info.id, info.name);
        let device = backend.open(info.id.ordinal).expect("the device opens");
        test(&Rig {
            device: CheckedDevice::new(device),
        });
    }
}

/// An opened device with shortcuts.
pub(crate) struct Rig {
    pub(crate) device: CheckedDevice,
}

impl Rig {
    pub(crate) fn queue(&self) -> CheckedQueue {
        self.device.queue(&QueueDesc::named("test")).unwrap()
    }

    pub(crate) fn kernel(&self, name: &'static str) -> Arc<dyn Kernel> {
        self.device.kernel(&source(name)).unwrap()
    }

    pub(crate) fn buffer(&self, bytes: u64) -> Arc<dyn Buffer> {
        self.device.alloc(OPENCL_DEVICE, bytes).unwrap()
    }

    pub(crate) fn pinned(&self, bytes: u64) -> Arc<dyn Buffer> {
        self.device.alloc(OPENCL_PINNED, bytes).unwrap()
    }

    /// A device buffer with this content.
    pub(crate) fn filled<T: bytemuck::Pod>(&self, values: &[T]) -> Slice {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let slice = Slice::whole(&self.buffer(bytes.len() as u64));
        self.queue().upload(bytes, &slice).unwrap();
        slice
    }

    /// Enqueues work that takes a while: a fifth of a second on a small machine.
    pub(crate) fn churn(&self, queue: &mut CheckedQueue, on: &Slice) {
        let args = [Arg::from(on.clone()), Arg::from(30_000_000_u32)];
        queue
            .launch(&self.kernel("churn"), Grid::groups([1, 1, 1]), &args)
            .unwrap();
    }
}

/// All of a slice, after the queue's earlier work.
pub(crate) fn read<T: bytemuck::Pod>(queue: &mut impl Queue, slice: &Slice) -> Vec<T> {
    let len = usize::try_from(slice.len()).unwrap();
    let mut bytes = vec![0_u8; len];
    queue.download(slice, &mut bytes).unwrap();
    values(&bytes)
}

/// Bytes as values, whatever their alignment.
pub(crate) fn values<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    let each = bytes.chunks_exact(size_of::<T>());
    each.map(bytemuck::pod_read_unaligned).collect()
}

/// Work groups of 64 that cover `count` items.
pub(crate) fn grid(count: u32) -> Grid {
    Grid::cover([count.into(), 1, 1], [64, 1, 1])
}
