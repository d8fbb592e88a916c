//! Sums of `f32` as machine code, for processors on which that has wider vectors than compiled code.
//!
//! The order of a sum is that of [`Taps`], so the bits are those of compiled code. Weights are numbers that a routine
//! is given: it is the same for all of as many.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use warploom_flow::Boundary;
use warploom_native::{Bin, Element, Ins, Routine, Value, Width};

use super::super::block::{Block, Rows, RowsMut, stride};
use super::super::lanes::{Level, widest};
use super::super::rows::Axis;
use super::super::tape::native_width;
use super::Taps;

/// Rows of results that are made together down columns: one that is read serves them all.
const TOGETHER: usize = 8;

/// Longer sums are left to compiled code.
const LONGEST: usize = 129;

/// Rows that [`Sums::down`] reads at a time.
const MOST: usize = LONGEST + TOGETHER - 1;

/// Bytes of the rows that are read and written for so many columns that they stay in the first cache.
const CACHE: usize = 24 << 10;

/// A sum along one axis as machine code.
#[derive(Debug)]
pub(crate) struct Sums {
    weights: Vec<f32>,
    before: usize,
    after: usize,
    routines: Arc<[Routine]>,
}

/// What routines depend on: not on the weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    axis: Axis,
    width: Width,
    kind: Discriminant<Taps<f32>>,
    before: usize,
    after: usize,
}

/// Routines that were made: one result at a time, last; down columns several before it. There are few shapes of
/// sums, and some are asked for again with every image.
static MADE: LazyLock<Mutex<HashMap<Shape, Arc<[Routine]>>>> = LazyLock::new(Mutex::default);

/// Memory for running them.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    numbers: Vec<f32>,
    lines: Block,
}

impl Sums {
    /// For sums along `axis`; `None` where compiled code has vectors as wide, or is asked for.
    pub(crate) fn new(taps: &Taps<f32>, axis: Axis, level: Level) -> Option<Arc<Self>> {
        let is_wider = !is_widest(level) && native_width(level)? == Width::Bits512;
        is_wider.then_some(())?;
        Self::with(taps, axis, Width::Bits512).map(Arc::new)
    }

    fn with(taps: &Taps<f32>, axis: Axis, width: Width) -> Option<Self> {
        let (before, after) = (taps.before(), taps.after());
        if before + 1 + after > LONGEST {
            return None;
        }
        let shape = Shape {
            axis,
            width,
            kind: discriminant(taps),
            before,
            after,
        };
        let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made().get(&shape).map(Arc::clone);
        let routines = if let Some(routines) = known {
            routines
        } else {
            let routines = Self::routines(taps, axis, width)?;
            made().insert(shape, Arc::clone(&routines));
            routines
        };
        let (Taps::Symmetric(weights)
        | Taps::Antisymmetric(weights)
        | Taps::General { weights, .. }) = taps;
        Some(Self {
            weights: weights.clone(),
            before,
            after,
            routines,
        })
    }

    fn routines(taps: &Taps<f32>, axis: Axis, width: Width) -> Option<Arc<[Routine]>> {
        let heights: &[usize] = match axis {
            Axis::Y => &[TOGETHER, 1],
            Axis::X => &[1],
        };
        let heights = heights.iter();
        heights
            .map(|&height| Routine::new(&Code::new(taps, axis, height).list, width))
            .collect()
    }

    /// Output row `j` from input rows `j ..= j + before + after`, columns `0..width` rounded up to whole vectors.
    pub(crate) fn down(
        &self,
        src: Rows<'_, f32>,
        dst: &mut RowsMut<'_, f32>,
        width: usize,
        memory: &mut Memory,
    ) {
        let count = dst.starts.len();
        let rows = self.before + self.after + 2 * TOGETHER;
        let columns = (CACHE / size_of::<f32>() / rows / WIDEST * WIDEST).max(2 * WIDEST);
        let [many, one] = &self.routines[..] else {
            unreachable!("sums down columns have two routines")
        };
        for from in (0..width).step_by(columns) {
            let piece = columns.min(width - from).next_multiple_of(WIDEST);
            let mut done = 0;
            if count >= TOGETHER {
                self.start(many, memory);
                while done < count {
                    // The last ones may be made twice.
                    let first = done.min(count - TOGETHER);
                    self.made::<TOGETHER>(many, src, dst, first, from, piece, memory);
                    done += TOGETHER;
                }
            } else {
                self.start(one, memory);
                for first in 0..count {
                    self.made::<1>(one, src, dst, first, from, piece, memory);
                }
            }
        }
    }

