//! Correlation along rows, or down columns and then along rows, by way of turned tiles.
//!
//! Along a row, neighbours share a vector, and reading them means loads that straddle cache lines. As
//! many rows as a vector has lanes are turned instead, so that a vector holds one column and x runs
//! down. Sums are turned back in registers. What is turned may be rows as they are, or sums of rows
//! that were never anywhere else.

use fearless_simd::prelude::*;
use warploom_flow::Boundary;

use super::super::block::{Rows, RowsMut};
use super::super::lanes::{Float, Reals, Simd, load, store};
use super::super::turn::{Turn, square};
use super::Taps;
use super::column::sums;

/// Columns that a tile moves on by: with it, what is read and what is written stay in a small first
/// cache.
const COLUMNS: usize = 192;

/// A correlation along the rows of `src`.
#[inline(always)]
pub(crate) fn rows<S: Simd, T: Float>(
    simd: S,
    src: Rows<'_, T>,
    taps: &Taps<T>,
    dst: &mut RowsMut<'_, T>,
    width: usize,
    boundary: Boundary,
    turn: &mut Turn,
) {
    for first in (0..dst.starts.len()).step_by(Reals::<S, T>::LEN) {
        let last = src.starts.len() - 1;
        group(
            simd,
            #[inline(always)]
            |x: usize| {
                let mut block = [Reals::<S, T>::splat(simd, T::default()); 16];
                for (row, vector) in block.iter_mut().enumerate().take(Reals::<S, T>::LEN) {
                    *vector = load(simd, src.data, src.starts[(first + row).min(last)] + x);
                }
                block
            },
            taps,
            dst,
            first,
            width,
            boundary,
            turn,
        );
    }
}

/// A correlation down the columns of `src` and along the rows of what comes out. Result `j` is made
/// of rows from `j` to `j + before + after` of `down`.
#[inline(always)]
pub(crate) fn plane<S: Simd, T: Float>(
    simd: S,
    src: Rows<'_, T>,
    [down, along]: [&Taps<T>; 2],
    dst: &mut RowsMut<'_, T>,
    width: usize,
    boundary: Boundary,
    turn: &mut Turn,
) {
    for first in (0..dst.starts.len()).step_by(Reals::<S, T>::LEN) {
        let last = src.starts.len() - 1;
        group(
            simd,
            #[inline(always)]
            |x: usize| {
                square_of_sums(
                    simd,
                    down,
                    #[inline(always)]
                    |row| load(simd, src.data, src.starts[(first + row).min(last)] + x),
                )
            },
            along,
            dst,
            first,
            width,
            boundary,
            turn,
        );
    }
}

/// As many sums as a vector has lanes, one below the other.
#[inline(always)]
fn square_of_sums<S: Simd, T: Float>(
    simd: S,
    taps: &Taps<T>,
    at: impl Fn(usize) -> Reals<S, T>,
) -> [Reals<S, T>; 16] {
    let lanes = Reals::<S, T>::LEN;
    let mut all = [Reals::<S, T>::splat(simd, T::default()); 16];
    // Eight sums want 24 registers; only the widest instruction set has more than 16.
    if lanes * size_of::<T>() == 64 {
        for first in (0..lanes).step_by(8) {
            let made: [_; 8] = sums(
                simd,
                taps,
                #[inline(always)]
                |row| at(first + row),
            );
            all[first..first + 8].copy_from_slice(&made);
        }
    } else if lanes >= 4 {
        for first in (0..lanes).step_by(4) {
            let made: [_; 4] = sums(
                simd,
                taps,
                #[inline(always)]
                |row| at(first + row),
            );
            all[first..first + 4].copy_from_slice(&made);
        }
    } else {
        let made: [_; 2] = sums(simd, taps, at);
        all[..2].copy_from_slice(&made);
    }
    all
}

/// The results of as many rows as a vector has lanes, from `first` on. `block` gives the vectors of
/// those rows that begin at a column; rows have room for whole vectors beyond their width.
#[inline(always)]
fn group<S: Simd, T: Float>(
    simd: S,
    block: impl Fn(usize) -> [Reals<S, T>; 16],
    taps: &Taps<T>,
    dst: &mut RowsMut<'_, T>,
    first: usize,
    width: usize,
    boundary: Boundary,
    turn: &mut Turn,
) {
    let lanes = Reals::<S, T>::LEN;
    let (before, after) = (taps.before(), taps.after());
    let halo = before + after;
    // Behind the tile is a block from which columns outside the image are taken.
    let aside = COLUMNS + halo + 2 * lanes;
    let tile = turn.memory().reserve::<T>((aside + lanes) * lanes);
    let starts = &dst.starts[first..dst.starts.len().min(first + lanes)];
    // Place p of all is column p - before; the tile begins at place `base`.
    let (mut base, mut filled) = (0, 0);
    let mut held = None;
    for x in (0..width).step_by(lanes) {
        if x - base > COLUMNS {
            tile.copy_within((x - base) * lanes..(filled - base) * lanes, 0);
            base = x;
        }
        // What is beyond the last column comes with it.
        let wanted = (x + lanes + halo).min(width + halo);
        while filled < wanted {
            let column = filled.cast_signed() - before.cast_signed();
            let Some(source) = boundary.source(column as i64, width as i64) else {
                tile[(filled - base) * lanes..][..lanes].fill(T::default());
                filled += 1;
                continue;
            };
            let source = source as usize;
            let is_inside = column == source.cast_signed();
            let start = source - source % lanes;
            if is_inside || held != Some(start) {
                let turned = square(block(start));
                let to = if is_inside { filled - base } else { aside };
                for (at, vector) in turned.iter().enumerate().take(lanes) {
                    store(*vector, tile, (to + at) * lanes);
                }
            }
            if is_inside {
                // Blocks begin at whole vectors; the last one may have too many columns.
                filled = (filled + lanes).min(width + before);
            } else {
                held = Some(start);
                let from = (aside + source - start) * lanes;
                tile.copy_within(from..from + lanes, (filled - base) * lanes);
                filled += 1;
            }
        }
        let rows = &tile[(x - base) * lanes..];
        let made = square_of_sums(
            simd,
            taps,
            #[inline(always)]
            |row| load(simd, rows, row * lanes),
        );
        for (row, &start) in square(made).iter().zip(starts) {
            store(*row, dst.data, start + x);
        }
    }
}
