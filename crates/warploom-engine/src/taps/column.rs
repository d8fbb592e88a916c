//! Correlation down columns: every lane of a vector is a column of its own.
//!
//! Rows are given by where they start in one block of memory, so that rings, planes of a stack
//! and turned tiles are all served by the same code.

use std::ops::Range;

use fearless_simd::prelude::*;

use super::super::block::{Rows, RowsMut};
use super::super::lanes::{Float, Reals, Simd, load, store, vectors};
use super::Taps;

/// Output row `j` from input rows `j ..= j + before + after`, columns `0..width` rounded up to
/// whole vectors.
#[inline(always)]
pub(crate) fn correlate<S: Simd, T: Float>(
    simd: S,
    src: Rows<'_, T>,
    taps: &Taps<T>,
    dst: &mut RowsMut<'_, T>,
    width: usize,
) {
    // Eight rows want 24 registers; only the widest instruction set has more than 16.
    let many = Reals::<S, T>::LEN * size_of::<T>() == 64;
    for from in (0..width).step_by(COLUMNS) {
        let columns = from..width.min(from + COLUMNS);
        let mut done = 0;
        while done < dst.starts.len() {
            let rest = dst.starts.len() - done;
            done += if many && rest >= 8 {
                some::<S, T, 8>(simd, src, taps, dst, done, columns.clone())
            } else if rest >= 4 {
                some::<S, T, 4>(simd, src, taps, dst, done, columns.clone())
            } else {
                some::<S, T, 1>(simd, src, taps, dst, done, columns.clone())
            };
        }
    }
}

/// Columns that are finished for all rows before the next are begun: with the rows that a wide
/// kernel reads they stay in the first cache.
const COLUMNS: usize = 64;

/// `R` rows from row `first` on.
#[inline(always)]
fn some<S: Simd, T: Float, const R: usize>(
    simd: S,
    src: Rows<'_, T>,
    taps: &Taps<T>,
    dst: &mut RowsMut<'_, T>,
    first: usize,
    columns: Range<usize>,
) -> usize {
    let rows = &src.starts[first..first + taps.before() + taps.after() + R];
    let starts = &dst.starts[first..first + R];
    let mut x = columns.start;
    while x < columns.end {
        let at = |row: usize| load(simd, src.data, rows[row] + x);
        let sums: [Reals<S, T>; R] = sums(simd, taps, at);
        for j in 0..R {
            store(sums[j], dst.data, starts[j] + x);
        }
        x += Reals::<S, T>::LEN;
    }
    R
}

/// Does a block for `k`, `k + 1`, ... up to `R` times with the number of the round as a constant, until
/// it breaks: which register holds which row is then known, and no register is ever moved.
macro_rules! rounds {
    ($round:ident, $body:block) => {
        rounds!($round, $body, 0 1 2 3 4 5 6 7);
    };
    ($round:ident, $body:block, $($at:literal)*) => {$(
        if $at < R {
            let $round = $at;
            $body
        }
    )*};
}

/// `R` sums, one below the other; `at` gives the vectors of rows.
#[inline(always)]
pub(super) fn sums<S: Simd, T: Float, const R: usize>(
    simd: S,
    taps: &Taps<T>,
    at: impl Fn(usize) -> Reals<S, T>,
) -> [Reals<S, T>; R] {
    const { assert!(R <= 8, "as many as there are rounds") };
    match taps {
        Taps::Symmetric(weights) => symmetric(simd, weights, at),
        Taps::Antisymmetric(weights) => antisymmetric(simd, weights, at),
        Taps::General { weights, .. } => general(simd, weights, at),
    }
}

// Row `j` below the first sum's is at place `j` modulo R of a window that goes up by a row each
// round, and of one that goes down; one load serves all R sums.

#[inline(always)]
fn symmetric<S: Simd, T: Float, const R: usize>(
    simd: S,
    weights: &[T],
    at: impl Fn(usize) -> Reals<S, T>,
) -> [Reals<S, T>; R] {
    let radius = weights.len() - 1;
    let mut low: [Reals<S, T>; R] = vectors(|j| at(radius + j));
    let mut high = low;
    let centre = Reals::<S, T>::splat(simd, weights[0]);
    let mut sums: [Reals<S, T>; R] = vectors(|j| centre * low[j]);
    let mut k = 1;
    'all: loop {
        rounds!(round, {
            if k > radius {
                break 'all;
            }
            low[R - 1 - round] = at(radius - k);
            high[round] = at(radius + k + R - 1);
            let weight = Reals::<S, T>::splat(simd, weights[k]);
            for j in 0..R {
                let pair = low[(j + R - 1 - round) % R] + high[(j + 1 + round) % R];
                sums[j] = weight.mul_add_precise(pair, sums[j]);
            }
            k += 1;
        });
    }
    sums
}

#[inline(always)]
fn antisymmetric<S: Simd, T: Float, const R: usize>(
    simd: S,
    weights: &[T],
    at: impl Fn(usize) -> Reals<S, T>,
) -> [Reals<S, T>; R] {
    let radius = weights.len();
    let mut low: [Reals<S, T>; R] = vectors(|j| at(radius + j));
    let mut high = low;
    let mut sums: [Reals<S, T>; R] = [Reals::<S, T>::splat(simd, T::default()); R];
    let mut k = 1;
    'all: loop {
        rounds!(round, {
            if k > radius {
                break 'all;
            }
            low[R - 1 - round] = at(radius - k);
            high[round] = at(radius + k + R - 1);
            let weight = Reals::<S, T>::splat(simd, weights[k - 1]);
            for j in 0..R {
                let difference = high[(j + 1 + round) % R] - low[(j + R - 1 - round) % R];
                sums[j] = if round == 0 && k == 1 {
                    weight * difference
                } else {
                    weight.mul_add_precise(difference, sums[j])
                };
            }
            k += 1;
        });
    }
    sums
}

#[inline(always)]
fn general<S: Simd, T: Float, const R: usize>(
    simd: S,
    weights: &[T],
    at: impl Fn(usize) -> Reals<S, T>,
) -> [Reals<S, T>; R] {
    let mut window: [Reals<S, T>; R] = vectors(&at);
    let first = Reals::<S, T>::splat(simd, weights[0]);
    let mut sums: [Reals<S, T>; R] = vectors(|j| first * window[j]);
    let mut k = 1;
    'all: loop {
        rounds!(round, {
            if k >= weights.len() {
                break 'all;
            }
            window[round] = at(k + R - 1);
            let weight = Reals::<S, T>::splat(simd, weights[k]);
            for j in 0..R {
                sums[j] = weight.mul_add_precise(window[(j + 1 + round) % R], sums[j]);
            }
            k += 1;
        });
    }
    sums
}
