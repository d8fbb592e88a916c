//! Ranks by networks of comparisons, over rows of vectors.

use std::sync::Arc;

use fearless_simd::prelude::*;
use warploom_core::DType;
use warploom_flow::Boundary;
use warploom_native::Routine;

use super::super::block::Block;
use super::super::lanes::{Lane, Level, Simd, Vector, dispatch, load, store};
use super::super::share::Band;
use super::super::tape::native_width;
use super::super::{Pixel, View, ViewMut};
use super::lines::{Layout, Memory};
use super::network::{Network, Step};
use super::phases::{Phase, Phases};
use super::{Lined, naive};

/// Rows of the network and lines together should stay in the first cache.
const CACHE: usize = 28 << 10;

/// The same of rows between phases, which are read and written far less: the second cache will do, and what a phase
/// costs beside its columns is shared by more of them.
const PHASES: usize = 96 << 10;

/// Rows that a phase reads or writes.
const MOST: usize = 48;

/// An element type whose ranks are found by comparing keys.
pub(super) trait Ranked: Pixel {
    /// What is compared.
    type Order: Lane;
    /// Whether keys put NaN above all numbers; otherwise the images must have none.
    const PLACES_NAN: bool;
    /// The key.
    fn into_order(self) -> Self::Order;
    /// The element of a key.
    fn from_order(order: Self::Order) -> Self;
}

macro_rules! as_it_is {
    ($($type:ty, $places:expr;)*) => {$(
        impl Ranked for $type {
            type Order = Self;
            const PLACES_NAN: bool = $places;
            #[inline(always)]
            fn into_order(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_order(order: Self) -> Self {
                order
            }
        }
    )*};
}

as_it_is! {
    u8, true;
    u16, true;
    i16, true;
    i32, true;
    u32, true;
    f64, false;
}

impl Ranked for f32 {
    /// Whole numbers compare faster than floats do, and NaN has its place among them.
    type Order = i32;
    const PLACES_NAN: bool = true;

    #[inline(always)]
    fn into_order(self) -> i32 {
        let bits = self.to_bits().cast_signed();
        if bits & i32::MAX > f32::INFINITY.to_bits().cast_signed() {
            f32::NAN.to_bits().cast_signed() & i32::MAX
        } else {
            bits ^ ((bits >> 31) & i32::MAX)
        }
    }

    #[inline(always)]
    fn from_order(order: i32) -> Self {
        Self::from_bits((order ^ ((order >> 31) & i32::MAX)).cast_unsigned())
    }
}

/// The ways to find a rank by comparisons.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    network: Network,
    /// The same as machine code, for elements that it is made for.
    phases: Option<Arc<Phases>>,
}

impl Ranks {
    /// For images of a type.
    pub(super) fn new(network: Network, lines: usize, dtype: DType) -> Self {
        let phases = Phases::new(&network, lines, dtype).map(Arc::new);
        Self { network, phases }
    }

    /// The element of the network's rank in each neighbourhood.
    pub(super) fn run<T: Ranked>(
        &self,
        level: Level,
        image: View<'_, T>,
        lined: &Lined,
        rank: usize,
        boundary: Boundary,
        out: ViewMut<'_, T>,
    ) {
        let layout = |rows: usize, cache: usize| {
            Layout::new::<T::Order>(image.dims(), lined.reach, boundary, 1, rows, cache)
        };
        if let Some(phases) = &self.phases
            && let Some(width) = native_width(level)
            && let Some(routines) = phases.routines(width)
        {
            let layout = layout(phases.rows, PHASES);
            layout.for_bands(out, |mut band, memory| {
                if !aside(image, lined, rank, boundary, &mut band) {
                    dispatch!(level, _simd => {
                        in_phases(&layout, image, phases, routines, band, memory);
                    });
                }
            });
            return;
        }
        let layout = layout(self.network.slots, CACHE);
        layout.for_bands(out, |mut band, memory| {
            if !aside(image, lined, rank, boundary, &mut band) {
                dispatch!(level, simd => rows(simd, &layout, image, &self.network, band, memory));
            }
        });
    }
}

