//! The embedded Warploom backend: host kernels on the processor's own threads.
//!
//! It is always there, so it is what a pipeline runs on when nothing else is, and what the others
//! are compared with.
//!
//! | | |
//! | --- | --- |
//! | devices | one, `cpu:0`, marked as software |
//! | memory | `host`; what kernels use and what the host sees are the same bytes |
//! | kernels | Rust functions ([`KernelSource::host`](warploom_core::KernelSource::host)) |
//! | queues | one thread each; kernels run on the device's own rayon pool, or on a smaller one of the queue's, long copies beside it |
//! | ordering | in order within a queue; between queues only through events |
//! | clock | time since the device was opened, one for all queues |
//!
//! # Sharing a buffer
//! Locks are on byte ranges, so queues that work in disjoint slices of one buffer overlap, and
//! accesses that no event orders wait for each other instead of racing.
//!
//! # What a kernel must not do
//! Wait for other work: another launch, an event, a queue, or the buffers it was given. Kernels
//! share the pool's threads, and a thread that waits inside rayon may meanwhile start another
//! launch on the same stack; the one below could then never go on.
//!
//! # Failures
//! Work that fails stops its queue: what is queued behind it is skipped, and every later call and
//! event reports that first error. Other queues go on unless they wait for such an event.

mod backend;
mod block;
mod buffer;
mod device;
mod error;
mod event;
mod kernel;
mod link;
mod monitor;
mod probe;
mod queue;
mod range;
mod worker;

pub use backend::{CpuBackend, ID};

warploom_core::register_backend!(ID, || Ok(Box::new(CpuBackend::new())));
