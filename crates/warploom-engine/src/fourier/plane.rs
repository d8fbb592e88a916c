//! Products of the spectra of planes, which are never there as a whole.
//!
//! A few columns at a time are transformed, multiplied and transformed back while they are in the cache:
//! turning whole spectra so that columns become rows, and back, would move them through memory five times.

use num_complex::Complex;
use rayon::prelude::*;
use rustfft::FftPlanner;

use super::spectrum::{Back, Fill, Transform, along_x};
use crate::pages::Pages;
use crate::share::band_height;

/// Columns that are worked on together: of each row, a few whole cache lines.
const COLUMNS: usize = 16;

/// The image whose spectrum `make` makes of those of two planes, value by value.
pub(super) fn product<R: Transform>(
    dims: [usize; 3],
    fills: [Fill<'_, R>; 2],
    make: impl Fn(&Complex<R>, &Complex<R>) -> Complex<R> + Sync,
) -> Pages<R> {
    let [_, ny, nx] = dims;
    let half = nx / 2 + 1;
    let planes = fills.map(|fill| along_x(dims, fill));
    let mut planner = FftPlanner::new();
    let (forth, back) = (planner.plan_fft_forward(ny), planner.plan_fft_inverse(ny));
    let room = forth
        .get_inplace_scratch_len()
        .max(back.get_inplace_scratch_len());
    let zero = Complex::new(R::ZERO, R::ZERO);
    // Columns that are a power of two apart would share the few places of one cache set.
    let pitch = ny + 64 / size_of::<R>();
    let mut made = Pages::zeros(half.div_ceil(COLUMNS) * COLUMNS * ny);
    made.as_mut_slice()
        .par_chunks_mut(COLUMNS * ny)
        .enumerate()
        .for_each_init(
            || {
                (
                    vec![zero; room],
                    [0, 1].map(|_| vec![zero; COLUMNS * pitch]),
                )
            },
            |(scratch, [one, two]), (block, made)| {
                let first = block * COLUMNS;
                let width = COLUMNS.min(half - first);
                for (columns, plane) in [&mut *one, &mut *two].into_iter().zip(&planes) {
                    for (y, line) in plane.as_slice().chunks_exact(half).enumerate() {
                        let line = line[first..first + width].iter();
                        for (column, value) in columns.chunks_exact_mut(pitch).zip(line) {
                            column[y] = *value;
                        }
                    }
                    for column in columns.chunks_exact_mut(pitch).take(width) {
                        forth.process_with_scratch(&mut column[..ny], scratch);
                    }
                }
                let columns = one.chunks_exact_mut(pitch).zip(two.chunks_exact(pitch));
                for (one, two) in columns.take(width) {
                    for (a, b) in one[..ny].iter_mut().zip(two) {
                        *a = make(a, b);
                    }
                    back.process_with_scratch(&mut one[..ny], scratch);
                }
                for (y, to) in made.chunks_exact_mut(COLUMNS).enumerate() {
                    for (to, column) in to[..width].iter_mut().zip(one.chunks_exact(pitch)) {
                        *to = column[y];
                    }
                }
            },
        );
    drop(planes);
    let (made, back) = (made.as_slice(), Back::new(dims));
    let mut image = Pages::zeros(ny * nx);
    let rows = image.as_mut_slice().par_chunks_mut(nx).enumerate();
    rows.with_min_len(band_height(nx)).for_each_init(
        || (vec![zero; half], back.scratch()),
        |(line, scratch), (y, row)| {
            for (to, block) in line
                .chunks_mut(COLUMNS)
                .zip(made.chunks_exact(COLUMNS * ny))
            {
                to.copy_from_slice(&block[y * COLUMNS..][..to.len()]);
            }
            back.row(line, row, scratch);
        },
    );
    image
}
