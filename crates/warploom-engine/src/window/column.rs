//! Windows down columns, after van Herk and Gil and Werman.
//!
//! The axis is cut into blocks as long as the window. A window is the end of one block and the
//! beginning of the next, so that a running value from each end of every block is all that is
//! needed: three operations per pixel, however long the window, and no sum that drifts.

use fearless_simd::prelude::*;

use super::super::Pixel;
use super::super::block::{Rows, RowsMut};
use super::super::lanes::{Lane, Simd, Vector, greater, lesser, load, store};
use super::Fold;

/// How values are gathered.
trait Gather: Copy {
    /// Is it a value of one of them, and not a sum?
    const IS_EXTREME: bool;
    /// The first value of a block.
    fn begin<S: Simd, V: SimdBase<S>>(simd: S, first: V) -> V
    where
        V::Element: Lane;
    /// One value more.
    fn add<S: Simd, V: SimdBase<S>>(so_far: V, next: V) -> V;
}

macro_rules! gather {
    ($name:ident, $extreme:expr, |$simd:ident, $first:ident| $begin:expr, |$a:ident, $b:ident| $add:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Gather for $name {
            const IS_EXTREME: bool = $extreme;
            #[inline(always)]
            fn begin<S: Simd, V: SimdBase<S>>($simd: S, $first: V) -> V
            where
                V::Element: Lane,
            {
                $begin
            }
            #[inline(always)]
            fn add<S: Simd, V: SimdBase<S>>($a: V, $b: V) -> V {
                $add
            }
        }
    };
}

gather!(Sum, false, |_simd, first| first, |a, b| a + b);
gather!(
    Min,
    true,
    |simd, first| lesser(V::splat(simd, V::Element::GREATEST), first),
    |a, b| lesser(a, b)
);
gather!(
    Max,
    true,
    |simd, first| greater(V::splat(simd, V::Element::LEAST), first),
    |a, b| greater(a, b)
);

/// Output row `first + j` of the axis from the input rows `j ..= j + 2 * radius`, columns
/// `0..width` rounded up to whole vectors. `ends` is memory for a block's running values.
#[inline(always)]
pub(crate) fn fold<S: Simd, T: Lane>(
    simd: S,
    fold: Fold,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    first: usize,
    width: usize,
    ends: &mut [T],
) {
    match fold {
        Fold::Sum => columns(simd, Sum, radius, src, dst, first, width, ends),
        Fold::Min => columns(simd, Min, radius, src, dst, first, width, ends),
        Fold::Max => columns(simd, Max, radius, src, dst, first, width, ends),
    }
}

/// How many elements [`fold`] wants for `ends`.
pub(crate) const fn ends<T>(radius: usize) -> usize {
    (2 * radius + 2) * 4 * super::super::lanes::widest::<T>()
}

#[inline(always)]
fn columns<S: Simd, T: Lane, G: Gather>(
    simd: S,
    gather: G,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    first: usize,
    width: usize,
    ends: &mut [T],
) {
    let lanes = Vector::<S, T>::LEN;
    let mut x = 0;
    // Of whole numbers it makes no difference in which order extremes are found.
    if radius == 1 && !T::IS_FLOAT && G::IS_EXTREME {
        while x + 4 * lanes <= width {
            threes::<S, T, G, 4>(simd, src, dst, x);
            x += 4 * lanes;
        }
    }
    // Four vectors side by side: each running value waits for the one before it.
    while x + 4 * lanes <= width {
        strip::<S, T, G, 4>(simd, gather, radius, src, dst, first, x, ends);
        x += 4 * lanes;
    }
    while x < width {
        strip::<S, T, G, 1>(simd, gather, radius, src, dst, first, x, ends);
        x += lanes;
    }
}

