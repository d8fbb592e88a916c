//! Sharpening by undoing a known blur.

use super::convolve::weigh;
use super::share::{fit, for_rows};
use super::totals::sum_of;
use super::{Pixel, View, ViewMut};
use crate::Boundary;

/// The least value a blurred guess is divided by.
const FLOOR: f64 = 1e-12;

/// Bytes allocated beside what the blurs need.
pub fn scratch_bytes<T: Pixel>(dims: [usize; 3]) -> usize {
    3 * dims.iter().product::<usize>() * size_of::<T::Real>()
}

/// Richardson and Lucy's iteration from a guess of 1: the guess is multiplied by the mirrored blur
/// of `image / max(blurred guess, 1e-12)`.
pub fn richardson_lucy<T: Pixel>(
    image: View<'_, T>,
    iterations: usize,
    blur: impl Fn(View<'_, T::Real>, ViewMut<'_, T::Real>),
    mirrored: impl Fn(View<'_, T::Real>, ViewMut<'_, T::Real>),
    out: ViewMut<'_, T::Real>,
) {
    fit(image.dims(), out.dims());
    let dims = image.dims();
    let floor = T::Real::from_f64(FLOOR);
    let count = dims.iter().product();
    let mut guess = vec![T::Real::ONE; count];
    let mut ratio = vec![T::Real::ZERO; count];
    let mut factor = vec![T::Real::ZERO; count];
    let [_, ny, nx] = dims;
    for _ in 0..iterations {
        blur(
            View::packed(&guess, dims),
            ViewMut::packed(&mut ratio, dims),
        );
        for_rows(ViewMut::packed(&mut ratio, dims), |z, y, row| {
            for (ratio, from) in row.iter_mut().zip(image.row(z, y)) {
                *ratio = from.to_real() / ratio.greater(floor);
            }
        });
        mirrored(
            View::packed(&ratio, dims),
            ViewMut::packed(&mut factor, dims),
        );
        for_rows(ViewMut::packed(&mut guess, dims), |z, y, row| {
            for (guess, &factor) in row.iter_mut().zip(&factor[(z * ny + y) * nx..]) {
                *guess = *guess * factor;
            }
        });
    }
    for_rows(out, |z, y, row| {
        row.copy_from_slice(&guess[(z * ny + y) * nx..][..nx]);
    });
}

/// [`richardson_lucy`] with a point spread function, which is divided by its sum; edges are
/// repeated outwards.
pub fn richardson_lucy_psf<T: Pixel>(
    image: View<'_, T>,
    psf: View<'_, T::Real>,
    iterations: usize,
    out: ViewMut<'_, T::Real>,
) {
    let total = sum_of(psf, Pixel::to_f64);
    richardson_lucy(
        image,
        iterations,
        |from, to| weigh(from, psf, true, total, Boundary::Clamp, to),
        |from, to| weigh(from, psf, false, total, Boundary::Clamp, to),
        out,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blurred_spike_comes_back() {
        let blurred = [0.0_f64, 0.0, 1.0, 2.0, 1.0, 0.0, 0.0];
        let psf = [1.0_f64, 2.0, 1.0];
        let mut out = [0.0; 7];
        richardson_lucy_psf(
            View::packed(&blurred, [1, 1, 7]),
            View::packed(&psf, [1, 1, 3]),
            500,
            ViewMut::packed(&mut out, [1, 1, 7]),
        );
        assert!(out[3] > 3.8, "{out:?}");
        assert!((out.iter().sum::<f64>() - 4.0).abs() < 0.05, "{out:?}");
    }

    #[test]
    fn an_even_light_stays_even() {
        let light = [5_u16; 12];
        let mut out = [0.0_f32; 12];
        richardson_lucy_psf(
            View::packed(&light, [1, 3, 4]),
            View::packed(&[0.25_f32; 4], [1, 2, 2]),
            3,
            ViewMut::packed(&mut out, [1, 3, 4]),
        );
        assert_eq!(out, [5.0; 12]);
    }
}