    fn made<const R: usize>(
        &self,
        routine: &Routine,
        src: Rows<'_, f32>,
        dst: &mut RowsMut<'_, f32>,
        first: usize,
        from: usize,
        piece: usize,
        memory: &mut Memory,
    ) {
        let reads = self.before + self.after + R;
        let mut rows: [&[u8]; MOST] = [&[]; MOST];
        for (row, start) in rows.iter_mut().zip(&src.starts[first..first + reads]) {
            *row = bytemuck::cast_slice(&src.data[start + from..][..piece]);
        }
        let places: [_; R] = std::array::from_fn(|j| {
            let start = dst.starts[first + j] + from;
            start..start + piece
        });
        let outs = dst.data.get_disjoint_mut(places);
        let mut outs = outs.expect("rows lie apart").map(bytemuck::cast_slice_mut);
        routine.run(&mut memory.numbers, &rows[..reads], &mut outs, 0, piece);
    }

    /// Along the rows of `src`.
    pub(crate) fn along(
        &self,
        src: Rows<'_, f32>,
        dst: &mut RowsMut<'_, f32>,
        width: usize,
        boundary: Boundary,
        memory: &mut Memory,
    ) {
        let lines = Lines::new(self, width);
        let mut block = std::mem::take(&mut memory.lines);
        let line = &mut block.reserve::<f32>(lines.stride)[..lines.stride];
        self.start(&self.routines[0], memory);
        for (&from, &to) in src.starts.iter().zip(dst.starts) {
            line[lines.lead..][..width].copy_from_slice(&src.data[from..][..width]);
            let out = &mut dst.data[to..];
            self.finish(&lines, line, out, boundary, memory);
        }
        memory.lines = block;
    }

    /// Down the columns of `src` and along the rows of what comes out, which are the `down` sums.
    pub(crate) fn along_those(
        &self,
        down: &Self,
        src: Rows<'_, f32>,
        dst: &mut RowsMut<'_, f32>,
        width: usize,
        boundary: Boundary,
        memory: &mut Memory,
    ) {
        let lines = Lines::new(self, width);
        let mut block = std::mem::take(&mut memory.lines);
        let data = block.reserve::<f32>(TOGETHER * lines.stride);
        let starts: [usize; TOGETHER] = std::array::from_fn(|j| j * lines.stride + lines.lead);
        let halo = down.before + down.after;
        for (group, places) in dst.starts.chunks(TOGETHER).enumerate() {
            let first = group * TOGETHER;
            let rows = Rows {
                data: src.data,
                starts: &src.starts[first..first + halo + places.len()],
            };
            let mut sums = RowsMut {
                data: &mut *data,
                starts: &starts[..places.len()],
            };
            down.down(rows, &mut sums, width, memory);
            self.start(&self.routines[0], memory);
            for (line, &to) in data.chunks_exact_mut(lines.stride).zip(places) {
                self.finish(&lines, line, &mut dst.data[to..], boundary, memory);
            }
        }
        memory.lines = block;
    }

    /// The sums along a row that lies in a line, which gets what is beside the row first.
    fn finish(
        &self,
        lines: &Lines,
        line: &mut [f32],
        out: &mut [f32],
        boundary: Boundary,
        memory: &mut Memory,
    ) {
        let (lead, width) = (lines.lead, lines.width);
        let left =
            (0..self.before).map(|i| (lead - self.before + i, i as i64 - self.before as i64));
        let right = (0..self.after).map(|i| (lead + width + i, (width + i) as i64));
        for (place, column) in left.chain(right) {
            let source = boundary.source(column, width as i64);
            line[place] = source.map_or(0.0, |source| line[lead + source as usize]);
        }
        let count = width.next_multiple_of(WIDEST);
        let row = bytemuck::cast_slice(&line[lead - self.before..]);
        let out = bytemuck::cast_slice_mut(&mut out[..count]);
        self.routines[0].run(&mut memory.numbers, &[row], &mut [out], 0, count);
    }

