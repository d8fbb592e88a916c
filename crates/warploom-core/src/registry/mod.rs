//! The backends of this program, and the devices they find.

mod entry;

pub use entry::{BackendEntry, Load, LoadError};
