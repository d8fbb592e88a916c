//! The CPU engine: every primitive in Rust, on the threads of the pool it is called in.

pub mod view;

pub use view::{View, ViewMut};
