//! What one page is, and whether we read such pages.

use std::fmt;
use std::io::{Read, Seek};

use tiff::decoder::{ChunkType, Decoder, DecodingSampleType};
use tiff::tags::{PhotometricInterpretation, Tag};
use tiff::{ColorType, TiffError, TiffUnsupportedError};
use warploom_core::DType;

use super::read::decoding;
use crate::error::Fault;

/// A page of gray pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    pub(super) dtype: DType,
    /// Eight pixels in a byte, to be taken apart.
    pub(super) packed: bool,
    pub(super) height: u64,
    pub(super) width: u64,
}

/// No codec makes more of a byte: zstd turns four bytes into a block of 128 KiB, and fax a bit into
/// a row.
const EXPANSION: u64 = 1 << 16;

impl Page {
    /// The page a decoder stands at; `None` for a smaller copy of another page.
    pub(super) fn at<R: Read + Seek>(
        decoder: &mut Decoder<R>,
        length: u64,
    ) -> Result<Option<Self>, Fault> {
        let number = |decoder: &mut Decoder<R>, tag, usual: u64| {
            decoder
                .find_tag_unsigned::<u64>(tag)
                .map(|value| value.unwrap_or(usual))
                .map_err(decoding)
        };
        if number(decoder, Tag::NewSubfileType, 0)? & 1 == 1 {
            return Ok(None);
        }
        if number(decoder, Tag::Unknown(IMAGE_DEPTH), 1)? > 1 {
            return Err(unread("a volume in one page"));
        }
        let (width, height) = decoder.dimensions().map_err(decoding)?;
        let (width, height) = (u64::from(width), u64::from(height));
        let bits = match decoder.colortype() {
            Ok(ColorType::Gray(bits)) => bits,
            Ok(colour) => return Err(unread(format!("{} per pixel", channels(colour)))),
            Err(TiffError::UnsupportedError(TiffUnsupportedError::InterpretationWithBits(
                PhotometricInterpretation::RGBPalette,
                _,
            ))) => return Err(unread("pixels that are numbers of a palette's colours")),
            Err(error) => return Err(decoding(error)),
        };
        let photometric = number(decoder, Tag::PhotometricInterpretation, 1)?;
        if photometric == u64::from(PhotometricInterpretation::WhiteIsZero.to_u16()) {
            return Err(unread("pixels whose white is zero"));
        }
        let sample = decoder.image_buffer_layout().map_err(decoding)?.sample_type;
        let packed = bits == 1 && sample == Some(DecodingSampleType::U8);
        let dtype = match sample.map(dtype) {
            Some(dtype) if packed || u64::from(bits) == 8 * dtype.bytes() => dtype,
            _ => return Err(unread(format!("pixels of {bits} bits"))),
        };
        let page = Self {
            dtype,
            packed,
            height,
            width,
        };
        page.check_chunks(decoder, length)?;
        Ok(Some(page))
    }

    /// Bytes of a page as the decoder gives it; what does not fit is refused for its size.
    pub(super) fn decoded_bytes(&self) -> u64 {
        self.row_bytes(self.width).saturating_mul(self.height)
    }

    /// Bytes of a row of so many pixels as the decoder gives it.
    pub(super) fn row_bytes(&self, width: u64) -> u64 {
        if self.packed {
            width.div_ceil(8)
        } else {
            width.saturating_mul(self.dtype.bytes())
        }
    }

    /// Whether the pixels can be where the page says they are. The decoder reads on beyond the end
    /// of a strip, and takes the beginning of the file for pixels that were never written.
    fn check_chunks<R: Read + Seek>(
        &self,
        decoder: &mut Decoder<R>,
        length: u64,
    ) -> Result<(), Fault> {
        let mut list = |tags: [Tag; 2]| -> Result<Vec<u64>, Fault> {
            for tag in tags {
                let found = decoder
                    .find_tag_unsigned_vec::<u64>(tag)
                    .map_err(decoding)?;
                if let Some(found) = found {
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        };
        let starts = list([Tag::StripOffsets, Tag::TileOffsets])?;
        let sizes = list([Tag::StripByteCounts, Tag::TileByteCounts])?;
        let mut stored = 0_u64;
        for (at, (start, size)) in starts.iter().zip(&sizes).enumerate() {
            if *size == 0 || *start == 0 {
                return Err(unread(format!("a part, {at}, that was never written")));
            }
            let end = start.saturating_add(*size);
            if end > length {
                return Err(Fault::Short {
                    what: format!("part {at} of {} of a page", starts.len()),
                    wanted: end,
                    there: length,
                });
            }
            stored = stored.saturating_add(*size);
        }
        let compression = decoder
            .find_tag_unsigned::<u16>(Tag::Compression)
            .map_err(decoding)?;
        let room = match compression {
            None | Some(1) => stored,
            _ => stored.saturating_mul(EXPANSION),
        };
        // Tiles are whole even where the image ends before they do.
        let tiles = self.tile_bytes(decoder).saturating_mul(starts.len() as u64);
        let claimed = self.decoded_bytes().max(tiles);
        if claimed > room {
            return Err(Fault::Absurd {
                what: format!("a page of {self}"),
                claimed,
                length,
            });
        }
        Ok(())
    }

    /// Bytes of a tile as the decoder gives it; 0 where there are strips.
    pub(super) fn tile_bytes<R: Read + Seek>(&self, decoder: &Decoder<R>) -> u64 {
        match decoder.get_chunk_type() {
            ChunkType::Strip => 0,
            ChunkType::Tile => {
                let (width, height) = decoder.chunk_dimensions();
                self.row_bytes(u64::from(width))
                    .saturating_mul(u64::from(height))
            }
        }
    }
}

/// SGI's tag for volumes that are one page.
const IMAGE_DEPTH: u16 = 32_997;

fn channels(colour: ColorType) -> String {
    match colour {
        ColorType::RGB(_) => "3 channels (RGB)".into(),
        ColorType::RGBA(_) => "4 channels (RGB and alpha)".into(),
        other => format!("{} channels", other.num_samples()),
    }
}

fn unread(what: impl Into<String>) -> Fault {
    Fault::Unread {
        what: what.into(),
        instead: "save it as gray, one value per pixel, black being zero, each plane a page".into(),
    }
}

fn dtype(sample: DecodingSampleType) -> DType {
    match sample {
        DecodingSampleType::U8 => DType::U8,
        DecodingSampleType::U16 => DType::U16,
        DecodingSampleType::U32 => DType::U32,
        DecodingSampleType::U64 => DType::U64,
        DecodingSampleType::F16 => DType::F16,
        DecodingSampleType::F32 => DType::F32,
        DecodingSampleType::F64 => DType::F64,
        DecodingSampleType::I8 => DType::I8,
        DecodingSampleType::I16 => DType::I16,
        DecodingSampleType::I32 => DType::I32,
        DecodingSampleType::I64 => DType::I64,
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = if self.packed {
            "1-bit"
        } else {
            self.dtype.name()
        };
        write!(f, "{}x{} {dtype}", self.height, self.width)
    }
}
