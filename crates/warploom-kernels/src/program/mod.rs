//! A flow compiled for one device: launches and memory as plain data, then loaded, then run.

mod compile;
mod layout;
mod loaded;
mod loader;
mod pairs;
mod vouch;

pub use compile::{Program, Step, room};
pub use layout::{Layout, Lifetime, lay_out};
pub use loaded::Loaded;
pub use loader::Loader;
