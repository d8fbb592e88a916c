//! A flow compiled for one device: launches and memory as plain data, then loaded, then run.

mod compile;
mod explanation;
mod layout;
mod loaded;
mod loader;
mod measure;
mod over;
mod pairs;
mod vouch;

pub use compile::{Program, Step, room};
pub use explanation::{Explained, Explanation};
pub use layout::{Layout, Lifetime, lay_out};
pub use loaded::Loaded;
pub use loader::Loader;
pub use pairs::{to_pairs, to_wide};
