//! Backgrounds by a ball that rolls under the image.

use crate::footprint::{Taps, tapped};
use crate::lanes::Float;
use crate::share::{fit, for_rows};
use crate::{Pixel, View, ViewMut};
use warploom_flow::Boundary;

/// Extents of the ball's footprint; axes of one pixel have none.
fn extents(dims: [usize; 3], radius: f64) -> [usize; 3] {
    dims.map(|n| {
        if n > 1 {
            2 * radius.ceil() as usize + 1
        } else {
            1
        }
    })
}

/// The image minus its background as [`rolling_ball`] finds it.
pub fn subtract_rolling_ball<T: Pixel>(
    image: View<'_, T>,
    radius: f64,
    mut out: ViewMut<'_, T::Real>,
) where
    T::Real: Float,
{
    rolling_ball(image, radius, out.reborrow());
    for_rows(out, |z, y, row| {
        for (to, &pixel) in row.iter_mut().zip(image.row(z, y)) {
            *to = pixel.to_real() - *to;
        }
    });
}

/// The height at which a ball of this radius, rolled along below, touches: as
/// `skimage.restoration.rolling_ball` on floats. Outside of the image nothing is touched. NaN is
/// not touched either.
///
/// It is `min(a + drop)` over the ball's footprint, where `drop` is how far the ball's surface lies
/// below its top there, computed in `f64` and rounded once.
pub fn rolling_ball<T: Pixel>(image: View<'_, T>, radius: f64, out: ViewMut<'_, T::Real>)
where
    T::Real: Float,
{
    fit(image.dims(), out.dims());
    let extents = extents(image.dims(), radius);
    let middle = extents.map(|n| n / 2);
    let mut taps = Vec::new();
    let off = |at: usize, axis: usize| at as f64 - middle[axis] as f64;
    for z in 0..extents[0] {
        for y in 0..extents[1] {
            for x in 0..extents[2] {
                let square = [off(z, 0), off(y, 1), off(x, 2)]
                    .iter()
                    .map(|d| d * d)
                    .sum::<f64>();
                if square.sqrt() <= radius {
                    let drop = radius - (radius * radius - square).max(0.0).sqrt();
                    let offset = [z, y, x].map(|at| at as i32);
                    let offset = [0, 1, 2].map(|axis| offset[axis] - middle[axis] as i32);
                    taps.push((offset, T::Real::from_f64(drop)));
                }
            }
        }
    }
    tapped(image, Taps::Drops, middle, &taps, Boundary::Zero, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_all_background() {
        let data = [7_u8; 12];
        let mut out = [9.0_f32; 12];
        let view = View::packed(&data, [1, 3, 4]);
        subtract_rolling_ball(view, 50.0, ViewMut::packed(&mut out, [1, 3, 4]));
        assert_eq!(out, [0.0; 12]);
    }

    #[test]
    fn a_spike_stands_out_by_what_the_ball_leaves() {
        let mut data = [0.0_f64; 9];
        data[4] = 10.0;
        let mut out = [0.0; 9];
        let view = View::packed(&data, [1, 1, 9]);
        subtract_rolling_ball(view, 3.0, ViewMut::packed(&mut out, [1, 1, 9]));
        // Beside the spike's pixel, the ball has sunk by 3 - sqrt(8).
        assert!((out[4] - (10.0 - (3.0 - 8.0_f64.sqrt()))).abs() < 1e-12);
        assert_eq!(out[3], 0.0);
    }
}
