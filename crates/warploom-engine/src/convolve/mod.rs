//! Sums over dense neighbourhoods, and minima over a rolling ball: direct, one row of results at a
//! time, with every tap in a fixed order.

mod ball;

use super::lanes::{Level, dispatch};
use super::moves::pad;
use super::share::{fit, for_rows};
use super::{Pixel, Real, View, ViewMut};
use warploom_flow::Boundary;

pub use ball::{ball_scratch_bytes, rolling_ball, subtract_rolling_ball};

/// Results computed together, in registers.
const BLOCK: usize = 64;

/// Bytes allocated: the image with the kernel's reach around it.
pub fn scratch_bytes<T: Pixel>(dims: [usize; 3], kernel: [usize; 3]) -> usize {
    let padded = dims[0] + kernel[0] - 1;
    let padded = padded * (dims[1] + kernel[1] - 1) * (dims[2] + kernel[2] - 1 + BLOCK);
    padded * size_of::<T::Real>() + kernel.iter().product::<usize>() * 16
}

/// How a row is made of taps.
trait RowWork<R> {
    fn row(source: &[R], taps: &[(R, usize)], row: &mut [R]);
}

/// The image in the type it is computed in, with a margin; rows have `BLOCK` pixels to spare.
struct Padded<R> {
    data: Vec<R>,
    dims: [usize; 3],
}

impl<R: Real> Padded<R> {
    fn new<T: Pixel<Real = R>>(
        image: View<'_, T>,
        before: [usize; 3],
        kernel: [usize; 3],
        boundary: Boundary,
        outside: R,
    ) -> Self {
        let [nz, ny, nx] = image.dims();
        let dims = [
            nz + kernel[0] - 1,
            ny + kernel[1] - 1,
            nx + kernel[2] - 1 + BLOCK,
        ];
        let mut data = vec![R::ZERO; dims.iter().product()];
        let mut real = vec![R::ZERO; nz * ny * nx];
        for_rows(ViewMut::packed(&mut real, [nz, ny, nx]), |z, y, row| {
            for (to, &from) in row.iter_mut().zip(image.row(z, y)) {
                *to = from.to_real();
            }
        });
        let room = [dims[0], dims[1], dims[2] - BLOCK];
        pad(
            View::packed(&real, [nz, ny, nx]),
            before,
            boundary,
            outside,
            ViewMut::pitched(&mut data, room, [dims[1] * dims[2], dims[2]]),
        );
        Self { data, dims }
    }

    /// Makes every row of the result from the taps, whose places are relative to the row's first.
    fn for_each_row<W: RowWork<R>>(&self, out: ViewMut<'_, R>, taps: &[(R, usize)]) {
        let level = Level::new();
        for_rows(out, |z, y, row| {
            let source = &self.data[self.at(z, y)..];
            dispatch!(level, _simd => W::row(source, taps, row));
        });
    }

    /// Where pixel (z, y, 0) with the taps' offsets starts.
    fn at(&self, z: usize, y: usize) -> usize {
        (z * self.dims[1] + y) * self.dims[2]
    }
}

/// Convolves with a kernel of any extents, as `scipy.ndimage.convolve`: the kernel is turned round,
/// and its middle (`extent / 2`) lies on the pixel.
///
/// Taps are added in the order of the kernel's pixels: `acc = fma(w, a, acc)`, from 0 on.
pub fn convolve<T: Pixel>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) {
    weigh(image, kernel, true, 1.0, boundary, out);
}

/// As [`convolve`], without turning the kernel, as `scipy.ndimage.correlate`.
pub fn correlate<T: Pixel>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) {
    weigh(image, kernel, false, 1.0, boundary, out);
}

/// Convolves or correlates with the kernel divided by `total`.
pub(crate) fn weigh<T: Pixel>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    turned: bool,
    total: f64,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) {
    fit(image.dims(), out.dims());
    let extents = kernel.dims();
    // A turned kernel of even extent has its middle on the other side.
    let before = extents.map(|n| if turned { (n - 1) / 2 } else { n / 2 });
    let padded = Padded::new(image, before, extents, boundary, T::Real::ZERO);
    let mut taps = Vec::with_capacity(extents.iter().product());
    for z in 0..extents[0] {
        for y in 0..extents[1] {
            for (x, weight) in kernel.row(z, y).iter().enumerate() {
                let place = if turned {
                    padded.at(extents[0] - 1 - z, extents[1] - 1 - y) + extents[2] - 1 - x
                } else {
                    padded.at(z, y) + x
                };
                taps.push((T::Real::from_f64(weight.to_f64() / total), place));
            }
        }
    }
    padded.for_each_row::<Sum>(out, &taps);
}

/// The weighted sum of the taps.
struct Sum;

impl<R: Real> RowWork<R> for Sum {
    #[inline(always)]
    fn row(source: &[R], taps: &[(R, usize)], row: &mut [R]) {
        for (at, block) in row.chunks_mut(BLOCK).enumerate() {
            let source = &source[at * BLOCK..];
            let mut sums = [R::ZERO; BLOCK];
            for &(weight, offset) in taps {
                for (sum, &pixel) in sums.iter_mut().zip(&source[offset..offset + BLOCK]) {
                    *sum = weight.fused(pixel, *sum);
                }
            }
            block.copy_from_slice(&sums[..block.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_single_taps(
            dims in [1_usize..4, 1_usize..6, 1_usize..90],
            extents in [1_usize..4, 1_usize..5, 1_usize..6],
            turned: bool,
        ) {
            let data: Vec<i16> = (0..dims.iter().product()).map(|i: usize| (i * 7919 % 201) as i16 - 100).collect();
            let weights: Vec<f32> = (0..extents.iter().product()).map(|i: usize| (i * 31 % 13) as f32 - 6.0).collect();
            let (image, kernel) = (View::packed(&data, dims), View::packed(&weights, extents));
            for boundary in Boundary::ALL {
                let mut out = vec![0.0_f32; data.len()];
                weigh(image, kernel, turned, 1.0, boundary, ViewMut::packed(&mut out, dims));
                for (at, &found) in out.iter().enumerate() {
                    let place = [at / (dims[1] * dims[2]), at / dims[2] % dims[1], at % dims[2]];
                    let mut sum = 0;
                    for (tap, &weight) in weights.iter().enumerate() {
                        let tap3 = [tap / (extents[1] * extents[2]), tap / extents[2] % extents[1], tap % extents[2]];
                        let from: Vec<Option<i64>> = (0..3).map(|axis| {
                            let off = tap3[axis] as i64 - (extents[axis] / 2) as i64;
                            let at = place[axis] as i64 + if turned { -off } else { off };
                            boundary.source(at, dims[axis] as i64)
                        }).collect();
                        if let [Some(z), Some(y), Some(x)] = from[..] {
                            sum += weight as i32 * i32::from(image.row(z as usize, y as usize)[x as usize]);
                        }
                    }
                    prop_assert_eq!(found, sum as f32);
                }
            }
        }
    }
}
