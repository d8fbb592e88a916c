//! Images read between their pixels.

mod columns;
mod slope;

use super::lanes::{Level, dispatch};
use super::share::{Band, band_height, for_bands, for_rows};
use super::{Pixel, Real, View, ViewMut};
use columns::{Columns, Lines};
use slope::{Around, CHUNK};

/// Where an output pixel is read: `matrix * (z, y, x) + offset`, in pixels of the input.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Affine {
    /// Rows for z, y, x of the input.
    pub matrix: [[f64; 3]; 3],
    /// Added to them.
    pub offset: [f64; 3],
}

impl Affine {
    /// Moves the image by this many pixels, as `scipy.ndimage.shift`.
    pub fn shift(by: [f64; 3]) -> Self {
        Self {
            matrix: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            offset: by.map(|by| -by),
        }
    }

    /// Turns planes of an image about their middles, from x towards y in the picture as
    /// `scipy.ndimage.rotate` without `reshape` does. Quarter turns are exact.
    pub fn rotation(degrees: f64, dims: [usize; 3]) -> Self {
        let (sin, cos) = match degrees.rem_euclid(360.0) {
            0.0 => (0.0, 1.0),
            90.0 => (1.0, 0.0),
            180.0 => (0.0, -1.0),
            270.0 => (-1.0, 0.0),
            _ => degrees.to_radians().sin_cos(),
        };
        let [y, x] = [dims[1], dims[2]].map(|n| (n as f64 - 1.0) / 2.0);
        Self {
            matrix: [[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]],
            offset: [0.0, y - (cos * y + sin * x), x - (cos * x - sin * y)],
        }
    }
}

/// The two pixels a position lies between, and how far it is on the way.
#[derive(Clone, Copy)]
struct Between<R> {
    low: usize,
    high: usize,
    part: R,
}

impl<R: Real> Between<R> {
    /// `None` outside of `0..=length - 1`.
    #[inline(always)]
    fn inside(at: f64, length: usize) -> Option<Self> {
        let last = length - 1;
        (at >= 0.0 && at <= last as f64).then(|| {
            let low = at as usize;
            Self {
                low,
                high: (low + 1).min(last),
                part: R::from_f64(at - low as f64),
            }
        })
    }

    /// Positions outside are moved to the edge.
    fn clamped(at: f64, length: usize) -> Self {
        let at = at.clamp(0.0, (length - 1) as f64);
        let low = at as usize;
        Self {
            low,
            high: (low + 1).min(length - 1),
            part: R::from_f64(at - low as f64),
        }
    }

    #[inline(always)]
    fn mix(self, low: R, high: R) -> R {
        mix(low, high, self.part)
    }
}

/// `low + part * (high - low)`, with one rounding of the product and sum.
#[inline(always)]
fn mix<R: Real>(low: R, high: R, part: R) -> R {
    part.fused(high - low, low)
}

/// Linear interpolation where `affine` points to, 0 outside of the image, as
/// `scipy.ndimage.affine_transform` of order 1 with constant 0.
///
/// Positions are `((offset + m[0]*z) + m[1]*y) + m[2]*x` in `f64`. Values are mixed along x, then y,
/// then z, each as `fma(part, high - low, low)` with the part rounded to the computation type; along
/// y and z only where the image has more than one pixel.
pub fn affine_linear<T: Pixel>(image: View<'_, T>, affine: &Affine, out: ViewMut<'_, T::Real>) {
    let [nz, ny, nx] = image.dims();
    let [mz, my, mx] = affine.matrix;
    let [oz, oy, ox] = affine.offset;
    let level = Level::new();
    let place = |m: [f64; 3], offset: f64, [z, y, x]: [usize; 3]| {
        ((offset + m[0] * z as f64) + m[1] * y as f64) + m[2] * x as f64
    };
    // Where axes stay apart, a row is read from the same four rows, at the same columns as others.
    let straight = mz[2] == 0.0 && my[2] == 0.0 && mx[0] == 0.0 && mx[1] == 0.0;
    if straight {
        let columns =
            Columns::new((0..out.dims()[2]).map(|x| Between::inside(place(mx, ox, [0, 0, x]), nx)));
        for_rows(out, |z, y, row| {
            let at_z = Between::inside(place(mz, oz, [z, y, 0]), nz);
            let at_y = Between::inside(place(my, oy, [z, y, 0]), ny);
            match (at_z, at_y) {
                (Some(z), Some(y)) => {
                    let lines = Lines::new(image, z, y);
                    dispatch!(level, _simd => columns.read(&lines, row));
                }
                _ => row.fill(T::Real::ZERO),
            }
        });
        return;
    }
    // Neighbouring rows are read from the same lines of the image: a column of chunks finds them in the
    // nearest cache, where whole rows would have pushed them out. At the ends of a column lines are fetched
    // that those above and below it fetch too: the taller it is, the fewer times.
    let steps = [mz[2], my[2], mx[2]];
    let [planes, rows, width] = out.dims();
    let fair = planes * rows / (8 * rayon::current_num_threads());
    let height = fair.clamp(1, TALL).max(band_height(width));
    for_bands(out, height, &|mut band: Band<'_, T::Real>| {
        let mut around = Around::new();
        for first in (0..width).step_by(CHUNK) {
            for at in band.rows() {
                let row = [at / rows, at % rows, 0];
                let starts = [place(mz, oz, row), place(my, oy, row), place(mx, ox, row)];
                let last = width.min(first + CHUNK);
                let to = &mut band.row(at)[first..last];
                dispatch!(level, _simd => around.read(image, starts, steps, first as i32, to));
            }
        }
    });
}