/// Extremes of three rows each: two rows of results have the two rows between them in common.
#[inline(always)]
fn threes<S: Simd, T: Lane, G: Gather, const C: usize>(
    simd: S,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    x: usize,
) {
    let lanes = Vector::<S, T>::LEN;
    let row = |at: usize| vectors_at::<S, T, C>(simd, src.data, src.starts[at] + x);
    let mut at = 0;
    while at < dst.starts.len() {
        let mut common = row(at + 1);
        add::<S, G, _, C>(&mut common, row(at + 2));
        let mut first = row(at);
        add::<S, G, _, C>(&mut first, common);
        put(&first, dst.data, dst.starts[at] + x, lanes);
        if let Some(&second) = dst.starts.get(at + 1) {
            add::<S, G, _, C>(&mut common, row(at + 3));
            put(&common, dst.data, second + x, lanes);
        }
        at += 2;
    }
}

#[inline(always)]
fn strip<S: Simd, T: Lane, G: Gather, const C: usize>(
    simd: S,
    _: G,
    radius: usize,
    src: Rows<'_, T>,
    dst: &mut RowsMut<'_, T>,
    first: usize,
    x: usize,
    ends: &mut [T],
) {
    let lanes = Vector::<S, T>::LEN;
    let window = 2 * radius + 1;
    let last = first + dst.starts.len() - 1;
    // Row p of the input is position first - radius + p of the axis; block b starts at position
    // b * window - radius.
    let row = |at: usize| vectors_at::<S, T, C>(simd, src.data, src.starts[at] + x);
    let mut block = first / window;
    if first.is_multiple_of(window) {
        let mut whole = begin::<S, G, _, C>(simd, row(0));
        for at in 1..window {
            add::<S, G, _, C>(&mut whole, row(at));
        }
        put(&whole, dst.data, dst.starts[0] + x, lanes);
    }
    while block * window <= last {
        let start = block * window;
        // Results start + from ..= start + to lie between this block and the next.
        let from = first.saturating_sub(start).max(1);
        let to = (window - 1).min(last - start);
        if from <= to {
            let mut end = begin::<S, G, _, C>(simd, row(start + window - 1 - first));
            put(&end, ends, (window - 1) * C * lanes, lanes);
            for k in (from..window - 1).rev() {
                add::<S, G, _, C>(&mut end, row(start + k - first));
                put(&end, ends, k * C * lanes, lanes);
            }
        }
        let next = start + window;
        let stop = if next <= last { window } else { to };
        if from <= stop {
            let mut beginning = begin::<S, G, _, C>(simd, row(next - first));
            for k in 1..=stop {
                if k > 1 {
                    add::<S, G, _, C>(&mut beginning, row(next + k - 1 - first));
                }
                if k == window {
                    put(&beginning, dst.data, dst.starts[next - first] + x, lanes);
                } else if k >= from {
                    let mut whole = vectors_at::<S, T, C>(simd, ends, k * C * lanes);
                    add::<S, G, _, C>(&mut whole, beginning);
                    put(&whole, dst.data, dst.starts[start + k - first] + x, lanes);
                }
            }
        }
        block += 1;
    }
}

/// Vectors side by side. Neither this nor what follows are closures, because those are compiled by themselves where
/// they are long, without the vector instructions of their surroundings.
#[inline(always)]
fn vectors_at<S: Simd, T: Lane, const C: usize>(
    simd: S,
    data: &[T],
    at: usize,
) -> [Vector<S, T>; C] {
    let mut all = [load(simd, data, at); C];
    for (c, vector) in all.iter_mut().enumerate().skip(1) {
        *vector = load(simd, data, at + c * Vector::<S, T>::LEN);
    }
    all
}

#[inline(always)]
fn begin<S: Simd, G: Gather, V: SimdBase<S>, const C: usize>(simd: S, mut values: [V; C]) -> [V; C]
where
    V::Element: Lane,
{
    for value in &mut values {
        *value = G::begin(simd, *value);
    }
    values
}

#[inline(always)]
fn add<S: Simd, G: Gather, V: SimdBase<S>, const C: usize>(so_far: &mut [V; C], more: [V; C]) {
    for c in 0..C {
        so_far[c] = G::add(so_far[c], more[c]);
    }
}

#[inline(always)]
fn put<S: Simd, V: SimdBase<S>, const C: usize>(
    values: &[V; C],
    row: &mut [V::Element],
    at: usize,
    lanes: usize,
) {
    for (c, value) in values.iter().enumerate() {
        store(*value, row, at + c * lanes);
    }
}
