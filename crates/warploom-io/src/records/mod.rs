//! Records: the units of input, from names of files to pixels.

mod error;
mod found;
mod layout;
mod name;
mod pattern;
mod reader;
mod record;
mod walk;

pub use error::RecordError;
pub use found::{Found, Incomplete};
pub use layout::Layout;
pub use name::{OutputNames, natural, safe};
pub use pattern::Pattern;
pub use reader::RecordReader;
pub use record::{Member, Record};
