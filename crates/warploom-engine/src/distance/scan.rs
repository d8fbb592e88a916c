//! Distances to the nearest zero along the slowest axis that has any length.

use rayon::prelude::*;

use super::NOWHERE;
use crate::{Pixel, View};

/// Distances along z of a stack, or along y of a plane; [`NOWHERE`] where the column has no zero.
///
/// Columns lie side by side, so every step is one pass over a row, in vector code. The rows are cut
/// into bands, one for each thread; what a band must know of those before and behind it is where
/// their last and first zeros are.
pub(super) fn steps<T: Pixel>(mask: View<'_, T>) -> Vec<u32> {
    let [nz, ny, nx] = mask.dims();
    // Rows of the scan: planes of a stack, rows of a plane.
    let (length, width) = if nz > 1 { (nz, ny * nx) } else { (ny, nx) };
    let lines = if nz > 1 { ny } else { 1 };
    let line = |at: usize, part: usize| {
        if nz > 1 {
            mask.row(at, part)
        } else {
            mask.row(0, at)
        }
    };
    let mut steps = vec![0_u32; length * width];
    let bands = rayon::current_num_threads().clamp(1, length);
    let height = length.div_ceil(bands);
    // How far the zero before each band's first row and behind its last row is, column by column.
    let ends: Vec<(Vec<u32>, Vec<u32>)> = (0..length.div_ceil(height))
        .into_par_iter()
        .map(|band| {
            let rows = band * height..((band + 1) * height).min(length);
            let (mut before, mut behind) = (vec![NOWHERE; width], vec![NOWHERE; width]);
            if bands == 1 {
                return (before, behind);
            }
            for (distance, row) in (1..).zip(rows.clone().rev()) {
                for part in 0..lines {
                    keep_first(line(row, part), distance, &mut before[part * nx..][..nx]);
                }
            }
            for (distance, row) in (1..).zip(rows) {
                for part in 0..lines {
                    keep_first(line(row, part), distance, &mut behind[part * nx..][..nx]);
                }
            }
            (before, behind)
        })
        .collect();
    steps
        .par_chunks_mut(height * width)
        .enumerate()
        .for_each(|(band, steps)| {
            let count = steps.len() / width;
            // What the band before saw last, seen from this band's first row; and so on behind.
            let mut from = vec![NOWHERE; width];
            for (apart, (before, _)) in ends[..band].iter().rev().enumerate() {
                nearer(&mut from, before, (apart * height) as u32);
            }
            let mut last: Vec<u32> = from.iter().map(|&d| d.saturating_sub(1)).collect();
            mark_nowhere(&mut last, &from);
            for row in 0..count {
                let at = band * height + row;
                for part in 0..lines {
                    let range = part * nx..(part + 1) * nx;
                    let to = &mut steps[row * width..][range.clone()];
                    down(line(at, part), &mut last[range], to);
                }
            }
            let mut from = vec![NOWHERE; width];
            let mut offset = 0;
            for (rows, (_, behind)) in ends[band + 1..].iter().enumerate() {
                nearer(&mut from, behind, offset);
                let first = (band + 1 + rows) * height;
                offset += (first + height).min(length) as u32 - first as u32;
            }
            for row in (0..count).rev() {
                up(&mut steps[row * width..][..width], &mut from);
            }
        });
    steps
}

/// Notes `distance` in columns where this row is the first with a zero.
#[inline(always)]
fn keep_first<T: Pixel>(line: &[T], distance: u32, first: &mut [u32]) {
    for (first, &pixel) in first.iter_mut().zip(line) {
        let found = pixel == T::ZERO && *first == NOWHERE;
        *first = if found { distance } else { *first };
    }
}

/// Takes over a zero that is `apart` farther than `other` says, where it is the first.
fn nearer(from: &mut [u32], other: &[u32], apart: u32) {
    for (from, &other) in from.iter_mut().zip(other) {
        if *from == NOWHERE && other != NOWHERE {
            *from = other + apart;
        }
    }
}

fn mark_nowhere(last: &mut [u32], from: &[u32]) {
    for (last, &from) in last.iter_mut().zip(from) {
        *last = if from == NOWHERE { NOWHERE } else { *last };
    }
}

/// One step down: zero where the mask is, one more than above elsewhere.
#[inline(always)]
fn down<T: Pixel>(line: &[T], last: &mut [u32], to: &mut [u32]) {
    for ((to, last), &pixel) in to.iter_mut().zip(last).zip(line) {
        let next = if *last == NOWHERE { NOWHERE } else { *last + 1 };
        *last = if pixel == T::ZERO { 0 } else { next };
        *to = *last;
    }
}

/// One step up: the lesser of what came from above and one more than below. `from` holds, before
/// the step, the distance as seen from this row.
#[inline(always)]
fn up(steps: &mut [u32], from: &mut [u32]) {
    for (step, from) in steps.iter_mut().zip(from) {
        let best = (*step).min(*from);
        *step = best;
        *from = if best == NOWHERE { NOWHERE } else { best + 1 };
    }
}
