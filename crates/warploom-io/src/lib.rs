//! Images in files: what they are without their pixels, any part of them, whole ones out; numbers and
//! tables out; folders of files as records, read ahead and written behind.
//!
//! | ending | read | written |
//! | --- | --- | --- |
//! | `.npy` | any order of bytes and axes; `bool` becomes `u8` of 0 and 1 | C order, little-endian |
//! | `.tif`, `.tiff` | classic and BigTIFF, strips and tiles; LZW, Deflate, `PackBits`, Zstd with either predictor; OME-XML, ImageJ's and tifffile's descriptions; else pages of one size are a stack (z, y, x) | uncompressed; BigTIFF where 4 GiB do not do; described for ImageJ or tifffile, and as OME-XML for `.ome.tif` |
//! | `.png` | gray of 1 to 16 bits; colour and transparency only where they say nothing | u8 and u16 planes |
//! | `.zarr` | version 3: bytes, transpose, sharding, zstd, gzip, blosc, crc32c; OME-NGFF 0.5 | chunks of planes, zstd; OME-NGFF 0.5 |
//! | `.json`, `.csv` | | [`Numbers`] and [`Table`]s |
//! | `.parquet` | | [`Table`]s |
//!
//! Nothing is converted that could lose something: what a format cannot hold is refused with what
//! can. Nothing a file says about itself is believed: sizes are compared with the file before room
//! is made for them, and bytes that make no sense are an error, never a panic.
//!
//! A file appears under its name when it is complete, and not before: writers write beside it and
//! rename. What killed processes leave is found by [`remove_leftovers`].
#![forbid(unsafe_code)]

mod behind;
mod draft;
mod error;
mod format;
mod header;
mod image;
mod npy;
mod numbers;
mod parquet;
mod pen;
mod png;
mod prefetch;
pub mod records;
mod region;
mod settle;
mod sink;
mod source;
mod store;
mod table;
mod thumbnail;
mod tiff;
mod zarr;

pub use behind::WriteBehind;
pub use draft::{Sync, remove_leftovers, remove_result};
pub use error::{Fault, FileError};
pub use format::Format;
pub use header::Header;
pub use image::{Image, ImageError};
pub use numbers::Numbers;
pub use prefetch::{Ahead, Lent, Loaded, Next, Prefetch, Stopper};
pub use region::Region;
pub use settle::settle;
pub use sink::{
    check_image, check_numbers, check_table, write, write_image, write_numbers, write_table,
};
pub use source::{Choice, Source};
pub use table::{Column, Table, Values};
pub use thumbnail::thumbnail;

use std::path::Path;

/// Reads the image in a file, in the format that its name says.
pub fn read(path: impl AsRef<Path>) -> Result<Image, FileError> {
    Source::open(path)?.read()
}

/// Reads the image in a file that is in memory.
pub fn read_bytes(format: Format, bytes: &[u8]) -> Result<Image, Fault> {
    Source::in_memory(format, bytes.to_vec())?.read_all()
}
