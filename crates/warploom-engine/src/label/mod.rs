//! Connected components: runs of pixels, joined by union-find in bands, then across them.

mod join;
mod runs;

use super::share::{band_height, fit, for_bands};
use super::{Pixel, View, ViewMut};

pub(crate) use join::connect;
pub(crate) use runs::Runs;

/// Which pixels touch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Connectivity {
    /// Those that share a side: 4 neighbours in a plane, 6 in a stack.
    Diamond,
    /// Those that share a side, an edge or a corner: 8 neighbours in a plane, 26 in a stack.
    Box,
}

/// Bytes allocated by [`label`] and [`fill_holes`]: at most half of the pixels begin a run.
pub fn scratch_bytes(dims: [usize; 3]) -> usize {
    let [nz, ny, nx] = dims;
    nz * ny * (nx.div_ceil(2) * 16 + 8)
}

/// Numbers the objects of a mask, from 1 in the order of their first pixels, and answers how many
/// there are. What is not zero belongs to an object (NaN too); everything else becomes 0.
pub fn label<T: Pixel>(
    mask: View<'_, T>,
    connectivity: Connectivity,
    out: ViewMut<'_, u32>,
) -> u32 {
    fit(mask.dims(), out.dims());
    let [_, _, nx] = mask.dims();
    let runs = Runs::of_mask(mask, false);
    let components = connect(&runs, connectivity, |_, _| true);
    runs.for_each_row(out, |numbers, runs, row| {
        row.fill(0);
        for (run, number) in runs.iter().zip(numbers) {
            let (start, end) = (run.start as usize, (run.end as usize).min(nx));
            // Most runs are short: a loop beats the call that fills memory.
            for pixel in &mut row[start..end] {
                *pixel = components.numbers[number];
            }
        }
    });
    components.count
}

/// Fills what of the background cannot be reached from the image's edges through pixels that share
/// a side, as `scipy.ndimage.binary_fill_holes`; zeros and ones come out. Axes of one pixel have
/// no edges.
pub fn fill_holes<T: Pixel>(mask: View<'_, T>, out: ViewMut<'_, u8>) {
    fit(mask.dims(), out.dims());
    let [nz, ny, nx] = mask.dims();
    let runs = Runs::of_mask(mask, true);
    let components = connect(&runs, Connectivity::Diamond, |_, _| true);
    let mut outside = vec![false; components.count as usize + 1];
    for row in 0..nz * ny {
        let (z, y) = (row / ny, row % ny);
        let edge = (nz > 1 && (z == 0 || z + 1 == nz)) || (ny > 1 && (y == 0 || y + 1 == ny));
        let (numbers, line) = runs.row(row);
        for (run, number) in line.iter().zip(numbers) {
            if edge || (nx > 1 && (run.start == 0 || run.end as usize == nx)) {
                outside[components.numbers[number] as usize] = true;
            }
        }
    }
    // A single pixel is all edge, or none: its background is left as it is.
    if nz * ny * nx == 1 {
        outside.fill(true);
    }
    runs.for_each_row(out, |numbers, runs, row| {
        row.fill(1);
        for (run, number) in runs.iter().zip(numbers) {
            if outside[components.numbers[number] as usize] {
                row[run.start as usize..run.end as usize].fill(0);
            }
        }
    });
}

