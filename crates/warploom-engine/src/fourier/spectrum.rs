//! Transforms of real images along all axes.

use std::sync::Arc;

use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner};
use rustfft::{Fft, FftNum, FftPlanner};

use crate::moves::transpose;
use crate::pages::Pages;
use crate::share::{band_height, for_bands};
use crate::{Pixel, Real, View, ViewMut};

/// A type that can be transformed: `f32` or `f64`.
pub trait Transform: Real + FftNum {}

impl Transform for f32 {}
impl Transform for f64 {}

/// Writes a row of an image, at its z and y.
pub(super) type Fill<'a, R> = &'a (dyn Fn(usize, usize, &mut [R]) + Sync);

/// Bytes of a spectrum of an image of these extents.
pub(super) fn bytes<R>(dims: [usize; 3]) -> usize {
    dims[0] * dims[1] * (dims[2] / 2 + 1) * 2 * size_of::<R>()
}

/// The least length from `length` on that has no prime factor above 5: fast to transform.
pub(super) fn smooth(length: usize) -> usize {
    let is_smooth = |mut n: usize| {
        for prime in [2, 3, 5] {
            while n.is_multiple_of(prime) {
                n /= prime;
            }
        }
        n == 1
    };
    // An even length halves the work along x. A power of two lies in the range.
    (length..=2 * length.next_power_of_two())
        .find(|&n| n.is_multiple_of(2) && is_smooth(n))
        .unwrap_or(length)
}

/// The spectrum of a real image: the half along x that tells all.
///
/// Axes are left in the order in which the last transform had its data in rows; only products of
/// spectra of the same extents are made of it.
pub(super) struct Spectrum<R> {
    dims: [usize; 3],
    values: Pages<Complex<R>>,
}

impl<R: Transform> Spectrum<R> {
    /// Transforms an image that `fill` writes row by row.
    pub(super) fn forward(dims: [usize; 3], fill: Fill<'_, R>) -> Self {
        let [nz, ny, nx] = dims;
        let half = nx / 2 + 1;
        let mut values = along_x(dims, fill);
        let mut planner = FftPlanner::new();
        if ny > 1 {
            values = swapped(&values, [nz, ny, half], (1, 2));
            along_rows(values.as_mut_slice(), &planner.plan_fft_forward(ny));
        }
        if nz > 1 {
            // Rows are along y if those were turned, else along x.
            let turned = if ny > 1 {
                [nz, half, ny]
            } else {
                [nz, ny, half]
            };
            values = swapped(&values, turned, (0, 2));
            along_rows(values.as_mut_slice(), &planner.plan_fft_forward(nz));
        }
        Self { dims, values }
    }

    /// Replaces every value by one made of it and that of another spectrum.
    pub(super) fn combine(
        &mut self,
        other: &Self,
        make: impl Fn(&Complex<R>, &Complex<R>) -> Complex<R> + Sync,
    ) {
        let mine = self.values.as_mut_slice().par_chunks_mut(1 << 12);
        let theirs = other.values.as_slice().par_chunks(1 << 12);
        mine.zip(theirs).for_each(|(mine, theirs)| {
            for (a, b) in mine.iter_mut().zip(theirs) {
                *a = make(a, b);
            }
        });
    }

    /// The image whose spectrum it is.
    pub(super) fn inverse(self) -> Pages<R> {
        let [nz, ny, nx] = self.dims;
        let half = nx / 2 + 1;
        let mut values = self.values;
        let mut planner = FftPlanner::new();
        if nz > 1 {
            along_rows(values.as_mut_slice(), &planner.plan_fft_inverse(nz));
            let turned = if ny > 1 {
                [ny, half, nz]
            } else {
                [half, ny, nz]
            };
            values = swapped(&values, turned, (0, 2));
        }
        if ny > 1 {
            along_rows(values.as_mut_slice(), &planner.plan_fft_inverse(ny));
            values = swapped(&values, [nz, half, ny], (1, 2));
        }
        let back = Back::new(self.dims);
        let mut image = Pages::zeros(nz * ny * nx);
        let lines = values.as_mut_slice().par_chunks_mut(half);
        let rows = image.as_mut_slice().par_chunks_mut(nx).zip(lines);
        rows.with_min_len(band_height(nx)).for_each_init(
            || back.scratch(),
            |scratch, (row, line)| back.row(line, row, scratch),
        );
        image
    }
}

/// Transforms rows that `fill` writes, along x only.
pub(super) fn along_x<R: Transform>(
    [nz, ny, nx]: [usize; 3],
    fill: Fill<'_, R>,
) -> Pages<Complex<R>> {
    let half = nx / 2 + 1;
    let plan = RealFftPlanner::<R>::new().plan_fft_forward(nx);
    let mut values = Pages::zeros(nz * ny * half);
    values
        .as_mut_slice()
        .par_chunks_mut(half)
        .with_min_len(band_height(nx))
        .enumerate()
        .for_each_init(
            || (plan.make_input_vec(), plan.make_scratch_vec()),
            |(line, scratch), (row, out)| {
                fill(row / ny, row % ny, line);
                // The lengths are the plan's own, which is all that can be wrong.
                let _ = plan.process_with_scratch(line, out, scratch);
            },
        );
    values
}

/// The way back along x, to pixels.
pub(super) struct Back<R: Transform> {
    plan: Arc<dyn ComplexToReal<R>>,
    scale: R,
}

impl<R: Transform> Back<R> {
    pub(super) fn new([nz, ny, nx]: [usize; 3]) -> Self {
        Self {
            plan: RealFftPlanner::<R>::new().plan_fft_inverse(nx),
            scale: <R as Pixel>::from_f64(1.0 / (nz * ny * nx) as f64),
        }
    }

    pub(super) fn scratch(&self) -> Vec<Complex<R>> {
        self.plan.make_scratch_vec()
    }

    /// Makes a row of a line, which is spoilt.
    pub(super) fn row(&self, line: &mut [Complex<R>], row: &mut [R], scratch: &mut [Complex<R>]) {
        // What is real but for rounding has to be real.
        line[0].im = R::ZERO;
        if row.len().is_multiple_of(2) {
            line[line.len() - 1].im = R::ZERO;
        }
        // The lengths are the plan's own, which is all that can be wrong.
        let _ = self.plan.process_with_scratch(line, row, scratch);
        for value in row {
            *value = *value * self.scale;
        }
    }
}

/// The values with two axes exchanged.
fn swapped<R: Transform>(
    values: &Pages<Complex<R>>,
    dims: [usize; 3],
    axes: (usize, usize),
) -> Pages<Complex<R>> {
    let mut turned = dims;
    turned.swap(axes.0, axes.1);
    let mut out = Pages::zeros(values.as_slice().len());
    let from = View::packed(values.as_slice(), dims);
    transpose(from, axes, ViewMut::packed(out.as_mut_slice(), turned));
    out
}

fn along_rows<R: Transform>(values: &mut [Complex<R>], plan: &Arc<dyn Fft<R>>) {
    let length = plan.len();
    let count = values.len() / length.max(1);
    for_bands(
        ViewMut::packed(values, [1, count, length]),
        band_height(length),
        &|mut band| {
            let room = plan.get_inplace_scratch_len();
            let mut scratch = vec![Complex::new(R::ZERO, R::ZERO); room];
            for row in band.rows() {
                plan.process_with_scratch(band.row(row), &mut scratch);
            }
        },
    );
}
