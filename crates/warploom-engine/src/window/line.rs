//! Extremes of windows along a row.
//!
//! The row is folded onto itself: the extremes of 4, 16, 64, ... neighbours, until up to four such
//! runs cover the window. Runs overlap and are compared in another order than windows are defined
//! by, which shows in one case only: equal zeros of different sign. Rows with a negative zero are
//! left to others.

use fearless_simd::prelude::*;

use warploom_flow::Boundary;

use super::super::block::{Block, Rows, RowsMut};
use super::super::lanes::{Lane, Simd, Vector, greater, lesser, load, store};

/// The least, or with `MAX` the greatest, of the window around each pixel of the first row; nothing
/// and `false` when the row has a negative zero.
#[inline(always)]
pub(crate) fn extremes<S: Simd, T: Lane, const MAX: bool>(
    simd: S,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    width: usize,
    boundary: Boundary,
    memory: &mut Block,
) -> bool {
    let lanes = Vector::<S, T>::LEN;
    let window = 2 * radius + 1;
    let length = width + 2 * radius;
    // The last vectors read beyond the line, by a window at most.
    let line = memory.reserve::<T>(length + 2 * lanes);
    let row = &src.data[src.starts[0]..src.starts[0] + width];
    if !pad::<T, MAX>(row, radius, boundary, &mut line[..length]) {
        return false;
    }
    let mut span = 1;
    while 4 * span <= window {
        let mut x = 0;
        while x + 3 * span < length {
            // Later pixels are read before they are overwritten.
            let best = joined::<S, T, MAX, 4>(simd, line, x, [0, span, 2 * span, 3 * span]);
            store(best, line, x);
            x += lanes;
        }
        span *= 4;
    }
    let (last, to) = (window - span, dst.starts[0]);
    let out = &mut *dst.data;
    match window.div_ceil(span) {
        1 => finish::<S, T, MAX, 1>(simd, line, [0], out, to, width),
        2 => finish::<S, T, MAX, 2>(simd, line, [0, last], out, to, width),
        3 => finish::<S, T, MAX, 3>(simd, line, [0, span, last], out, to, width),
        _ => finish::<S, T, MAX, 4>(simd, line, [0, span, 2 * span, last], out, to, width),
    }
    true
}

#[inline(always)]
fn joined<S: Simd, T: Lane, const MAX: bool, const N: usize>(
    simd: S,
    line: &[T],
    x: usize,
    offsets: [usize; N],
) -> Vector<S, T> {
    let mut best: Vector<S, T> = load(simd, line, x + offsets[0]);
    for offset in &offsets[1..] {
        let next = load(simd, line, x + offset);
        best = if MAX {
            greater(best, next)
        } else {
            lesser(best, next)
        };
    }
    best
}

#[inline(always)]
fn finish<S: Simd, T: Lane, const MAX: bool, const N: usize>(
    simd: S,
    line: &[T],
    offsets: [usize; N],
    out: &mut [T],
    to: usize,
    width: usize,
) {
    let mut x = 0;
    while x < width {
        store(joined::<S, T, MAX, N>(simd, line, x, offsets), out, to + x);
        x += Vector::<S, T>::LEN;
    }
}

/// A row with what lies `radius` pixels to both sides of it, NaN replaced by where the search
/// starts; `false` when there is a negative zero.
#[inline(always)]
fn pad<T: Lane, const MAX: bool>(
    row: &[T],
    radius: usize,
    boundary: Boundary,
    line: &mut [T],
) -> bool {
    let width = row.len();
    let number = |pixel: T| {
        if MAX {
            T::LEAST.greater(pixel)
        } else {
            T::GREATEST.lesser(pixel)
        }
    };
    let middle = &mut line[radius..radius + width];
    if T::IS_FLOAT {
        for (to, &pixel) in middle.iter_mut().zip(row) {
            *to = number(pixel);
        }
    } else {
        middle.copy_from_slice(row);
    }
    // By itself, because the two together are not made of vectors.
    let negative = T::IS_FLOAT && has_negative_zero(row);
    let outside = |at: i64| {
        let source = boundary.source(at, width as i64);
        number(source.map_or(T::ZERO, |at| row[at as usize]))
    };
    for i in 0..radius {
        line[i] = outside(i as i64 - radius as i64);
        line[radius + width + i] = outside((width + i) as i64);
    }
    !negative
}

#[inline(always)]
fn has_negative_zero<T: Lane>(row: &[T]) -> bool {
    let zero = T::ZERO.key();
    // Keys are in the order of values, and there is none between the two zeros.
    row.iter().fold(false, |any, pixel| {
        any | (*pixel == T::ZERO && pixel.key() != zero)
    })
}
