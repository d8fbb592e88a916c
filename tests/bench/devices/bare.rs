//! The same kernel with nothing of ours in between.
#![expect(unsafe_code, reason = "OpenCL's own calls are what is compared with")]

use std::ptr;
use std::time::Instant;

use anyhow::{Context as _, Result};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;
use warploom::{DType, KernelCode, KernelSource, Param};

const CODE: &str = "__kernel void scale(__global float *data, float by, uint count) {
    uint at = get_global_id(0);
    if (at < count) data[at] *= by;
}";

/// The kernel for our side.
pub(crate) fn scale() -> KernelSource<'static> {
    const PARAMS: &[Param] = &[
        Param::ReadWrite,
        Param::Scalar(DType::F32),
        Param::Scalar(DType::U32),
    ];
    // SAFETY: the kernel stays within the elements it is told, and is told the slice's.
    unsafe { KernelSource::vouch("scale", KernelCode::OpenClC(CODE), PARAMS, [64, 1, 1]) }
}

/// A device, a queue and a buffer.
pub(crate) struct Bare {
    queue: CommandQueue,
    kernel: Kernel,
    data: Buffer<f32>,
}

impl Bare {
    pub(crate) fn open(ordinal: usize, elements: usize) -> Result<Self> {
        let devices = get_all_devices(CL_DEVICE_TYPE_ALL)?;
        let device = Device::new(*devices.get(ordinal).context("the device is gone")?);
        let context = Context::from_device(&device)?;
        // SAFETY: the device is the context's.
        let queue =
            unsafe { CommandQueue::create(&context, device.id(), CL_QUEUE_PROFILING_ENABLE) }?;
        let program = Program::create_and_build_from_source(&context, CODE, "-cl-std=CL1.2");
        let program = program.map_err(anyhow::Error::msg)?;
        // SAFETY: no host pointer is passed.
        let data =
            unsafe { Buffer::create(&context, CL_MEM_READ_WRITE, elements, ptr::null_mut()) }?;
        Ok(Self {
            queue,
            kernel: Kernel::create(&program, "scale")?,
            data,
        })
    }

    /// Seconds for so many launches over so many elements, until all are done.
    pub(crate) fn launches(&self, count: u32, elements: usize) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..count {
            self.launch(elements)?;
        }
        self.queue.finish()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Seconds for so many launches, each done before the next.
    pub(crate) fn trips(&self, count: u32, elements: usize) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..count {
            self.launch(elements)?;
            self.queue.finish()?;
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn launch(&self, elements: usize) -> Result<()> {
        let mut launch = ExecuteKernel::new(&self.kernel);
        // SAFETY: the argument is of the parameter's type.
        unsafe { launch.set_arg(&self.data) };
        // SAFETY: as above.
        unsafe { launch.set_arg(&1.0_f32) };
        // SAFETY: as above.
        unsafe { launch.set_arg(&u32::try_from(elements)?) };
        launch.set_global_work_sizes(&[elements, 1, 1]);
        launch.set_local_work_sizes(&[64, 1, 1]);
        // SAFETY: the kernel stays within the elements it is told.
        unsafe { launch.enqueue_nd_range(&self.queue) }?;
        Ok(())
    }
}
