//! Contexts and the memory in them.

use std::ffi::c_void;
use std::ptr;

use memmap2::{MmapMut, MmapRaw};
use opencl3::context::context::{CL_CONTEXT_PLATFORM, create_context, release_context};
use opencl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR,
    cl_buffer_region, create_buffer, create_sub_buffer, release_mem_object,
    set_mem_object_destructor_callback,
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

/// A huge page where there are any.
const HUGE: usize = 2 << 20;
/// From this size on it is worth it.
const VAST: usize = 2 * HUGE;

/// Called by the runtime when it has destroyed a buffer.
extern "C" fn give_pages_back(_: cl_mem, pages: *mut c_void) {
    // SAFETY: this is the box that `Mem::on_pages` gave away, and it comes back once.
    drop(unsafe { Box::from_raw(pages.cast::<MmapRaw>()) });
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

    /// A buffer in huge pages of the host, for devices that are its processor: small pages, which is
    /// what runtimes take, cost such a device half of its speed. `None` for what is too small to gain,
    /// and where there are no pages.
    pub(crate) fn on_pages(context: &Context, bytes: u64) -> Option<Driven<Self>> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes >= VAST)?;
        let room = bytes.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
        let pages = MmapMut::map_anon(room).ok()?;
        // Where the system has no huge pages, small ones do as well.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        let pages = Box::new(MmapRaw::from(pages));
        let address = pages.as_mut_ptr().addr();
        let skip = address.next_multiple_of(HUGE) - address;
        let start = pages.as_mut_ptr().wrapping_add(skip).cast::<c_void>();
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        // SAFETY: from `start` on there are `bytes` bytes of pages that nobody else uses; they are
        // given back when the runtime says that it has destroyed the buffer, or below, before it
        // could be used.
        let made = unsafe { create_buffer(context.0, flags, bytes, start) };
        let mem = match made.map(Self).map_err(during("clCreateBuffer")) {
            Ok(mem) => mem,
            Err(failure) => return Some(Err(failure)),
        };
        let pages = Box::into_raw(pages);
        // SAFETY: the callback takes what it is given here, and is called once.
        let set = unsafe {
            set_mem_object_destructor_callback(mem.0, give_pages_back, pages.cast::<c_void>())
        };
        if let Err(code) = set {
            drop(mem);
            // SAFETY: the callback was not taken, so this is still the only owner.
            drop(unsafe { Box::from_raw(pages) });
            return Some(Err(code).map_err(during("clSetMemObjectDestructorCallback")));
        }
        Some(Ok(mem))
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
