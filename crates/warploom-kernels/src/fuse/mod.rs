//! Fewer passes over memory: primitives that can share one are made one.
//!
//! [`fuse`] is a pure function from a flow to a flow that means the same, bit for bit, and the passes
//! it takes, with a note for every decision. Expressions over the same pixel always join. What else
//! joins depends on the device:
//!
//! - The processor's engine keeps the last rows of every value in its caches, so a chain of
//!   expressions, sums and windows is one pass, and nothing is computed again.
//! - A device that runs kernels has no such rows: an expression joins the stencil that reads it when
//!   computing it again for every neighbour costs less than writing and reading it. It goes into the
//!   kernels of other primitives that read it, such as totals, by the same reckoning, and behind those
//!   that write what it reads always.

mod cost;
mod halo;
mod holes;
mod join;
mod maps;
mod mesh;
mod note;
mod options;

pub use cost::{Cost, Machine, Speed};
pub use halo::{Halo, Part, halo};
pub use maps::{Fused, fuse};
pub use note::Note;
pub use options::Options;
