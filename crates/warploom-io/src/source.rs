//! Images that are open: what they are is known, and any part of them can be read.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{Fault, FileError};
use crate::format::Format;
use crate::header::Header;
use crate::image::Image;
use crate::npy::NpyFile;
use crate::png::PngFile;
use crate::region::{Region, index};
use crate::store::{Scratch, Store};
use crate::tiff::TiffFile;
use crate::zarr::ZarrImage;

/// Which image of a file that holds several, and at which resolution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Choice {
    /// The image, from 0; without it the file must hold but one.
    pub series: Option<usize>,
    /// The resolution, from 0, which is the finest.
    pub level: usize,
}

/// An open image. Opening reads and checks what the file says of itself, and no pixel.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    kind: Kind,
    series: usize,
    header: Header,
    scratch: Scratch,
}

enum Kind {
    Npy(NpyFile),
    Png(PngFile),
    Tiff(Box<TiffFile>),
    Zarr(Box<ZarrImage>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Npy(_) => "Npy",
            Self::Png(_) => "Png",
            Self::Tiff(_) => "Tiff",
            Self::Zarr(_) => "Zarr",
        })
    }
}

impl Source {
    /// Opens the image in a file, in the format that its name says, or in a Zarr folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::open_choice(path, Choice::default())
    }

    /// Opens one of several images, or one of several resolutions.
    pub fn open_choice(path: impl AsRef<Path>, choice: Choice) -> Result<Self, FileError> {
        let path = path.as_ref();
        Kind::open(path, choice)
            .and_then(|kind| Self::of(path, kind, choice))
            .map_err(|fault| fault.of(path))
    }

    /// The image in a file that is in memory.
    pub(crate) fn in_memory(format: Format, bytes: Vec<u8>) -> Result<Self, Fault> {
        let kind = Kind::of(format, Store::memory(bytes))?;
        Self::of(Path::new(""), kind, Choice::default())
    }

    fn of(path: &Path, kind: Kind, choice: Choice) -> Result<Self, Fault> {
        let count = kind.series();
        let series = choice.series.unwrap_or(0);
        if series >= count || (choice.series.is_none() && count > 1) {
            return Err(Fault::Unread {
                what: format!("{count} images"),
                instead: match choice.series {
                    None => "choose one of them by its number, or take each as a record".into(),
                    Some(series) => format!("there is no number {series}; they count from 0"),
                },
            });
        }
        if choice.level > 0 && !matches!(kind, Kind::Zarr(_)) {
            return Err(Fault::Unread {
                what: "one resolution".into(),
                instead: "choose level 0; others are read from OME-Zarr".into(),
            });
        }
        let header = match &kind {
            Kind::Npy(file) => file.header(),
            Kind::Png(file) => file.header(),
            Kind::Zarr(image) => image.header(),
            Kind::Tiff(file) => file.header(series).cloned().ok_or(Fault::Folder)?,
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
            series,
            header,
            scratch: Scratch::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many images the file holds.
    pub fn series(&self) -> usize {
        self.kind.series()
    }

    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads a part of it into `out`, in C order, as the bytes that this machine's numbers have.
    pub fn read_into(&mut self, region: &Region, out: &mut [u8]) -> Result<(), FileError> {
        self.read_part(region, out)
            .map_err(|fault| fault.of(&self.path))
    }

    pub(crate) fn read_part(&mut self, region: &Region, out: &mut [u8]) -> Result<(), Fault> {
        let header = &self.header;
        if !region.is_inside(&header.shape) {
            return Err(Fault::Outside {
                whole: header.shape.to_string(),
                part: format!("{:?} from {:?} on", region.extent(), region.start()),
            });
        }
        let wanted = region.elements() * header.dtype.bytes();
        if out.len() as u64 != wanted {
            return Err(Fault::Buffer {
                wanted,
                given: out.len() as u64,
            });
        }
        if out.is_empty() {
            return Ok(());
        }
        let scratch = &mut self.scratch;
        match &mut self.kind {
            Kind::Npy(file) => file.read(region, out, scratch),
            Kind::Png(file) => file.read(region, out, scratch),
            Kind::Tiff(file) => file.read(self.series, region, out, scratch),
            Kind::Zarr(image) => image.read(region, out, scratch),
        }
    }

    /// Reads all of it.
    pub fn read(&mut self) -> Result<Image, FileError> {
        self.read_all().map_err(|fault| fault.of(&self.path))
    }

    pub(crate) fn read_all(&mut self) -> Result<Image, Fault> {
        let mut image = Image::zeroed(self.header.dtype, self.header.shape)?;
        let region = Region::whole(&self.header.shape);
        self.read_part(&region, image.bytes_mut())?;
        Ok(image)
    }

    /// Lends the room that another source has made for itself, and the flag that ends reading.
    pub(crate) fn share(&mut self, scratch: &mut Scratch) {
        std::mem::swap(&mut self.scratch, scratch);
    }

    /// A flag that, once it is set, ends reading between two pieces.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.scratch.stop)
    }
}

impl Kind {
    fn open(path: &Path, choice: Choice) -> Result<Self, Fault> {
        let is_folder = path.is_dir();
        if is_folder && crate::zarr::is_zarr(path) {
            let image = ZarrImage::open(path, choice.level)?;
            return Ok(Self::Zarr(Box::new(image)));
        }
        let format = match Format::of(path) {
            Ok(format) => format,
            Err(_) if is_folder => return Err(Fault::Folder),
            Err(fault) => return Err(fault),
        };
        if format == Format::Zarr && is_folder {
            return Err(crate::zarr::no_metadata(path));
        }
        let file = File::open(path).map_err(|error| Fault::open(&error))?;
        let metadata = file.metadata().map_err(|error| Fault::open(&error))?;
        if metadata.is_dir() {
            return Err(Fault::Folder);
        }
        Self::of(format, Store::file(file, metadata.len()))
    }

    fn of(format: Format, mut store: Store) -> Result<Self, Fault> {
        if !format.holds_images() {
            return Err(Fault::NoImage { format });
        }
        format.recognise(&mut store)?;
        Ok(match format {
            Format::Npy => Self::Npy(NpyFile::open(store)?),
            Format::Png => Self::Png(PngFile::open(store)?),
            _ => Self::Tiff(Box::new(TiffFile::open(store)?)),
        })
    }

    fn series(&self) -> usize {
        match self {
            Self::Tiff(file) => file.series(),
            _ => 1,
        }
    }
}

/// Copies one box of pixels out of a whole image.
pub(crate) fn cut(whole: &[u8], header: &Header, region: &Region, out: &mut [u8]) {
    crate::region::Block {
        start: &[0; warploom_core::MAX_RANK][..header.shape.rank()],
        extent: header.shape.dims(),
        bytes: whole,
        element: index(header.dtype.bytes()),
    }
    .place(region, out);
}
