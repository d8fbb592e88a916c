//! Blosc's container, version 1, as zarr writes it: blocks, split by the bytes of elements, each
//! compressed by one of several codecs after its bytes or bits were put apart.
//!
//! Only reading: what we write is compressed by zstd as a whole.

use flate2::{Decompress, FlushDecompress};
use zstd::stream::raw::Decoder as ZstdDecoder;

use crate::error::Fault;
use crate::tiff::unzstd;

const HEADER: usize = 16;

fn bad(what: impl std::fmt::Display) -> Fault {
    Fault::damaged(format!("Blosc: {what}"))
}

fn word(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    let word = u32::from_le_bytes(word.ok_or_else(|| bad("it ends too early"))?);
    Ok(word as usize)
}

/// How many bytes come out.
pub(super) fn length(stored: &[u8]) -> Result<usize, Fault> {
    word(stored, 4)
}

/// Fills `out`, which is as long as `length` says.
pub(super) fn decode(stored: &[u8], out: &mut [u8], room: &mut Vec<u8>) -> Result<(), Fault> {
    let [version, _, flags, type_size, ..] = *stored else {
        return Err(bad("it ends too early"));
    };
    if version > 2 {
        return Err(bad(format!("version {version} is not known")));
    }
    let block = word(stored, 8)?;
    if stored.len() < HEADER || word(stored, 12)? > stored.len() {
        return Err(bad("it ends too early"));
    }
    if flags & 2 != 0 {
        let bytes = stored.get(HEADER..HEADER + out.len());
        out.copy_from_slice(bytes.ok_or_else(|| bad("it ends too early"))?);
        return Ok(());
    }
    if out.is_empty() {
        return Ok(());
    }
    if block == 0 || type_size == 0 {
        return Err(bad("blocks or elements of no size"));
    }
    let type_size = usize::from(type_size);
    let has_shuffle = flags & 1 != 0 && type_size > 1;
    let has_bit_shuffle = flags & 4 != 0;
    room.resize(block.min(out.len()), 0);
    for (number, out) in out.chunks_mut(block).enumerate() {
        let at = word(stored, HEADER + 4 * number)?;
        let stored = stored
            .get(at..)
            .ok_or_else(|| bad("a block is elsewhere"))?;
        let splits =
            flags & 0x10 == 0 && type_size <= 16 && block / type_size >= 128 && out.len() == block;
        let parts = if splits { type_size } else { 1 };
        if has_shuffle || (has_bit_shuffle && out.len() >= type_size) {
            let room = &mut room[..out.len()];
            expand(flags >> 5, stored, room, parts)?;
            if has_shuffle {
                join_bytes(room, out, type_size);
            } else {
                join_bits(room, out, type_size);
            }
        } else {
            expand(flags >> 5, stored, out, parts)?;
        }
    }
    Ok(())
}

/// A block, in so many parts.
fn expand(codec: u8, stored: &[u8], out: &mut [u8], parts: usize) -> Result<(), Fault> {
    let mut at = 0;
    let part = out.len() / parts;
    for out in out.chunks_exact_mut(part.max(1)) {
        let size = word(stored, at)?;
        at += 4;
        let end = at.saturating_add(size);
        let stored = stored
            .get(at..end)
            .ok_or_else(|| bad("it ends too early"))?;
        at = end;
        if size == out.len() {
            out.copy_from_slice(stored);
            continue;
        }
        let done = match codec {
            0 => blosclz(stored, out),
            1 => lz4(stored, out),
            3 => {
                let mut decoder = Decompress::new(true);
                let done = decoder.decompress(stored, out, FlushDecompress::Finish);
                done.map_err(bad)?;
                usize::try_from(decoder.total_out()).ok()
            }
            4 => {
                let mut decoder = ZstdDecoder::new().map_err(|error| Fault::open(&error))?;
                Some(unzstd(&mut decoder, stored, out)?)
            }
            other => {
                return Err(Fault::Unread {
                    what: format!("Blosc with codec {other}"),
                    instead: "write it with zstd, lz4 or zlib".into(),
                });
            }
        };
        if done != Some(out.len()) {
            return Err(bad("a block does not have its length"));
        }
    }
    Ok(())
}

