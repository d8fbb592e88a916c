//! Sums, plain and weighted, and where a ball touches, in the order of the offsets.

use fearless_simd::prelude::*;

use super::super::lanes::{
    Float, Lane, Level, Reals, Simd, dispatch, lesser, load, store, vectors,
};
use super::super::share::Band;
use super::super::{Pixel, Real, View, ViewMut};
use super::lines::{Layout, Memory};
use super::{Lined, RING};
use warploom_flow::Boundary;

/// What is added up.
#[derive(Clone, Copy)]
pub(super) enum Terms<'a, R> {
    /// The elements.
    Plain,
    /// `fma(weight, element, sum)` from 0 on.
    Weighted(&'a [R]),
    /// Not a sum: the least of element plus drop, from infinity on; NaN is ignored, and so is what
    /// lies outside.
    Touched(&'a [R]),
}

/// The sum of the elements of each neighbourhood.
pub(super) fn run<T: Pixel<Real = R>, R: Real + Float>(
    level: Level,
    image: View<'_, T>,
    lined: &Lined,
    terms: Terms<'_, R>,
    boundary: Boundary,
    out: ViewMut<'_, R>,
) {
    let layout = Layout::new::<R>(image.dims(), lined.reach, boundary, 1, 0, RING);
    layout.for_bands(out, |band, memory| {
        dispatch!(level, simd => rows(simd, &layout, image, &lined.places, terms, band, memory));
    });
}

#[inline(always)]
fn rows<S: Simd, T: Pixel<Real = R>, R: Real + Float>(
    simd: S,
    layout: &Layout,
    image: View<'_, T>,
    places: &[(usize, usize)],
    terms: Terms<'_, R>,
    mut band: Band<'_, R>,
    memory: &mut Memory,
) {
    let ny = layout.dims[1];
    memory
        .block
        .reserve::<R>((layout.lines() + 1) * layout.stride);
    memory.starts.clear();
    memory.starts.resize(layout.lines(), 0);
    let outside = match terms {
        Terms::Touched(_) => R::GREATEST,
        _ => R::ZERO,
    };
    let read = |pixel: Option<T>| pixel.map_or(outside, Pixel::to_real);
    for xs in layout.tiles() {
        for row in band.rows() {
            let (z, y) = (row / ny, row % ny);
            let all = row == band.rows().start || y == 0;
            layout.advance(image, [z, y], &xs, all, memory, read, |_: &mut [R]| {});
            let data = memory.block.as_slice::<R>();
            let starts = &memory.starts;
            let to = &mut band.row(row)[xs.clone()];
            let lanes = Reals::<S, R>::LEN;
            let mut x = 0;
            // Each sum waits for itself, so several are made at once.
            while x + 8 * lanes <= to.len() {
                let sums = add::<S, R, 8>(simd, data, starts, places, terms, x);
                for (c, sum) in sums.into_iter().enumerate() {
                    store(sum, to, x + c * lanes);
                }
                x += 8 * lanes;
            }
            while x < to.len() {
                let [sum] = add::<S, R, 1>(simd, data, starts, places, terms, x);
                if x + lanes <= to.len() {
                    store(sum, to, x);
                } else {
                    let rest = to.len() - x;
                    to[x..].copy_from_slice(&sum.as_slice()[..rest]);
                }
                x += lanes;
            }
        }
    }
}

#[inline(always)]
fn add<S: Simd, R: Float + Lane, const C: usize>(
    simd: S,
    data: &[R],
    starts: &[usize],
    places: &[(usize, usize)],
    terms: Terms<'_, R>,
    x: usize,
) -> [Reals<S, R>; C] {
    let lanes = Reals::<S, R>::LEN;
    // Cut once for all vectors of a tap: the length is known from then on.
    let at = |k: usize| {
        let (line, dx) = places[k];
        let part = &data[starts[line] + dx + x..][..C * lanes];
        move |c: usize| -> Reals<S, R> { load(simd, part, c * lanes) }
    };
    let mut sums: [Reals<S, R>; C];
    match terms {
        Terms::Plain => {
            sums = vectors(at(0));
            for k in 1..places.len() {
                let at = at(k);
                for (c, sum) in sums.iter_mut().enumerate() {
                    *sum += at(c);
                }
            }
        }
        Terms::Weighted(weights) => {
            sums = [Reals::<S, R>::splat(simd, R::ZERO); C];
            for (k, &weight) in weights.iter().enumerate() {
                let weight = Reals::<S, R>::splat(simd, weight);
                let at = at(k);
                for (c, sum) in sums.iter_mut().enumerate() {
                    *sum = weight.mul_add_precise(at(c), *sum);
                }
            }
        }
        Terms::Touched(drops) => {
            sums = [Reals::<S, R>::splat(simd, R::GREATEST); C];
            for (k, &drop) in drops.iter().enumerate() {
                let drop = Reals::<S, R>::splat(simd, drop);
                let at = at(k);
                for (c, least) in sums.iter_mut().enumerate() {
                    *least = lesser(*least, at(c) + drop);
                }
            }
        }
    }
    sums
}
