//! The nearest label within a few pixels.
//!
//! Along each axis the least of all squares within reach is taken, for a row of pixels at a time: for
//! a short reach that is a handful of vector instructions a pixel, where an envelope has branches that
//! nobody foresees. Labels travel with their squares, so nothing is looked up in the end.

use rayon::prelude::*;

use crate::lanes::{Level, dispatch};
use crate::share::{band_height, for_bands};
use crate::{Pixel, View, ViewMut};

/// Up to this many pixels a window takes less time than an envelope does.
const REACH: usize = 48;

/// More than any square here, with room for another one.
const FAR: u32 = 1 << 30;

/// Pixels of a row that are worked on together: they stay in the first cache.
const BLOCK: usize = 256;

/// How far a label is to grow, in whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// The greatest square whose root is no more than the distance.
    square: u32,
    /// The greatest distance along one axis.
    reach: usize,
}

impl Limit {
    /// `None` when it is too far for windows.
    pub(super) fn new(distance: f64) -> Option<Self> {
        // NaN is no distance, and nothing is as near.
        if !(0.0..(REACH + 1) as f64).contains(&distance) {
            return None;
        }
        let within = |square: &u32| f64::from(*square).sqrt() <= distance;
        let most = ((REACH + 1) * (REACH + 1)) as u32;
        let square = (0..=most).take_while(within).last()?;
        let reach = square.isqrt() as usize;
        Some(Self { square, reach })
    }
}

/// Where the rows around a row are: as many ahead and behind as it reaches, none outside.
fn around(at: usize, length: usize, reach: usize) -> impl Iterator<Item = (usize, u32)> {
    let rows = at.saturating_sub(reach)..length.min(at + reach + 1);
    rows.map(move |row| {
        let apart = row.abs_diff(at) as u32;
        (row, apart * apart)
    })
}

/// The nearest label of each pixel, so far as is known, and the square of its distance.
struct Found<T> {
    squares: Vec<u32>,
    labels: Vec<T>,
}

impl<T: Pixel> Found<T> {
    fn new(count: usize) -> Self {
        Self {
            squares: vec![FAR; count],
            labels: vec![T::ZERO; count],
        }
    }
}

/// Takes over the labels of a row where they are nearer: `square` is how far the row is.
#[inline(always)]
fn take_row<T: Pixel>(line: &[T], square: u32, squares: &mut [u32], labels: &mut [T]) {
    for ((&label, nearest), kept) in line.iter().zip(squares).zip(labels) {
        let is_nearer = label != T::ZERO && square < *nearest;
        *nearest = if is_nearer { square } else { *nearest };
        *kept = if is_nearer { label } else { *kept };
    }
}

/// The same with a row of what was found already.
#[inline(always)]
fn take_found<T: Pixel>(from: (&[u32], &[T]), square: u32, squares: &mut [u32], labels: &mut [T]) {
    let from = from.0.iter().zip(from.1);
    for (((&far, &label), nearest), kept) in from.zip(squares).zip(labels) {
        let is_nearer = far + square < *nearest;
        *nearest = if is_nearer { far + square } else { *nearest };
        *kept = if is_nearer { label } else { *kept };
    }
}

/// Grows labels into the background as far as the limit says. Of several labels as near, that of the
/// leftmost column is taken, then of the topmost row, then of the first plane.
pub(super) fn expand<T: Pixel>(labels: View<'_, T>, limit: Limit, out: ViewMut<'_, T>) {
    let dims = labels.dims();
    let [nz, ny, nx] = dims;
    let Limit { square, reach } = limit;
    let level = Level::new();
    let planes = (nz > 1).then(|| along_z(labels, reach));
    for_bands(out, band_height(nx), &|mut band| {
        // A row with what lies beyond its ends.
        let mut found = Found::<T>::new(nx + 2 * reach);
        for row in band.rows() {
            let (z, y) = (row / ny, row % ny);
            let (squares, names) = (&mut found.squares, &mut found.labels);
            let (squares, names) = (&mut squares[reach..], &mut names[reach..]);
            squares[..nx].fill(FAR);
            for left in (0..nx).step_by(BLOCK) {
                let block = left..nx.min(left + BLOCK);
                let (squares, names) = (&mut squares[block.clone()], &mut names[block.clone()]);
                for (y, apart) in around(y, ny, reach) {
                    if let Some(planes) = &planes {
                        let first = (z * ny + y) * nx;
                        let from = first + block.start..first + block.end;
                        let from = (&planes.squares[from.clone()], &planes.labels[from]);
                        dispatch!(level, _simd => take_found(from, apart, squares, names));
                    } else {
                        let line = &labels.row(z, y)[block.clone()];
                        dispatch!(level, _simd => take_row(line, apart, squares, names));
                    }
                }
            }
            let line = band.row(row);
            for left in (0..nx).step_by(BLOCK) {
                let block = left..nx.min(left + BLOCK);
                let to = &mut line[block.clone()];
                to.fill(T::ZERO);
                // Only what is within the limit is nearer than this.
                let mut nearest = [square + 1; BLOCK];
                for shift in 0..=2 * reach {
                    let apart = shift.abs_diff(reach) as u32;
                    let from = block.start + shift..block.end + shift;
                    let from = (&found.squares[from.clone()], &found.labels[from]);
                    let nearest = &mut nearest[..block.len()];
                    dispatch!(level, _simd => take_found(from, apart * apart, nearest, to));
                }
            }
        }
    });
}

/// The nearest labels along z.
fn along_z<T: Pixel>(labels: View<'_, T>, reach: usize) -> Found<T> {
    let [nz, ny, nx] = labels.dims();
    let level = Level::new();
    let mut found = Found::new(nz * ny * nx);
    let squares = found.squares.par_chunks_mut(nx.max(1));
    let rows = squares.zip(found.labels.par_chunks_mut(nx.max(1)));
    rows.with_min_len(band_height(nx))
        .enumerate()
        .for_each(|(row, (squares, names))| {
            for (z, apart) in around(row / ny, nz, reach) {
                let line = labels.row(z, row % ny);
                dispatch!(level, _simd => take_row(line, apart, squares, names));
            }
        });
    found
}
