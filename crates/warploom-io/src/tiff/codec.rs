//! Pieces of a page as they were before they were stored.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};
use weezl::{BitOrder, LzwStatus};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation as _, OutBuffer};

use super::page::{Compression, Page, Predictor};
use crate::error::Fault;
use crate::region::index;

/// Decoders that are kept: their tables are larger than many a strip.
#[derive(Default)]
pub(super) struct Codecs {
    lzw: Option<weezl::decode::Decoder>,
    deflate: Option<Decompress>,
    zstd: Option<ZstdDecoder<'static>>,
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codecs")
    }
}

impl Codecs {
    /// Fills `out` with what `stored` was. What is stored beyond that is left alone: some programs
    /// write the last strip as high as the others.
    fn expand(&mut self, how: Compression, stored: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        let there = match how {
            Compression::None => {
                let there = stored.len().min(out.len());
                out[..there].copy_from_slice(&stored[..there]);
                there
            }
            Compression::Lzw => self.lzw(stored, out)?,
            Compression::Deflate => self.deflate(stored, out)?,
            Compression::PackBits => pack_bits(stored, out),
            Compression::Zstd => self.zstd(stored, out)?,
        };
        if there < out.len() {
            return Err(Fault::Short {
                what: "a part of a page".into(),
                wanted: out.len() as u64,
                there: there as u64,
            });
        }
        Ok(())
    }

    fn lzw(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
        let decoder = self
            .lzw
            .get_or_insert_with(|| weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8));
        decoder.reset();
        let (mut from, mut to) = (0, 0);
        loop {
            let step = decoder.decode_bytes(&stored[from..], &mut out[to..]);
            from += step.consumed_in;
            to += step.consumed_out;
            match step.status {
                _ if to == out.len() => return Ok(to),
                Ok(LzwStatus::Ok) if step.consumed_in + step.consumed_out > 0 => {}
                Ok(_) => return Ok(to),
                Err(error) => return Err(Fault::damaged(format!("LZW: {error}"))),
            }
        }
    }

    fn deflate(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
        let decoder = self.deflate.get_or_insert_with(|| Decompress::new(true));
        decoder.reset(true);
        let status = decoder
            .decompress(stored, out, FlushDecompress::Finish)
            .map_err(|error| Fault::damaged(format!("Deflate: {error}")))?;
        debug_assert!(matches!(
            status,
            Status::Ok | Status::BufError | Status::StreamEnd
        ));
        Ok(index(decoder.total_out()))
    }

    fn zstd(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
        if self.zstd.is_none() {
            self.zstd = Some(ZstdDecoder::new().map_err(|error| Fault::open(&error))?);
        }
        let Some(decoder) = &mut self.zstd else {
            return Ok(0);
        };
        unzstd(decoder, stored, out)
    }
}

/// As much of what `stored` was as `out` has room for.
pub(crate) fn unzstd(
    decoder: &mut ZstdDecoder<'static>,
    stored: &[u8],
    out: &mut [u8],
) -> Result<usize, Fault> {
    let bad = |error| Fault::damaged(format!("Zstd: {error}"));
    decoder.reinit().map_err(bad)?;
    let mut from = InBuffer::around(stored);
    let mut to = OutBuffer::around(out);
    loop {
        let before = (from.pos, to.pos());
        let hint = decoder.run(&mut from, &mut to).map_err(bad)?;
        let is_end = hint == 0 && from.pos == stored.len();
        if is_end || (from.pos, to.pos()) == before {
            return Ok(to.pos());
        }
    }
}

/// Runs and literals. Returns how many bytes came out.
fn pack_bits(stored: &[u8], out: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while to < out.len() {
        let Some(head) = stored.get(from) else { break };
        from += 1;
        match *head {
            count @ 0..=127 => {
                let there = stored.len() - from;
                let count = (usize::from(count) + 1).min(out.len() - to).min(there);
                out[to..to + count].copy_from_slice(&stored[from..from + count]);
                from += count;
                to += count;
            }
            128 => {}
            count => {
                let Some(value) = stored.get(from) else { break };
                let count = (257 - usize::from(count)).min(out.len() - to);
                out[to..to + count].fill(*value);
                from += 1;
                to += count;
            }
        }
    }
    to
}

