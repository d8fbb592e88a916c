//! Running compiled kernels: blocks on host threads, threads of a block as coroutines.
//!
//! Compiled code never unwinds and is never left in the middle. Everything that may end a thread
//! early, from an illegal access to a barrier that cannot complete, is a call into this module that
//! answers "stop", upon which the compiled function returns, and so do its callers. So a fault
//! leaves no frame behind, and all stacks can be used again.

mod arena;
mod barrier;
mod block;
mod calls;
pub(crate) mod checks;
mod context;
mod grid;
mod order;
mod printf;
mod report;
mod stacks;
mod wait;
mod warp;
mod worker;

pub(crate) use self::calls::{atomics, control, numbers, system};
pub(crate) use self::context::{Slot, Slots, ThreadContext};
pub(crate) use self::grid::run;
pub(crate) use self::wait::{Reduce, WarpOp};
