//! Fewer passes over memory: primitives that can share one are made one.
//!
//! [`fuse`] is a pure function from a flow to a flow that means the same, bit for bit, with a note
//! for every decision. Expressions over the same pixel always join. An expression joins the stencil
//! that reads it when computing it again for every neighbour costs less than writing and reading it.
//! Expressions over the same images join side by side.

mod cost;
mod join;
mod maps;
mod rows;

pub use cost::Machine;
pub use maps::{Fused, Note, Options, fuse};
pub use rows::{Group, row_groups};