    /// Makes the memory ready for one of the routines.
    fn start(&self, routine: &Routine, memory: &mut Memory) {
        let numbers = &mut memory.numbers;
        numbers.resize(routine.memory().max(numbers.len()), 0.0);
        routine.start(numbers);
        for (number, weight) in (0..).zip(&self.weights) {
            routine.set_number(numbers, number, weight.to_bits());
        }
    }
}

const WIDEST: usize = widest::<f32>();

/// Is compiled code for it as wide as can be?
fn is_widest(level: Level) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(level, Level::Avx512(_));
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = level;
        true
    }
}

/// Rows with room for what is beside them.
struct Lines {
    width: usize,
    /// Where a row begins in its line, with room for what is before it.
    lead: usize,
    stride: usize,
}

impl Lines {
    fn new(sums: &Sums, width: usize) -> Self {
        let lead = sums.before.next_multiple_of(WIDEST);
        Self {
            width,
            lead,
            stride: stride::<f32>(lead + width.next_multiple_of(WIDEST) + sums.after),
        }
    }
}

/// The instructions of a routine while they are written.
struct Code {
    axis: Axis,
    list: Vec<Ins>,
    /// The values of rows, or of places along the row.
    places: Vec<Option<Value>>,
}

impl Code {
    fn new(taps: &Taps<f32>, axis: Axis, height: usize) -> Self {
        let mut code = Self {
            axis,
            list: Vec::new(),
            places: vec![None; taps.before() + taps.after() + height],
        };
        let mut sums = Vec::new();
        match taps {
            Taps::Symmetric(weights) => {
                let radius = weights.len() - 1;
                let first = code.weight(0);
                sums.extend((0..height).map(|j| code.act(Bin::MulF, first, j + radius)));
                for k in 1..=radius {
                    let weight = code.weight(k);
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let low = code.place(j + radius - k);
                        let pair = code.act(Bin::AddF, low, j + radius + k);
                        *sum = code.push(Ins::Fma(weight, pair, *sum));
                    }
                }
            }
            Taps::Antisymmetric(weights) => {
                let radius = weights.len();
                for k in 1..=radius {
                    let weight = code.weight(k - 1);
                    for j in 0..height {
                        let high = code.place(j + radius + k);
                        let difference = code.act(Bin::SubF, high, j + radius - k);
                        if k == 1 {
                            sums.push(code.push(Ins::Bin(Bin::MulF, weight, difference)));
                        } else {
                            sums[j] = code.push(Ins::Fma(weight, difference, sums[j]));
                        }
                    }
                }
            }
            Taps::General { weights, .. } => {
                let first = code.weight(0);
                sums.extend((0..height).map(|j| code.act(Bin::MulF, first, j)));
                for k in 1..weights.len() {
                    let weight = code.weight(k);
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let place = code.place(j + k);
                        *sum = code.push(Ins::Fma(weight, place, *sum));
                    }
                }
            }
        }
        // Rows that nobody reads are given all the same: that in the middle of a single difference.
        for place in 0..code.places.len() {
            code.place(place);
        }
        for (out, value) in (0..).zip(sums) {
            let element = Element::Word;
            code.push(Ins::Put {
                out,
                element,
                value,
            });
        }
        code
    }

    fn push(&mut self, ins: Ins) -> Value {
        self.list.push(ins);
        (self.list.len() - 1) as Value
    }

    /// `a` and what is in a place.
    fn act(&mut self, act: Bin, a: Value, place: usize) -> Value {
        let b = self.place(place);
        self.push(Ins::Bin(act, a, b))
    }

    fn place(&mut self, place: usize) -> Value {
        if let Some(known) = self.places[place] {
            return known;
        }
        let value = self.push(match self.axis {
            Axis::Y => Ins::Row {
                row: place as u8,
                element: Element::Word,
            },
            Axis::X => Ins::Beside {
                row: 0,
                by: place as u16,
            },
        });
        self.places[place] = Some(value);
        value
    }

    fn weight(&mut self, at: usize) -> Value {
        self.push(Ins::Number(at as u16))
    }
}

#[cfg(test)]
mod tests;