/// Removes, of a label image, every connected part of one value that touches the image's edge, as
/// `skimage.segmentation.clear_border`: parts of one label that are apart are judged apart, corners
/// connect. Axes of one pixel have no edges.
pub fn clear_border<T: Pixel>(labels: View<'_, T>, out: ViewMut<'_, T>) {
    fit(labels.dims(), out.dims());
    let [nz, ny, nx] = labels.dims();
    let runs = Runs::of_labels(labels);
    let value = |row: usize, x: u32| labels.row(row / ny, row % ny)[x as usize];
    let components = connect(&runs, Connectivity::Box, |a, b| {
        value(a.0, a.1) == value(b.0, b.1)
    });
    let mut touches = vec![false; components.count as usize + 1];
    for row in 0..nz * ny {
        let (z, y) = (row / ny, row % ny);
        let edge = (nz > 1 && (z == 0 || z + 1 == nz)) || (ny > 1 && (y == 0 || y + 1 == ny));
        let (numbers, line) = runs.row(row);
        for (run, number) in line.iter().zip(numbers) {
            if edge || (nx > 1 && (run.start == 0 || run.end as usize == nx)) {
                touches[components.numbers[number] as usize] = true;
            }
        }
    }
    // A single pixel is all edge.
    if nz * ny * nx == 1 {
        touches.fill(true);
    }
    for_bands(out, band_height(nx), &|mut band| {
        for row in band.rows() {
            let source = labels.row(row / ny, row % ny);
            let line = band.row(row);
            line.copy_from_slice(source);
            let (numbers, runs) = runs.row(row);
            for (run, number) in runs.iter().zip(numbers) {
                if touches[components.numbers[number] as usize] {
                    line[run.start as usize..run.end as usize].fill(T::ZERO);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Flood by flood, in scan order.
    fn naive(data: &[u8], dims: [usize; 3], connectivity: Connectivity, same: bool) -> Vec<u32> {
        let [nz, ny, nx] = dims.map(|n| n as i64);
        let mut labels = vec![0; data.len()];
        let mut count = 0;
        for first in 0..data.len() {
            if data[first] == 0 || labels[first] != 0 {
                continue;
            }
            count += 1;
            labels[first] = count;
            let mut open = vec![first as i64];
            while let Some(at) = open.pop() {
                let (z, y, x) = (at / (ny * nx), at / nx % ny, at % nx);
                for step in 0..27 {
                    let (dz, dy, dx) = (step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1_i64);
                    let far = dz.abs() + dy.abs() + dx.abs();
                    let (z, y, x) = (z + dz, y + dy, x + dx);
                    let inside =
                        (0..nz).contains(&z) && (0..ny).contains(&y) && (0..nx).contains(&x);
                    if !inside || (connectivity == Connectivity::Diamond && far != 1) {
                        continue;
                    }
                    let next = ((z * ny + y) * nx + x) as usize;
                    let alike = data[next] != 0 && (!same || data[next] == data[at as usize]);
                    if alike && labels[next] == 0 {
                        labels[next] = count;
                        open.push(next as i64);
                    }
                }
            }
        }
        labels
    }

    fn image() -> impl Strategy<Value = ([usize; 3], Vec<u8>)> {
        (1_usize..6, 1_usize..20, 1_usize..80, 1_u8..4).prop_flat_map(|(z, y, x, values)| {
            let data = proptest::collection::vec(0..=values, z * y * x);
            (Just([z, y, x]), data)
        })
    }

    proptest! {
        #[test]
        fn labels_are_those_of_floods((dims, data) in image()) {
            for connectivity in [Connectivity::Diamond, Connectivity::Box] {
                let mut out = vec![9; data.len()];
                let mask = View::packed(&data, dims);
                let count = label(mask, connectivity, ViewMut::packed(&mut out, dims));
                prop_assert_eq!(&out, &naive(&data, dims, connectivity, false));
                prop_assert_eq!(count, out.iter().copied().max().unwrap());
            }
        }

        #[test]
        fn parts_at_the_border_are_cleared((dims, data) in image()) {
            let parts = naive(&data, dims, Connectivity::Box, true);
            let edge = |at: usize| {
                let place = [at / (dims[1] * dims[2]), at / dims[2] % dims[1], at % dims[2]];
                dims == [1; 3] || place.iter().zip(dims).any(|(&p, n)| n > 1 && (p == 0 || p + 1 == n))
            };
            let gone: Vec<u32> = (0..data.len()).filter(|&at| edge(at)).map(|at| parts[at]).collect();
            let mut out = vec![9; data.len()];
            clear_border(View::packed(&data, dims), ViewMut::packed(&mut out, dims));
            for at in 0..data.len() {
                prop_assert_eq!(out[at], if gone.contains(&parts[at]) { 0 } else { data[at] });
            }
        }

        #[test]
        fn holes_are_what_the_border_does_not_reach((dims, data) in image()) {
            let zeros: Vec<u8> = data.iter().map(|&v| u8::from(v == 0)).collect();
            let parts = naive(&zeros, dims, Connectivity::Diamond, false);
            let edge = |at: usize| {
                let place = [at / (dims[1] * dims[2]), at / dims[2] % dims[1], at % dims[2]];
                dims == [1; 3] || place.iter().zip(dims).any(|(&p, n)| n > 1 && (p == 0 || p + 1 == n))
            };
            let open: Vec<u32> = (0..data.len()).filter(|&at| edge(at)).map(|at| parts[at]).collect();
            let mut out = vec![9; data.len()];
            fill_holes(View::packed(&data, dims), ViewMut::packed(&mut out, dims));
            for at in 0..data.len() {
                let hole = parts[at] != 0 && !open.contains(&parts[at]);
                prop_assert_eq!(out[at], u8::from(data[at] != 0 || hole));
            }
        }
    }

    #[test]
    fn many_parts_of_a_large_image_are_joined() {
        // A comb: every tooth is found by itself and joined at the last row.
        let (ny, nx) = (700, 401);
        let data: Vec<u8> = (0..ny * nx)
            .map(|at| u8::from(at / nx == ny - 1 || at % nx % 2 == 0))
            .collect();
        let mut out = vec![0; data.len()];
        let dims = [1, ny, nx];
        let count = label(
            View::packed(&data, dims),
            Connectivity::Diamond,
            ViewMut::packed(&mut out, dims),
        );
        assert_eq!(count, 1);
        assert!(
            out.iter()
                .zip(&data)
                .all(|(&label, &set)| label == u32::from(set))
        );
    }
}
