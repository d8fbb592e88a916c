//! What one page is, and whether we read such pages.

use std::fmt;

use warploom_core::DType;

use super::directory::{
    BITS, COMPRESSION, Directories, Directory, FILL_ORDER, HEIGHT, IMAGE_DEPTH, List, PHOTOMETRIC,
    PREDICTOR, ROWS_PER_STRIP, SAMPLE_FORMAT, SAMPLES, STRIP_BYTES, STRIP_OFFSETS, SUBFILE_TYPE,
    TILE_BYTES, TILE_HEIGHT, TILE_OFFSETS, TILE_WIDTH, WIDTH,
};
use crate::error::Fault;
use crate::store::Store;

/// What a page looks like, whatever it is stored as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plane {
    pub(super) dtype: DType,
    /// Eight pixels in a byte, to be taken apart.
    pub(super) packed: bool,
    pub(super) height: u64,
    pub(super) width: u64,
}

/// How the bytes of a piece were made smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    Zstd,
}

/// What is stored in place of each number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Predictor {
    /// The number.
    None,
    /// How much it differs from its left neighbour.
    Difference,
    /// The bytes of a row's floats by significance, and how each differs from the one before.
    Bytes,
}

/// A page of gray pixels, and where its pieces are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    pub(super) plane: Plane,
    pub(super) compression: Compression,
    pub(super) predictor: Predictor,
    /// The first pixel of eight is in the lowest bit.
    pub(super) low_bit_first: bool,
    /// The extent of a piece: a tile, or rows of the whole width.
    pub(super) piece_height: u64,
    pub(super) piece_width: u64,
    pub(super) is_tiled: bool,
    pub(super) offsets: List,
    /// Missing where old programs wrote a single strip.
    pub(super) sizes: Option<List>,
}

impl Compression {
    /// No byte becomes more than this.
    fn expansion(self) -> u64 {
        match self {
            Self::None => 1,
            // Codes of at least nine bits for texts of at most 4096 bytes.
            Self::Lzw => 4096,
            Self::Deflate => 1032,
            Self::PackBits => 64,
            // Four bytes for a block of 128 KiB.
            Self::Zstd => 1 << 15,
        }
    }
}

impl Page {
    /// The page of a directory; `None` for a smaller copy of another page.
    pub(super) fn of(
        store: &mut Store,
        directories: &mut Directories,
        directory: &Directory,
    ) -> Result<Option<Self>, Fault> {
        let mut number = |tag, usual| {
            let found = directories.number(store, directory, tag)?;
            Ok::<u64, Fault>(found.unwrap_or(usual))
        };
        if number(SUBFILE_TYPE, 0)? & 1 == 1 {
            return Ok(None);
        }
        if number(IMAGE_DEPTH, 1)? > 1 {
            return Err(unread("a volume in one page"));
        }
        let (width, height) = (number(WIDTH, 0)?, number(HEIGHT, 0)?);
        if width == 0 || height == 0 || width >> 32 != 0 || height >> 32 != 0 {
            let what = format!("a page of {height}x{width} pixels");
            return Err(Fault::damaged(what));
        }
        let photometric = number(PHOTOMETRIC, 1)?;
        let samples = number(SAMPLES, 1)?;
        match (photometric, samples) {
            (0, 1) => return Err(unread("pixels whose white is zero")),
            (1, 1) => {}
            (3, _) => return Err(unread("pixels that are numbers of a palette's colours")),
            (2, 3) => return Err(unread("3 channels (RGB) per pixel")),
            (2, 4) => return Err(unread("4 channels (RGB and alpha) per pixel")),
            (_, 1) => {
                let what = format!("colours of a kind that is not read ({photometric})");
                return Err(unread(what));
            }
            _ => return Err(unread(format!("{samples} channels per pixel"))),
        }
        let bits = number(BITS, 1)?;
        let format = number(SAMPLE_FORMAT, 1)?;
        let dtype = dtype(bits, format)?;
        let compression = compression(number(COMPRESSION, 1)?)?;
        let predictor = match number(PREDICTOR, 1)? {
            1 => Predictor::None,
            2 if bits >= 8 => Predictor::Difference,
            3 if dtype.is_float() => Predictor::Bytes,
            other => return Err(unread(format!("differences of an unknown sort ({other})"))),
        };
        let low_bit_first = number(FILL_ORDER, 1)? == 2;
        if low_bit_first && bits > 1 {
            return Err(unread("bytes whose bits are in reverse order"));
        }
        let plane = Plane {
            dtype,
            packed: bits == 1,
            height,
            width,
        };
        let tiles = directory.list(TILE_OFFSETS);
        let (piece_height, piece_width) = if tiles.is_some() {
            (number(TILE_HEIGHT, 0)?, number(TILE_WIDTH, 0)?)
        } else {
            (number(ROWS_PER_STRIP, height)?.min(height), width)
        };
        if piece_height == 0 || piece_width == 0 {
            return Err(Fault::damaged("a page in pieces without pixels"));
        }
        let offsets = tiles.or_else(|| directory.list(STRIP_OFFSETS));
        let Some(offsets) = offsets else {
            return Err(Fault::damaged("a page that does not say where it is"));
        };
        let sizes = if tiles.is_some() {
            TILE_BYTES
        } else {
            STRIP_BYTES
        };
        let page = Self {
            plane,
            compression,
            predictor,
            low_bit_first,
            piece_height,
            piece_width,
            is_tiled: tiles.is_some(),
            offsets,
            sizes: directory.list(sizes),
        };
        page.check_count()?;
        Ok(Some(page))
    }

