//! PNG: planes of u8 and u16.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use png::{BitDepth, ColorType, DecodingError, Encoder, EncodingError, Transformations};
use warploom_core::{DType, Shape};

use crate::error::Fault;
use crate::header::Header;
use crate::region::{Region, index};
use crate::source::cut;
use crate::store::{Scratch, Store, make_room};
use crate::tiff::swap;

/// Deflate makes at most 1032 bytes of one.
const EXPANSION: u64 = 1032;

/// An open file.
#[derive(Debug)]
pub(crate) struct PngFile {
    store: Store,
    header: Header,
    channels: u64,
}

impl PngFile {
    /// Reads what the file says of itself.
    pub(crate) fn open(mut store: Store) -> Result<Self, Fault> {
        let length = store.length();
        let reader = decoder(&mut store)?;
        let info = reader.info();
        if let Some(animation) = info.animation_control()
            && animation.num_frames > 1
        {
            return Err(Fault::Unread {
                what: format!("an animation of {} frames", animation.num_frames),
                instead: "save the frames as the pages of a .tif".into(),
            });
        }
        let (width, height) = (u64::from(info.width), u64::from(info.height));
        let (colour, depth) = reader.output_color_type();
        let dtype = match depth {
            BitDepth::Sixteen => DType::U16,
            _ => DType::U8,
        };
        // The stored bits, which may be fewer than those they are spread over.
        let stored = width
            .saturating_mul(info.bits_per_pixel() as u64)
            .div_ceil(8);
        let claimed = (stored + 1).saturating_mul(height);
        if claimed > length.saturating_mul(EXPANSION) {
            return Err(Fault::Absurd {
                what: format!("{height}x{width} pixels"),
                claimed,
                length,
            });
        }
        let shape = Shape::new(&[height, width]).map_err(Fault::damaged)?;
        let channels = colour.samples() as u64;
        drop(reader);
        Ok(Self {
            store,
            header: Header::new(dtype, shape),
            channels,
        })
    }

    pub(crate) fn header(&self) -> Header {
        self.header.clone()
    }

    /// Reads a part. Gray of less than 8 bits is spread over 0 to 255, as the format says it means.
    pub(crate) fn read(
        &mut self,
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        scratch.go_on()?;
        let whole = Region::whole(&self.header.shape);
        if self.channels == 1 && *region == whole {
            return self.decode(out);
        }
        let bytes = self.header.bytes();
        make_room(&mut scratch.decoded, bytes.saturating_mul(self.channels))?;
        self.decode(&mut scratch.decoded)?;
        let mut plane = &scratch.decoded;
        if self.channels > 1 {
            make_room(&mut scratch.spare, bytes)?;
            self.gray(&scratch.decoded, &mut scratch.spare)?;
            plane = &scratch.spare;
        }
        cut(plane, &self.header, region, out);
        Ok(())
    }

    fn decode(&mut self, out: &mut [u8]) -> Result<(), Fault> {
        let mut reader = decoder(&mut self.store)?;
        reader.next_frame(out).map_err(decoding)?;
        // Checksums and the rest of the file: damage at the end is damage, too.
        reader.finish().map_err(decoding)?;
        if cfg!(target_endian = "little") {
            swap(out, index(self.header.dtype.bytes()));
        }
        Ok(())
    }

    /// The gray image of which the channels are copies, if all are and nothing is transparent.
    fn gray(&self, pixels: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        let element = index(self.header.dtype.bytes());
        let channels = index(self.channels);
        let has_alpha = channels.is_multiple_of(2);
        let colours = (channels - usize::from(has_alpha)) * element;
        let from = pixels.chunks_exact(channels * element);
        for (at, (pixel, to)) in from.zip(out.chunks_exact_mut(element)).enumerate() {
            let gray = &pixel[..element];
            let opaque = pixel[colours..].iter().all(|byte| *byte == 0xff);
            let mut colour = pixel[..colours].chunks_exact(element);
            if !opaque || colour.any(|value| value != gray) {
                let width = self.header.shape.dims()[1];
                let number = |value: &[u8]| match value {
                    [low, high] => u16::from_ne_bytes([*low, *high]),
                    _ => u16::from(value[0]),
                };
                return Err(Fault::Colour {
                    y: at as u64 / width,
                    x: at as u64 % width,
                    values: pixel.chunks_exact(element).map(number).collect(),
                });
            }
            to.copy_from_slice(gray);
        }
        Ok(())
    }
}

/// A store as something that is read from the beginning on.
struct Sequence<'s> {
    store: &'s mut Store,
    at: u64,
}

impl Read for Sequence<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = index(self.store.length().saturating_sub(self.at)).min(out.len());
        self.store
            .read_at(self.at, &mut out[..there], "the image")
            .map_err(io::Error::other)?;
        self.at += there as u64;
        Ok(there)
    }
}

impl Seek for Sequence<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::End(by) => self.store.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

fn decoder(store: &mut Store) -> Result<png::Reader<BufReader<Sequence<'_>>>, Fault> {
    let file = Sequence { store, at: 0 };
    let mut decoder = png::Decoder::new(BufReader::with_capacity(1 << 17, file));
    // Palettes become colours, a transparent colour an alpha channel: then only channels are left.
    decoder.set_transformations(Transformations::EXPAND);
    // Texts and profiles are no pixels.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.read_info().map_err(decoding)
}

fn decoding(error: DecodingError) -> Fault {
    match error {
        DecodingError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Fault::damaged("it ends before the image does")
        }
        DecodingError::IoError(error) => Fault::open(&error),
        error => Fault::damaged(error),
    }
}

/// Writes a plane of u8 or u16.
pub(crate) fn write(file: &mut impl Write, header: &Header, bytes: &[u8]) -> Result<(), Fault> {
    let dims = header.shape.dims();
    let extent = |at: usize| u32::try_from(dims[dims.len() - at]).unwrap_or(u32::MAX);
    let mut encoder = Encoder::new(file, extent(1), extent(2));
    encoder.set_color(ColorType::Grayscale);
    let turned: Vec<u8>;
    let (depth, bytes) = if header.dtype == DType::U16 {
        turned = if cfg!(target_endian = "little") {
            let mut turned = bytes.to_vec();
            swap(&mut turned, 2);
            turned
        } else {
            bytes.to_vec()
        };
        (BitDepth::Sixteen, turned.as_slice())
    } else {
        (BitDepth::Eight, bytes)
    };
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(encoding)?;
    writer.write_image_data(bytes).map_err(encoding)?;
    writer.finish().map_err(encoding)
}

fn encoding(error: EncodingError) -> Fault {
    match error {
        EncodingError::IoError(error) => Fault::write(&error),
        other => Fault::Write {
            kind: io::ErrorKind::Other,
            message: other.to_string(),
        },
    }
}
