//! Reading: first what the pages are, then, once there is room for all of them, their pixels.

use std::io::{self, BufReader, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tiff::TiffError;
use tiff::decoder::ifd::Value;
use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

use super::layout;
use super::page::Page;
use crate::error::Fault;
use crate::image::Image;

/// What the decoder keeps of one number of a list.
const LISTED: usize = size_of::<Value>();

/// A gibibyte is a list of millions of strips.
const LONGEST_LIST: usize = 1 << 30;

/// Reads all pages as one image.
pub(crate) fn read(file: &mut (impl Read + Seek), length: u64) -> Result<Image, Fault> {
    // The decoder is written for files that make sense. It checks most of what it meets, but its
    // sums may overflow and its assertions fail on what a hostile file says of itself.
    catch_unwind(AssertUnwindSafe(|| read_pages(file, length)))
        .unwrap_or_else(|_| Err(Fault::damaged("its tags contradict each other")))
}

fn read_pages(file: &mut (impl Read + Seek), length: u64) -> Result<Image, Fault> {
    let mut decoder = open(file, length, 0)?;
    let first_text = decoder
        .find_tag(Tag::ImageDescription)
        .ok()
        .flatten()
        .and_then(|value| value.into_string().ok());
    let mut first: Option<Page> = None;
    let mut pages = Vec::new();
    let mut largest_tile = 0;
    for at in 0.. {
        if let Some(page) = Page::at(&mut decoder, length)? {
            let first = *first.get_or_insert(page);
            if page != first {
                return Err(Fault::Pages {
                    page: at,
                    this: page.to_string(),
                    first: first.to_string(),
                });
            }
            largest_tile = page.tile_bytes(&decoder).max(largest_tile);
            pages.push(at);
        }
        if !decoder.more_images() {
            break;
        }
        decoder.next_image().map_err(decoding)?;
    }
    let Some(page) = first else {
        return Err(Fault::damaged(
            "it has small copies of images, but no image",
        ));
    };
    let shape = layout::shape(
        first_text.as_deref(),
        pages.len() as u64,
        page.height,
        page.width,
    )?;
    let mut image = Image::zeroed(page.dtype, shape)?;
    let plane = image.bytes().len() / pages.len();
    let mut decoder = open(file, length, largest_tile)?;
    let planes = image.bytes_mut().chunks_exact_mut(plane.max(1));
    for (at, plane) in pages.iter().zip(planes) {
        decoder.seek_to_image(*at).map_err(decoding)?;
        if page.packed {
            let mut bits = vec![0; size(page.decoded_bytes())];
            read_plane(&mut decoder, &page, &mut bits)?;
            unpack(&bits, plane, size(page.width));
        } else {
            read_plane(&mut decoder, &page, plane)?;
        }
    }
    Ok(image)
}

fn read_plane<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    page: &Page,
    plane: &mut [u8],
) -> Result<(), Fault> {
    match decoder.get_chunk_type() {
        ChunkType::Strip => decoder.read_image_bytes(plane).map_err(decoding),
        ChunkType::Tile => read_tiles(decoder, page, plane),
    }
}

/// Tile by tile, each as a whole: the decoder would read them row by row, skipping what is beyond
/// the edge of the image, and then takes the end of LZW data for damage.
fn read_tiles<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    page: &Page,
    plane: &mut [u8],
) -> Result<(), Fault> {
    let (width, height) = decoder.chunk_dimensions();
    let row = size(page.row_bytes(page.width));
    let tile_row = size(page.row_bytes(u64::from(width)));
    let across = row.div_ceil(tile_row.max(1)).max(1);
    let mut tile = DecodingResult::U8(Vec::new());
    for at in 0..decoder.tile_count().map_err(decoding)? {
        decoder
            .read_chunk_to_buffer(&mut tile, at, tile_row)
            .map_err(decoding)?;
        let left = at as usize % across * tile_row;
        let used = tile_row.min(row.saturating_sub(left));
        let top = (at as usize / across).saturating_mul(height as usize);
        let rows = plane.chunks_exact_mut(row).skip(top);
        let buffer = tile.as_buffer(0);
        for (from, to) in buffer.as_bytes().chunks_exact(tile_row).zip(rows) {
            to[left..left + used].copy_from_slice(&from[..used]);
        }
    }
    Ok(())
}

/// A size that was found to fit in memory.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn open<R: Read + Seek>(
    file: &mut R,
    length: u64,
    largest_tile: u64,
) -> Result<Decoder<BufReader<&mut R>>, Fault> {
    file.rewind().map_err(|error| Fault::open(&error))?;
    let decoder = Decoder::new(BufReader::with_capacity(1 << 17, file)).map_err(decoding)?;
    let length = size(length);
    let mut limits = Limits::default();
    // This limits tiles, and lists of numbers, of which each is a byte of the file at least and so
    // many bytes in the decoder's memory. Strips are decoded into our memory.
    let list = length.saturating_mul(LISTED).min(LONGEST_LIST);
    limits.decoding_buffer_size = list.max(size(largest_tile));
    limits.intermediate_buffer_size = length;
    Ok(decoder.with_limits(limits))
}

/// Pixels of one bit, rows starting at bytes, become bytes of 0 and 1.
fn unpack(bits: &[u8], pixels: &mut [u8], width: usize) {
    let rows = pixels.chunks_exact_mut(width);
    for (bits, row) in bits.chunks_exact(width.div_ceil(8)).zip(rows) {
        for (x, pixel) in row.iter_mut().enumerate() {
            *pixel = bits[x / 8] >> (7 - x % 8) & 1;
        }
    }
}

pub(super) fn decoding(error: TiffError) -> Fault {
    match error {
        TiffError::IoError(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::damaged("a page or its pixels end too early"),
            // Codecs report nonsense this way.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Fault::damaged(error)
            }
            _ => Fault::open(&error),
        },
        TiffError::UnsupportedError(error) => Fault::Unread {
            what: format!("something that is not read: {error}"),
            instead: "save it as gray without compression, or with LZW, Deflate or Zstd".into(),
        },
        TiffError::LimitsExceeded | TiffError::IntSizeError => {
            Fault::damaged("it claims sizes that the file cannot hold")
        }
        error => Fault::damaged(error),
    }
}
