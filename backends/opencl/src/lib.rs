//! The Warploom backend for OpenCL devices.
//!
//! The driver is found at run time: nothing is linked, and a machine without OpenCL gets an
//! [absent](warploom_core::LoadError::Absent) backend with a reason. Devices must offer OpenCL 1.2.
//!
//! # How the contract maps to OpenCL
//! * An opened device has a context of its own; a queue is one in-order command queue with
//!   profiling; an event is a marker.
//! * `opencl.device` is an ordinary buffer. `opencl.pinned` is a buffer in memory the runtime
//!   allocated for the host; it is mapped only while [`with_host`](warploom_core::Buffer::with_host)
//!   runs, because OpenCL leaves commands on a mapped buffer undefined.
//! * Kernel arguments that are parts of a buffer become sub-buffers, kept for the next launch.
//! * Commands keep the buffers and kernels they use: the OpenCL specification makes the runtime
//!   retain both until the command is done. Nothing on the Rust side needs to outlive a call.
//! * Compiled programs are kept on disk between runs; see [`OpenClBackend::with_cache_dir`].
//! * `PoCL` gets the declarations that kernels usually need instead of reading all of its own each time.

mod backend;
mod buffer;
mod cl;
mod compiler;
mod device;
mod error;
mod event;
mod identity;
mod kernel;
mod probe;
mod queue;
mod vocabulary;

pub use backend::OpenClBackend;

use warploom_core::{BackendId, register_backend};

/// The name under which this backend registers.
pub const ID: BackendId = BackendId::new("opencl");

register_backend!(ID, || Ok(Box::new(OpenClBackend::load()?)));
