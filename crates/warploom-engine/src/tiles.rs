//! Binning: one pixel for each tile.

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

/// Bytes allocated for each thread.
pub fn scratch_bytes(out: [usize; 3]) -> usize {
    out[2] * size_of::<f64>()
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
    let [fz, fy, fx] = factor;
    let count = (fz * fy * fx) as f64;
    for_rows(out, |z, y, row| {
        let mut sums = vec![0.0_f64; row.len()];
        for dz in 0..fz {
            for dy in 0..fy {
                let line = image.row(z * fz + dz, y * fy + dy);
                add_tiles(line, fx, &mut sums);
            }
        }
        for (to, &sum) in row.iter_mut().zip(&sums) {
            *to = R::from_f64(if fold == Fold::Mean { sum / count } else { sum });
        }
    });
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
    for_rows(out, |z, y, row| {
        row.fill(T::LEAST);
        for dz in 0..fz {
            for dy in 0..fy {
                let line = image.row(z * fz + dz, y * fy + dy);
                if fx == 1 {
                    for (to, &pixel) in row.iter_mut().zip(line) {
                        *to = to.greater(pixel);
                    }
                } else {
                    for (to, tile) in row.iter_mut().zip(line.chunks_exact(fx)) {
                        *to = tile.iter().fold(*to, |most, &pixel| most.greater(pixel));
                    }
                }
            }
        }
    });
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
        let mut most = [0_i16; 2];
        bin_max(image, [1, 5, 3], ViewMut::packed(&mut most, [1, 1, 2]));
        assert_eq!(most, [30, 33]);
        bin_max(image, [1, 5, 1], ViewMut::packed(&mut most, [1, 1, 2]));
        assert_eq!(most, [28, 29]);
    }
}