/// Rows of pixels, by machine code. What is around it is compiled for the same instructions.
#[inline(always)]
fn in_phases<T: Ranked>(
    layout: &Layout,
    image: View<'_, T>,
    phases: &Phases,
    routines: &[Routine],
    mut band: Band<'_, T>,
    memory: &mut Memory,
) {
    let (ny, lines) = (layout.dims[1], layout.lines());
    // All of a phase is made for as many columns as any of it: what lies behind the others' last columns is read and
    // written, and never used.
    memory
        .block
        .reserve::<T::Order>((lines + 2) * layout.stride);
    memory.starts.clear();
    memory.starts.resize(lines, 0);
    if memory.rows.len() < phases.rows {
        memory.rows.resize_with(phases.rows, Block::default);
    }
    for row in &mut memory.rows[..phases.rows] {
        row.reserve::<T::Order>(2 * layout.stride);
    }
    let words = routines.iter().map(Routine::memory).max().unwrap_or(0);
    memory.native.resize(words.max(memory.native.len()), 0.0);
    for routine in routines {
        routine.start(&mut memory.native);
    }
    let read = |pixel: Option<T>| pixel.unwrap_or(T::ZERO).into_order();
    for xs in layout.tiles() {
        for row in band.rows() {
            let (z, y) = (row / ny, row % ny);
            let all = row == band.rows().start || y == 0;
            let made = |_: &mut [T::Order]| {};
            layout.advance(image, [z, y], &xs, all, memory, read, made);
            for (phase, routine) in phases.list.iter().zip(routines) {
                run_phase::<T::Order>(phase, routine, lines, xs.len(), memory);
            }
            let (result, first) = phases.result;
            let from = &memory.rows[result - lines].as_slice::<T::Order>()[first..][..xs.len()];
            for (to, &key) in band.row(row)[xs.clone()].iter_mut().zip(from) {
                *to = T::from_order(key);
            }
        }
    }
}

fn run_phase<K: Lane>(
    phase: &Phase,
    routine: &Routine,
    lines: usize,
    width: usize,
    memory: &mut Memory,
) {
    let Memory {
        block,
        starts,
        rows,
        written,
        native,
    } = memory;
    let count = (width + phase.extra).next_multiple_of(routine.lanes());
    // What is written is taken out meanwhile: no phase reads where it writes.
    written.clear();
    let writes = phase.writes.iter();
    written.extend(writes.map(|(row, _)| std::mem::take(&mut rows[row - lines])));
    let data = block.as_slice::<K>();
    let mut ins: [&[u8]; MOST] = [&[]; MOST];
    for (to, &(row, column)) in ins.iter_mut().zip(&phase.reads) {
        let from = match row.checked_sub(lines) {
            None => &data[starts[row] + column..],
            Some(row) => &rows[row].as_slice::<K>()[column..],
        };
        *to = bytemuck::cast_slice(&from[..count]);
    }
    let mut outs: [&mut [u8]; MOST] = std::array::from_fn(|_| &mut [][..]);
    let targets = written.iter_mut().zip(&phase.writes);
    for (to, (block, (_, column))) in outs.iter_mut().zip(targets) {
        *to = bytemuck::cast_slice_mut(&mut block.as_mut_slice::<K>()[*column..][..count]);
    }
    let (ins, outs) = (&ins[..phase.reads.len()], &mut outs[..phase.writes.len()]);
    routine.run(native, ins, outs, 0, count);
    for (block, (row, _)) in written.drain(..).zip(&phase.writes) {
        rows[row - lines] = block;
    }
}

