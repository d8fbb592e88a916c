//! PTX to native code.
//!
//! Every kernel and every function becomes one native function `(context, parameters, results)` that
//! returns zero, or one when the thread has to end. Registers become variables of the code generator,
//! memory accesses are preceded by their checks, and what does not fit into a few instructions is a
//! call into [`exec`](crate::exec).

mod arithmetic;
mod atomic;
mod barrier;
mod bits;
mod call;
mod carry;
mod check;
mod compare;
mod convert;
mod dispatch;
mod flow;
mod flush;
mod image;
mod layout;
mod memory;
mod moves;
mod operand;
mod reals;
mod routine;
mod survey;
mod transcendental;
mod translate;
mod video;
mod warp;

pub(crate) use self::image::{EntryCode, Image};
