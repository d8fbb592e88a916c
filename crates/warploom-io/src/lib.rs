//! Images in files: whole images in and out, numbers and tables out.
//!
//! | ending | read | written |
//! | --- | --- | --- |
//! | `.npy` | any order of bytes and axes; `bool` becomes `u8` of 0 and 1 | C order, little-endian |
//! | `.tif`, `.tiff` | classic and BigTIFF, strips and tiles, compressed or not; pages of one size are a stack (z, y, x) | uncompressed; BigTIFF where 4 GiB do not do |
//! | `.png` | gray of 1 to 16 bits; colour and transparency only where they say nothing | u8 and u16 planes |
//! | `.json`, `.csv` | | [`Numbers`] and [`Table`]s |
//!
//! Nothing is converted that could lose something: what a format cannot hold is refused with what
//! can. Nothing a file says about itself is believed: sizes are compared with the file before room
//! is made for them, and bytes that make no sense are an error, never a panic.
//!
//! A file appears under its name when it is complete, and not before: writers write beside it and
//! rename.
#![forbid(unsafe_code)]

mod draft;
mod error;
mod format;
mod image;
mod npy;
mod numbers;
mod png;
mod table;
mod tiff;

pub use error::{Fault, FileError};
pub use format::Format;
pub use image::{Image, ImageError};
pub use numbers::Numbers;
pub use table::{Column, Table, Values};

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

use draft::Draft;

/// Reads the image in a file, in the format that its name says.
pub fn read(path: impl AsRef<Path>) -> Result<Image, FileError> {
    let path = path.as_ref();
    read_file(path).map_err(|fault| fault.of(path))
}

fn read_file(path: &Path) -> Result<Image, Fault> {
    let format = Format::of(path)?;
    let mut file = File::open(path).map_err(|error| Fault::open(&error))?;
    let metadata = file.metadata().map_err(|error| Fault::open(&error))?;
    if metadata.is_dir() {
        return Err(Fault::Folder);
    }
    read_from(format, &mut file, metadata.len())
}

/// Reads the image in a file that is in memory.
pub fn read_bytes(format: Format, bytes: &[u8]) -> Result<Image, Fault> {
    read_from(format, &mut Cursor::new(bytes), bytes.len() as u64)
}

fn read_from(format: Format, file: &mut (impl Read + Seek), length: u64) -> Result<Image, Fault> {
    if matches!(format, Format::Json | Format::Csv) {
        return Err(Fault::NoImage { format });
    }
    format.recognise(file)?;
    match format {
        Format::Npy => npy::read(file, length),
        Format::Tiff => tiff::read(file, length),
        _ => png::read(file, length),
    }
}

/// Writes an image into a file, in the format that its name says.
pub fn write(path: impl AsRef<Path>, image: &Image) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = check(path, image).and_then(|format| {
        Draft::fill(path, |file| match format {
            Format::Npy => npy::write(file, image),
            Format::Tiff => tiff::write(file, image),
            _ => png::write(file, image),
        })
    });
    written.map_err(|fault| fault.of(path))
}

/// Whether an image of this type and extent can go into a file of this name; asked before a long
/// computation, it saves the time of those whose result would have no place.
pub fn check_image(
    path: impl AsRef<Path>,
    dtype: warploom_core::DType,
    shape: &warploom_core::Shape,
) -> Result<(), FileError> {
    let path = path.as_ref();
    let checked = Format::of(path).and_then(|format| {
        format.takes(dtype, shape)?;
        Draft::check(path)
    });
    checked.map_err(|fault| fault.of(path))
}

fn check(path: &Path, image: &Image) -> Result<Format, Fault> {
    let format = Format::of(path)?;
    format.takes(image.dtype(), image.shape())?;
    Ok(format)
}

/// Whether numbers can go into a file of this name.
pub fn check_numbers(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let checked = Format::of(path).and_then(|format| {
        format.takes_numbers()?;
        Draft::check(path)
    });
    checked.map_err(|fault| fault.of(path))
}

/// Whether a table can go into a file of this name.
pub fn check_table(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let checked = Format::of(path).and_then(|format| {
        format.takes_table()?;
        Draft::check(path)
    });
    checked.map_err(|fault| fault.of(path))
}

/// Writes numbers into a file: `.npy` as a 1-D array of f64, `.json` or `.csv`.
pub fn write_numbers(path: impl AsRef<Path>, numbers: &Numbers) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = Format::of(path).and_then(|format| {
        format.takes_numbers()?;
        Draft::fill(path, |file| match format {
            Format::Npy => npy::write_vector(file, numbers.values()),
            Format::Json => numbers.write_json(file),
            _ => numbers.to_table().write_csv(file),
        })
    });
    written.map_err(|fault| fault.of(path))
}

/// Writes a table into a file: `.csv` or `.json`.
pub fn write_table(path: impl AsRef<Path>, table: &Table) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = Format::of(path).and_then(|format| {
        format.takes_table()?;
        Draft::fill(path, |file| match format {
            Format::Csv => table.write_csv(file),
            _ => table.write_json(file),
        })
    });
    written.map_err(|fault| fault.of(path))
}
