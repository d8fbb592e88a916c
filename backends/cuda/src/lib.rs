//! The Warploom backend for NVIDIA devices through the CUDA driver.
//!
//! It builds and loads everywhere; the driver is looked for at run time. NVRTC, which compiles CUDA
//! C, is looked for too: with it a device takes CUDA C and PTX, without it only PTX.
//!
//! # What is supported
//! | | |
//! |---|---|
//! | driver | CUDA 11 and newer; every entry point is checked before the first is called |
//! | memory | `cuda.device`, `cuda.pinned` |
//! | languages | CUDA C (NVRTC 11.2 and newer), PTX |
//! | queues | non-blocking streams of the device's primary context |
//! | events | on the device between CUDA devices; timed by the device, to about a microsecond |
//! | strict math | no contraction, correctly rounded division and square root, denormals kept |
//!
//! # Emulated devices
//! A device whose name starts with [`EMULATED`] is played by a processor and listed as such; real
//! drivers never use that name.
//!
//! # Threads
//! Every call makes the device's primary context current on the calling thread and leaves it so.

mod backend;
mod buffer;
mod clock;
mod context;
mod device;
mod driver;
mod error;
mod event;
mod handle;
mod kernel;
mod lane;
mod module;
mod nvml;
mod nvrtc;
mod probe;
mod queue;
mod staging;

use warploom_core::{BackendId, MemoryKind, memory};

pub use backend::CudaBackend;
pub use nvml::{XidError, Xids};
pub use nvrtc::{Nvrtc, NvrtcError, Target};
pub use probe::EMULATED;

/// The name under which this backend registers.
pub const ID: BackendId = BackendId::new("cuda");

/// The kinds of memory its devices have; kernels work in the first.
const KINDS: &[MemoryKind] = &[memory::CUDA_DEVICE, memory::CUDA_PINNED];

warploom_core::register_backend!(ID, backend::load);
