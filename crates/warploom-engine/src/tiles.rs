//! Binning: one pixel for each tile.

use super::lanes::{Level, dispatch};
use super::share::for_rows;
use super::{Pixel, Real, View, ViewMut};

/// What becomes of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fold {
    /// Its sum, in `f64`: rows of planes in order, pixels of rows in order.
    Sum,
    /// Its sum by its pixels.
    Mean,
}

/// Sums or means of tiles of `factor` pixels (z, y, x); what does not fill a tile is left out.
///
/// A column of sums goes through the tile's rows in order: first the pixels of a row are added from
/// left to right to what the rows before have made, starting at zero.
pub fn bin<T: Pixel, R: Real>(
    image: View<'_, T>,
    factor: [usize; 3],
    fold: Fold,
    out: ViewMut<'_, R>,
) {
    let level = Level::new();
    for_rows(out, |z, y, row| {
        let first = [z * factor[0], y * factor[1]];
        dispatch!(level, _simd => bin_row(image, first, factor, fold, row));
    });
}

/// Sums that are in the making at a time.
const SUMS: usize = 256;

/// One row of the result, from the rows of the image from `first` (z, y) on.
#[inline(always)]
fn bin_row<T: Pixel, R: Real>(
    image: View<'_, T>,
    first: [usize; 2],
    [fz, fy, fx]: [usize; 3],
    fold: Fold,
    row: &mut [R],
) {
    // Small tiles stay in registers from the first pixel to the result.
    let line = |at: usize| image.row(first[0] + at / fy, first[1] + at % fy);
    match (fz * fy, fx) {
        (2, 2) => return whole::<T, R, 2, 2>([0, 1].map(line), fold, row),
        (4, 2) => return whole::<T, R, 4, 2>([0, 1, 2, 3].map(line), fold, row),
        (3, 3) => return whole::<T, R, 3, 3>([0, 1, 2].map(line), fold, row),
        (4, 4) => return whole::<T, R, 4, 4>([0, 1, 2, 3].map(line), fold, row),
        _ => {}
    }
    let count = (fz * fy * fx) as f64;
    for (at, part) in row.chunks_mut(SUMS).enumerate() {
        let mut sums = [0.0_f64; SUMS];
        let sums = &mut sums[..part.len()];
        for dz in 0..fz {
            for dy in 0..fy {
                let line = image.row(first[0] + dz, first[1] + dy);
                add_tiles(&line[at * SUMS * fx..], fx, sums);
            }
        }
        // A division by a power of two and a multiplication are the same, and one is faster.
        let inverse = count.recip();
        let is_exact = (fz * fy * fx).is_power_of_two();
        match fold {
            Fold::Mean if is_exact => {
                for (to, &sum) in part.iter_mut().zip(&*sums) {
                    *to = R::from_f64(sum * inverse);
                }
            }
            Fold::Mean => {
                for (to, &sum) in part.iter_mut().zip(&*sums) {
                    *to = R::from_f64(sum / count);
                }
            }
            Fold::Sum => {
                for (to, &sum) in part.iter_mut().zip(&*sums) {
                    *to = R::from_f64(sum);
                }
            }
        }
    }
}

/// A row of the result, of tiles of `H` lines of `W` pixels.
#[inline(always)]
fn whole<T: Pixel, R: Real, const H: usize, const W: usize>(
    lines: [&[T]; H],
    fold: Fold,
    row: &mut [R],
) {
    let count = (H * W) as f64;
    let tiles = lines.map(|line| &line.as_chunks::<W>().0[..row.len()]);
    let sum = |at: usize| {
        let mut sum = 0.0;
        for line in &tiles {
            for pixel in &line[at] {
                sum += pixel.to_f64();
            }
        }
        sum
    };
    match fold {
        Fold::Mean if (H * W).is_power_of_two() => {
            let inverse = count.recip();
            for (at, to) in row.iter_mut().enumerate() {
                *to = R::from_f64(sum(at) * inverse);
            }
        }
        Fold::Mean => {
            for (at, to) in row.iter_mut().enumerate() {
                *to = R::from_f64(sum(at) / count);
            }
        }
        Fold::Sum => {
            for (at, to) in row.iter_mut().enumerate() {
                *to = R::from_f64(sum(at));
            }
        }
    }
}

