//! Pixels in other places: cutting, padding, mirroring, turning.

use std::ops::Range;

use fearless_simd::prelude::*;

use super::lanes::{Level, Simd, dispatch, load, store, vectors};
use super::share::{Band, fit, for_bands, for_rows};
use super::turn::square;
use super::{Pixel, View, ViewMut};
use warploom_flow::Boundary;

/// The part of an image that starts at `start` (z, y, x) and has the extents of `out`.
pub fn crop<T: Pixel>(image: View<'_, T>, start: [usize; 3], out: ViewMut<'_, T>) {
    for_rows(out, |z, y, row| {
        let source = image.row(z + start[0], y + start[1]);
        row.copy_from_slice(&source[start[2]..start[2] + row.len()]);
    });
}

/// The part of an image that starts at `start` (z, y, x) and has the extents of `out`; what lies
/// outside follows the boundary rule, and [`Boundary::Zero`] gives `value`.
pub fn frame<T: Pixel>(
    image: View<'_, T>,
    start: [i64; 3],
    boundary: Boundary,
    value: T,
    out: ViewMut<'_, T>,
) {
    let (dims, room) = (image.dims(), out.dims());
    let inside =
        (0..3).all(|axis| start[axis] >= 0 && start[axis] as usize + room[axis] <= dims[axis]);
    if inside {
        return crop(image, start.map(|at| at as usize), out);
    }
    for_rows(out, |z, y, row| {
        frame_row(image, start, boundary, value, [z, y], row);
    });
}

/// The row at `z` and `y` of such a part.
#[inline(always)]
pub(crate) fn frame_row<T: Pixel>(
    image: View<'_, T>,
    start: [i64; 3],
    boundary: Boundary,
    value: T,
    [z, y]: [usize; 2],
    row: &mut [T],
) {
    let [nz, ny, nx] = image.dims().map(|n| n as i64);
    let z = boundary.source(z as i64 + start[0], nz);
    let y = boundary.source(y as i64 + start[1], ny);
    let (Some(z), Some(y)) = (z, y) else {
        row.fill(value);
        return;
    };
    let source = image.row(z as usize, y as usize);
    // Columns of the image lie side by side; only those outside are looked for.
    let width = row.len() as i64;
    let middle = (-start[2]).clamp(0, width)..(nx - start[2]).clamp(0, width);
    let (left, right) = (0..middle.start, middle.end.max(middle.start)..width);
    for outside in [left, right] {
        let part = &mut row[outside.start as usize..outside.end as usize];
        beyond(source, outside.start + start[2], boundary, value, part);
    }
    if !middle.is_empty() {
        let from = (middle.start + start[2]) as usize;
        let to = &mut row[middle.start as usize..middle.end as usize];
        to.copy_from_slice(&source[from..from + to.len()]);
    }
}

/// Columns from `first` on, all of them to the same side of a row.
fn beyond<T: Pixel>(source: &[T], first: i64, boundary: Boundary, value: T, part: &mut [T]) {
    match boundary {
        Boundary::Zero => part.fill(value),
        // Parts as wide as the image are common where two are put side by side.
        Boundary::Clamp => {
            let edge = if first < 0 { 0 } else { source.len() - 1 };
            part.fill(source[edge]);
        }
        _ => {
            for (x, to) in (first..).zip(part) {
                let from = boundary.source(x, source.len() as i64);
                *to = from.map_or(value, |from| source[from as usize]);
            }
        }
    }
}

/// The image with `before` (z, y, x) pixels ahead of it, and as many behind it as `out` has room
/// for. Outside, the boundary rule is followed; [`Boundary::Zero`] gives `value`.
pub fn pad<T: Pixel>(
    image: View<'_, T>,
    before: [usize; 3],
    boundary: Boundary,
    value: T,
    out: ViewMut<'_, T>,
) {
    let start = before.map(|before| -(before as i64));
    frame(image, start, boundary, value, out);
}

/// The image with the order of rows (`axis` 1), planes (0) or columns (2) reversed.
pub fn flip<T: Pixel>(image: View<'_, T>, axis: usize, out: ViewMut<'_, T>) {
    fit(image.dims(), out.dims());
    let [nz, ny, _] = image.dims();
    for_rows(out, |z, y, row| match axis {
        0 => row.copy_from_slice(image.row(nz - 1 - z, y)),
        1 => row.copy_from_slice(image.row(z, ny - 1 - y)),
        _ => {
            let source = image.row(z, y).iter().rev();
            for (to, &from) in row.iter_mut().zip(source) {
                *to = from;
            }
        }
    });
}

/// Rows and columns of a tile: a cache line of each, so that no line is fetched twice.
const fn tile<T>() -> usize {
    64 / size_of::<T>()
}