/// Rows of a column of chunks, at most: what they are read from is a part of the second cache.
const TALL: usize = 128;

/// Bytes allocated by [`resize_linear`] and [`resize_nearest`]: where every column is read.
pub fn scratch_bytes(out: [usize; 3]) -> usize {
    out[2] * 3 * size_of::<u64>()
}

/// Linear interpolation to the extents of `out`: pixel centres lie at half integers, positions
/// beyond the outer centres are moved onto them.
pub fn resize_linear<T: Pixel>(image: View<'_, T>, out: ViewMut<'_, T::Real>) {
    let (from, to) = (image.dims(), out.dims());
    let place = |at: usize, axis: usize| {
        let at = (at as f64 + 0.5) * from[axis] as f64 / to[axis] as f64 - 0.5;
        Between::clamped(at, from[axis])
    };
    let level = Level::new();
    let columns = Columns::new((0..to[2]).map(|x| Some(place(x, 2))));
    for_rows(out, |z, y, row| {
        let lines = Lines::new(image, place(z, 0), place(y, 1));
        dispatch!(level, _simd => columns.read(&lines, row));
    });
}

/// The pixel under each output pixel's centre, for the extents of `out`; the later one of two as
/// near.
pub fn resize_nearest<T: Pixel>(image: View<'_, T>, out: ViewMut<'_, T>) {
    let (from, to) = (image.dims(), out.dims());
    let place = |at: usize, axis: usize| (2 * at + 1) * from[axis] / (2 * to[axis]);
    let columns: Vec<usize> = (0..to[2]).map(|x| place(x, 2)).collect();
    let step = match columns[..] {
        [first, second, ..] => second - first,
        _ => 0,
    };
    let even = columns.windows(2).all(|pair| pair[1] - pair[0] == step);
    let level = Level::new();
    for_rows(out, |z, y, row| {
        let source = image.row(place(z, 0), place(y, 1));
        match step {
            2 if even => dispatch!(level, _simd => every::<T, 2>(&source[columns[0]..], row)),
            3 if even => dispatch!(level, _simd => every::<T, 3>(&source[columns[0]..], row)),
            4 if even => dispatch!(level, _simd => every::<T, 4>(&source[columns[0]..], row)),
            _ => {
                for (to, &column) in row.iter_mut().zip(&columns) {
                    *to = source[column];
                }
            }
        }
    });
}

