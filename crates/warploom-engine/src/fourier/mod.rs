//! What is computed by Fourier transforms.

mod plane;
mod spectrum;

use num_complex::Complex;
use rayon::prelude::*;

use super::moves::pad;
use super::pages::Pages;
use super::share::{fit, for_rows};
use super::{Pixel, View, ViewMut};
use warploom_flow::Boundary;

pub use spectrum::Transform;
use spectrum::{Fill, Spectrum, smooth};

/// The extents transformed by [`fft_convolve`]: with room for the kernel's reach.
fn extended(dims: [usize; 3], kernel: [usize; 3]) -> [usize; 3] {
    std::array::from_fn(|axis| match dims[axis] + kernel[axis] - 1 {
        1 => 1,
        length => smooth(length),
    })
}

/// Bytes allocated by [`fft_convolve`].
pub fn convolve_scratch_bytes<T: Pixel>(dims: [usize; 3], kernel: [usize; 3]) -> usize {
    4 * spectrum::bytes::<T::Real>(extended(dims, kernel))
}

/// Bytes allocated by [`phase_shift`].
pub fn phase_scratch_bytes(dims: [usize; 3]) -> usize {
    5 * spectrum::bytes::<f64>(dims)
}

/// The same sums as [`super::convolve::convolve`], by transforms in the computation type: their
/// error is a few rounding steps of the largest sum in the image, not of each. The cost does not
/// depend on the kernel's extents.
pub fn fft_convolve<T: Pixel<Real: Transform>>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    boundary: Boundary,
    out: ViewMut<'_, T::Real>,
) {
    fit(image.dims(), out.dims());
    let (dims, extents) = (image.dims(), kernel.dims());
    if boundary == Boundary::Wrap && (0..3).all(|axis| extents[axis] <= dims[axis]) {
        return circular(image, kernel, out);
    }
    let size = extended(dims, extents);
    // The kernel turned round is what the product of spectra does anyway.
    let before = extents.map(|n| (n - 1) / 2);
    let mut room = vec![T::ZERO; size.iter().product()];
    let pitch = [size[1] * size[2], size[2]];
    let reach = std::array::from_fn(|axis| dims[axis] + extents[axis] - 1);
    pad(
        image,
        before,
        boundary,
        T::ZERO,
        ViewMut::pitched(&mut room, reach, pitch),
    );
    let sums = product::<T::Real>(
        size,
        [
            &|z, y, row| {
                let line = &room[z * pitch[0] + y * pitch[1]..][..size[2]];
                for (to, from) in row.iter_mut().zip(line) {
                    *to = from.to_real();
                }
            },
            &|z, y, row| {
                row.fill(T::Real::ZERO);
                if z < extents[0] && y < extents[1] {
                    row[..extents[2]].copy_from_slice(kernel.row(z, y));
                }
            },
        ],
        |a, b| *a * *b,
    );
    let sums = View::packed(sums.as_slice(), size);
    for_rows(out, |z, y, row| {
        let line = sums.row(z + extents[0] - 1, y + extents[1] - 1);
        row.copy_from_slice(&line[extents[2] - 1..][..row.len()]);
    });
}

/// What wraps round needs no room: transforms do so by themselves.
fn circular<T: Pixel<Real: Transform>>(
    image: View<'_, T>,
    kernel: View<'_, T::Real>,
    out: ViewMut<'_, T::Real>,
) {
    let (dims, extents) = (image.dims(), kernel.dims());
    // The kernel's middle lies on the first pixel.
    let place = |at: usize, axis: usize| (at + extents[axis] / 2) % dims[axis];
    let sums = product::<T::Real>(
        dims,
        [
            &|z, y, row| {
                for (to, from) in row.iter_mut().zip(image.row(z, y)) {
                    *to = from.to_real();
                }
            },
            &|z, y, row| {
                row.fill(T::Real::ZERO);
                let (z, y) = (place(z, 0), place(y, 1));
                if z < extents[0] && y < extents[1] {
                    let line = kernel.row(z, y);
                    for (x, to) in row.iter_mut().enumerate() {
                        *to = line.get(place(x, 2)).copied().unwrap_or(T::Real::ZERO);
                    }
                }
            },
        ],
        |a, b| *a * *b,
    );
    let sums = View::packed(sums.as_slice(), dims);
    for_rows(out, |z, y, row| row.copy_from_slice(sums.row(z, y)));
}

/// By how many whole pixels (z, y, x) `a` is moved against `b`, as
/// `skimage.registration.phase_cross_correlation`: where the inverse transform of the spectra's
/// phase difference is greatest. Moves of more than half an axis are the other way round. A pixel that is
/// no number leaves nothing that is greatest: NaN.
pub fn phase_shift<A: Pixel, B: Pixel>(a: View<'_, A>, b: View<'_, B>) -> [f64; 3] {
    fit(a.dims(), b.dims());
    let dims @ [nz, ny, nx] = a.dims();
    let fills: [Fill<'_, f64>; 2] = [&|z, y, row| copy(a.row(z, y), row), &|z, y, row| {
        copy(b.row(z, y), row);
    }];
    let peaks = product(dims, fills, |a, b| {
        let product = *a * b.conj();
        let square = product.norm_sqr();
        // The square may be out of range where the number itself is not.
        let size = if square > 1e-200 && square < 1e300 {
            square.sqrt()
        } else {
            product.norm()
        };
        product / size.max(100.0 * f64::EPSILON)
    });
    let Some(best) = first_greatest(peaks.as_slice()) else {
        return [f64::NAN; 3];
    };
    let place = [best / (ny * nx), best / nx % ny, best % nx];
    std::array::from_fn(|axis| {
        let (at, length) = (place[axis] as i64, [nz, ny, nx][axis] as i64);
        (if at > length / 2 { at - length } else { at }) as f64
    })
}

