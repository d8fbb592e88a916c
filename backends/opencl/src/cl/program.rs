//! Programs and their kernels.

use std::ffi::CStr;
use std::ptr;

use opencl3::kernel::{
    CL_KERNEL_NUM_ARGS, CL_KERNEL_WORK_GROUP_SIZE, create_kernel, get_kernel_info,
    get_kernel_work_group_info, release_kernel, set_kernel_arg,
};
use opencl3::program::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BUILD_LOG, CL_PROGRAM_KERNEL_NAMES, build_program,
    create_program_with_binary, create_program_with_source, get_program_build_info,
    get_program_info, release_program,
};
use opencl3::types::{cl_kernel, cl_program};

use super::{Context, DeviceHandle, Mem, owner};
use crate::error::{Driven, during};

owner! {
    /// Code, built or not.
    Program(cl_program), release_program
}

owner! {
    /// A function of a program together with its arguments.
    Kernel(cl_kernel), release_kernel
}

impl Program {
    /// Code as text, not built yet.
    pub(crate) fn from_source(context: &Context, source: &str) -> Driven<Self> {
        // Exactly one text: `cl3` casts the list of Rust slices to a list of C pointers, which
        // agree only in their first entry.
        create_program_with_source(context.0, &[source])
            .map(Self)
            .map_err(during("clCreateProgramWithSource"))
    }

    /// What [`binary`](Self::binary) gave for the same sort of device, not built yet.
    pub(crate) fn from_binary(
        context: &Context,
        device: DeviceHandle,
        binary: &[u8],
    ) -> Driven<Self> {
        // SAFETY: the device is the context's; exactly one binary is passed, see `from_source`.
        unsafe { create_program_with_binary(context.0, &[device.0], &[binary]) }
            .map(Self)
            .map_err(during("clCreateProgramWithBinary"))
    }

    /// Compiles and links.
    pub(crate) fn build(&self, device: DeviceHandle, options: &CStr) -> Driven<()> {
        build_program(self.0, &[device.0], options, None, ptr::null_mut())
            .map_err(during("clBuildProgram"))
    }

    /// What the compiler said.
    pub(crate) fn log(&self, device: DeviceHandle) -> String {
        get_program_build_info(self.0, device.0, CL_PROGRAM_BUILD_LOG)
            .map(String::from)
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// The names of its kernels, separated by semicolons.
    pub(crate) fn kernel_names(&self) -> String {
        get_program_info(self.0, CL_PROGRAM_KERNEL_NAMES)
            .map(String::from)
            .unwrap_or_default()
    }

    /// The compiled code; empty when the driver keeps it to itself.
    pub(crate) fn binary(&self) -> Driven<Vec<u8>> {
        let binaries = get_program_info(self.0, CL_PROGRAM_BINARIES)
            .map_err(during("clGetProgramInfo"))?
            .to_vec_vec_uchar();
        Ok(binaries.into_iter().next().unwrap_or_default())
    }
}

impl Kernel {
    /// The function called `name` of a built program.
    pub(crate) fn create(program: &Program, name: &CStr) -> Driven<Self> {
        create_kernel(program.0, name)
            .map(Self)
            .map_err(during("clCreateKernel"))
    }

    /// How many arguments it takes.
    pub(crate) fn arg_count(&self) -> Driven<u32> {
        let count = get_kernel_info(self.0, CL_KERNEL_NUM_ARGS).map_err(during("clGetKernelInfo"));
        count.map(u32::from)
    }

    /// The largest work group its use of registers and local memory allows.
    pub(crate) fn max_group(&self, device: DeviceHandle) -> Driven<usize> {
        get_kernel_work_group_info(self.0, device.0, CL_KERNEL_WORK_GROUP_SIZE)
            .map(usize::from)
            .map_err(during("clGetKernelWorkGroupInfo"))
    }

    /// Makes argument `index` a number.
    pub(crate) fn set_number<T: Copy>(&mut self, index: u32, value: T) -> Driven<()> {
        // SAFETY: the pointer is good for the size given during the call, which copies the value
        // and refuses a size that is not the argument's.
        unsafe { set_kernel_arg(self.0, index, size_of::<T>(), (&raw const value).cast()) }
            .map_err(during("clSetKernelArg"))
    }

    /// Makes argument `index` a buffer. The kernel does not keep it alive; a launch does.
    pub(crate) fn set_mem(&mut self, index: u32, mem: &Mem) -> Driven<()> {
        self.set_number(index, mem.0)
    }
}