#[inline(always)]
fn add_tiles<T: Pixel>(line: &[T], width: usize, sums: &mut [f64]) {
    match width {
        1 => {
            for (sum, pixel) in sums.iter_mut().zip(line) {
                *sum += pixel.to_f64();
            }
        }
        2 => {
            for (sum, [a, b]) in sums.iter_mut().zip(line.as_chunks().0) {
                *sum = *sum + a.to_f64() + b.to_f64();
            }
        }
        _ => {
            for (sum, tile) in sums.iter_mut().zip(line.chunks_exact(width)) {
                *sum = tile.iter().fold(*sum, |sum, pixel| sum + pixel.to_f64());
            }
        }
    }
}

/// The greatest values of tiles of `factor` pixels (z, y, x); NaN is ignored, and a tile of nothing
/// else gives minus infinity.
pub fn bin_max<T: Pixel>(image: View<'_, T>, factor: [usize; 3], out: ViewMut<'_, T>) {
    let [fz, fy, fx] = factor;
    let level = Level::new();
    for_rows(out, |z, y, row| {
        row.fill(T::LEAST);
        for dz in 0..fz {
            for dy in 0..fy {
                let line = image.row(z * fz + dz, y * fy + dy);
                dispatch!(level, _simd => raise(row, line, fx));
            }
        }
    });
}

#[inline(always)]
fn raise<T: Pixel>(row: &mut [T], line: &[T], width: usize) {
    match width {
        1 => {
            for (to, &pixel) in row.iter_mut().zip(line) {
                *to = to.greater(pixel);
            }
        }
        2 => {
            for (to, &[a, b]) in row.iter_mut().zip(line.as_chunks().0) {
                *to = to.greater(a).greater(b);
            }
        }
        _ => {
            for (to, tile) in row.iter_mut().zip(line.chunks_exact(width)) {
                *to = tile.iter().fold(*to, |most, &pixel| most.greater(pixel));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_leave_the_rest_out() {
        let data: Vec<i16> = (0..35).collect();
        let image = View::packed(&data, [1, 5, 7]);
        let mut out = [0.0_f32; 6];
        bin(
            image,
            [1, 2, 2],
            Fold::Mean,
            ViewMut::packed(&mut out, [1, 2, 3]),
        );
        assert_eq!(out, [4.0, 6.0, 8.0, 18.0, 20.0, 22.0]);
        bin(
            image,
            [1, 2, 3],
            Fold::Sum,
            ViewMut::packed(&mut out[..4], [1, 2, 2]),
        );
        assert_eq!(out[..4], [27.0, 45.0, 111.0, 129.0]);
        // Small tiles have a way of their own, and give the same bits.
        let data: Vec<f32> = (0..4 * 8 * 50)
            .map(|i| (i * 7919 % 401) as f32 * 0.37 - 50.0)
            .collect();
        let image = View::packed(&data, [4, 8, 50]);
        for factor in [
            [1, 2, 2],
            [2, 2, 2],
            [2, 1, 2],
            [1, 3, 3],
            [1, 4, 4],
            [4, 1, 4],
        ] {
            let to = [0, 1, 2].map(|axis| image.dims()[axis] / factor[axis]);
            let count: usize = factor.iter().product();
            for fold in [Fold::Sum, Fold::Mean] {
                let mut out = vec![0.0_f32; to.iter().product()];
                bin(image, factor, fold, ViewMut::packed(&mut out, to));
                for (at, found) in out.into_iter().enumerate() {
                    let place = [at / (to[1] * to[2]), at / to[2] % to[1], at % to[2]];
                    let mut sum = 0.0;
                    for z in 0..factor[0] {
                        for y in 0..factor[1] {
                            let row = image.row(place[0] * factor[0] + z, place[1] * factor[1] + y);
                            let tile = &row[place[2] * factor[2]..][..factor[2]];
                            sum = tile.iter().fold(sum, |sum, pixel| sum + f64::from(*pixel));
                        }
                    }
                    let wanted = match fold {
                        Fold::Sum => sum,
                        Fold::Mean => sum / count as f64,
                    };
                    assert_eq!(
                        found.to_bits(),
                        (wanted as f32).to_bits(),
                        "{factor:?} {at}"
                    );
                }
            }
        }
        let data: Vec<i16> = (0..35).collect();
        let image = View::packed(&data, [1, 5, 7]);
        let mut most = [0_i16; 2];
        bin_max(image, [1, 5, 3], ViewMut::packed(&mut most, [1, 1, 2]));
        assert_eq!(most, [30, 33]);
        bin_max(image, [1, 5, 1], ViewMut::packed(&mut most, [1, 1, 2]));
        assert_eq!(most, [28, 29]);
    }
}
