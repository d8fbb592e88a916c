//! TIFF and BigTIFF: pages of gray planes.
//!
//! The `tiff` crate was not taken: it decodes pages, not parts of them, goes wrong at LZW tiles beyond
//! the edge (0.11.3), panics at tags that contradict each other and writes neither tiles nor places
//! of one's own choice. The codecs, which are the hard part, are crates.

mod codec;
mod describe;
mod directory;
mod file;
mod ome;
mod page;
mod series;
mod write;

pub(crate) use codec::{swap, unzstd};
pub(crate) use file::TiffFile;
pub(crate) use ome::micrometres;
pub(crate) use write::{check_ome, write};
