//! Medians of small squares, with all comparisons between registers.
//!
//! Columns are sorted once for all squares that they are in, and for the larger square pairs of
//! columns are merged once, too. What a merge makes and the median does not need, the compiler
//! leaves out.

use fearless_simd::prelude::*;

use super::super::lanes::{Level, Simd, Vector, dispatch, load, store, vectors};
use super::super::share::Band;
use super::super::{View, ViewMut};
use super::lines::{Layout, Memory};
use super::rank::Ranked;
use warploom_flow::Boundary;

/// Bytes of lines and sorted columns that stay in the first cache.
const CACHE: usize = 28 << 10;

/// Squares whose median is found here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Square {
    Three,
    Five,
}

impl Square {
    /// The square of this reach, when `rank` is its median.
    pub(super) fn of(reach: [usize; 3], count: usize, rank: usize) -> Option<Self> {
        match (reach, count, rank) {
            ([0, 1, 1], 9, 4) => Some(Self::Three),
            ([0, 2, 2], 25, 12) => Some(Self::Five),
            _ => None,
        }
    }

    /// Rows of memory beside the lines.
    fn slots(self) -> usize {
        match self {
            Self::Three => 3,
            Self::Five => 5 + 10,
        }
    }

    /// The median of each square. The image's keys have no NaN, or place it.
    pub(super) fn run<T: Ranked>(
        self,
        level: Level,
        image: View<'_, T>,
        reach: [usize; 3],
        boundary: Boundary,
        out: ViewMut<'_, T>,
        aside: impl Fn(&mut Band<'_, T>) -> bool + Sync,
    ) {
        let dims = image.dims();
        let layout = Layout::new::<T::Order>(dims, reach, boundary, 1, self.slots(), CACHE);
        layout.for_bands(out, |mut band, memory| {
            if !aside(&mut band) {
                dispatch!(level, simd => self.rows(simd, &layout, image, band, memory));
            }
        });
    }

    #[inline(always)]
    fn rows<S: Simd, T: Ranked>(
        self,
        simd: S,
        layout: &Layout,
        image: View<'_, T>,
        mut band: Band<'_, T>,
        memory: &mut Memory,
    ) {
        let (ny, lines) = (layout.dims[1], layout.lines());
        let rows = lines + self.slots();
        memory.block.reserve::<T::Order>((rows + 1) * layout.stride);
        memory.starts.clear();
        memory.starts.resize(lines, 0);
        let read = |pixel: Option<T>| pixel.unwrap_or(T::ZERO).into_order();
        for xs in layout.tiles() {
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
                    |_: &mut [T::Order]| {},
                );
                let (ring, slots) = memory
                    .block
                    .as_mut_slice::<T::Order>()
                    .split_at_mut(lines * layout.stride);
                let (stride, starts) = (layout.stride, &memory.starts);
                let to = &mut band.row(row)[xs.clone()];
                match self {
                    Self::Three => {
                        let lines = std::array::from_fn(|at| &ring[starts[at]..][..stride]);
                        three::<S, T>(simd, lines, slots, stride, to);
                    }
                    Self::Five => {
                        let lines = std::array::from_fn(|at| &ring[starts[at]..][..stride]);
                        five::<S, T>(simd, lines, slots, stride, to);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn pair<S: Simd, V: SimdBase<S>>(a: V, b: V) -> (V, V) {
    (a.min(b), a.max(b))
}

#[inline(always)]
fn middle<S: Simd, V: SimdBase<S>>(a: V, b: V, c: V) -> V {
    let (low, high) = pair(a, b);
    low.max(high.min(c))
}

#[inline(always)]
fn sorted_three<S: Simd, V: SimdBase<S>>([a, b, c]: [V; 3]) -> [V; 3] {
    let (a, b) = pair(a, b);
    let (b, c) = pair(b, c);
    let (a, b) = pair(a, b);
    [a, b, c]
}

#[inline(always)]
fn sorted_five<S: Simd, V: SimdBase<S>>([a, b, c, d, e]: [V; 5]) -> [V; 5] {
    let (a, d) = pair(a, d);
    let (b, e) = pair(b, e);
    let (a, c) = pair(a, c);
    let (b, d) = pair(b, d);
    let (a, b) = pair(a, b);
    let (c, e) = pair(c, e);
    let (b, c) = pair(b, c);
    let (d, e) = pair(d, e);
    let (c, d) = pair(c, d);
    [a, b, c, d, e]
}

/// The end of Batcher's merge: what is in even places and what is in odd ones, made one list.
#[inline(always)]
fn woven<S: Simd, V: SimdBase<S>, const E: usize, const O: usize, const N: usize>(
    even: [V; E],
    odd: [V; O],
) -> [V; N] {
    let mut all = [even[0]; N];
    for at in 0..O {
        if at + 1 < E {
            (all[2 * at + 1], all[2 * at + 2]) = pair(odd[at], even[at + 1]);
        } else {
            all[N - 1] = odd[at];
        }
    }
    if E == O + 2 {
        all[N - 1] = even[E - 1];
    }
    all
}

#[inline(always)]
fn merged_two<S: Simd, V: SimdBase<S>>(a: [V; 2], b: [V; 2]) -> [V; 4] {
    let (low, high) = (pair(a[0], b[0]), pair(a[1], b[1]));
    woven([low.0, low.1], [high.0, high.1])
}

#[inline(always)]
fn merged_three<S: Simd, V: SimdBase<S>>(a: [V; 3], b: [V; 3]) -> [V; 6] {
    let odd = pair(a[1], b[1]);
    woven(merged_two([a[0], a[2]], [b[0], b[2]]), [odd.0, odd.1])
}

#[inline(always)]
fn merged_five<S: Simd, V: SimdBase<S>>(a: [V; 5], b: [V; 5]) -> [V; 10] {
    let even = merged_three([a[0], a[2], a[4]], [b[0], b[2], b[4]]);
    woven(even, merged_two([a[1], a[3]], [b[1], b[3]]))
}

#[inline(always)]
fn merged_ten<S: Simd, V: SimdBase<S>>(a: [V; 10], b: [V; 10]) -> [V; 20] {
    let part = |list: [V; 10], first: usize| vectors(|at| list[2 * at + first]);
    woven(
        merged_five(part(a, 0), part(b, 0)),
        merged_five(part(a, 1), part(b, 1)),
    )
}

/// `N` rows of a vector's elements more than `width`, each `stride` after the one before; of one
/// length, so that a vector is looked for in bounds once and not in every row.
#[inline(always)]
fn rows<K, const N: usize>(data: &[K], stride: usize, length: usize) -> [&[K]; N] {
    std::array::from_fn(|row| &data[row * stride..][..length])
}

/// The vectors that start at `x` in each row.
#[inline(always)]
fn across<S: Simd, V: SimdBase<S>, const N: usize>(
    simd: S,
    rows: &[&[V::Element]; N],
    x: usize,
) -> [V; N] {
    vectors(|row| load(simd, rows[row], x))
}

/// Writes vectors to `x` of each row.
#[inline(always)]
fn down<S: Simd, V: SimdBase<S>, const N: usize>(
    values: [V; N],
    data: &mut [V::Element],
    stride: usize,
    x: usize,
) {
    for (row, value) in values.into_iter().enumerate() {
        store(value, data, row * stride + x);
    }
}

/// Gives `to` the elements of keys.
#[inline(always)]
fn put<S: Simd, T: Ranked>(keys: Vector<S, T::Order>, to: &mut [T], x: usize) {
    let keys = keys.as_slice();
    if let Some(to) = to.get_mut(x..x + keys.len()) {
        for (to, &key) in to.iter_mut().zip(keys) {
            *to = T::from_order(key);
        }
        return;
    }
    for (to, &key) in to[x..].iter_mut().zip(keys) {
        *to = T::from_order(key);
    }
}

#[inline(always)]
fn three<S: Simd, T: Ranked>(
    simd: S,
    lines: [&[T::Order]; 3],
    sorted: &mut [T::Order],
    stride: usize,
    to: &mut [T],
) {
    let lanes = Vector::<S, T::Order>::LEN;
    for x in (0..to.len() + 2).step_by(lanes) {
        let column: [Vector<S, T::Order>; 3] = across(simd, &lines, x);
        down(sorted_three(column), sorted, stride, x);
    }
    let sorted = rows::<_, 3>(sorted, stride, to.len() + 2 + lanes);
    for x in (0..to.len()).step_by(lanes) {
        let [a, b, c]: [[Vector<S, T::Order>; 3]; 3] = vectors(|dx| across(simd, &sorted, x + dx));
        let low = a[0].max(b[0]).max(c[0]);
        let high = a[2].min(b[2]).min(c[2]);
        put::<S, T>(middle(low, middle(a[1], b[1], c[1]), high), to, x);
    }
}

#[inline(always)]
fn five<S: Simd, T: Ranked>(
    simd: S,
    lines: [&[T::Order]; 5],
    slots: &mut [T::Order],
    stride: usize,
    to: &mut [T],
) {
    let lanes = Vector::<S, T::Order>::LEN;
    let (sorted, pairs) = slots.split_at_mut(5 * stride);
    for x in (0..to.len() + 4).step_by(lanes) {
        let column: [Vector<S, T::Order>; 5] = across(simd, &lines, x);
        down(sorted_five(column), sorted, stride, x);
    }
    let sorted = rows::<_, 5>(sorted, stride, to.len() + 4 + lanes);
    for x in (0..to.len() + 2).step_by(lanes) {
        let a: [Vector<S, T::Order>; 5] = across(simd, &sorted, x);
        down(
            merged_five(a, across(simd, &sorted, x + 1)),
            pairs,
            stride,
            x,
        );
    }
    let pairs = rows::<_, 10>(pairs, stride, to.len() + 2 + lanes);
    for x in (0..to.len()).step_by(lanes) {
        let a: [Vector<S, T::Order>; 10] = across(simd, &pairs, x);
        let four = merged_ten(a, across(simd, &pairs, x + 2));
        // The least over all ways to take 13 elements of both lists, of the greatest taken.
        let last: [Vector<S, T::Order>; 5] = across(simd, &sorted, x + 4);
        let mut median = four[12];
        for at in 0..5 {
            median = median.min(four[11 - at].max(last[at]));
        }
        put::<S, T>(median, to, x);
    }
}
