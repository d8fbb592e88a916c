//! Primitives over neighbourhoods with numbers of their own: kernels, balls, spectra.

use super::arms::{to_real, with_kernel};
use super::image::with_image;
use super::{Image, ImageMut, Pixel, View, convolve, fourier};
use warploom_flow::Boundary;
use warploom_flow::flow::Prim;

/// Runs a primitive of this family; answers whether it is one.
pub(super) fn run(prim: &Prim, sources: &[Image<'_>], targets: &mut Vec<ImageMut<'_>>) -> bool {
    let mut target = || targets.remove(0);
    match prim {
        Prim::Convolve { mirrored, boundary } => {
            let kernel = sources[1];
            to_real!(sources[0], target(), a, out => {
                let weights = reals(kernel);
                let weights = View::packed(&weights, kernel.dims());
                if *mirrored {
                    convolve::correlate(a, weights, *boundary, out);
                } else {
                    convolve::convolve(a, weights, *boundary, out);
                }
            });
        }
        Prim::RollingBall { radius } => {
            to_real!(sources[0], target(), a, out => convolve::rolling_ball(a, *radius, out));
        }
        Prim::FftConvolve => {
            with_kernel!(sources[0], sources[1], target(), a, k, out => {
                fourier::fft_convolve(a, k, Boundary::Wrap, out);
            });
        }
        Prim::PhaseShift => {
            let shift = with_image!(sources[0], a => {
                with_image!(sources[1], b => fourier::phase_shift(a, b))
            });
            if let ImageMut::F64(mut list) = target() {
                let list = list.row(0, 0);
                let first = 3 - list.len();
                list.copy_from_slice(&shift[first..]);
            }
        }
        _ => return false,
    }
    true
}

/// Every element of an image, in the type that is computed in.
fn reals<R: Pixel>(image: Image<'_>) -> Vec<R> {
    let [nz, ny, _] = image.dims();
    let mut elements = Vec::new();
    with_image!(image, view => for z in 0..nz {
        for y in 0..ny {
            elements.extend(view.row(z, y).iter().map(|&v| R::from_f64(v.to_f64())));
        }
    });
    elements
}