/// Swaps two axes of an image; as [`transpose`], faster where pixels are words.
pub fn swap_axes<T: Pixel>(image: View<'_, T>, axes: (usize, usize), out: ViewMut<'_, T>) {
    let mut dims = image.dims();
    dims.swap(axes.0, axes.1);
    // Small planes have no use for blocks.
    let is_small = dims[1] < BLOCK[0] || dims[2] < BLOCK[1] / 4;
    let is_plane = (axes.0.min(axes.1), axes.0.max(axes.1)) == (1, 2);
    if size_of::<T>() != 4 || !is_plane || is_small {
        transpose(image, axes, out);
        return;
    }
    fit(dims, out.dims());
    let level = Level::new();
    for_bands(out, TALL, &|mut band| {
        dispatch!(level, simd => turn_words(simd, image, &mut band, dims[1]));
    });
}

/// Swaps two axes (0 is z, 2 is x); `out` has the swapped extents.
pub fn transpose<T: Copy + Send + Sync>(
    image: View<'_, T>,
    axes: (usize, usize),
    out: ViewMut<'_, T>,
) {
    let mut dims = image.dims();
    dims.swap(axes.0, axes.1);
    fit(dims, out.dims());
    match (axes.0.min(axes.1), axes.0.max(axes.1)) {
        (0, 1) => for_rows(out, |z, y, row| row.copy_from_slice(image.row(y, z))),
        (1, 2) => match tile::<T>() {
            64 => turn::<T, 64>(image, out),
            32 => turn::<T, 32>(image, out),
            16 => turn::<T, 16>(image, out),
            _ => turn::<T, 8>(image, out),
        },
        (0, 2) => {
            // Rows of a plane of the result lie in one row of the image each, at this plane's y.
            let [_, ny, _] = dims;
            turn_depth(image, out, ny);
        }
        _ => for_rows(out, |z, y, row| row.copy_from_slice(image.row(z, y))),
    }
}

/// Rows of the result that are made together: lines of the image that lie side by side are fetched
/// together, and fetching one of each of many rows leaves most of that unused.
const TALL: usize = 64;

/// Output pixel (z, y, x) is input pixel (z, x, y), by tiles of this side.
fn turn<T: Copy + Send + Sync, const SIDE: usize>(image: View<'_, T>, out: ViewMut<'_, T>) {
    let ny = out.dims()[1];
    for_bands(out, TALL.max(SIDE), &|mut band| {
        for (z, rows) in planes(band.rows(), ny, TALL.max(SIDE)) {
            turn_rows::<T, SIDE>(image, &mut band, z, ny, rows, 0);
        }
    });
}

/// The rows of a band in parts: of one plane, and at most `most` of them.
fn planes(
    rows: Range<usize>,
    ny: usize,
    most: usize,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut first = rows.start;
    std::iter::from_fn(move || {
        if first == rows.end {
            return None;
        }
        let z = first / ny;
        let part = first..rows.end.min(first + most).min((z + 1) * ny);
        first = part.end;
        Some((z, part))
    })
}

/// Rows of the result in plane `z`, from column `from` on.
#[inline(always)]
fn turn_rows<T: Copy + Send + Sync, const SIDE: usize>(
    image: View<'_, T>,
    band: &mut Band<'_, T>,
    z: usize,
    ny: usize,
    rows: Range<usize>,
    from: usize,
) {
    let nx = image.dims()[1];
    for left in (from..nx).step_by(SIDE) {
        let right = nx.min(left + SIDE);
        for top in rows.clone().step_by(SIDE) {
            let height = SIDE.min(rows.end - top);
            // Whole cache lines of the image, one row after the other; then the tile's columns.
            let y = top - z * ny;
            let corner = image.row(z, left)[y];
            let mut tile = [[corner; SIDE]; SIDE];
            for (line, x) in tile.iter_mut().zip(left..right) {
                line[..height].copy_from_slice(&image.row(z, x)[y..y + height]);
            }
            for (column, row) in (top..top + height).enumerate() {
                let to = &mut band.row(row)[left..right];
                for (to, line) in to.iter_mut().zip(&tile) {
                    *to = line[column];
                }
            }
        }
    }
}

/// Rows and columns of the result that are turned before any of it is written: of the image two cache lines
/// side by side, which are fetched together, of the result rows as long as is worth fetching ahead.
const BLOCK: [usize; 2] = [32, 512];

/// Words that a row of a block is longer: rows a power of two apart would share the few places of a cache set.
const APART: usize = 16;

