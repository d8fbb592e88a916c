//! Extremes by runs: what a neighbourhood takes of one line is a window along x.
//!
//! For every line the extremes of all windows of the lengths that occur are made, each from the
//! one before, once for all rows that see the line; a neighbourhood then costs as much as it has
//! lines, not pixels. Of equal elements the first in C order wins everywhere, so that even the sign
//! of a zero is that of the elements taken one by one.

use fearless_simd::prelude::*;

use super::super::lanes::{
    Lane, Level, Simd, Vector, dispatch, greater, lesser, load, store, vectors,
};
use super::super::share::Band;
use super::super::{View, ViewMut};
use super::lines::{Layout, Memory};
use super::{Lined, RING};
use warploom_flow::Boundary;

/// A neighbourhood's lines as windows.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Lengths that occur, rising.
    lengths: Vec<usize>,
    /// Line, which of the lengths, and where it begins; in C order.
    runs: Vec<(usize, usize, usize)>,
}

impl Runs {
    pub(super) fn new(lined: &Lined) -> Self {
        let mut runs: Vec<(usize, usize, usize)> = Vec::new();
        for &(line, x) in &lined.places {
            match runs.last_mut() {
                Some((last, length, start)) if *last == line && *start + *length == x => {
                    *length += 1;
                }
                _ => runs.push((line, 1, x)),
            }
        }
        let mut lengths: Vec<usize> = runs.iter().map(|run| run.1).collect();
        lengths.sort_unstable();
        lengths.dedup();
        for (_, length, _) in &mut runs {
            *length = lengths.partition_point(|other| other < length);
        }
        Self { lengths, runs }
    }

    /// The greatest of each neighbourhood, or the least; NaN is ignored.
    pub(super) fn run<T: Lane, const MAX: bool>(
        &self,
        level: Level,
        image: View<'_, T>,
        reach: [usize; 3],
        boundary: Boundary,
        out: ViewMut<'_, T>,
    ) {
        // A line of its own for every length but one pixel, which is the line itself.
        let layout = Layout::new::<T>(image.dims(), reach, boundary, self.copies(), 0, RING);
        layout.for_bands(out, |band, memory| {
            dispatch!(level, simd => self.band::<_, T, MAX>(simd, &layout, image, band, memory));
        });
    }

    fn copies(&self) -> usize {
        1 + self.lengths.len()
    }

    #[inline(always)]
    fn band<S: Simd, T: Lane, const MAX: bool>(
        &self,
        simd: S,
        layout: &Layout,
        image: View<'_, T>,
        mut band: Band<'_, T>,
        memory: &mut Memory,
    ) {
        let ny = layout.dims[1];
        let spare = Vector::<S, T>::LEN;
        memory
            .block
            .reserve::<T>(layout.lines() * layout.copies * layout.stride + spare);
        memory.starts.clear();
        memory.starts.resize(layout.lines(), 0);
        // NaN loses against where the search starts; afterwards there is none.
        let read = |pixel: Option<T>| {
            let pixel = pixel.unwrap_or(T::ZERO);
            if MAX {
                T::LEAST.greater(pixel)
            } else {
                T::GREATEST.lesser(pixel)
            }
        };
        for xs in layout.tiles() {
            let padded = xs.len() + 2 * layout.reach[2];
            for row in band.rows() {
                let (z, y) = (row / ny, row % ny);
                let all = row == band.rows().start || y == 0;
                layout.advance(
                    image,
                    [z, y],
                    &xs,
                    all,
                    memory,
                    read,
                    #[inline(always)]
                    |line: &mut [T]| {
                        self.widen::<S, T, MAX>(simd, line, layout.stride, padded);
                    },
                );
                let to = &mut band.row(row)[xs.clone()];
                self.fold::<S, T, MAX>(simd, memory, layout.stride, to);
            }
        }
    }

    /// Extremes of windows of each length that start at each pixel of a line.
    #[inline(always)]
    fn widen<S: Simd, T: Lane, const MAX: bool>(
        &self,
        simd: S,
        line: &mut [T],
        stride: usize,
        width: usize,
    ) {
        let (mut from, mut span) = (0, 1);
        for (at, &length) in self.lengths.iter().enumerate() {
            let to = (1 + at) * stride;
            if length == 1 {
                // Only ever the first, and the pixels are there.
                continue;
            }
            while span < length {
                let step = span.min(length - span);
                // Later pixels are read before they are overwritten.
                join::<S, T, MAX>(simd, line, from, to, step, width);
                span += step;
                from = to;
            }
        }
    }

    #[inline(always)]
    fn fold<S: Simd, T: Lane, const MAX: bool>(
        &self,
        simd: S,
        memory: &Memory,
        stride: usize,
        to: &mut [T],
    ) {
        let lanes = Vector::<S, T>::LEN;
        let data = memory.block.as_slice::<T>();
        let single = self.lengths[0] == 1;
        let at = |(line, length, x): (usize, usize, usize)| {
            let copy = if single && length == 0 { 0 } else { 1 + length };
            memory.starts[line] + copy * stride + x
        };
        let width = to.len();
        let mut x = 0;
        while x + 4 * lanes <= width {
            let first = at(self.runs[0]) + x;
            let mut best: [Vector<S, T>; 4] = vectors(|c| load(simd, data, first + c * lanes));
            for &run in &self.runs[1..] {
                let from = at(run) + x;
                for (c, best) in best.iter_mut().enumerate() {
                    *best = better::<S, T, MAX>(*best, load(simd, data, from + c * lanes));
                }
            }
            for (c, best) in best.into_iter().enumerate() {
                store(best, to, x + c * lanes);
            }
            x += 4 * lanes;
        }
        while x < width {
            let mut best: Vector<S, T> = load(simd, data, at(self.runs[0]) + x);
            for &run in &self.runs[1..] {
                best = better::<S, T, MAX>(best, load(simd, data, at(run) + x));
            }
            if x + lanes <= width {
                store(best, to, x);
            } else {
                to[x..].copy_from_slice(&best.as_slice()[..width - x]);
            }
            x += lanes;
        }
    }
}

#[inline(always)]
fn better<S: Simd, T: Lane, const MAX: bool>(a: Vector<S, T>, b: Vector<S, T>) -> Vector<S, T> {
    if MAX { greater(a, b) } else { lesser(a, b) }
}

/// What starts at each pixel of the row at `from` made one with what starts `step` later.
#[inline(always)]
fn join<S: Simd, T: Lane, const MAX: bool>(
    simd: S,
    line: &mut [T],
    from: usize,
    to: usize,
    step: usize,
    width: usize,
) {
    let mut x = 0;
    while x + step < width {
        let a: Vector<S, T> = load(simd, line, from + x);
        let b = load(simd, line, from + x + step);
        store(better::<S, T, MAX>(a, b), line, to + x);
        x += Vector::<S, T>::LEN;
    }
}
