//! Masks of one bit a pixel.

use rayon::prelude::*;

use crate::cpu::label::{Connectivity, pack_bits};
use crate::cpu::share::for_rows;
use crate::cpu::{Pixel, View, ViewMut};

/// Words that are worth a task of their own.
const TASK: usize = 4096;

/// A mask; bits behind the end of a row are 0.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// Where the next step's result goes.
    other: Vec<u64>,
    dims: [usize; 3],
    /// Words in a row.
    pitch: usize,
}

impl Bits {
    /// The bits of a mask, or of what is not set in it.
    pub(super) fn pack<T: Pixel>(mask: View<'_, T>, inverted: bool) -> Self {
        let dims @ [nz, ny, nx] = mask.dims();
        let pitch = nx.div_ceil(64).max(1);
        let mut words = vec![0; nz * ny * pitch];
        let flip = if inverted { u64::MAX } else { 0 };
        for_rows(ViewMut::packed(&mut words, [nz, ny, pitch]), |z, y, row| {
            for (word, block) in row.iter_mut().zip(mask.row(z, y).chunks(64)) {
                *word = pack_bits(block) ^ flip;
            }
            clear_tail(row, nx);
        });
        let other = vec![0; words.len()];
        Self {
            words,
            other,
            dims,
            pitch,
        }
    }

