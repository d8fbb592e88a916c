//! TIFF and BigTIFF: pages of gray planes.

mod layout;
mod page;
mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;
