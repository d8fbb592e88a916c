//! What a launch costs here and with bare `opencl3`, on every device.
//!
//! Both queue the same tiny kernel many times and then wait for the last one. `enqueue` is the
//! host's time per launch, `all` the time per launch until the work is done. Rounds alternate and
//! the best of each counts, because other processes take time too.
#![expect(clippy::print_stdout, reason = "a benchmark's output is its purpose")]

use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;
use warploom_core::memory::OPENCL_DEVICE;
use warploom_core::{
    Arg, CheckedDevice, CheckedQueue, DType, GpuBackend, Grid, KernelCode, KernelSource, Param,
    Queue, QueueDesc, Slice,
};
use warploom_opencl::OpenClBackend;

const CODE: &str = "__kernel void scale(__global float *data, float by, uint count) {
    uint at = get_global_id(0);
    if (at < count) data[at] *= by;
}";
const LAUNCHES: u32 = 2000;
const ROUNDS: usize = 15;

/// Time per launch: for the host, and until done.
type Cost = (Duration, Duration);

struct Bare {
    queue: CommandQueue,
    kernel: Kernel,
    data: Buffer<f32>,
}

impl Bare {
    fn open(ordinal: u32) -> Self {
        let devices = get_all_devices(CL_DEVICE_TYPE_ALL).expect("devices");
        let device = Device::new(devices[ordinal as usize]);
        let context = Context::from_device(&device).expect("a context");
        // SAFETY: the device is the context's.
        let queue =
            unsafe { CommandQueue::create(&context, device.id(), CL_QUEUE_PROFILING_ENABLE) };
        let program = Program::create_and_build_from_source(&context, CODE, "-cl-std=CL1.2");
        // SAFETY: no host pointer is passed.
        let data = unsafe { Buffer::create(&context, CL_MEM_READ_WRITE, 64, ptr::null_mut()) };
        Self {
            queue: queue.expect("a queue"),
            kernel: Kernel::create(&program.expect("a program"), "scale").expect("a kernel"),
            data: data.expect("a buffer"),
        }
    }

    fn round(&self) -> Cost {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            let mut launch = ExecuteKernel::new(&self.kernel);
            // SAFETY: the argument is of the parameter's type.
            unsafe { launch.set_arg(&self.data) };
            // SAFETY: as above.
            unsafe { launch.set_arg(&1.0_f32) };
            // SAFETY: as above.
            unsafe { launch.set_arg(&64_u32) };
            launch.set_global_work_sizes(&[64, 1, 1]);
            launch.set_local_work_sizes(&[64, 1, 1]);
            // SAFETY: the kernel stays within the 64 elements it is told.
            unsafe { launch.enqueue_nd_range(&self.queue) }.expect("a launch");
        }
        let enqueued = start.elapsed();
        self.queue.finish().expect("the work ends");
        (enqueued / LAUNCHES, start.elapsed() / LAUNCHES)
    }
}

struct Ours {
    queue: CheckedQueue,
    kernel: Arc<dyn warploom_core::Kernel>,
    args: [Arg; 3],
}

impl Ours {
    fn open(backend: &OpenClBackend, ordinal: u32, part: bool) -> Self {
        let device = CheckedDevice::new(backend.open(ordinal).expect("it opens"));
        let params = [
            Param::ReadWrite,
            Param::Scalar(DType::F32),
            Param::Scalar(DType::U32),
        ];
        let code = KernelCode::OpenClC(CODE);
        // SAFETY: the kernel stays within the elements it is told, and is told the slice's.
        let source = unsafe { KernelSource::vouch("scale", code, &params, [64, 1, 1]) };
        let buffer = device.alloc(OPENCL_DEVICE, 4096).expect("a buffer");
        let slice = if part {
            Slice::new(buffer, 1024..2048).expect("a part")
        } else {
            Slice::whole(&buffer)
        };
        Self {
            queue: device.queue(&QueueDesc::named("bench")).expect("a queue"),
            kernel: device.kernel(&source).expect("a kernel"),
            args: [slice.into(), 1.0_f32.into(), 64_u32.into()],
        }
    }

    fn round(&mut self) -> Cost {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            let grid = Grid::groups([1, 1, 1]);
            let launched = self.queue.launch(&self.kernel, grid, &self.args);
            launched.expect("a launch");
        }
        let enqueued = start.elapsed();
        let done = self.queue.record().expect("an event");
        done.wait(None).expect("the work ends");
        (enqueued / LAUNCHES, start.elapsed() / LAUNCHES)
    }
}

fn main() {
    let backend = match OpenClBackend::load() {
        Ok(backend) => backend.without_cache(),
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    for info in backend.probe().expect("devices are listed") {
        let ordinal = info.id.ordinal;
        let bare = Bare::open(ordinal);
        let mut whole = Ours::open(&backend, ordinal, false);
        let mut part = Ours::open(&backend, ordinal, true);
        let mut best = [(Duration::MAX, Duration::MAX); 3];
        for _ in 0..ROUNDS {
            let costs = [bare.round(), whole.round(), part.round()];
            for (best, cost) in best.iter_mut().zip(costs) {
                *best = (best.0.min(cost.0), best.1.min(cost.1));
            }
        }
        println!("{} {}", info.id, info.name);
        let names = ["bare opencl3", "warploom, whole", "warploom, part"];
        for (name, cost) in names.iter().zip(best) {
            let times = cost.0.as_secs_f64() / best[0].0.as_secs_f64();
            println!(
                "  {name:16} enqueue {:>9.3?} ({times:.2}x)  all {:>9.3?}",
                cost.0, cost.1
            );
        }
    }
}