/// The image whose spectrum `make` makes of those of two images, value by value.
fn product<R: Transform>(
    dims: [usize; 3],
    fills: [Fill<'_, R>; 2],
    make: impl Fn(&Complex<R>, &Complex<R>) -> Complex<R> + Sync,
) -> Pages<R> {
    if dims[0] == 1 && dims[1] > 1 {
        return plane::product(dims, fills, make);
    }
    let [mut one, two] = fills.map(|fill| Spectrum::forward(dims, fill));
    one.combine(&two, make);
    one.inverse()
}

/// Where the first of the greatest magnitudes is, if there is a number at all.
fn first_greatest(values: &[f64]) -> Option<usize> {
    let part = |(part, values): (usize, &[f64])| {
        let mut best = (f64::NEG_INFINITY, 0);
        for (at, value) in values.iter().enumerate() {
            if value.abs() > best.0 {
                best = (value.abs(), at);
            }
        }
        (best.0, part * PART + best.1)
    };
    // Parts are in their order, so that of equals the first stays.
    let better = |a: (f64, usize), b: (f64, usize)| if b.0 > a.0 { b } else { a };
    let parts = values.par_chunks(PART).enumerate().map(part);
    let (greatest, at) = parts.reduce(|| (f64::NEG_INFINITY, 0), better);
    (greatest >= 0.0).then_some(at)
}

/// Values that a thread looks through at a time.
const PART: usize = 1 << 16;

fn copy<T: Pixel>(from: &[T], row: &mut [f64]) {
    for (to, from) in row.iter_mut().zip(from) {
        *to = from.to_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolve::convolve;

    #[rstest::rstest]
    #[case([1, 33, 47], [1, 5, 4])]
    #[case([4, 9, 10], [3, 2, 5])]
    #[case([1, 1, 17], [1, 1, 3])]
    #[case([3, 2, 1], [5, 7, 9])]
    fn convolutions_agree_with_direct_sums(#[case] dims: [usize; 3], #[case] extents: [usize; 3]) {
        let data: Vec<f64> = (0..dims.iter().product())
            .map(|i: usize| (i as f64).sin())
            .collect();
        let weights: Vec<f64> = (0..extents.iter().product())
            .map(|i: usize| (i as f64).cos())
            .collect();
        let (image, kernel) = (View::packed(&data, dims), View::packed(&weights, extents));
        for boundary in Boundary::ALL {
            let (mut direct, mut fast) = (vec![0.0; data.len()], vec![0.0; data.len()]);
            convolve(image, kernel, boundary, ViewMut::packed(&mut direct, dims));
            fft_convolve(image, kernel, boundary, ViewMut::packed(&mut fast, dims));
            for (a, b) in direct.iter().zip(&fast) {
                assert!((a - b).abs() < 1e-11, "{boundary}: {a} {b}");
            }
        }
    }

    #[rstest::rstest]
    #[case([1, 2, 1])]
    #[case([1, 30, 62])]
    #[case([1, 33, 47])]
    #[case([1, 7, 128])]
    fn planes_are_multiplied_as_stacks_are(#[case] dims: [usize; 3]) {
        let fill = |seed: usize| {
            move |_: usize, y: usize, row: &mut [f32]| {
                for (x, to) in row.iter_mut().enumerate() {
                    *to = ((y * 71 + x * seed) % 37) as f32;
                }
            }
        };
        let (a, b) = (fill(5), fill(11));
        let fills: [Fill<'_, f32>; 2] = [&a, &b];
        let [mut one, two] = fills.map(|fill| Spectrum::forward(dims, fill));
        one.combine(&two, |a, b| *a * *b);
        let (want, found) = (one.inverse(), plane::product(dims, fills, |a, b| *a * *b));
        let bits = |pages: &Pages<f32>| -> Vec<u32> {
            pages.as_slice().iter().map(|v| v.to_bits()).collect()
        };
        assert_eq!(bits(&found), bits(&want));
    }

    #[rstest::rstest]
    #[case([1, 33, 47], [0, -5, 11])]
    #[case([5, 21, 34], [2, 7, -16])]
    #[case([1, 1, 40], [0, 0, 20])]
    fn shifts_are_found(#[case] dims: [usize; 3], #[case] shift: [i64; 3]) {
        let count: usize = dims.iter().product();
        let b: Vec<f32> = (0..count).map(|i| (i * i * 7919 % 1013) as f32).collect();
        let mut a = b.clone();
        for (at, to) in a.iter_mut().enumerate() {
            let place = [
                at / (dims[1] * dims[2]),
                at / dims[2] % dims[1],
                at % dims[2],
            ];
            let from: Vec<usize> = (0..3)
                .map(|axis| {
                    (place[axis] as i64 - shift[axis]).rem_euclid(dims[axis] as i64) as usize
                })
                .collect();
            *to = b[(from[0] * dims[1] + from[1]) * dims[2] + from[2]];
        }
        assert_eq!(
            phase_shift(View::packed(&a, dims), View::packed(&b, dims)),
            shift.map(|by| by as f64)
        );
        a[count / 2] = f32::NAN;
        let none = phase_shift(View::packed(&a, dims), View::packed(&b, dims));
        assert!(none.iter().all(|by| by.is_nan()), "{none:?}");
    }
}