fn join_bytes(from: &[u8], to: &mut [u8], size: usize) {
    let count = from.len() / size;
    for (at, element) in to.chunks_exact_mut(size).enumerate() {
        for (significance, byte) in element.iter_mut().enumerate() {
            *byte = from[significance * count + at];
        }
    }
    let whole = count * size;
    to[whole..].copy_from_slice(&from[whole..]);
}

fn join_bits(from: &[u8], to: &mut [u8], size: usize) {
    let count = from.len() / size;
    // It leaves blocks alone whose elements do not fill bytes.
    if !count.is_multiple_of(8) {
        to.copy_from_slice(from);
        return;
    }
    let row = count / 8;
    for (at, element) in to.chunks_exact_mut(size).enumerate() {
        for (significance, byte) in element.iter_mut().enumerate() {
            *byte = (0..8).fold(0, |sum, bit| {
                let from = from[(significance * 8 + bit) * row + at / 8];
                sum | (from >> (at % 8) & 1) << bit
            });
        }
    }
    let whole = count * size;
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Appends `count` bytes that were written `back` bytes ago.
fn repeat(out: &mut [u8], at: usize, back: usize, count: usize) -> Option<usize> {
    let end = at.checked_add(count)?;
    if back == 0 || back > at || end > out.len() {
        return None;
    }
    for place in at..end {
        out[place] = out[place - back];
    }
    Some(end)
}

/// LZ4's blocks. How many bytes came out; `None` for nonsense.
fn lz4(stored: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut from, mut to) = (0_usize, 0_usize);
    let long = |from: &mut usize, mut length: usize| {
        if length == 15 {
            loop {
                let more = *stored.get(*from)?;
                *from += 1;
                length = length.checked_add(usize::from(more))?;
                if more < 255 {
                    break;
                }
            }
        }
        Some(length)
    };
    loop {
        let token = *stored.get(from)?;
        from += 1;
        let literals = long(&mut from, usize::from(token >> 4))?;
        let bytes = stored.get(from..from.checked_add(literals)?)?;
        out.get_mut(to..to.checked_add(literals)?)?
            .copy_from_slice(bytes);
        from += literals;
        to += literals;
        if from == stored.len() {
            return Some(to);
        }
        let back = u16::from_le_bytes([*stored.get(from)?, *stored.get(from + 1)?]);
        from += 2;
        let count = long(&mut from, usize::from(token & 15))? + 4;
        to = repeat(out, to, usize::from(back), count)?;
    }
}

/// Blosc's own codec.
fn blosclz(stored: &[u8], out: &mut [u8]) -> Option<usize> {
    const FAR: usize = 8191;
    let (mut from, mut to) = (1, 0);
    let mut head = usize::from(stored.first()? & 31);
    loop {
        if head >= 32 {
            let mut count = (head >> 5) - 1;
            let mut high = (head & 31) << 8;
            if count == 6 {
                loop {
                    let more = *stored.get(from)?;
                    from += 1;
                    count += usize::from(more);
                    if more < 255 {
                        break;
                    }
                }
            }
            let low = usize::from(*stored.get(from)?);
            from += 1;
            let mut back = high + low;
            if low == 255 && high == 31 << 8 {
                high = usize::from(*stored.get(from)?) << 8;
                back = high + usize::from(*stored.get(from + 1)?) + FAR;
                from += 2;
            }
            to = repeat(out, to, back + 1, count + 3)?;
        } else {
            let count = head + 1;
            let bytes = stored.get(from..from + count)?;
            out.get_mut(to..to + count)?.copy_from_slice(bytes);
            from += count;
            to += count;
        }
        match stored.get(from) {
            Some(next) => head = usize::from(*next),
            None => return Some(to),
        }
        from += 1;
    }
}
