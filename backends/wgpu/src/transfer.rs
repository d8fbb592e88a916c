//! How bytes at any offset are copied by a device that copies only whole words.

/// wgpu copies multiples of this, from and to multiples of this.
pub(crate) const WORD: u64 = wgpu::COPY_BUFFER_ALIGNMENT;

/// Part of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) how: How,
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// The device's own copy; everything is a multiple of [`WORD`].
    Words,
    /// The kernel below.
    Bytes,
}

/// Splits a copy of `len` bytes into at most three pieces. wgpu's own copy does not take one buffer
/// as both source and destination, so there the kernel does it all.
pub(crate) fn plan(src: u64, dst: u64, len: u64, one_buffer: bool) -> impl Iterator<Item = Piece> {
    let head = (WORD - dst % WORD) % WORD;
    let aligned = src % WORD == dst % WORD && !one_buffer;
    let words = len.saturating_sub(head) / WORD * WORD;
    let parts = if aligned && words > 0 {
        [
            (How::Bytes, head),
            (How::Words, words),
            (How::Bytes, len - head - words),
        ]
    } else {
        [(How::Bytes, len), (How::Words, 0), (How::Words, 0)]
    };
    let mut done = 0;
    parts.into_iter().filter_map(move |(how, len)| {
        let piece = Piece {
            how,
            src: src + done,
            dst: dst + done,
            len,
        };
        done += len;
        (len > 0).then_some(piece)
    })
}

/// Work items in a group of [`SPLICE`].
pub(crate) const GROUP: u32 = 256;

/// The most bytes one launch of [`SPLICE`] copies: offsets stay far within 32 bits, and the groups
/// within every device's limit of 65 535.
pub(crate) const SPAN: u64 = 32 << 20;

/// Copies bytes between any two offsets. One work item makes one word of the destination, out of at
/// most two words of the source; the first and the last keep the bytes that are not part of the
/// copy. Nothing else runs on the device meanwhile, because submits run one after the other and
/// wgpu puts a barrier between launches, so no neighbour's byte is lost.
///
/// Source and destination may be one buffer, even one word: words are read and written whole, and
/// the source's bytes are written back as they were.
pub(crate) const SPLICE: &str = "
struct Span { src: u32, dst: u32, len: u32 }

@group(0) @binding(0) var<storage, read_write> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> span: Span;

// Offsets into the source are one word too large, so that the word before the first has one.
fn load(word: u32) -> u32 {
    if (word == 0u) { return 0u; }
    return src[word - 1u];
}

@compute @workgroup_size(256)
fn splice(@builtin(global_invocation_id) item: vec3<u32>) {
    let word = (span.dst >> 2u) + item.x;
    let first = word << 2u;
    let end = span.dst + span.len;
    if (first >= end) { return; }
    let origin = span.src + 4u + first - span.dst;
    let shift = (origin & 3u) << 3u;
    var value = load(origin >> 2u) >> shift;
    if (shift != 0u) { value |= load((origin >> 2u) + 1u) << (32u - shift); }
    var mask = 0xffffffffu;
    if (first < span.dst) { mask <<= (span.dst - first) << 3u; }
    if (first + 4u > end) { mask &= 0xffffffffu >> ((first + 4u - end) << 3u); }
    if (mask == 0xffffffffu) {
        dst[word] = value;
    } else {
        dst[word] = (dst[word] & ~mask) | (value & mask);
    }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_copy_and_words_are_aligned() {
        for src in 0..8 {
            for dst in 0..8 {
                for len in 1..24 {
                    for one_buffer in [false, true] {
                        let mut done = 0;
                        for piece in plan(src, dst, len, one_buffer) {
                            assert_eq!((piece.src, piece.dst), (src + done, dst + done));
                            if piece.how == How::Words {
                                let all = [piece.src, piece.dst, piece.len];
                                assert!(all.iter().all(|n| n % WORD == 0), "{piece:?}");
                                assert!(!one_buffer);
                            }
                            done += piece.len;
                        }
                        assert_eq!(done, len);
                    }
                }
            }
        }
    }

    #[test]
    fn a_large_aligned_copy_is_one_piece() {
        let pieces: Vec<_> = plan(8, 64, 1 << 30, false).collect();
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].how, How::Words);
    }
}
