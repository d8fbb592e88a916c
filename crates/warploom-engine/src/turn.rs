//! Passes along x by way of turned tiles.
//!
//! Along a row, neighbours share a vector, and reading them means loads that straddle cache lines.
//! A tile of as many rows as a vector has lanes is turned instead, so that a vector holds one column
//! and x runs down; then the kernels for columns do the work, and the result is turned back.

use fearless_simd::prelude::*;

use warploom_flow::Boundary;

use super::block::{Block, Rows, RowsMut};
use super::lanes::{Lane, Simd, Vector, load, store, vectors};

/// The turned tiles; kept between calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    tile: Block,
    result: Block,
    starts: Vec<usize>,
}

impl Turn {
    /// Its memory, for those who need a line of their own.
    pub(crate) fn memory(&mut self) -> &mut Block {
        &mut self.tile
    }
}

/// What a pass along x looks like: `width` pixels, of which each result needs those from `before`
/// to the left to `after` to the right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) width: usize,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) boundary: Boundary,
    /// Tiles start at multiples of this.
    pub(crate) grain: usize,
}

/// Columns of a tile when nothing else decides: with the result it fills half of a small L1 cache.
const COLUMNS: usize = 192;

/// Rows become columns, of a square as wide as a vector.
#[inline(always)]
pub(crate) fn square<S: Simd, V: SimdBase<S>>(mut rows: [V; 16]) -> [V; 16] {
    // Each round moves one bit of the column number into the row number.
    let mut span = 1;
    while span < V::LEN {
        let old = rows;
        for i in 0..V::LEN / 2 {
            rows[2 * i] = old[i].zip_low(old[i + V::LEN / 2]);
            rows[2 * i + 1] = old[i].zip_high(old[i + V::LEN / 2]);
        }
        span *= 2;
    }
    rows
}

/// One pass along x over all rows of `src`; `column` is told where its first result lies.
///
/// Rows of `src` and `dst` have room for whole vectors beyond their width.
#[inline(always)]
pub(crate) fn pass<S: Simd, T: Lane>(
    simd: S,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    reach: Reach,
    turn: &mut Turn,
    mut column: impl FnMut(S, Rows<'_, T>, &mut RowsMut<'_, T>, usize),
) {
    let lanes = Vector::<S, T>::LEN;
    debug_assert!(lanes <= 16, "a tile of {lanes} rows");
    let Reach {
        width,
        before,
        after,
        grain,
        ..
    } = reach;
    let columns = (COLUMNS.div_ceil(grain) * grain).min(width);
    let halo = before + after;
    turn.tile.reserve::<T>((columns + halo + lanes) * lanes);
    turn.result.reserve::<T>((columns + lanes) * lanes);
    turn.starts.clear();
    turn.starts.extend((0..columns + halo).map(|p| p * lanes));
    for first in (0..src.starts.len()).step_by(lanes) {
        let count = lanes.min(src.starts.len() - first);
        let inputs = Rows {
            data: src.data,
            starts: &src.starts[first..first + count],
        };
        let mut x = 0;
        while x < width {
            let here = columns.min(width - x);
            let tile = turn.tile.as_mut_slice::<T>();
            let known = if x == 0 { 0 } else { halo };
            if x > 0 {
                tile.copy_within(columns * lanes..(columns + halo) * lanes, 0);
            }
            fill(simd, inputs, tile, x, known, here + halo, reach);
            let mut results = RowsMut {
                data: turn.result.as_mut_slice::<T>(),
                starts: &turn.starts[..here],
            };
            let tile = Rows {
                data: turn.tile.as_slice::<T>(),
                starts: &turn.starts[..here + halo],
            };
            column(simd, tile, &mut results, x);
            let outputs = &dst.starts[first..first + count];
            give_back(simd, results.data, here, x, outputs, dst.data);
            x += here;
        }
    }
}

/// Positions `from..to` of the tile whose first result is at `x`.
#[inline(always)]
fn fill<S: Simd, T: Lane>(
    simd: S,
    src: Rows<'_, T>,
    tile: &mut [T],
    x: usize,
    from: usize,
    to: usize,
    reach: Reach,
) {
    let lanes = Vector::<S, T>::LEN;
    let Reach {
        width,
        before,
        boundary,
        ..
    } = reach;
    // Position p shows column x + p - before.
    let inside = before.saturating_sub(x).max(from)..(width + before - x).min(to);
    let mut edge = |positions: std::ops::Range<usize>| {
        for p in positions {
            let column = (x + p).cast_signed() - before.cast_signed();
            let column = boundary.source(column as i64, width as i64);
            for lane in 0..lanes {
                let row = src.starts[lane.min(src.starts.len() - 1)];
                tile[p * lanes + lane] = match column {
                    Some(column) => src.data[row + column as usize],
                    None => T::default(),
                };
            }
        }
    };
    if inside.start >= inside.end {
        edge(from..to);
        return;
    }
    edge(from..inside.start);
    edge(inside.end..to);
    let mut p = inside.start;
    while p < inside.end {
        let column = x + p - before;
        // The rows' padding and the tile's spare positions take what a last vector has too much.
        let rows = vectors(|lane| {
            let row = src.starts[lane.min(src.starts.len() - 1)];
            load::<S, Vector<S, T>>(
                simd,
                src.data,
                if lane < lanes { row + column } else { row },
            )
        });
        let turned = square(rows);
        let wanted = lanes.min(inside.end - p);
        for (position, vector) in turned.iter().enumerate().take(wanted) {
            store(*vector, tile, (p + position) * lanes);
        }
        p += lanes;
    }
}

/// Turns `count` results back into the rows they belong to.
#[inline(always)]
fn give_back<S: Simd, T: Lane>(
    simd: S,
    results: &[T],
    count: usize,
    x: usize,
    starts: &[usize],
    dst: &mut [T],
) {
    let lanes = Vector::<S, T>::LEN;
    let mut p = 0;
    while p < count {
        let columns = vectors(|column| {
            let column = if column < lanes { p + column } else { p };
            load::<S, Vector<S, T>>(simd, results, column * lanes)
        });
        let rows = square(columns);
        for (row, &start) in rows.iter().zip(starts) {
            store(*row, dst, start + x + p);
        }
        p += lanes;
    }
}
