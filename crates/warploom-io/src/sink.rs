//! Writing: images, numbers and tables into files that appear when they are complete.

use std::path::Path;

use warploom_core::{DType, Shape};

use crate::draft::{Draft, Sync};
use crate::error::{Fault, FileError};
use crate::format::Format;
use crate::header::Header;
use crate::image::Image;
use crate::numbers::Numbers;
use crate::table::Table;
use crate::{npy, parquet, png, tiff, zarr};

/// Writes an image into a file, in the format that its name says.
pub fn write(path: impl AsRef<Path>, image: &Image) -> Result<(), FileError> {
    let header = Header::new(image.dtype(), *image.shape());
    write_image(path, &header, image.bytes(), Sync::No)
}

/// Writes an image that is somewhere in memory, with what else is known of it. A name that ends in
/// `.ome.tif` makes an OME-TIFF, one in `.zarr` a folder with OME's description.
pub fn write_image(
    path: impl AsRef<Path>,
    header: &Header,
    bytes: &[u8],
    sync: Sync,
) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = check_header(path, header).and_then(|format| {
        if bytes.len() as u64 != header.bytes() {
            return Err(Fault::Buffer {
                wanted: header.bytes(),
                given: bytes.len() as u64,
            });
        }
        if format == Format::Zarr {
            return Draft::fill_folder(path, header.bytes(), sync, |folder| {
                zarr::write(folder, header, bytes, &name(path), sync == Sync::Yes)
            });
        }
        // Only where pixels go into the file as they are is its length known to be theirs and more.
        let reserved = match format {
            Format::Npy | Format::Tiff => header.bytes(),
            _ => 0,
        };
        Draft::fill_reserved(path, header.bytes(), reserved, sync, |file| match format {
            Format::Npy => npy::write(file, header, bytes),
            Format::Tiff if is_ome(path) => tiff::write(file, header, bytes, Some(&name(path))),
            Format::Tiff => tiff::write(file, header, bytes, None),
            _ => png::write(file, header, bytes),
        })
    });
    written.map_err(|fault| fault.of(path))
}

fn is_ome(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| {
        stem.to_string_lossy()
            .to_ascii_lowercase()
            .ends_with(".ome")
    })
}

/// What the file is called, without what says its format.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.rsplit_once('.').map_or(&*name, |(name, _)| name);
    name.strip_suffix(".ome").unwrap_or(name).to_owned()
}

/// Whether an image of this type and extent can go into a file of this name; asked before a long
/// computation, it saves the time of those whose result would have no place.
pub fn check_image(path: impl AsRef<Path>, dtype: DType, shape: &Shape) -> Result<(), FileError> {
    let path = path.as_ref();
    let checked = check_header(path, &Header::new(dtype, *shape)).and_then(|format| {
        if format == Format::Zarr {
            Draft::check_place(path)
        } else {
            Draft::check(path)
        }
    });
    checked.map_err(|fault| fault.of(path))
}

fn check_header(path: &Path, header: &Header) -> Result<Format, Fault> {
    let format = Format::of(path)?;
    format.takes(header.dtype, &header.shape)?;
    if format == Format::Tiff && is_ome(path) {
        tiff::check_ome(header)?;
    }
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
    let bytes = 8 * numbers.values().len() as u64;
    let written = Format::of(path).and_then(|format| {
        format.takes_numbers()?;
        Draft::fill(path, bytes, Sync::No, |file| match format {
            Format::Npy => npy::write_vector(file, numbers.values()),
            Format::Json => numbers.write_json(file),
            _ => numbers.to_table().write_csv(file),
        })
    });
    written.map_err(|fault| fault.of(path))
}

/// Writes a table into a file: `.csv`, `.json` or `.parquet`.
pub fn write_table(path: impl AsRef<Path>, table: &Table) -> Result<(), FileError> {
    let path = path.as_ref();
    let bytes = 8 * (table.rows() * table.columns().len()) as u64;
    let written = Format::of(path).and_then(|format| {
        format.takes_table()?;
        Draft::fill(path, bytes, Sync::No, |file| match format {
            Format::Csv => table.write_csv(file),
            Format::Parquet => parquet::write(file, table).map_err(|error| Fault::write(&error)),
            _ => table.write_json(file),
        })
    });
    written.map_err(|fault| fault.of(path))
}
