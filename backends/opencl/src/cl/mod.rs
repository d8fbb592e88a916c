//! Owned OpenCL objects: one driver call per method, released when dropped.
//!
//! The objects of `opencl3` panic when a release fails, which a destructor must not do, so only its
//! functions are used. All `unsafe` of this crate but the launch of a vouched kernel and the view
//! of mapped memory is in here. The objects hold valid handles by construction, and the runtime
//! checks offsets and sizes itself, so the methods are safe.
//!
//! # Threads
//! "All `OpenCL` API calls are thread-safe except `clSetKernelArg`, ..., which are safe to call
//! from any host thread so long as concurrent calls operate on different `cl_kernel` objects"
//! (`OpenCL` 3.0 specification, appendix A.2). [`Kernel`] therefore sets arguments through
//! `&mut self`, and every object may be sent and shared.

mod event;
mod info;
mod memory;
mod program;
mod queue;

pub(crate) use event::{Event, Signal};
pub(crate) use info::{DeviceHandle, Platform, number, platforms, sizes};
pub(crate) use memory::{Context, Mem};
pub(crate) use program::{Kernel, Program};
pub(crate) use queue::Queue;

/// Defines an owner of one reference to an OpenCL object.
macro_rules! owner {
    ($(#[$doc:meta])* $name:ident($raw:ty), $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(pub(super) $raw);

        // SAFETY: the handle may be used from any thread; see the module's section on threads.
        unsafe impl Send for $name {}
        // SAFETY: as above; the one exception, setting kernel arguments, needs `&mut`.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this value owns one reference, and gives it up here, once.
                if let Err(code) = unsafe { $release(self.0) } {
                    tracing::debug!(code, object = stringify!($name), "release failed");
                }
            }
        }
    };
}
use owner;

/// A byte count as the driver takes it. One that the host cannot express becomes one that every
/// driver refuses.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
