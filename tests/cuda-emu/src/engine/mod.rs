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
