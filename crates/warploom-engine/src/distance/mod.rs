//! Exact Euclidean distances to the nearest zero: one axis after the other, in whole numbers.
//!
//! The first axis is scanned: the distance to the nearest zero of a column grows by one from pixel
//! to pixel. Along each further axis the squared distance is the lower envelope of parabolas, one
//! for each pixel; it is found as the lower hull of points, without a division.

mod envelope;
mod near;
mod scan;

use rayon::prelude::*;

use super::share::{fit, for_bands, for_rows};
use super::{Pixel, Real, View, ViewMut};
use envelope::Envelope;
use near::Limit;

/// Farther than any distance: no zero in this column.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The nearest zero, squared distance and place, of every pixel.
///
/// Places are linear indices, or [`NOWHERE`] for all when nothing is zero.
#[derive(Debug)]
pub(crate) struct Nearest {
    /// Squared distances, in `u64` since an image may be longer than 2^16.
    pub(crate) squares: Vec<u64>,
    pub(crate) places: Vec<u32>,
}

/// Bytes allocated by [`distance_transform`] on `threads` threads.
pub fn scratch_bytes(dims: [usize; 3], threads: usize) -> usize {
    let longest = dims[1].max(dims[2]);
    let deep = if dims[0] > 1 {
        dims.iter().product::<usize>() * size_of::<u64>()
    } else {
        0
    };
    dims.iter().product::<usize>() * size_of::<u32>() + deep + threads * longest * 64
}

/// The distance of every pixel that is not zero to the nearest that is; zeros have distance 0. As
/// `scipy.ndimage.distance_transform_edt`, also where nothing is zero: then the distances are those
/// to position -1 of the first axis longer than 1 and 0 of the others.
pub fn distance_transform<T: Pixel, R: Real>(mask: View<'_, T>, out: ViewMut<'_, R>) {
    fit(mask.dims(), out.dims());
    let [nz, ny, nx] = mask.dims();
    if nz * ny * nx == 0 {
        return;
    }
    let steps = scan::steps(mask);
    let root = |square: u64| R::from_f64((square as f64).sqrt());
    // A zero in any column shows in that column's last row.
    if steps[steps.len() - ny * nx..]
        .iter()
        .all(|&step| step == NOWHERE)
        && nz > 1
        || nz == 1
            && steps[steps.len() - nx..]
                .iter()
                .all(|&step| step == NOWHERE)
    {
        return without_zeros([nz, ny, nx], out);
    }
    if nz > 1 {
        let squares = along_y(&steps, [nz, ny, nx]);
        for_bands(out, super::share::band_height(nx), &|mut band| {
            let mut envelope = Envelope::default();
            for row in band.rows() {
                let line = &squares[row * nx..][..nx];
                envelope.build(nx, |x| line[x]);
                for (to, (square, _)) in band.row(row).iter_mut().zip(envelope.values()) {
                    *to = root(square);
                }
            }
        });
        return;
    }
    for_bands(out, super::share::band_height(nx), &|mut band| {
        let mut envelope = Envelope::default();
        for row in band.rows() {
            let line = &steps[row * nx..][..nx];
            envelope.build(nx, |x| square(line[x]));
            for (to, (square, _)) in band.row(row).iter_mut().zip(envelope.values()) {
                *to = root(square);
            }
        }
    });
}

/// Distances to a place just outside of the image.
fn without_zeros<R: Real>(dims: [usize; 3], out: ViewMut<'_, R>) {
    let first = dims.iter().position(|&n| n > 1).unwrap_or(2);
    let far = |at: usize, axis: usize| (at + usize::from(axis == first)) as u64;
    for_rows(out, |z, y, row| {
        for (x, to) in row.iter_mut().enumerate() {
            let square: u64 = [z, y, x]
                .into_iter()
                .enumerate()
                .map(|(axis, at)| far(at, axis) * far(at, axis))
                .sum();
            *to = R::from_f64((square as f64).sqrt());
        }
    });
}

#[inline(always)]
fn square(step: u32) -> u64 {
    if step == NOWHERE {
        u64::MAX
    } else {
        u64::from(step) * u64::from(step)
    }
}

/// Squared distances within planes' columns, from distances along z.
fn along_y(steps: &[u32], [_, ny, nx]: [usize; 3]) -> Vec<u64> {
    /// Columns taken together: what a cache line holds of them.
    const COLUMNS: usize = 16;
    let mut squares = vec![0_u64; steps.len()];
    squares
        .par_chunks_mut(ny * nx)
        .zip(steps.par_chunks(ny * nx))
        .for_each(|(squares, steps)| {
            let mut envelope = Envelope::default();
            let mut tile = vec![0_u32; COLUMNS * ny];
            for left in (0..nx).step_by(COLUMNS) {
                let width = COLUMNS.min(nx - left);
                for y in 0..ny {
                    let line = &steps[y * nx + left..][..width];
                    for (column, &step) in line.iter().enumerate() {
                        tile[column * ny + y] = step;
                    }
                }
                for column in 0..width {
                    let line = &tile[column * ny..][..ny];
                    envelope.build(ny, |y| square(line[y]));
                    for (y, (value, _)) in envelope.values().enumerate() {
                        squares[y * nx + left + column] = value;
                    }
                }
            }
        });
    squares
}

