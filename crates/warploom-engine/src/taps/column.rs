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
        let sums: [Reals<S, T>; R] = match taps {
            Taps::Symmetric(weights) => symmetric(simd, weights, at),
            Taps::Antisymmetric(weights) => antisymmetric(simd, weights, at),
            Taps::General { weights, .. } => general(simd, weights, at),
        };
        for j in 0..R {
            store(sums[j], dst.data, starts[j] + x);
        }
        x += Reals::<S, T>::LEN;
    }
    R
}

/// Moves the window of R rows one row up; one load serves all R results.
macro_rules! slide_up {
    ($window:ident, $next:expr) => {
        for j in (1..R).rev() {
            $window[j] = $window[j - 1];
        }
        $window[0] = $next;
    };
}

/// Moves the window one row down.
macro_rules! slide_down {
    ($window:ident, $next:expr) => {
        for j in 0..R - 1 {
            $window[j] = $window[j + 1];
        }
        $window[R - 1] = $next;
    };
}

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
    for (k, &weight) in weights.iter().enumerate().skip(1) {
        slide_up!(low, at(radius - k));
        slide_down!(high, at(radius + k + R - 1));
        let weight = Reals::<S, T>::splat(simd, weight);
        for j in 0..R {
            sums[j] = weight.mul_add_precise(low[j] + high[j], sums[j]);
        }
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
    for (k, &weight) in (1..).zip(weights) {
        slide_up!(low, at(radius - k));
        slide_down!(high, at(radius + k + R - 1));
        let weight = Reals::<S, T>::splat(simd, weight);
        for j in 0..R {
            let difference = high[j] - low[j];
            sums[j] = if k == 1 {
                weight * difference
            } else {
                weight.mul_add_precise(difference, sums[j])
            };
        }
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
    for (k, &weight) in weights.iter().enumerate().skip(1) {
        slide_down!(window, at(k + R - 1));
        let weight = Reals::<S, T>::splat(simd, weight);
        for j in 0..R {
            sums[j] = weight.mul_add_precise(window[j], sums[j]);
        }
    }
    sums
}