/// As [`turn`], by way of blocks.
#[inline(always)]
#[expect(
    clippy::large_stack_arrays,
    reason = "threads have thirty times as much, and memory would have to be asked for in every call"
)]
fn turn_words<S: Simd, T: Pixel>(simd: S, image: View<'_, T>, band: &mut Band<'_, T>, ny: usize) {
    let lanes = S::u32s::LEN;
    let step = BLOCK[1] + APART;
    let mut block = [0_u32; BLOCK[0] * (BLOCK[1] + APART)];
    let nx = image.dims()[1];
    let wide = nx / lanes * lanes;
    for (z, rows) in planes(band.rows(), ny, BLOCK[0]) {
        if rows.len() < BLOCK[0] {
            turn_rows::<T, 16>(image, band, z, ny, rows, 0);
            continue;
        }
        let y = rows.start - z * ny;
        for left in (0..wide).step_by(BLOCK[1]) {
            let width = BLOCK[1].min(wide - left);
            for x in (0..width).step_by(lanes) {
                for down in (0..BLOCK[0]).step_by(lanes) {
                    let lines = vectors(|line| {
                        let row = image.row(z, left + x + line.min(lanes - 1));
                        load::<S, S::u32s>(simd, bytemuck::cast_slice(row), y + down)
                    });
                    for (column, vector) in square(lines).iter().enumerate().take(lanes) {
                        store(*vector, &mut block, (down + column) * step + x);
                    }
                }
            }
            for (row, from) in rows.clone().zip(block.chunks_exact(step)) {
                let to = &mut band.row(row)[left..left + width];
                to.copy_from_slice(bytemuck::cast_slice(&from[..width]));
            }
        }
        turn_rows::<T, 16>(image, band, z, ny, rows, wide);
    }
}

/// Output pixel (z, y, x) is input pixel (x, y, z).
fn turn_depth<T: Copy + Send + Sync>(image: View<'_, T>, out: ViewMut<'_, T>, ny: usize) {
    let [_, _, nx] = out.dims();
    let side = tile::<T>();
    // Whole planes together: a tile spans planes of the result.
    for_bands(out, side * ny, &|mut band| {
        let rows = band.rows();
        let (low, high) = (rows.start / ny, rows.end.div_ceil(ny));
        for y in 0..ny {
            for left in (0..nx).step_by(side) {
                let right = nx.min(left + side);
                for z in low..high {
                    let row = z * ny + y;
                    if !rows.contains(&row) {
                        continue;
                    }
                    let line = &mut band.row(row)[left..right];
                    for (x, to) in (left..right).zip(line) {
                        *to = image.row(x, y)[z];
                    }
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(dims: [usize; 3]) -> Vec<u32> {
        (0..dims.iter().product::<usize>() as u32).collect()
    }

    #[rstest::rstest]
    #[case([1, 33, 47])]
    #[case([5, 21, 34])]
    #[case([40, 3, 70])]
    #[case([1, 1, 9])]
    #[case([7, 1, 1])]
    // Beyond a block: more rows, and more of their pixels.
    #[case([2, 655, 70])]
    #[case([1, 150, 33])]
    fn axes_are_swapped_and_reversed(#[case] dims: [usize; 3]) {
        let data = ramp(dims);
        let image = View::packed(&data, dims);
        for axes in [(0, 1), (1, 2), (0, 2), (2, 1)] {
            let mut turned = dims;
            turned.swap(axes.0, axes.1);
            let mut out = vec![0; data.len()];
            transpose(image, axes, ViewMut::packed(&mut out, turned));
            let mut other = vec![0; out.len()];
            swap_axes(image, axes, ViewMut::packed(&mut other, turned));
            assert_eq!(out, other);
            let out = View::packed(&out, turned);
            for (at, &value) in data.iter().enumerate() {
                let mut place = [
                    at / (dims[1] * dims[2]),
                    at / dims[2] % dims[1],
                    at % dims[2],
                ];
                place.swap(axes.0, axes.1);
                assert_eq!(out.row(place[0], place[1])[place[2]], value);
            }
        }
        for axis in 0..3 {
            let mut out = vec![0; data.len()];
            flip(image, axis, ViewMut::packed(&mut out, dims));
            let out = View::packed(&out, dims);
            for (at, &value) in data.iter().enumerate() {
                let mut place = [
                    at / (dims[1] * dims[2]),
                    at / dims[2] % dims[1],
                    at % dims[2],
                ];
                place[axis] = dims[axis] - 1 - place[axis];
                assert_eq!(out.row(place[0], place[1])[place[2]], value);
            }
        }
    }

    #[test]
    fn a_crop_of_a_pad_is_the_image() {
        let data = ramp([2, 3, 4]);
        let image = View::packed(&data, [2, 3, 4]);
        for boundary in Boundary::ALL {
            let mut padded = vec![0; 5 * 9 * 17];
            pad(
                image,
                [1, 2, 6],
                boundary,
                7,
                ViewMut::packed(&mut padded, [5, 9, 17]),
            );
            let view = View::packed(&padded, [5, 9, 17]);
            for at in 0..padded.len() {
                let (z, y, x) = (at / 153, at / 17 % 9, at % 17);
                let from = [(z, 1, 2), (y, 2, 3), (x, 6, 4)]
                    .map(|(at, before, length)| boundary.source(at as i64 - before, length));
                let want = match from {
                    [Some(z), Some(y), Some(x)] => image.row(z as usize, y as usize)[x as usize],
                    _ => 7,
                };
                assert_eq!(view.row(z, y)[x], want, "{boundary} {z} {y} {x}");
            }
            let mut back = vec![0; 24];
            crop(view, [1, 2, 6], ViewMut::packed(&mut back, [2, 3, 4]));
            assert_eq!(back, data);
        }
    }
}
