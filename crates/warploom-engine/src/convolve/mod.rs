//! Sums over dense neighbourhoods, and minima over a rolling ball: direct, one row of results at a
//! time, with every tap in a fixed order.

mod ball;

use super::footprint::{Taps, tapped};
use super::lanes::Float;
use super::share::fit;
use super::{Pixel, View, ViewMut};
use warploom_flow::Boundary;

pub use ball::{rolling_ball, subtract_rolling_ball};

/// Convolves with a kernel of any extents, as `scipy.ndimage.convolve`: the kernel is turned round,
/// and its middle (`extent / 2`) lies on the pixel.
///
/// Taps are added in the order of the kernel's pixels: `acc = fma(w, a, acc)`, from 0 on.
pub fn convolve<T: Pixel>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) where
    T::Real: Float,
{
    weigh(image, kernel, true, 1.0, boundary, out);
}

/// As [`convolve`], without turning the kernel, as `scipy.ndimage.correlate`.
pub fn correlate<T: Pixel>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) where
    T::Real: Float,
{
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
) where
    T::Real: Float,
{
    fit(image.dims(), out.dims());
    let extents = kernel.dims();
    let middle = extents.map(|n| n / 2);
    let mut taps = Vec::with_capacity(extents.iter().product());
    for z in 0..extents[0] {
        for y in 0..extents[1] {
            for (x, weight) in kernel.row(z, y).iter().enumerate() {
                let place = [z, y, x];
                let offset = [0, 1, 2].map(|axis| place[axis] as i32 - middle[axis] as i32);
                let offset = if turned { offset.map(|d| -d) } else { offset };
                taps.push((offset, T::Real::from_f64(weight.to_f64() / total)));
            }
        }
    }
    tapped(image, Taps::Weights, middle, &taps, boundary, out);
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