/// Every `N`th pixel, from the first on; of the last there may be no further ones.
#[inline(always)]
fn every<T: Pixel, const N: usize>(line: &[T], row: &mut [T]) {
    let (whole, rest) = line.as_chunks::<N>();
    let (most, last) = row.split_at_mut(row.len().min(whole.len()));
    for (to, pixels) in most.iter_mut().zip(whole) {
        *to = pixels[0];
    }
    if let (Some(to), Some(pixel)) = (last.first_mut(), rest.first()) {
        *to = *pixel;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_shifts_move_pixels_and_leave_zeros() {
        let data: Vec<u8> = (1..=12).collect();
        let mut out = [9.0_f32; 12];
        let affine = Affine::shift([0.0, 1.0, -2.0]);
        let view = View::packed(&data, [1, 3, 4]);
        affine_linear(view, &affine, ViewMut::packed(&mut out, [1, 3, 4]));
        assert_eq!(
            out,
            [0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 7.0, 8.0, 0.0, 0.0]
        );
    }

    proptest::proptest! {
        #[test]
        fn slopes_are_read_pixel_by_pixel(
            dims in [1_usize..4, 1_usize..9, 1_usize..90], to in [1_usize..4, 1_usize..5, 1_usize..150],
            matrix in proptest::array::uniform3(proptest::array::uniform3(-1.2_f64..1.2)),
            offset in proptest::array::uniform3(-2.0_f64..6.0), flat: bool,
        ) {
            let dims = if flat { [1, dims[1], dims[2]] } else { dims };
            let mut affine = Affine { matrix, offset };
            if flat {
                (affine.matrix[0], affine.offset[0]) = ([0.0; 3], 0.0);
            }
            let data: Vec<i16> = (0..dims.iter().product()).map(|i: usize| (i * 7919 % 401) as i16 - 200).collect();
            let image = View::packed(&data, dims);
            let mut out = vec![9.0_f32; to.iter().product()];
            affine_linear(image, &affine, ViewMut::packed(&mut out, to));
            for (i, found) in out.into_iter().enumerate() {
                let at = [i / (to[1] * to[2]), i / to[2] % to[1], i % to[2]].map(|at| at as f64);
                let places = [0, 1, 2].map(|axis| {
                    let m = affine.matrix[axis];
                    let place = ((affine.offset[axis] + m[0] * at[0]) + m[1] * at[1]) + m[2] * at[2];
                    Between::<f32>::inside(place, dims[axis])
                });
                let wanted = match places {
                    [Some(z), Some(y), Some(x)] => Lines::new(image, z, y).value(x),
                    _ => 0.0,
                };
                proptest::prop_assert_eq!(found.to_bits(), wanted.to_bits());
            }
        }
    }

    #[test]
    fn a_turned_plane_is_read_pixel_by_pixel() {
        // Large enough for chunks that lie within the plane, and for others.
        let dims = [1, 150, 211];
        let data: Vec<i16> = (0..150 * 211)
            .map(|i: i32| (i * 7919 % 401) as i16 - 200)
            .collect();
        let image = View::packed(&data, dims);
        for degrees in [0.5, 30.0, 45.0, 117.0, -91.0] {
            let affine = Affine::rotation(degrees, dims);
            let mut out = vec![9.0_f32; data.len()];
            affine_linear(image, &affine, ViewMut::packed(&mut out, dims));
            for (i, found) in out.into_iter().enumerate() {
                let at = [0, i / dims[2], i % dims[2]].map(|at| at as f64);
                let places = [0, 1, 2].map(|axis| {
                    let m = affine.matrix[axis];
                    let place =
                        ((affine.offset[axis] + m[0] * at[0]) + m[1] * at[1]) + m[2] * at[2];
                    Between::<f32>::inside(place, dims[axis])
                });
                let wanted = match places {
                    [Some(z), Some(y), Some(x)] => Lines::new(image, z, y).value(x),
                    _ => 0.0,
                };
                assert_eq!(found.to_bits(), wanted.to_bits(), "{i} at {degrees}");
            }
        }
    }

    #[test]
    fn quarter_turns_are_exact() {
        let data: Vec<u8> = (1..=9).collect();
        let mut out = [9.0_f32; 9];
        let view = View::packed(&data, [1, 3, 3]);
        let affine = Affine::rotation(90.0, [1, 3, 3]);
        affine_linear(view, &affine, ViewMut::packed(&mut out, [1, 3, 3]));
        // As numpy.rot90.
        assert_eq!(out, [3.0, 6.0, 9.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0]);
    }

    proptest::proptest! {
        #[test]
        fn sizes_are_changed_pixel_by_pixel(
            to in [1_usize..4, 1_usize..7, 1_usize..40],
            factor in [1_usize..3, 1_usize..4, 1_usize..6],
            more in [0_usize..2, 0_usize..2, 0_usize..3],
        ) {
            let from = [0, 1, 2].map(|axis| to[axis] * factor[axis] + more[axis]);
            let data: Vec<i16> = (0..from.iter().product()).map(|i: usize| (i * 7919 % 401) as i16 - 200).collect();
            let image = View::packed(&data, from);
            let count = to.iter().product();
            let (mut linear, mut nearest) = (vec![9.0_f32; count], vec![9_i16; count]);
            resize_linear(image, ViewMut::packed(&mut linear, to));
            resize_nearest(image, ViewMut::packed(&mut nearest, to));
            for i in 0..count {
                let at = [i / (to[1] * to[2]), i / to[2] % to[1], i % to[2]];
                let [z, y, x] = [0, 1, 2].map(|axis| {
                    let place = (at[axis] as f64 + 0.5) * from[axis] as f64 / to[axis] as f64 - 0.5;
                    Between::<f32>::clamped(place, from[axis])
                });
                let wanted = Lines::new(image, z, y).value(x);
                proptest::prop_assert_eq!(linear[i].to_bits(), wanted.to_bits());
                let [z, y, x] = [0, 1, 2].map(|axis| (2 * at[axis] + 1) * from[axis] / (2 * to[axis]));
                proptest::prop_assert_eq!(nearest[i], image.row(z, y)[x]);
            }
        }
    }

    #[test]
    fn sizes_change_about_half_integers() {
        let data = [0_i16, 10, 20, 30];
        let mut out = [0.0_f32; 8];
        let view = View::packed(&data, [1, 1, 4]);
        resize_linear(view, ViewMut::packed(&mut out, [1, 1, 8]));
        assert_eq!(out, [0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]);
        let mut out = [0; 2];
        resize_nearest(view, ViewMut::packed(&mut out, [1, 1, 2]));
        assert_eq!(out, [10, 30]);
    }
}
