//! How chunks are stored: a chain of codecs.

use std::io::Read as _;

use flate2::bufread::MultiGzDecoder;
use serde_json::Value;
use zstd::stream::raw::Decoder as ZstdDecoder;

use super::blosc;
use crate::error::Fault;
use crate::region::index;
use crate::store::make_room;
use crate::tiff::{swap, unzstd};

/// A codec that makes bytes of bytes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Pack {
    Zstd { level: i32, checksum: bool },
    Gzip,
    Blosc,
    Crc32c,
}

/// From a chunk to the bytes in the file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Chain {
    /// Orders of axes, one after another.
    pub(super) turns: Vec<Vec<usize>>,
    pub(super) body: Body,
    pub(super) packs: Vec<Pack>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Body {
    /// Elements one after another.
    Bytes { big_endian: bool },
    /// Smaller chunks, with an index.
    Shard(Box<Shard>),
}

/// Chunks that share a file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Shard {
    pub(super) chunk: Vec<u64>,
    pub(super) chain: Chain,
    pub(super) index: Chain,
    pub(super) index_first: bool,
}

fn unread(what: String) -> Fault {
    Fault::Unread {
        what,
        instead: "write it with the codecs bytes, transpose, sharding_indexed, zstd, gzip, blosc \
                  and crc32c"
            .into(),
    }
}

/// The name of an extension and what it is set to: `"bytes"` or `{"name": "bytes"}`.
pub(super) fn named(value: &Value) -> Result<(&str, &Value), Fault> {
    let name = value.get("name").unwrap_or(value).as_str();
    let name = name.ok_or_else(|| Fault::damaged("an extension without a name"))?;
    Ok((name, value.get("configuration").unwrap_or(&Value::Null)))
}

pub(super) fn extents(value: &Value, what: &str) -> Result<Vec<u64>, Fault> {
    let list = value.as_array().map(|list| {
        let extents: Option<Vec<u64>> = list.iter().map(Value::as_u64).collect();
        extents
    });
    list.flatten()
        .ok_or_else(|| Fault::damaged(format!("its {what} is no list of whole numbers")))
}

impl Chain {
    /// The chain that a list of codecs is, for chunks of so many axes.
    pub(super) fn parse(list: &Value, rank: usize) -> Result<Self, Fault> {
        Self::parse_at(list, rank, true)
    }

    fn parse_at(list: &Value, rank: usize, may_shard: bool) -> Result<Self, Fault> {
        let list = list
            .as_array()
            .ok_or_else(|| Fault::damaged("it has no list of codecs"))?;
        let (mut turns, mut body, mut packs) = (Vec::new(), None, Vec::new());
        for codec in list {
            let (name, set) = named(codec)?;
            match name {
                "transpose" if body.is_none() => turns.push(turn(set, rank)?),
                "bytes" if body.is_none() => {
                    let big_endian = match set.get("endian").and_then(Value::as_str) {
                        None | Some("little") => false,
                        Some("big") => true,
                        Some(other) => return Err(unread(format!("bytes of order `{other}`"))),
                    };
                    body = Some(Body::Bytes { big_endian });
                }
                "sharding_indexed" if body.is_none() && may_shard && turns.is_empty() => {
                    body = Some(Body::Shard(Box::new(Shard::parse(set, rank)?)));
                }
                "zstd" if body.is_some() => packs.push(Pack::Zstd {
                    level: 0,
                    checksum: false,
                }),
                "gzip" if body.is_some() => packs.push(Pack::Gzip),
                "blosc" if body.is_some() => packs.push(Pack::Blosc),
                "crc32c" if body.is_some() => packs.push(Pack::Crc32c),
                "sharding_indexed" => return Err(unread("shards within shards".into())),
                other => return Err(unread(format!("chunks made by the codec `{other}`"))),
            }
        }
        let body = body.ok_or_else(|| Fault::damaged("its codecs make no bytes of chunks"))?;
        if matches!(body, Body::Shard(_)) && !packs.is_empty() {
            return Err(unread("shards that are compressed as a whole".into()));
        }
        Ok(Self { turns, body, packs })
    }

    /// Makes of what is in `stored` the chunk of this extent, in C order, in `stored` again; the
    /// others are room.
    pub(super) fn decode(
        &self,
        extent: &[u64],
        element: usize,
        stored: &mut Vec<u8>,
        room: &mut Vec<u8>,
        more: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let wanted = extent
            .iter()
            .try_fold(element as u64, |bytes, extent| bytes.checked_mul(*extent))
            .ok_or_else(|| Fault::damaged("its chunks have no sensible size"))?;
        for pack in self.packs.iter().rev() {
            pack.undo(stored, room, more, wanted)?;
            std::mem::swap(stored, room);
        }
        if stored.len() as u64 != wanted {
            return Err(Fault::damaged(format!(
                "a chunk has {} bytes, not {wanted}",
                stored.len()
            )));
        }
        if let Body::Bytes { big_endian } = self.body
            && big_endian != cfg!(target_endian = "big")
        {
            swap(stored, element);
        }
        for (at, order) in self.turns.iter().enumerate().rev() {
            // The extent before this turn.
            let before = self.turns[..at]
                .iter()
                .fold(extent.to_vec(), |extent, order| {
                    order.iter().map(|axis| extent[*axis]).collect()
                });
            make_room(room, wanted)?;
            turn_back(stored, room, &before, order, element);
            std::mem::swap(stored, room);
        }
        Ok(())
    }
}