/// Makes a band pixel by pixel if it needs that; answers whether it did.
pub(super) fn aside<T: Ranked>(
    image: View<'_, T>,
    lined: &Lined,
    rank: usize,
    boundary: Boundary,
    band: &mut Band<'_, T>,
) -> bool {
    let needs = !T::PLACES_NAN && sees_nan(image, band, lined.reach, boundary);
    if needs {
        naive::ranks(image, lined, rank, boundary, band);
    }
    needs
}

/// Whether a band of rows has NaN around it.
fn sees_nan<T: Pixel>(
    image: View<'_, T>,
    band: &Band<'_, T>,
    reach: [usize; 3],
    boundary: Boundary,
) -> bool {
    let dims = image.dims();
    let [rz, ry] = [reach[0] as i64, reach[1] as i64];
    let source = |at: usize, by: i64, n: usize| boundary.source(at as i64 + by, n as i64);
    let rows = band.rows();
    // Rows of a band follow each other: its first row sees what is above, the others add one each.
    rows.clone().any(|row| {
        let (z, y) = (row / dims[1], row % dims[1]);
        let first = row == rows.start || y == 0;
        (-rz..=rz).any(|dz| {
            let dys = if first { -ry..=ry } else { ry..=ry };
            dys.into_iter().any(|dy| {
                let place = source(z, dz, dims[0]).zip(source(y, dy, dims[1]));
                place.is_some_and(|(z, y)| {
                    let row = image.row(z as usize, y as usize);
                    row.iter()
                        .fold(false, |any, &pixel| any | naive::is_nan(pixel))
                })
            })
        })
    })
}

#[inline(always)]
fn rows<S: Simd, T: Ranked>(
    simd: S,
    layout: &Layout,
    image: View<'_, T>,
    network: &Network,
    mut band: Band<'_, T>,
    memory: &mut Memory,
) {
    let (ny, lines) = (layout.dims[1], layout.lines());
    let rows = lines + network.slots;
    memory.block.reserve::<T::Order>((rows + 1) * layout.stride);
    memory.starts.clear();
    memory
        .starts
        .extend((0..rows).map(|row| row * layout.stride));
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
            let data = memory.block.as_mut_slice::<T::Order>();
            for step in &network.steps {
                compare::<S, T::Order>(simd, step, &memory.starts, data, xs.len());
            }
            let (result, first) = network.result;
            let from = &data[memory.starts[result] + first..][..xs.len()];
            for (to, &key) in band.row(row)[xs.clone()].iter_mut().zip(from) {
                *to = T::from_order(key);
            }
        }
    }
}

/// One step over a tile's columns; the rows have room for a last vector that is too long.
#[inline(always)]
fn compare<S: Simd, K: Lane>(simd: S, step: &Step, starts: &[usize], data: &mut [K], width: usize) {
    let lanes = Vector::<S, K>::LEN;
    let width = width + step.extra;
    let a = starts[step.a.0] + step.a.1;
    let b = starts[step.b.0] + step.b.1;
    let mut x = 0;
    match (step.less, step.more) {
        (Some(less), Some(more)) => {
            let (less, more) = (starts[less] + step.from, starts[more] + step.from);
            while x < width {
                let p: Vector<S, K> = load(simd, data, a + x);
                let q: Vector<S, K> = load(simd, data, b + x);
                store(p.min(q), data, less + x);
                store(p.max(q), data, more + x);
                x += lanes;
            }
        }
        (Some(less), None) => {
            let less = starts[less] + step.from;
            while x < width {
                let p: Vector<S, K> = load(simd, data, a + x);
                let q: Vector<S, K> = load(simd, data, b + x);
                store(p.min(q), data, less + x);
                x += lanes;
            }
        }
        (None, Some(more)) => {
            let more = starts[more] + step.from;
            while x < width {
                let p: Vector<S, K> = load(simd, data, a + x);
                let q: Vector<S, K> = load(simd, data, b + x);
                store(p.max(q), data, more + x);
                x += lanes;
            }
        }
        (None, None) => {}
    }
}
