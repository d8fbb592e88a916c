//! Contexts and the memory in them.

use std::ffi::c_void;
use std::ptr;

use opencl3::context::context::{CL_CONTEXT_PLATFORM, create_context, release_context};
use opencl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, cl_buffer_region,
    create_buffer, create_sub_buffer, release_mem_object,
};
use opencl3::types::{cl_context, cl_context_properties, cl_mem};

use super::{DeviceHandle, Platform, owner, size};
use crate::error::{Driven, during};

owner! {
    /// The home of everything made for one opened device.
    Context(cl_context), release_context
}

owner! {
    /// A buffer or a part of one.
    Mem(cl_mem), release_mem_object
}

impl Context {
    /// A context of one device.
    pub(crate) fn create(platform: Platform, device: DeviceHandle) -> Driven<Self> {
        let properties = [
            CL_CONTEXT_PLATFORM as cl_context_properties,
            platform.0 as cl_context_properties,
            0,
        ];
        create_context(&[device.0], properties.as_ptr(), None, ptr::null_mut())
            .map(Self)
            .map_err(during("clCreateContext"))
    }
}

impl Mem {
    /// A buffer; `on_host` asks for memory the runtime can copy from and to by itself.
    pub(crate) fn create(context: &Context, bytes: u64, on_host: bool) -> Driven<Self> {
        let flags = if on_host {
            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR
        } else {
            CL_MEM_READ_WRITE
        };
        // SAFETY: the flags go together and none of them makes the runtime use a host pointer.
        unsafe { create_buffer(context.0, flags, size(bytes), ptr::null_mut()) }
            .map(Self)
            .map_err(during("clCreateBuffer"))
    }

    /// A part of this buffer; the runtime keeps the whole alive with it.
    pub(crate) fn part(&self, start: u64, len: u64) -> Driven<Self> {
        let region = cl_buffer_region {
            origin: size(start),
            size: size(len),
        };
        // No flags: the part inherits them from the whole.
        // SAFETY: the region outlives the call and is of the type the constant says.
        unsafe {
            create_sub_buffer(
                self.0,
                0,
                CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast::<c_void>(),
            )
        }
        .map(Self)
        .map_err(during("clCreateSubBuffer"))
    }
}
