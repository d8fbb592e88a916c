//! Command queues.

use std::ptr;

use opencl3::command_queue::{
    CL_BLOCKING, CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_barrier_with_wait_list,
    enqueue_copy_buffer, enqueue_map_buffer, enqueue_marker_with_wait_list,
    enqueue_nd_range_kernel, enqueue_read_buffer, enqueue_unmap_mem_object, enqueue_write_buffer,
    flush, release_command_queue,
};
use opencl3::memory::{CL_MAP_READ, CL_MAP_WRITE};
use opencl3::types::{cl_command_queue, cl_event};

use super::{Context, DeviceHandle, Event, Kernel, Mem, owner, size};
use crate::error::{Driven, during};

owner! {
    /// Commands that run one after another.
    Queue(cl_command_queue), release_command_queue
}

const NO_EVENTS: *const cl_event = ptr::null();

impl Queue {
    /// An in-order queue whose events have times.
    pub(crate) fn create(context: &Context, device: DeviceHandle) -> Driven<Self> {
        // The call that came after this one is missing in OpenCL 1.2 drivers, where loaders jump
        // through a null pointer; this one is in all of them.
        // SAFETY: contexts of this crate have exactly one device, and callers pass that one.
        unsafe { create_command_queue(context.0, device.0, CL_QUEUE_PROFILING_ENABLE) }
            .map(Self)
            .map_err(during("clCreateCommandQueue"))
    }

    /// Hands everything queued to the device.
    pub(crate) fn flush(&self) -> Driven<()> {
        flush(self.0).map_err(during("clFlush"))
    }

    /// Writes `src` at byte `start`; the source is free on return.
    pub(crate) fn write(&self, mem: &Mem, start: u64, src: &[u8]) -> Driven<Event> {
        let (at, len, from) = (size(start), src.len(), src.as_ptr().cast_mut().cast());
        // SAFETY: the call blocks until it no longer reads `from`, which has `len` bytes; it never
        // writes through it.
        unsafe { enqueue_write_buffer(self.0, mem.0, CL_BLOCKING, at, len, from, 0, NO_EVENTS) }
            .map(Event)
            .map_err(during("clEnqueueWriteBuffer"))
    }

    /// Reads from byte `start` until `dst` is full.
    pub(crate) fn read(&self, mem: &Mem, start: u64, dst: &mut [u8]) -> Driven<Event> {
        let (at, len, to) = (size(start), dst.len(), dst.as_mut_ptr().cast());
        // SAFETY: the call blocks until `to`, which has `len` bytes and is borrowed exclusively, is
        // written.
        unsafe { enqueue_read_buffer(self.0, mem.0, CL_BLOCKING, at, len, to, 0, NO_EVENTS) }
            .map(Event)
            .map_err(during("clEnqueueReadBuffer"))
    }

    /// Copies `len` bytes between buffers.
    pub(crate) fn copy(&self, from: (&Mem, u64), to: (&Mem, u64), len: u64) -> Driven<Event> {
        let (from_at, to_at, len) = (size(from.1), size(to.1), size(len));
        let (from, to) = (from.0.0, to.0.0);
        // SAFETY: no host memory is involved; the runtime keeps both buffers until it is done.
        unsafe { enqueue_copy_buffer(self.0, from, to, from_at, to_at, len, 0, NO_EVENTS) }
            .map(Event)
            .map_err(during("clEnqueueCopyBuffer"))
    }

    /// Marks the end of everything queued so far.
    pub(crate) fn marker(&self) -> Driven<Event> {
        // SAFETY: an empty list of events is a count of 0 and a null pointer.
        unsafe { enqueue_marker_with_wait_list(self.0, 0, NO_EVENTS) }
            .map(Event)
            .map_err(during("clEnqueueMarkerWithWaitList"))
    }

    /// Keeps everything queued later from starting before `event`, which must be of the same
    /// context or is refused by the runtime.
    pub(crate) fn barrier(&self, event: &Event) -> Driven<Event> {
        // SAFETY: the list has one live event and outlives the call.
        unsafe { enqueue_barrier_with_wait_list(self.0, 1, &raw const event.0) }
            .map(Event)
            .map_err(during("clEnqueueBarrierWithWaitList"))
    }

    /// Makes the first `len` bytes of a buffer visible to the host, and waits for it. The pointer
    /// is good until [`unmap`](Self::unmap).
    pub(crate) fn map(&self, mem: &Mem, len: u64) -> Driven<*mut u8> {
        let (access, len) = (CL_MAP_READ | CL_MAP_WRITE, size(len));
        let mut at = ptr::null_mut();
        // SAFETY: `at` is where the call puts the pointer; nothing else of the host is touched.
        let mapped = unsafe {
            enqueue_map_buffer(
                self.0,
                mem.0,
                CL_BLOCKING,
                access,
                0,
                len,
                &mut at,
                0,
                NO_EVENTS,
            )
        };
        mapped.map(Event).map_err(during("clEnqueueMapBuffer"))?;
        Ok(at.cast())
    }

    /// Takes a mapped buffer back from the host.
    ///
    /// # Safety
    /// `at` is from [`map`](Self::map) of `mem`, and nobody uses it any more.
    pub(crate) unsafe fn unmap(&self, mem: &Mem, at: *mut u8) -> Driven<Event> {
        // SAFETY: the caller's word is what the call asks for.
        unsafe { enqueue_unmap_mem_object(self.0, mem.0, at.cast(), 0, NO_EVENTS) }
            .map(Event)
            .map_err(during("clEnqueueUnmapMemObject"))
    }

    /// Runs a kernel over `global` items in groups of `local`.
    ///
    /// # Safety
    /// With the arguments it has now, the kernel's code touches only memory it may touch.
    pub(crate) unsafe fn run(
        &self,
        kernel: &mut Kernel,
        global: [usize; 3],
        local: [usize; 3],
    ) -> Driven<Event> {
        let (global, local) = (global.as_ptr(), local.as_ptr());
        // SAFETY: both lists have three entries as announced and outlive the call; what the code
        // does is the caller's word.
        unsafe {
            enqueue_nd_range_kernel(
                self.0,
                kernel.0,
                3,
                ptr::null(),
                global,
                local,
                0,
                NO_EVENTS,
            )
        }
        .map(Event)
        .map_err(during("clEnqueueNDRangeKernel"))
    }
}
