//! The Warploom backend for Vulkan, Metal and DX12 devices through wgpu.
//!
//! # One queue underneath
//! wgpu has one queue per device, and it runs submits strictly in order. Each of our queues records
//! into a command list of its own; nothing runs before a `record`, a `download`, a `with_host` that
//! needs it or the queue's drop submits the list as a whole. A submit costs many times what a
//! dispatch costs, so this batching is where the speed comes from.
//!
//! An event exists only after its list was submitted, and whatever a queue does after waiting for
//! that event is submitted later still. Submits run in order, so waiting for an event of the same
//! opened device needs no action at all. Lists recorded before the wait and submitted after it are
//! merely ordered more than was asked. Nothing ever travels outside the lists (`write_buffer` would:
//! it takes effect at the start of whichever submit comes next), so order within a queue is the
//! order of its list.
//!
//! # Memory
//! `wgpu.device` is the device's own memory. `wgpu.pinned` is host-cached, coherent memory that
//! stays mapped for its whole life; copies from and to it need no staging. It relies on
//! `MAPPABLE_PRIMARY_BUFFERS`, which every Vulkan, Metal and DX12 adapter offers; an adapter
//! without it is not listed.
//!
//! Drivers overcommit, so "no room" would come late or as a crash. Hence all live buffers of an
//! opened device together, pinned ones included, never exceed the memory that was probed: the
//! refusal is `OutOfMemory` and depends on nothing but the calls. Staging of the backend's own is
//! not counted; each queue uses up to 64 MiB of it for uploads and 12 MiB for downloads.
//!
//! # What wgpu does not forgive
//! `wgpu::Device::poll` panics when the device is lost, and can panic when several threads poll
//! with time limits. So on Vulkan every submit signals a timeline semaphore of our own and waits
//! never go through wgpu. Elsewhere, and on Vulkan 1.1, polling is done without time limits and a
//! panic of a lost device is caught; with `panic = "abort"` it ends the process there.

mod backend;
mod batch;
mod buffer;
mod chunk;
mod context;
mod device;
mod error;
mod event;
mod gate;
mod groups;
mod interface;
mod kernel;
mod mapping;
mod probe;
mod program;
mod queue;
mod recorder;
mod stamp;
#[cfg(test)]
mod tests;
mod timeline;
mod transfer;
#[cfg(not(target_vendor = "apple"))]
mod vulkan;
#[cfg(target_vendor = "apple")]
#[path = "no_vulkan.rs"]
mod vulkan;

use warploom_core::BackendId;

/// This backend's name.
pub const ID: BackendId = BackendId::new("wgpu");

warploom_core::register_backend!(ID, backend::load);
