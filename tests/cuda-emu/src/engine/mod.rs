//! The engine: loads PTX, and runs its kernels on host threads.
//!
//! What a driver needs and no more. The driver half owns memory, contexts and streams; the engine
//! owns code. A driver loads a [`Module`], places its [globals](Module::globals) at addresses of
//! its own, writes [`Module::initial_bytes`] there, and calls [`launch`] from any thread, as often
//! and as concurrently as it likes.
//!
//! Whatever hardware lets pass and a program must not rely on is a [`Fault`] here: see
//! [`FaultKind`]. Nothing is executed approximately: what is not understood is a [`PtxError`] when
//! the module is loaded.
//!
//! # What it cannot show
//!
//! - Memory is sequentially consistent: a missing fence goes unnoticed.
//! - Threads of a block run one at a time, each from one meeting point to the next, in an order that
//!   the seed decides; blocks run concurrently on as many workers as a launch has. A kernel that waits
//!   for a block that has not begun is given up as a runaway.
//! - Approximate instructions (`sin.approx` and the like) give the exact result rounded once, which is
//!   inside of every bound the manual states, but not the bits of any GPU.
//! - There are no textures, clusters, matrix units, asynchronous copies or device-side launches.
//! - Two variables that lie side by side in shared or local memory are one stretch of memory, so an
//!   index may run from one into the other, as on hardware.

mod fault;
mod launch;
mod memory;
mod module;

pub use self::fault::{Fault, FaultKind};
pub use self::launch::{Launch, Rules, launch};
pub use self::memory::{Access, DeviceMemory, Region, Space, Why};
pub use self::module::{
    Entry, GlobalVar, Header, Kernel, Module, Options, ParamLayout, Relocation, Target,
};
pub use crate::ptx::PtxError;