    /// Zeros and ones, or the other way round.
    pub(super) fn unpack(&self, inverted: bool, out: ViewMut<'_, u8>) {
        let flip = if inverted { u64::MAX } else { 0 };
        let [_, ny, _] = self.dims;
        for_rows(out, |z, y, row| {
            let words = &self.words[(z * ny + y) * self.pitch..];
            for (pixels, &word) in row.chunks_mut(64).zip(words) {
                let word = word ^ flip;
                let mut bytes = [0_u8; 64];
                for (at, eight) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                    // Eight copies of a byte, of each of which another bit is kept.
                    let copies = (word >> (8 * at) & 0xff).wrapping_mul(0x0101_0101_0101_0101);
                    let kept = copies & 0x8040_2010_0804_0201;
                    let ones = ((kept + 0x7f7f_7f7f_7f7f_7f7f) | kept) >> 7;
                    *eight = (ones & 0x0101_0101_0101_0101).to_le_bytes();
                }
                pixels.copy_from_slice(&bytes[..pixels.len()]);
            }
        });
    }

    /// Sets what is not set and clears what is.
    pub(super) fn invert(&mut self) {
        let nx = self.dims[2];
        self.words
            .par_chunks_mut(self.pitch)
            .with_min_len(TASK / self.pitch + 1)
            .for_each(|row| {
                for word in row.iter_mut() {
                    *word = !*word;
                }
                clear_tail(row, nx);
            });
    }

    /// Adds everything within `iterations` steps.
    pub(super) fn dilate(&mut self, shape: Connectivity, iterations: usize) {
        let [nz, ny, nx] = self.dims;
        if self.words.is_empty() {
            return;
        }
        match shape {
            Connectivity::Box => {
                self.dilate_x(iterations.min(nx - 1));
                self.dilate_rows(iterations.min(ny - 1), false);
                self.dilate_rows(iterations.min(nz - 1), true);
            }
            Connectivity::Diamond => {
                // No pixel is farther from any other than all axes together are long.
                for _ in 0..iterations.min(nz + ny + nx) {
                    if !self.grow() {
                        break;
                    }
                }
            }
        }
    }

    /// Along x: windows of 2, 4, 8, ... pixels, each from two of the windows before.
    fn dilate_x(&mut self, reach: usize) {
        let nx = self.dims[2];
        if reach == 0 {
            return;
        }
        let rows = self.words.par_chunks_mut(self.pitch);
        rows.with_min_len(TASK / self.pitch + 1).for_each_init(
            || vec![0_u64; nx.div_ceil(64)],
            |ahead, row| {
                ahead.copy_from_slice(row);
                let mut window = 1;
                while window <= reach {
                    let shift = window.min(reach + 1 - window);
                    or_from_right(ahead, shift);
                    or_from_left(row, shift);
                    window += shift;
                }
                for (word, &ahead) in row.iter_mut().zip(ahead.iter()) {
                    *word |= ahead;
                }
                clear_tail(row, nx);
            },
        );
    }

    /// Along y, or z (`deep`), in the same way.
    fn dilate_rows(&mut self, reach: usize, deep: bool) {
        if reach == 0 {
            return;
        }
        let original = self.words.clone();
        let mut window = 1;
        while window <= reach {
            let shift = window.min(reach + 1 - window);
            self.or_rows(shift, deep, true);
            window += shift;
        }
        let ahead = std::mem::replace(&mut self.words, original);
        let mut window = 1;
        while window <= reach {
            let shift = window.min(reach + 1 - window);
            self.or_rows(shift, deep, false);
            window += shift;
        }
        for (word, ahead) in self.words.iter_mut().zip(ahead) {
            *word |= ahead;
        }
    }

    /// Adds to every row the row `shift` places ahead or behind on its axis.
    fn or_rows(&mut self, shift: usize, deep: bool, ahead: bool) {
        let [nz, ny, _] = self.dims;
        let stride = if deep { ny } else { 1 };
        let (words, pitch) = (&self.words, self.pitch);
        let rows = self.other.par_chunks_mut(pitch).enumerate();
        rows.with_min_len(TASK / pitch + 1).for_each(|(row, out)| {
            let (at, length) = if deep { (row / ny, nz) } else { (row % ny, ny) };
            let from = &words[row * pitch..][..pitch];
            let other = if ahead {
                (at + shift < length).then(|| row + shift * stride)
            } else {
                (at >= shift).then(|| row - shift * stride)
            };
            let Some(other) = other else {
                return out.copy_from_slice(from);
            };
            let other = &words[other * pitch..][..pitch];
            for ((out, &a), &b) in out.iter_mut().zip(from).zip(other) {
                *out = a | b;
            }
        });
        std::mem::swap(&mut self.words, &mut self.other);
    }

    /// Adds the neighbours that share a side; answers whether anything was added.
    fn grow(&mut self) -> bool {
        let [nz, ny, nx] = self.dims;
        let (words, pitch) = (&self.words, self.pitch);
        let rows = self.other.par_chunks_mut(pitch).enumerate();
        let changed = rows.with_min_len(TASK / pitch + 1).map(|(row, out)| {
            let (z, y) = (row / ny, row % ny);
            let from = &words[row * pitch..][..pitch];
            for at in 0..pitch {
                let left = if at > 0 { from[at - 1] >> 63 } else { 0 };
                let right = if at + 1 < pitch {
                    from[at + 1] << 63
                } else {
                    0
                };
                out[at] = from[at] | from[at] << 1 | left | from[at] >> 1 | right;
            }
            let near = [
                (y > 0).then(|| row - 1),
                (y + 1 < ny).then(|| row + 1),
                (z > 0).then(|| row.wrapping_sub(ny)),
                (z + 1 < nz).then(|| row + ny),
            ];
            for other in near.into_iter().flatten() {
                for (out, &word) in out.iter_mut().zip(&words[other * pitch..][..pitch]) {
                    *out |= word;
                }
            }
            clear_tail(out, nx);
            from != out
        });
        let changed = changed.reduce(|| false, |a, b| a | b);
        std::mem::swap(&mut self.words, &mut self.other);
        changed
    }
}

/// Clears the bits behind the last pixel.
fn clear_tail(row: &mut [u64], nx: usize) {
    if !nx.is_multiple_of(64)
        && let Some(last) = row.last_mut()
    {
        *last &= (1 << (nx % 64)) - 1;
    }
}

/// Adds to every bit the one `shift` places to its right.
fn or_from_right(row: &mut [u64], shift: usize) {
    let (words, bits) = (shift / 64, shift % 64);
    for at in 0..row.len() {
        let near = row.get(at + words).copied().unwrap_or(0);
        let far = row.get(at + words + 1).copied().unwrap_or(0);
        row[at] |= if bits == 0 {
            near
        } else {
            near >> bits | far << (64 - bits)
        };
    }
}

/// Adds to every bit the one `shift` places to its left.
fn or_from_left(row: &mut [u64], shift: usize) {
    let (words, bits) = (shift / 64, shift % 64);
    for at in (words..row.len()).rev() {
        let near = row[at - words];
        let far = if at > words { row[at - words - 1] } else { 0 };
        row[at] |= if bits == 0 {
            near
        } else {
            near << bits | far >> (64 - bits)
        };
    }
}
