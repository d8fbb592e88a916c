//! Transforms of real images along all axes.

use std::sync::Arc;

use memmap2::MmapMut;
use num_complex::Complex;
use rayon::prelude::*;
use realfft::RealFftPlanner;
use rustfft::{Fft, FftNum, FftPlanner};

use crate::moves::transpose;
use crate::share::{band_height, for_bands};
use crate::{Pixel, Real, View, ViewMut};

/// A type that can be transformed: `f32` or `f64`.
pub trait Transform: Real + FftNum {}

impl Transform for f32 {}
impl Transform for f64 {}

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
    values: Values<R>,
}

impl<R: Transform> Spectrum<R> {
    /// Transforms an image that `fill` writes row by row.
    pub(super) fn forward(
        dims: [usize; 3],
        fill: &(dyn Fn(usize, usize, &mut [R]) + Sync),
    ) -> Self {
        let [nz, ny, nx] = dims;
        let half = nx / 2 + 1;
        let plan = RealFftPlanner::<R>::new().plan_fft_forward(nx);
        let mut values = Values::zeros(nz * ny * half);
        values
            .all_mut()
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
        let mut planner = FftPlanner::new();
        if ny > 1 {
            values = values.swapped([nz, ny, half], (1, 2));
            along_rows(values.all_mut(), &planner.plan_fft_forward(ny));
        }
        if nz > 1 {
            // Rows are along y if those were turned, else along x.
            let turned = if ny > 1 {
                [nz, half, ny]
            } else {
                [nz, ny, half]
            };
            values = values.swapped(turned, (0, 2));
            along_rows(values.all_mut(), &planner.plan_fft_forward(nz));
        }
        Self { dims, values }
    }

    /// Replaces every value by one made of it and that of another spectrum.
    pub(super) fn combine(
        &mut self,
        other: &Self,
        make: impl Fn(&Complex<R>, &Complex<R>) -> Complex<R> + Sync,
    ) {
        let mine = self.values.all_mut().par_chunks_mut(1 << 12);
        let theirs = other.values.all().par_chunks(1 << 12);
        mine.zip(theirs).for_each(|(mine, theirs)| {
            for (a, b) in mine.iter_mut().zip(theirs) {
                *a = make(a, b);
            }
        });
    }

    /// The image whose spectrum it is.
    pub(super) fn inverse(self) -> Vec<R> {
        let [nz, ny, nx] = self.dims;
        let half = nx / 2 + 1;
        let mut values = self.values;
        let mut planner = FftPlanner::new();
        if nz > 1 {
            along_rows(values.all_mut(), &planner.plan_fft_inverse(nz));
            let turned = if ny > 1 {
                [ny, half, nz]
            } else {
                [half, ny, nz]
            };
            values = values.swapped(turned, (0, 2));
        }
        if ny > 1 {
            along_rows(values.all_mut(), &planner.plan_fft_inverse(ny));
            values = values.swapped([nz, half, ny], (1, 2));
        }
        let plan = RealFftPlanner::<R>::new().plan_fft_inverse(nx);
        let scale = <R as Pixel>::from_f64(1.0 / (nz * ny * nx) as f64);
        let mut image = vec![R::ZERO; nz * ny * nx];
        let lines = values.all_mut().par_chunks_mut(half);
        let rows = image.par_chunks_mut(nx).zip(lines);
        rows.with_min_len(band_height(nx)).for_each_init(
            || plan.make_scratch_vec(),
            |scratch, (row, line)| {
                // What is real but for rounding has to be real.
                line[0].im = R::ZERO;
                if nx.is_multiple_of(2) {
                    line[half - 1].im = R::ZERO;
                }
                // The lengths are the plan's own, which is all that can be wrong.
                let _ = plan.process_with_scratch(line, row, scratch);
                for value in row {
                    *value = *value * scale;
                }
            },
        );
        image
    }
}

/// Complex numbers in memory of their own, which are zero at first. The threads that write to it first
/// have the system make its pages, and not one thread for all.
enum Values<R> {
    /// Large ones ask for large pages, of which there are fewer to make and to look up.
    Pages(MmapMut),
    Words(Vec<R>),
}

/// From here on large pages are worth asking for.
const LARGE: usize = 1 << 22;

impl<R: Transform> Values<R> {
    fn zeros(count: usize) -> Self {
        let bytes = 2 * count * size_of::<R>();
        if bytes < LARGE {
            return Self::Words(vec![R::ZERO; 2 * count]);
        }
        match MmapMut::map_anon(bytes) {
            Ok(pages) => {
                // A system without them has small ones, which serve as well.
                #[cfg(target_os = "linux")]
                let _ = pages.advise(memmap2::Advice::HugePage);
                Self::Pages(pages)
            }
            Err(_) => Self::Words(vec![R::ZERO; 2 * count]),
        }
    }

    fn all(&self) -> &[Complex<R>] {
        match self {
            Self::Pages(pages) => bytemuck::cast_slice(pages),
            Self::Words(words) => bytemuck::cast_slice(words),
        }
    }

    fn all_mut(&mut self) -> &mut [Complex<R>] {
        match self {
            Self::Pages(pages) => bytemuck::cast_slice_mut(pages),
            Self::Words(words) => bytemuck::cast_slice_mut(words),
        }
    }

    /// The values with two axes exchanged.
    fn swapped(&self, dims: [usize; 3], axes: (usize, usize)) -> Self {
        let mut turned = dims;
        turned.swap(axes.0, axes.1);
        let mut out = Self::zeros(self.all().len());
        let from = View::packed(self.all(), dims);
        transpose(from, axes, ViewMut::packed(out.all_mut(), turned));
        out
    }
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
