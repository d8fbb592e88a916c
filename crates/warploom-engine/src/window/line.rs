//! Extremes of windows along a row of small integers.
//!
//! A vector of them is as many rows as would have to be turned at once, too many for the
//! registers. The row is halved onto itself instead: the extremes of 2, 4, 8, ... neighbours, until
//! two such runs cover the window. Which order integers are compared in does not show.

use fearless_simd::prelude::*;

use warploom_flow::Boundary;

use super::super::block::{Block, Rows, RowsMut};
use super::super::lanes::{Lane, Simd, Vector, greater, lesser, load, store};

/// The least, or with `MAX` the greatest, of the window around each pixel of each row.
#[inline(always)]
pub(crate) fn extremes<S: Simd, T: Lane, const MAX: bool>(
    simd: S,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    width: usize,
    boundary: Boundary,
    memory: &mut Block,
) {
    let lanes = Vector::<S, T>::LEN;
    let window = 2 * radius + 1;
    let length = width + 2 * radius;
    let line = memory.reserve::<T>(length + 2 * lanes);
    for (&from, &to) in src.starts.iter().zip(dst.starts) {
        let row = &src.data[from..from + width];
        pad(row, radius, boundary, &mut line[..length]);
        let mut span = 1;
        while 2 * span <= window {
            // Later pixels are read before they are overwritten.
            halve::<S, T, MAX>(simd, line, 0, span, length);
            span *= 2;
        }
        let mut x = 0;
        while x < width {
            let a: Vector<S, T> = load(simd, line, x);
            let b = load(simd, line, x + window - span);
            let both = if MAX { greater(a, b) } else { lesser(a, b) };
            store(both, dst.data, to + x);
            x += lanes;
        }
    }
}

#[inline(always)]
fn halve<S: Simd, T: Lane, const MAX: bool>(
    simd: S,
    line: &mut [T],
    start: usize,
    span: usize,
    length: usize,
) {
    let mut x = start;
    while x + span < length {
        let a: Vector<S, T> = load(simd, line, x);
        let b = load(simd, line, x + span);
        store(if MAX { greater(a, b) } else { lesser(a, b) }, line, x);
        x += Vector::<S, T>::LEN;
    }
}

/// A row with what lies `radius` pixels to both sides of it.
fn pad<T: Lane>(row: &[T], radius: usize, boundary: Boundary, line: &mut [T]) {
    let width = row.len();
    line[radius..radius + width].copy_from_slice(row);
    let outside = |at: i64| {
        let source = boundary.source(at, width as i64);
        source.map_or(T::ZERO, |at| row[at as usize])
    };
    for i in 0..radius {
        line[i] = outside(i as i64 - radius as i64);
        line[radius + width + i] = outside((width + i) as i64);
    }
}