/// The nearest pixel for which `is_target` holds, of every pixel.
///
/// Of several as near, the one in the leftmost column, then in the topmost row, then in the first
/// plane is taken: the axes are gone along in scipy's order, z, y, x.
pub(crate) fn nearest<T: Pixel>(
    image: View<'_, T>,
    is_target: impl Fn(T) -> bool + Sync,
) -> Nearest {
    let [nz, ny, nx] = image.dims();
    let count = nz * ny * nx;
    let mut places = vec![NOWHERE; count];
    let mut squares = vec![u64::MAX; count];
    if count == 0 {
        return Nearest { squares, places };
    }
    let rows = squares.par_chunks_mut(nx).zip(places.par_chunks_mut(nx));
    rows.enumerate().for_each(|(row, (squares, places))| {
        let line = image.row(row / ny, row % ny);
        for (x, (square, place)) in squares.iter_mut().zip(places).enumerate() {
            if is_target(line[x]) {
                (*square, *place) = (0, (row * nx + x) as u32);
            }
        }
    });
    if nz > 1 {
        along_slow(&mut squares, &mut places, nz, ny * nx);
    }
    if ny > 1 {
        for (squares, places) in squares.chunks_mut(ny * nx).zip(places.chunks_mut(ny * nx)) {
            along_slow(squares, places, ny, nx);
        }
    }
    if nx > 1 {
        let rows = squares.par_chunks_mut(nx).zip(places.par_chunks_mut(nx));
        rows.for_each_init(
            || (Envelope::default(), Vec::new()),
            |(envelope, before), (squares, places)| {
                envelope.build(nx, |x| squares[x]);
                before.clear();
                before.extend_from_slice(places);
                for (x, (square, source)) in envelope.values().enumerate() {
                    squares[x] = square;
                    places[x] = source.map_or(NOWHERE, |source| before[source]);
                }
            },
        );
    }
    Nearest { squares, places }
}

/// Envelopes along the slow axis of `length` rows of `width`, in strips of columns.
fn along_slow(squares: &mut [u64], places: &mut [u32], length: usize, width: usize) {
    const COLUMNS: usize = 32;
    let strips: Vec<Vec<(u64, u32)>> = (0..width.div_ceil(COLUMNS))
        .into_par_iter()
        .map(|strip| {
            let left = strip * COLUMNS;
            let columns = COLUMNS.min(width - left);
            let mut found = vec![(0, 0); length * columns];
            let mut envelope = Envelope::default();
            for column in 0..columns {
                let at = |y: usize| y * width + left + column;
                envelope.build(length, |y| squares[at(y)]);
                for (y, (square, source)) in envelope.values().enumerate() {
                    let place = source.map_or(NOWHERE, |source| places[at(source)]);
                    found[y * columns + column] = (square, place);
                }
            }
            found
        })
        .collect();
    let rows = squares
        .par_chunks_mut(width)
        .zip(places.par_chunks_mut(width));
    rows.enumerate().for_each(|(y, (squares, places))| {
        for (strip, found) in strips.iter().enumerate() {
            let left = strip * COLUMNS;
            let columns = COLUMNS.min(width - left);
            for column in 0..columns {
                let (square, place) = found[y * columns + column];
                squares[left + column] = square;
                places[left + column] = place;
            }
        }
    });
}

/// Bytes allocated by [`expand_labels`].
pub fn expand_scratch_bytes(dims: [usize; 3]) -> usize {
    dims.iter().product::<usize>() * (2 * size_of::<u64>() + 2 * size_of::<u32>() + 8)
}

/// Grows labels by up to `distance` pixels into the background, as
/// `skimage.segmentation.expand_labels`, also where several labels are as near.
pub fn expand_labels<T: Pixel>(labels: View<'_, T>, distance: f64, out: ViewMut<'_, T>) {
    fit(labels.dims(), out.dims());
    match Limit::new(distance) {
        Some(limit) => near::expand(labels, limit, out),
        None => expand_far(labels, distance, out),
    }
}

