//! Primitives over neighbourhoods of any shape.

use rayon::prelude::*;

use super::arms::{to_real, to_same, with_kernel};
use super::image::with_image;
use super::{Image, ImageMut, Pixel, View, ViewMut, convolve, fourier};
use warploom_flow::Boundary;
use warploom_flow::flow::{Combine, Footprint, Prim};

/// Runs a primitive of this family; answers whether it is one.
pub(super) fn run(prim: &Prim, sources: &[Image<'_>], targets: &mut Vec<ImageMut<'_>>) -> bool {
    let mut target = || targets.remove(0);
    match prim {
        Prim::Around {
            footprint,
            combine,
            boundary,
        } => match combine {
            Combine::Sum => to_real!(sources[0], target(), a, out => {
                each(a, footprint, *boundary, out, |window: &[_]| {
                    let rest = window[1..].iter();
                    rest.fold(Pixel::to_real(window[0]), |sum, element| sum + Pixel::to_real(*element))
                });
            }),
            Combine::Min => to_same!(sources[0], target(), a, out => {
                each(a, footprint, *boundary, out, |window| extreme(window, Pixel::GREATEST, Pixel::lesser));
            }),
            Combine::Max => to_same!(sources[0], target(), a, out => {
                each(a, footprint, *boundary, out, |window| extreme(window, Pixel::LEAST, Pixel::greater));
            }),
        },
        Prim::Rank {
            footprint,
            rank,
            boundary,
        } => to_same!(sources[0], target(), a, out => {
            ranked(a, footprint, *rank as usize, *boundary, out);
        }),
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
                for (to, by) in list.iter_mut().zip(&shift[first..]) {
                    *to = *by as f64;
                }
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

fn extreme<T: Pixel>(window: &[T], start: T, better: fn(T, T) -> T) -> T {
    window
        .iter()
        .fold(start, |best, element| better(best, *element))
}

/// The element of a rank in each neighbourhood; NaN counts as larger than every number.
fn ranked<T: Pixel>(
    image: View<'_, T>,
    footprint: &Footprint,
    rank: usize,
    boundary: Boundary,
    out: ViewMut<'_, T>,
) {
    each_mut(image, footprint, boundary, out, |window| {
        let order = |a: &T, b: &T| {
            let numbers = a.partial_cmp(b);
            numbers.unwrap_or_else(|| is_nan(*a).cmp(&is_nan(*b)))
        };
        *window.select_nth_unstable_by(rank, order).1
    });
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn is_nan<T: Pixel>(value: T) -> bool {
    value != value
}

/// Gathers every neighbourhood, in C order of the offsets, and stores what is made of it.
fn each<T: Pixel, U: Pixel>(
    image: View<'_, T>,
    footprint: &Footprint,
    boundary: Boundary,
    out: ViewMut<'_, U>,
    make: impl Fn(&[T]) -> U + Sync,
) {
    each_mut(image, footprint, boundary, out, |window| make(window));
}

fn each_mut<T: Pixel, U: Pixel>(
    image: View<'_, T>,
    footprint: &Footprint,
    boundary: Boundary,
    out: ViewMut<'_, U>,
    make: impl Fn(&mut [T]) -> U + Sync,
) {
    let offsets = footprint.offsets();
    let dims = image.dims().map(|n| n as i64);
    let rows: Vec<(usize, usize, &mut [U])> = out.rows().collect();
    rows.into_par_iter().for_each(|(z, y, row)| {
        let mut window = vec![T::ZERO; offsets.len()];
        // The rows the neighbourhood touches, found once for the row.
        let lines: Vec<Option<&[T]>> = offsets
            .iter()
            .map(|[dz, dy, _]| {
                let z = boundary.source(z as i64 + i64::from(*dz), dims[0])?;
                let y = boundary.source(y as i64 + i64::from(*dy), dims[1])?;
                Some(image.row(z as usize, y as usize))
            })
            .collect();
        for (x, to) in row.iter_mut().enumerate() {
            for ((element, line), [_, _, dx]) in window.iter_mut().zip(&lines).zip(&offsets) {
                let at = boundary.source(x as i64 + i64::from(*dx), dims[2]);
                *element = match (line, at) {
                    (Some(line), Some(at)) => line[at as usize],
                    _ => T::ZERO,
                };
            }
            *to = make(&mut window);
        }
    });
}