impl Shard {
    fn parse(set: &Value, rank: usize) -> Result<Self, Fault> {
        let none = &Value::Null;
        let part = |name| set.get(name).unwrap_or(none);
        let chunk = extents(part("chunk_shape"), "shard's chunk_shape")?;
        if chunk.len() != rank || chunk.contains(&0) {
            return Err(Fault::damaged("its shards have chunks of another rank"));
        }
        let index = Chain::parse_at(part("index_codecs"), rank + 1, false)?;
        let is_plain =
            index.turns.is_empty() && index.packs.iter().all(|pack| *pack == Pack::Crc32c);
        if !is_plain {
            return Err(unread("shards whose index is compressed".into()));
        }
        Ok(Self {
            chunk,
            chain: Chain::parse_at(part("codecs"), rank, false)?,
            index,
            index_first: part("index_location").as_str() == Some("start"),
        })
    }

    /// Bytes of the index of so many chunks.
    pub(super) fn index_bytes(&self, chunks: u64) -> Option<u64> {
        chunks
            .checked_mul(16)?
            .checked_add(4 * self.index.packs.len() as u64)
    }
}

fn turn(set: &Value, rank: usize) -> Result<Vec<usize>, Fault> {
    let order = extents(set.get("order").unwrap_or(&Value::Null), "order of axes")?;
    let order: Vec<usize> = order.into_iter().map(index).collect();
    let is_order = order.len() == rank && (0..rank).all(|axis| order.contains(&axis));
    if !is_order {
        return Err(Fault::damaged("its order of axes is none"));
    }
    Ok(order)
}

/// Undoes one change of the order of axes: `extent` is that of `to`.
fn turn_back(from: &[u8], to: &mut [u8], extent: &[u64], order: &[usize], element: usize) {
    let rank = extent.len();
    // Bytes between neighbours in `from` along each axis of `to`.
    let mut strides = vec![0; rank];
    let mut stride = element;
    for axis in order.iter().rev() {
        strides[*axis] = stride;
        stride *= index(extent[*axis]);
    }
    let mut count = vec![0; rank];
    let mut place = 0;
    for element in to.chunks_exact_mut(element) {
        let width = element.len();
        element.copy_from_slice(&from[place..place + width]);
        for at in (0..rank).rev() {
            count[at] += 1;
            place += strides[at];
            if count[at] < extent[at] {
                break;
            }
            place -= strides[at] * index(extent[at]);
            count[at] = 0;
        }
    }
}

impl Pack {
    /// What `stored` was, into `out`; at the end `wanted` bytes have to be left.
    fn undo(
        &self,
        stored: &[u8],
        out: &mut Vec<u8>,
        room: &mut Vec<u8>,
        wanted: u64,
    ) -> Result<(), Fault> {
        // Another codec before may have made it a little longer; nothing makes it longer than this.
        let most = (wanted + wanted / 8).saturating_add(4096);
        let most = most.min((stored.len() as u64).saturating_mul(1 << 15));
        let long = || Fault::Absurd {
            what: "a chunk".into(),
            claimed: wanted,
            length: stored.len() as u64,
        };
        match self {
            Self::Crc32c => {
                let (bytes, sum) = stored
                    .split_last_chunk::<4>()
                    .ok_or_else(|| Fault::damaged("a chunk is shorter than its check sum"))?;
                if crc32c(bytes) != u32::from_le_bytes(*sum) {
                    return Err(Fault::damaged("the check sum of a chunk is wrong"));
                }
                out.clear();
                out.extend_from_slice(bytes);
            }
            Self::Zstd { .. } => {
                make_room(out, most)?;
                let mut decoder = ZstdDecoder::new().map_err(|error| Fault::open(&error))?;
                let done = unzstd(&mut decoder, stored, out)?;
                out.truncate(done);
            }
            Self::Gzip => {
                make_room(out, 0)?;
                let mut decoder = MultiGzDecoder::new(stored).take(most);
                decoder
                    .read_to_end(out)
                    .map_err(|error| Fault::damaged(format!("gzip: {error}")))?;
            }
            Self::Blosc => {
                let length = blosc::length(stored)?;
                if length as u64 > most {
                    return Err(long());
                }
                make_room(out, length as u64)?;
                blosc::decode(stored, out, room)?;
            }
        }
        Ok(())
    }

    /// What `bytes` become.
    pub(super) fn apply(&self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Zstd { level, checksum } => {
                let mut encoder = zstd::bulk::Compressor::new(*level)?;
                encoder.include_checksum(*checksum)?;
                encoder.compress(bytes)
            }
            Self::Crc32c => {
                let mut sealed = bytes.to_vec();
                sealed.extend(crc32c(bytes).to_le_bytes());
                Ok(sealed)
            }
            Self::Gzip | Self::Blosc => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Castagnoli's check sum.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            #[expect(clippy::cast_possible_truncation, reason = "at most 255")]
            let mut sum = at as u32;
            let mut bit = 0;
            while bit < 8 {
                sum = (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
                bit += 1;
            }
            table[at] = sum;
            at += 1;
        }
        table
    };
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (sum >> 8) ^ TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)]
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_sum_is_castagnoli_s() {
        // The value that the codec's specification and RFC 3720 give.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn turns_are_undone() {
        // 2x3, stored as 3x2.
        let mut out = [0; 6];
        turn_back(&[0, 3, 1, 4, 2, 5], &mut out, &[2, 3], &[1, 0], 1);
        assert_eq!(out, [0, 1, 2, 3, 4, 5]);
    }
}
