//! Extremes of windows along a row.
//!
//! The row is folded onto itself: the extremes of 2, 4, 8, 16 neighbours in one go, whose vectors are
//! shifted in registers, since loads that straddle cache lines take twice as long; then those of 64, 256, ...,
//! until up to four such runs cover the window. Runs overlap and are compared in another order than windows
//! are defined by, which shows in one case only: equal zeros of different sign. Rows with a negative zero
//! are left to others.

use fearless_simd::prelude::*;

use warploom_flow::Boundary;

use super::super::block::Block;
use super::super::lanes::{Lane, Simd, Vector, greater, lesser, load, store};

/// The least, or with `MAX` the greatest, of the window around each pixel of a row; nothing and `false` when it has a
/// negative zero. The result has room for whole vectors beyond its width.
#[inline(always)]
pub(crate) fn extremes<S: Simd, T: Lane, const MAX: bool>(
    simd: S,
    radius: usize,
    row: &[T],
    out: &mut [T],
    boundary: Boundary,
    memory: &mut Block,
) -> bool {
    let width = row.len();
    let lanes = Vector::<S, T>::LEN;
    let window = 2 * radius + 1;
    let length = width + 2 * radius;
    // The last vectors read beyond the line, by a window at most or by as many vectors as are in registers.
    let line = memory.reserve::<T>(length + (LEVELS + 2) * lanes);
    if !pad::<T, MAX>(row, radius, boundary, &mut line[..length]) {
        return false;
    }
    let levels = window.min(lanes).min(1 << LEVELS).ilog2();
    match levels {
        0 | 1 => {}
        2 => doubled::<S, T, MAX, 2>(simd, line, length),
        3 => doubled::<S, T, MAX, 3>(simd, line, length),
        _ => doubled::<S, T, MAX, LEVELS>(simd, line, length),
    }
    let mut span = if levels < 2 { 1 } else { 1 << levels };
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
    let last = window - span;
    match window.div_ceil(span) {
        1 => finish::<S, T, MAX, 1>(simd, line, [0], out, width),
        2 => finish::<S, T, MAX, 2>(simd, line, [0, last], out, width),
        3 => finish::<S, T, MAX, 3>(simd, line, [0, span, last], out, width),
        _ => finish::<S, T, MAX, 4>(simd, line, [0, span, 2 * span, last], out, width),
    }
    true
}

/// How often runs are doubled in registers, at most.
const LEVELS: usize = 4;

/// The best of the `1 << N` pixels from each on takes its place. The line goes on for `N + 1` vectors.
///
/// Of every length of runs the last vector is kept: with the one behind it, it has all that the next length takes.
#[inline(always)]
fn doubled<S: Simd, T: Lane, const MAX: bool, const N: usize>(
    simd: S,
    line: &mut [T],
    length: usize,
) {
    let lanes = Vector::<S, T>::LEN;
    let mut ones: Vector<S, T> = load(simd, line, 0);
    let (mut twos, mut fours, mut eights) = (ones, ones, ones);
    let mut x = lanes;
    while x < length + N * lanes {
        let next = load(simd, line, x);
        let two = better::<S, T, MAX>(ones, ones.slide::<1>(next));
        ones = next;
        let four = better::<S, T, MAX>(twos, twos.slide::<2>(two));
        twos = two;
        let mut last = four;
        if N > 2 {
            let eight = better::<S, T, MAX>(fours, fours.slide::<4>(four));
            fours = four;
            last = eight;
            if N > 3 {
                last = better::<S, T, MAX>(eights, eights.slide::<8>(eight));
                eights = eight;
            }
        }
        // It lies as many vectors behind as there are lengths; what comes before is of the beginning.
        if x >= N * lanes {
            store(last, line, x - N * lanes);
        }
        x += lanes;
    }
}

#[inline(always)]
fn better<S: Simd, T: Lane, const MAX: bool>(a: Vector<S, T>, b: Vector<S, T>) -> Vector<S, T> {
    if MAX { greater(a, b) } else { lesser(a, b) }
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
        best = better::<S, T, MAX>(best, next);
    }
    best
}

#[inline(always)]
fn finish<S: Simd, T: Lane, const MAX: bool, const N: usize>(
    simd: S,
    line: &[T],
    offsets: [usize; N],
    out: &mut [T],
    width: usize,
) {
    let mut x = 0;
    while x < width {
        store(joined::<S, T, MAX, N>(simd, line, x, offsets), out, x);
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
    // Most often all of a side is the same pixel; to ask for each takes a tenth of the time of wide windows.
    let same = match boundary {
        Boundary::Clamp => Some([row[0], row[width - 1]]),
        Boundary::Zero => Some([T::ZERO; 2]),
        _ => None,
    };
    if let Some([first, last]) = same {
        line[..radius].fill(number(first));
        line[radius + width..].fill(number(last));
        return !negative;
    }
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
