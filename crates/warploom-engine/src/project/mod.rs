//! Projections along z: one plane from a stack, each plane read once.

mod median;

use super::lanes::{Level, dispatch};
use super::share::for_rows;
use super::{Pixel, Real, View, ViewMut};

pub use median::median_z;

/// Columns whose sums a thread keeps at a time: those of all planes stay in its cache.
const WIDTH: usize = 512;

/// Bytes allocated for each thread by [`median_z`]; the others allocate nothing.
pub fn scratch_bytes<T: Pixel>(nz: usize) -> usize {
    median::scratch_bytes::<T>(nz)
}

/// Planes that are read side by side: what runs down the columns is loaded and kept once for all of them.
const PLANES: usize = 4;

/// Gives `work` every piece of a row of `out` with its y and first column.
fn for_pieces<T: Send>(out: ViewMut<'_, T>, work: impl Fn(usize, usize, &mut [T]) + Sync) {
    for_rows(out, |_, y, row| {
        for (at, piece) in row.chunks_mut(WIDTH).enumerate() {
            work(y, at * WIDTH, piece);
        }
    });
}

/// Takes `step` down every column from `x` on, from the first plane to the last.
#[inline(always)]
fn down<T: Pixel, A: Copy>(
    image: View<'_, T>,
    (y, x): (usize, usize),
    running: &mut [A],
    step: impl Fn(A, T) -> A,
) {
    let width = running.len();
    let [nz, _, _] = image.dims();
    let line = |z: usize| &image.row(z, y)[x..x + width];
    let together = nz / PLANES * PLANES;
    for z in (0..together).step_by(PLANES) {
        let lines: [&[T]; PLANES] = std::array::from_fn(|on| line(z + on));
        for (at, now) in running.iter_mut().enumerate() {
            *now = lines.iter().fold(*now, |now, line| step(now, line[at]));
        }
    }
    for z in together..nz {
        for (now, &pixel) in running.iter_mut().zip(line(z)) {
            *now = step(*now, pixel);
        }
    }
}

/// The sums of columns, in `f64`, from the first plane to the last.
#[inline(always)]
fn sums<T: Pixel>(image: View<'_, T>, at: (usize, usize), sums: &mut [f64]) {
    sums.fill(0.0);
    down(image, at, sums, |sum, pixel| sum + pixel.to_f64());
}

/// What `result` makes of the sum of every column of pixels.
#[inline(always)]
fn of_sums<T: Pixel, R: Real>(
    image: View<'_, T>,
    out: ViewMut<'_, R>,
    result: impl Fn(f64) -> f64 + Sync,
) {
    let level = Level::new();
    for_pieces(out, |y, x, piece| {
        dispatch!(level, _simd => {
            let mut column = [0.0; WIDTH];
            let column = &mut column[..piece.len()];
            sums(image, (y, x), column);
            for (to, &sum) in piece.iter_mut().zip(column.iter()) {
                *to = R::from_f64(result(sum));
            }
        });
    });
}

/// The sum of every column of pixels.
pub fn sum_z<T: Pixel, R: Real>(image: View<'_, T>, out: ViewMut<'_, R>) {
    of_sums(image, out, |sum| sum);
}

/// The mean of every column of pixels.
pub fn mean_z<T: Pixel, R: Real>(image: View<'_, T>, out: ViewMut<'_, R>) {
    let count = image.dims()[0] as f64;
    of_sums(image, out, |sum| sum / count);
}

/// The root of every column's mean square deviation from its mean.
pub fn std_z<T: Pixel, R: Real>(image: View<'_, T>, out: ViewMut<'_, R>) {
    let level = Level::new();
    for_pieces(
        out,
        |y, x, piece| dispatch!(level, _simd => deviations(image, (y, x), piece)),
    );
}

#[inline(always)]
fn deviations<T: Pixel, R: Real>(image: View<'_, T>, (y, x): (usize, usize), piece: &mut [R]) {
    let [nz, _, _] = image.dims();
    let count = nz as f64;
    let (mut means, mut squares) = ([0.0; WIDTH], [0.0; WIDTH]);
    let width = piece.len();
    let (means, squares) = (&mut means[..width], &mut squares[..width]);
    sums(image, (y, x), means);
    for mean in means.iter_mut() {
        *mean /= count;
    }
    for z in 0..nz {
        let line = &image.row(z, y)[x..x + width];
        for ((square, pixel), &mean) in squares.iter_mut().zip(line).zip(means.iter()) {
            let off = pixel.to_f64() - mean;
            *square += off * off;
        }
    }
    for (to, &square) in piece.iter_mut().zip(squares.iter()) {
        *to = R::from_f64((square / count).sqrt());
    }
}