/// To any distance.
fn expand_far<T: Pixel>(labels: View<'_, T>, distance: f64, out: ViewMut<'_, T>) {
    let [_, ny, nx] = labels.dims();
    let nearest = nearest(labels, |label| label != T::ZERO);
    for_rows(out, |z, y, row| {
        let first = (z * ny + y) * nx;
        for (x, to) in row.iter_mut().enumerate() {
            let place = nearest.places[first + x];
            let near = (nearest.squares[first + x] as f64).sqrt() <= distance;
            *to = if place == NOWHERE || !near {
                T::ZERO
            } else {
                let place = place as usize;
                labels.row(place / nx / ny, place / nx % ny)[place % nx]
            };
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(at: usize, dims: [usize; 3]) -> [i64; 3] {
        [
            at / (dims[1] * dims[2]),
            at / dims[2] % dims[1],
            at % dims[2],
        ]
        .map(|n| n as i64)
    }

    fn apart(a: usize, b: usize, dims: [usize; 3]) -> u64 {
        let (a, b) = (place(a, dims), place(b, dims));
        a.iter()
            .zip(b)
            .map(|(a, b)| ((a - b) * (a - b)) as u64)
            .sum()
    }

    proptest! {
        #[test]
        fn distances_are_the_least(
            (dims, data) in (1_usize..5, 1_usize..14, 1_usize..24, 0_u8..6)
                .prop_flat_map(|(z, y, x, rare)| {
                    let pixel = (0..=rare).prop_map(move |v| u8::from(v > 0 || rare == 0));
                    (Just([z, y, x]), proptest::collection::vec(pixel, z * y * x))
                }),
        ) {
            let zeros: Vec<usize> = (0..data.len()).filter(|&at| data[at] == 0).collect();
            let mut out = vec![0.0_f64; data.len()];
            let mask = View::packed(&data, dims);
            distance_transform(mask, ViewMut::packed(&mut out, dims));
            let found = nearest(mask, |value| value == 0);
            for (at, &distance) in out.iter().enumerate() {
                let least = zeros.iter().map(|&zero| apart(at, zero, dims)).min();
                let outside = || {
                    let first = dims.iter().position(|&n| n > 1).unwrap_or(2);
                    let mut at = place(at, dims);
                    at[first] += 1;
                    at.iter().map(|at| (at * at) as u64).sum()
                };
                prop_assert_eq!(distance, (least.unwrap_or_else(outside) as f64).sqrt());
                match least {
                    None => prop_assert_eq!(found.places[at], NOWHERE),
                    Some(least) => {
                        prop_assert_eq!(found.squares[at], least);
                        let place = found.places[at] as usize;
                        prop_assert_eq!(data[place], 0);
                        prop_assert_eq!(apart(at, place, dims), least);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn windows_and_envelopes_grow_labels_alike(
            (dims, data) in (1_usize..5, 1_usize..20, 1_usize..300, 1_u8..40)
                .prop_flat_map(|(z, y, x, rare)| {
                    let pixel = (0..=rare).prop_map(move |v| if v < 3 { v } else { 0 });
                    (Just([z, y, x]), proptest::collection::vec(pixel, z * y * x))
                }),
            distance in prop_oneof![Just(0.0), Just(1.0), Just(2.0_f64.sqrt()), 0.0..40.0_f64],
        ) {
            let labels = View::packed(&data, dims);
            let limit = Limit::new(distance).expect("near enough");
            let (mut near, mut far) = (vec![9; data.len()], vec![9; data.len()]);
            near::expand(labels, limit, ViewMut::packed(&mut near, dims));
            expand_far(labels, distance, ViewMut::packed(&mut far, dims));
            prop_assert_eq!(near, far);
        }
    }

    #[test]
    fn labels_grow_to_the_distance() {
        let mut labels = [0_u32; 9];
        labels[1] = 5;
        labels[7] = 6;
        let mut out = [9; 9];
        expand_labels(
            View::packed(&labels, [1, 1, 9]),
            2.0,
            ViewMut::packed(&mut out, [1, 1, 9]),
        );
        assert_eq!(out, [5, 5, 5, 5, 0, 6, 6, 6, 6]);
        let none = [0_u32; 9];
        expand_labels(
            View::packed(&none, [1, 1, 9]),
            2.0,
            ViewMut::packed(&mut out, [1, 1, 9]),
        );
        assert_eq!(out, none);
    }

    #[test]
    fn of_labels_as_near_the_one_scipy_names_is_taken() {
        let mut labels = [0_u32; 9];
        (labels[1], labels[3], labels[5]) = (3, 1, 2);
        let mut out = [9; 9];
        expand_labels(
            View::packed(&labels, [1, 3, 3]),
            2.0,
            ViewMut::packed(&mut out, [1, 3, 3]),
        );
        assert_eq!(out, [1, 3, 3, 1, 1, 2, 1, 1, 2]);
    }
}