/// Decodes a piece into `out`, as bytes that this machine's numbers have; `room` is for rows of
/// floats whose bytes were put apart.
pub(super) fn decode(
    codecs: &mut Codecs,
    page: &Page,
    big_endian: bool,
    stored: &[u8],
    out: &mut [u8],
    room: &mut Vec<u8>,
) -> Result<(), Fault> {
    codecs.expand(page.compression, stored, out)?;
    let plane = &page.plane;
    let row = index(plane.row_bytes(page.piece_width));
    let element = if plane.packed {
        1
    } else {
        index(plane.dtype.bytes())
    };
    if page.predictor == Predictor::Bytes {
        for row in out.chunks_exact_mut(row) {
            join_bytes(row, element, room);
        }
        return Ok(());
    }
    if big_endian != cfg!(target_endian = "big") {
        swap(out, element);
    }
    if page.predictor == Predictor::Difference {
        for row in out.chunks_exact_mut(row) {
            sum(row, element);
        }
    }
    Ok(())
}

/// Turns the bytes of each element around.
pub(crate) fn swap(bytes: &mut [u8], element: usize) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        let (elements, _) = bytes.as_chunks_mut::<N>();
        for element in elements {
            element.reverse();
        }
    }
    match element {
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        _ => {}
    }
}

/// Each number plus the one to its left, from left to right.
fn sum(row: &mut [u8], element: usize) {
    macro_rules! each {
        ($($size:literal $type:ty),*) => {
            match element {
                $($size => {
                    let (values, _) = row.as_chunks_mut::<$size>();
                    let mut before: $type = 0;
                    for value in values {
                        before = before.wrapping_add(<$type>::from_ne_bytes(*value));
                        *value = before.to_ne_bytes();
                    }
                })*
                _ => {}
            }
        };
    }
    each!(1 u8, 2 u16, 4 u32, 8 u64);
}

/// Floats from their bytes by significance, the most significant of all first.
fn join_bytes(row: &mut [u8], element: usize, room: &mut Vec<u8>) {
    let mut before = 0_u8;
    for byte in row.iter_mut() {
        before = before.wrapping_add(*byte);
        *byte = before;
    }
    room.clear();
    room.extend_from_slice(row);
    let count = row.len() / element;
    for (x, value) in row.chunks_exact_mut(element).enumerate() {
        for (significance, byte) in value.iter_mut().enumerate() {
            let place = if cfg!(target_endian = "big") {
                significance
            } else {
                element - 1 - significance
            };
            *byte = room[place * count + x];
        }
    }
}

/// Pixels of one bit, rows starting at bytes, become bytes of 0 and 1.
pub(super) fn unpack(bits: &[u8], pixels: &mut [u8], width: usize, low_bit_first: bool) {
    let rows = pixels.chunks_exact_mut(width);
    for (bits, row) in bits.chunks_exact(width.div_ceil(8)).zip(rows) {
        for (x, pixel) in row.iter_mut().enumerate() {
            let place = if low_bit_first { x % 8 } else { 7 - x % 8 };
            *pixel = bits[x / 8] >> place & 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_literals_come_apart() {
        // The example of the specification.
        let stored = [
            0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7,
            0xaa,
        ];
        let mut out = [0; 24];
        assert_eq!(pack_bits(&stored, &mut out), 24);
        assert_eq!(out[..7], [0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa]);
        assert_eq!(pack_bits(&[0x80, 0x05, 1, 2], &mut out), 2);
        assert_eq!(pack_bits(&[0xff], &mut out), 0);
    }

    #[test]
    fn differences_are_summed_in_their_own_width() {
        let mut row = [1, 0, 255, 255, 0, 1];
        sum(&mut row, 2);
        assert_eq!(row, [1, 0, 0, 0, 0, 1]);
        let mut row = [250, 10, 1];
        sum(&mut row, 1);
        assert_eq!(row, [250, 4, 5]);
    }

    #[test]
    fn bits_come_apart_from_either_end() {
        let mut pixels = [9; 10];
        unpack(&[0b1000_0010, 0b0100_0000], &mut pixels, 10, false);
        assert_eq!(pixels, [1, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
        unpack(&[0b1000_0010, 0b0000_0010], &mut pixels, 10, true);
        assert_eq!(pixels, [0, 1, 0, 0, 0, 0, 0, 1, 0, 1]);
    }
}