/// The greatest value of every column; NaN is ignored, and nothing else gives minus infinity.
pub fn max_z<T: Pixel>(image: View<'_, T>, out: ViewMut<'_, T>) {
    extreme(image, T::LEAST, out, T::greater);
}

/// The least value of every column; NaN is ignored, and nothing else gives infinity.
pub fn min_z<T: Pixel>(image: View<'_, T>, out: ViewMut<'_, T>) {
    extreme(image, T::GREATEST, out, T::lesser);
}

#[inline(always)]
fn extreme<T: Pixel>(
    image: View<'_, T>,
    start: T,
    out: ViewMut<'_, T>,
    better: impl Fn(T, T) -> T + Sync,
) {
    let level = Level::new();
    for_pieces(out, |y, x, piece| {
        dispatch!(level, _simd => {
            piece.fill(start);
            down(image, (y, x), piece, &better);
        });
    });
}

/// The first plane with the greatest value of every column; NaN is ignored, and nothing else gives 0.
pub fn argmax_z<T: Pixel>(image: View<'_, T>, out: ViewMut<'_, u32>) {
    let level = Level::new();
    for_pieces(
        out,
        |y, x, piece| dispatch!(level, _simd => greatest(image, (y, x), piece)),
    );
}

#[inline(always)]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a second condition that waits for the first is a branch, and no vector code"
)]
fn greatest<T: Pixel>(image: View<'_, T>, (y, x): (usize, usize), piece: &mut [u32]) {
    // Until a number was found, minus infinity is one.
    let none = if T::IS_FLOAT { u32::MAX } else { 0 };
    let mut best = [T::LEAST; WIDTH];
    piece.fill(none);
    for z in 0..image.dims()[0] {
        let line = &image.row(z, y)[x..x + piece.len()];
        for ((at, best), &pixel) in piece.iter_mut().zip(&mut best).zip(line) {
            let first = T::IS_FLOAT & (*at == none) & (pixel >= *best);
            *at = if (pixel > *best) | first {
                z as u32
            } else {
                *at
            };
            *best = best.greater(pixel);
        }
    }
    if T::IS_FLOAT {
        for at in piece {
            *at = if *at == none { 0 } else { *at };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_projected() {
        let data: Vec<f32> = (0..5 * 3 * 700).map(|i| (i * 7919 % 1013) as f32).collect();
        let (dims, plane) = ([5, 3, 700], 3 * 700);
        let image = View::packed(&data, dims);
        let mut real = vec![0.0_f32; plane];
        let mut check = |name: &str, want: &dyn Fn(&[f64]) -> f64| {
            let out = ViewMut::packed(&mut real, [1, 3, 700]);
            match name {
                "sum" => sum_z(image, out),
                "mean" => mean_z(image, out),
                "std" => std_z(image, out),
                "median" => median_z(image, out),
                "min" => min_z(image, out),
                _ => max_z(image, out),
            }
            for (at, &found) in real.iter().enumerate() {
                let column: Vec<f64> = (0..5).map(|z| f64::from(data[z * plane + at])).collect();
                assert_eq!(found, want(&column) as f32, "{name} at {at}");
            }
        };
        let mean = |column: &[f64]| column.iter().sum::<f64>() / 5.0;
        check("sum", &|column| column.iter().sum());
        check("mean", &mean);
        check("std", &|column| {
            let mean = mean(column);
            (column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 5.0).sqrt()
        });
        check("min", &|column| {
            column.iter().copied().fold(f64::INFINITY, f64::min)
        });
        check("max", &|column| column.iter().copied().fold(0.0, f64::max));
        check("median", &|column| {
            let mut column = column.to_vec();
            column.sort_by(f64::total_cmp);
            column[2]
        });
        let mut at = vec![9; plane];
        argmax_z(image, ViewMut::packed(&mut at, [1, 3, 700]));
        for (place, &z) in at.iter().enumerate() {
            let column: Vec<f32> = (0..5).map(|z| data[z * plane + place]).collect();
            let most = column.iter().copied().fold(0.0, f32::max);
            assert_eq!(column.iter().position(|&v| v == most), Some(z as usize));
        }
    }

    /// NaN first and minus infinity behind it once gave plane 0.
    #[test]
    fn minus_infinity_behind_nan_is_the_greatest() {
        let (nan, least) = (f32::NAN, f32::NEG_INFINITY);
        let data = [
            nan, nan, least, 1.0, least, nan, nan, nan, nan, nan, least, 1.0,
        ];
        let mut at = [9; 4];
        argmax_z(
            View::packed(&data, [3, 1, 4]),
            ViewMut::packed(&mut at, [1, 1, 4]),
        );
        assert_eq!(at, [1, 0, 0, 0]);
    }
}
