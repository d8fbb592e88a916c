//! Memory for rows: aligned to vectors, kept between calls.

use bytemuck::{Pod, Zeroable};

use super::lanes::widest;

/// A cache line, which is also the widest vector.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory that starts at a cache line, for elements of any type. It only grows, so that a second
/// call allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    lines: Vec<Line>,
}

impl Block {
    /// Room for at least `count` elements; what they hold is left over from before.
    pub(crate) fn reserve<T: Pod>(&mut self, count: usize) -> &mut [T] {
        let lines = count.div_ceil(widest::<T>());
        if self.lines.len() < lines {
            self.lines.resize(lines, Line::zeroed());
        }
        self.as_mut_slice()
    }

    pub(crate) fn as_slice<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }

    pub(crate) fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

/// Elements from row to row for rows of `width`.
///
/// A whole number of vectors with one to spare, so that a vector may start at any pixel; and an odd
/// number of cache lines: rows a power of two apart share the few places of one cache set, and a
/// column of them would not stay in the cache.
pub(crate) const fn stride<T>(width: usize) -> usize {
    let lines = width.div_ceil(widest::<T>()) + 1;
    (lines | 1) * widest::<T>()
}

/// Rows to read: some memory, and where each row starts in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) starts: &'a [usize],
}

/// Rows to write.
#[derive(Debug)]
pub(crate) struct RowsMut<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) starts: &'a [usize],
}