    /// Pieces from left to right.
    pub(super) fn across(&self) -> u64 {
        self.plane.width.div_ceil(self.piece_width)
    }

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> u64 {
        let down = self.plane.height.div_ceil(self.piece_height);
        self.across().saturating_mul(down)
    }

    /// Bytes of a piece once it is decoded, bits still packed. The last strip may be lower.
    pub(super) fn piece_bytes(&self, number: u64) -> u64 {
        let rows = if self.is_tiled {
            self.piece_height
        } else {
            let top = number * self.piece_height;
            self.piece_height.min(self.plane.height.saturating_sub(top))
        };
        self.plane.row_bytes(self.piece_width).saturating_mul(rows)
    }

    fn check_count(&self) -> Result<(), Fault> {
        let wanted = self.pieces();
        let sizes = self.sizes.map_or(wanted, |sizes| sizes.count);
        let given = self.offsets.count.min(sizes);
        if given < wanted || (self.sizes.is_none() && wanted > 1) {
            let what = format!("a page of {wanted} parts lists {given} of them");
            return Err(Fault::damaged(what));
        }
        Ok(())
    }

    /// Whether its pixels can be where it says they are; `offsets` and `sizes` are its lists.
    pub(super) fn check(&self, offsets: &[u64], sizes: &[u64], length: u64) -> Result<(), Fault> {
        let mut stored = 0_u64;
        for (at, (start, size)) in offsets.iter().zip(sizes).enumerate() {
            if *size == 0 || *start == 0 {
                return Err(unread(format!("a part, {at}, that was never written")));
            }
            let end = start.saturating_add(*size);
            if end > length {
                return Err(Fault::Short {
                    what: format!("part {at} of {} of a page", offsets.len()),
                    wanted: end,
                    there: length,
                });
            }
            stored = stored.saturating_add(*size);
        }
        let room = stored.saturating_mul(self.compression.expansion());
        // Tiles are whole even where the image ends before they do.
        let tiles = if self.is_tiled {
            self.piece_bytes(0).saturating_mul(self.pieces())
        } else {
            0
        };
        let claimed = self.plane.stored_bytes().max(tiles);
        if claimed > room {
            return Err(Fault::Absurd {
                what: format!("a page of {}", self.plane),
                claimed,
                length,
            });
        }
        Ok(())
    }
}

impl Plane {
    /// Bytes of the plane, bits still packed.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.row_bytes(self.width).saturating_mul(self.height)
    }

    /// Bytes of a row of so many pixels, bits still packed.
    pub(super) fn row_bytes(&self, width: u64) -> u64 {
        if self.packed {
            width.div_ceil(8)
        } else {
            width.saturating_mul(self.dtype.bytes())
        }
    }
}

fn unread(what: impl Into<String>) -> Fault {
    Fault::Unread {
        what: what.into(),
        instead: "save it as gray, one value per pixel, black being zero, each plane a page".into(),
    }
}

fn compression(number: u64) -> Result<Compression, Fault> {
    let name = match number {
        1 => return Ok(Compression::None),
        5 => return Ok(Compression::Lzw),
        8 | 32_946 => return Ok(Compression::Deflate),
        32_773 => return Ok(Compression::PackBits),
        50_000 | 34_926 => return Ok(Compression::Zstd),
        2..=4 => "fax",
        6 | 7 => "JPEG",
        34_887 => "LERC",
        34_925 => "LZMA",
        33_003 | 33_005 | 34_712 => "JPEG 2000",
        34_892 => "lossy JPEG",
        48_124 => "JETRAW",
        50_001 | 34_927 => "WebP",
        50_002 | 52_546 => "JPEG XL",
        _ => "an unknown method",
    };
    Err(Fault::Unread {
        what: format!("pixels compressed by {name} ({number})"),
        instead: "save it without compression, or with LZW, Deflate, PackBits or Zstd".into(),
    })
}

fn dtype(bits: u64, format: u64) -> Result<DType, Fault> {
    Ok(match (format, bits) {
        // 4 says that nothing is known of them.
        (1 | 4, 1 | 8) => DType::U8,
        (1 | 4, 16) => DType::U16,
        (1 | 4, 32) => DType::U32,
        (1 | 4, 64) => DType::U64,
        (2, 8) => DType::I8,
        (2, 16) => DType::I16,
        (2, 32) => DType::I32,
        (2, 64) => DType::I64,
        (3, 16) => DType::F16,
        (3, 32) => DType::F32,
        (3, 64) => DType::F64,
        (5 | 6, _) => return Err(unread("complex numbers")),
        _ => return Err(unread(format!("pixels of {bits} bits"))),
    })
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = if self.packed {
            "1-bit"
        } else {
            self.dtype.name()
        };
        write!(f, "{}x{} {dtype}", self.height, self.width)
    }
}
