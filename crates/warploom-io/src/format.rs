//! Which format a file has: by its name, and by its first bytes.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use warploom_core::{DType, Shape};

use crate::error::Fault;
use crate::store::Store;

/// A file format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// NumPy's array format, `.npy`.
    Npy,
    /// TIFF and BigTIFF, `.tif` or `.tiff`.
    Tiff,
    /// PNG, `.png`.
    Png,
    /// JSON, `.json`: numbers and tables.
    Json,
    /// Comma-separated values, `.csv`: numbers and tables.
    Csv,
    /// Parquet, `.parquet`: tables.
    Parquet,
    /// A folder of Zarr's, `.zarr`.
    Zarr,
}

/// What files begin with, and what they are then; more than we read, for better messages.
const BEGINNINGS: &[(&[u8], &str, Option<Format>)] = &[
    (b"\x93NUMPY", "an .npy array", Some(Format::Npy)),
    (b"II*\0", "a TIFF file", Some(Format::Tiff)),
    (b"MM\0*", "a TIFF file", Some(Format::Tiff)),
    (b"II+\0", "a BigTIFF file", Some(Format::Tiff)),
    (b"MM\0+", "a BigTIFF file", Some(Format::Tiff)),
    (b"\x89PNG\r\n\x1a\n", "a PNG file", Some(Format::Png)),
    (b"\xff\xd8\xff", "a JPEG file", None),
    (b"PK\x03\x04", "a ZIP archive, such as .npz", None),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", None),
    (b"\x1f\x8b", "a gzip file", None),
    (b"GIF8", "a GIF file", None),
    (b"BM", "a BMP file", None),
];

impl Format {
    /// The endings that say a format.
    pub(crate) const ENDINGS: [&'static str; 8] = [
        "npy", "tif", "tiff", "png", "zarr", "json", "csv", "parquet",
    ];

    /// The format that a name says.
    pub(crate) fn of(path: &Path) -> Result<Self, Fault> {
        let ending = path.extension().map(|ending| ending.to_string_lossy());
        let known = ending.as_deref().and_then(|ending| {
            Some(match ending.to_ascii_lowercase().as_str() {
                "npy" => Self::Npy,
                "tif" | "tiff" => Self::Tiff,
                "png" => Self::Png,
                "json" => Self::Json,
                "csv" => Self::Csv,
                "parquet" => Self::Parquet,
                "zarr" => Self::Zarr,
                _ => return None,
            })
        });
        known.ok_or_else(|| Fault::Ending {
            ending: ending.map(Cow::into_owned),
        })
    }

    /// Whether the file begins as this format does.
    pub(crate) fn recognise(self, store: &mut Store) -> Result<(), Fault> {
        let there = usize::try_from(store.length()).unwrap_or(8).min(8);
        let first = store.peek(0, there, "its first bytes")?;
        let found = BEGINNINGS
            .iter()
            .find(|(beginning, ..)| first.starts_with(beginning));
        match found {
            Some((.., Some(format))) if *format == self => Ok(()),
            _ => Err(Fault::Disguised {
                format: self,
                looks: match found {
                    Some((_, name, _)) => Some(name),
                    None if first.is_empty() => Some("an empty file"),
                    None => None,
                },
            }),
        }
    }

    /// Whether there are images in files of this format.
    pub(crate) fn holds_images(self) -> bool {
        matches!(self, Self::Npy | Self::Tiff | Self::Png | Self::Zarr)
    }

    /// Whether an image can be written in this format without loss.
    pub(crate) fn takes(self, dtype: DType, shape: &Shape) -> Result<(), Fault> {
        let no = |what: String, instead| {
            Err(Fault::Unholdable {
                format: self,
                what,
                instead,
            })
        };
        let image = || format!("an image of {shape} {dtype}");
        match self {
            Self::Json | Self::Csv | Self::Parquet => {
                return no(image(), "write it to .npy or .tif");
            }
            Self::Zarr if crate::zarr::has_type(dtype) => return Ok(()),
            Self::Zarr => {
                return no(
                    format!("{dtype} elements, which Zarr has no name for"),
                    "cast it to f32 first",
                );
            }
            Self::Npy if dtype == DType::Bf16 => {
                return no(
                    "bf16 elements, which NumPy does not have".into(),
                    "cast it to f32 first",
                );
            }
            Self::Npy => return Ok(()),
            Self::Tiff | Self::Png => {}
        }
        let (planes, plane) = shape.dims().split_at(shape.rank().saturating_sub(2));
        if plane.len() < 2 {
            return no(
                format!("a row of {} numbers", shape.elements()),
                "write it to .npy",
            );
        }
        if shape.elements() == 0 {
            return no(
                format!("an image of {shape}, which has no pixels"),
                "write it to .npy",
            );
        }
        if plane.iter().any(|extent| u32::try_from(*extent).is_err()) {
            return no(
                format!("planes of {}x{}", plane[0], plane[1]),
                "write it to .npy",
            );
        }
        if self == Self::Tiff {
            return match dtype {
                DType::Bf16 => no(format!("{dtype} elements"), "cast it to f32 first"),
                _ => Ok(()),
            };
        }
        if !matches!(dtype, DType::U8 | DType::U16) {
            return no(
                format!("{dtype} elements, only u8 and u16"),
                "write it to .npy or .tif, or `cast` it to u8 or u16 first",
            );
        }
        if planes.iter().product::<u64>() != 1 {
            return no(
                format!("a stack of {shape}, only one plane"),
                "write it to .tif or .npy",
            );
        }
        Ok(())
    }
}

impl Format {
    /// Whether a few numbers can be written in this format.
    pub(crate) fn takes_numbers(self) -> Result<(), Fault> {
        match self {
            Self::Npy | Self::Json | Self::Csv => Ok(()),
            Self::Tiff | Self::Png | Self::Zarr | Self::Parquet => Err(Fault::Unholdable {
                format: self,
                what: "numbers that are no image".into(),
                instead: "write them to .npy, .json or .csv",
            }),
        }
    }

    /// Whether a table can be written in this format.
    pub(crate) fn takes_table(self) -> Result<(), Fault> {
        match self {
            Self::Csv | Self::Json | Self::Parquet => Ok(()),
            Self::Npy | Self::Tiff | Self::Png | Self::Zarr => Err(Fault::Unholdable {
                format: self,
                what: "a table".into(),
                instead: "write it to .csv, .json or .parquet",
            }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Npy => "an .npy array",
            Self::Tiff => "a TIFF file",
            Self::Png => "a PNG file",
            Self::Json => "a JSON file",
            Self::Csv => "a CSV file",
            Self::Parquet => "a Parquet file",
            Self::Zarr => "a Zarr folder",
        })
    }
}
