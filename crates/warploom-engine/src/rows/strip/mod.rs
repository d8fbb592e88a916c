//! One strip of rows, from the inputs to the outputs.

use std::ops::Range;
use std::sync::Arc;

use warploom_core::DType;

use warploom_flow::Boundary;

use super::super::block::{Block, Rows, RowsMut, stride};
use super::super::gather::{Collector, Part};
use super::super::image::{Image, ImageMut, with_image, with_image_mut, with_type};
use super::super::lanes::{Float, Lane, Level, dispatch};
use super::super::past;
use super::super::pixel::{Pixel, cast};
use super::super::taps::sums::{Memory, Sums};
use super::super::taps::{self, Taps};
use super::super::turn::Turn;
use super::super::window::Fold;
use super::Given;
use super::graph::{Axis, Place, RowGraph, Step, Weights, Work};
use super::map::{Around, MapMemory, Operand};
use super::schedule::Progress;

mod windows;

use windows::Window;

/// Memory of one strip.
#[derive(Debug, Default)]
pub(super) struct Arena {
    rings: Vec<Ring>,
    progress: Progress,
    kept: Vec<usize>,
    maps: Vec<MapMemory>,
    parts: Vec<Part>,
    scratch: Scratch,
}

/// The rows of a value that are still needed; row `y` is at `y` modulo their number.
#[derive(Debug, Default)]
pub(super) struct Ring {
    block: Block,
    rows: usize,
    stride: usize,
}

impl Ring {
    fn start(&self, y: i64) -> usize {
        y.rem_euclid(self.rows as i64) as usize * self.stride
    }

    /// A row's bytes.
    pub(super) fn bytes(&self, dtype: DType, y: i64) -> &[u8] {
        &self.block.as_slice()[self.start(y) * dtype.bytes() as usize..]
    }

    /// A row's bytes, to write.
    pub(super) fn bytes_mut(&mut self, dtype: DType, y: i64) -> &mut [u8] {
        let start = self.start(y) * dtype.bytes() as usize;
        &mut self.block.as_mut_slice()[start..]
    }

    /// A row of zeros behind the others.
    fn zeros(&self) -> usize {
        self.rows * self.stride
    }
}

/// What single steps need beside rows.
#[derive(Debug, Default)]
struct Scratch {
    from: Vec<usize>,
    to: Vec<usize>,
    ends: Block,
    turn: Turn,
    copy: Block,
    sums: Memory,
}

impl Scratch {
    /// The rows of words that it has the starts of, and memory for sums of them.
    fn words<'a>(
        &'a mut self,
        src: &'a Ring,
        dst: &'a mut Ring,
    ) -> (Rows<'a, f32>, RowsMut<'a, f32>, &'a mut Memory) {
        let from = Rows {
            data: src.block.as_slice(),
            starts: &self.from,
        };
        let to = RowsMut {
            data: dst.block.as_mut_slice(),
            starts: &self.to,
        };
        (from, to, &mut self.sums)
    }
}

impl Arena {
    /// Makes rows `strip` of plane `z`; `outputs` begin at its first row.
    pub(super) fn run(
        &mut self,
        graph: &RowGraph,
        level: Level,
        given: Given<'_>,
        outputs: &mut [ImageMut<'_>],
        z: usize,
        strip: Range<usize>,
        batch: i64,
    ) {
        let Given {
            inputs,
            lists,
            collectors,
            past,
            over,
            dims,
        } = given;
        let first = (z * dims[1] + strip.start) * dims[2];
        self.parts.clear();
        self.parts
            .extend(collectors.iter().map(|collector| collector.begin(first)));
        let (rows, strip) = (dims[1] as i64, strip.start as i64..strip.end as i64);
        self.kept.clear();
        self.kept.resize(graph.values.len(), 0);
        let progress = &mut self.progress;
        graph.capacities(strip.clone(), rows, batch, progress, &mut self.kept);
        self.rings.resize_with(graph.values.len(), Ring::default);
        for ((ring, value), &kept) in self.rings.iter_mut().zip(&graph.values).zip(&self.kept) {
            if value.place == Place::Ring {
                with_type!(value.dtype, T => ring.prepare::<T>(kept, dims[2]), else ());
            }
        }
        let around = Around {
            level,
            inputs,
            over,
            dims,
            z,
            top: strip.start,
            past,
        };
        self.maps.resize_with(graph.steps.len(), MapMemory::default);
        for (step, memory) in graph.steps.iter().zip(&mut self.maps) {
            if let Work::Map(map) = &step.work {
                let list = |image: u32, index: u32| match map.operands[image as usize] {
                    Operand::List(list) => lists[list][index as usize],
                    Operand::Value(_) => unreachable!("an image is no list of numbers"),
                };
                let extents = dims.map(|extent| extent as i32);
                map.tape
                    .prepare(level, &mut memory.slots, &map.numbers, &list, extents);
            }
        }
        graph.begin(strip.clone(), rows, &mut self.progress);
        let mut to = strip.start;
        while to < strip.end {
            to = (to + batch).min(strip.end);
            graph.aim(to, &mut self.progress);
            for (at, step) in graph.steps.iter().enumerate() {
                let rows = self.progress.done[at]..self.progress.target[at];
                if rows.is_empty() {
                    continue;
                }
                if let Work::Gather(of) = step.work {
                    let (collector, part) = (&collectors[of], &mut self.parts[of]);
                    around.gather(graph, step, &self.rings, outputs, rows, collector, part);
                    self.progress.done[at] = self.progress.target[at];
                    continue;
                }
                let cut = step.to.iter().copied().min().unwrap_or(0);
                let (before, after) = self.rings.split_at_mut(cut);
                if let Work::Map(map) = &step.work {
                    let memory = &mut self.maps[at];
                    map.run(graph, step, &around, before, after, outputs, rows, memory);
                } else {
                    around.step(graph, step, before, after, outputs, rows, &mut self.scratch);
                }
                self.progress.done[at] = self.progress.target[at];
            }
        }
        for (collector, part) in collectors.iter().zip(self.parts.drain(..)) {
            collector.end(part);
        }
    }
}

impl Ring {
    fn prepare<T: Lane>(&mut self, rows: usize, width: usize) {
        self.rows = rows.max(1);
        self.stride = stride::<T>(width);
        let zeros = self.zeros();
        let memory = self.block.reserve::<T>(zeros + self.stride);
        memory[zeros..zeros + self.stride].fill(T::ZERO);
    }
}

impl Around<'_, '_> {
    fn step(
        &self,
        graph: &RowGraph,
        step: &Step,
        before: &[Ring],
        after: &mut [Ring],
        outputs: &mut [ImageMut<'_>],
        rows: Range<i64>,
        scratch: &mut Scratch,
    ) {
        let from = step.from[0];
        match &step.work {
            Work::Map(_) | Work::Gather(_) => unreachable!("these run by themselves"),
            Work::Copy => self.copy(graph, step, before, after, outputs, rows),
            Work::Frame(frame) => self.frame(graph, step, frame, &mut after[0], rows),
            Work::Taps {
                axis,
                weights: Weights::F32(taps),
                boundary,
                sums,
            } => self.taps(
                *axis,
                taps,
                sums.as_deref(),
                *boundary,
                &before[from],
                &mut after[0],
                rows,
                scratch,
            ),
            Work::Taps {
                axis,
                weights: Weights::F64(taps),
                boundary,
                ..
            } => self.taps(
                *axis,
                taps,
                None,
                *boundary,
                &before[from],
                &mut after[0],
                rows,
                scratch,
            ),
            Work::Plane {
                weights: [Weights::F32(down), Weights::F32(along)],
                boundaries,
                sums,
            } => self.plane(
                [down, along],
                sums.as_ref(),
                *boundaries,
                &before[from],
                &mut after[0],
                rows,
                scratch,
            ),
            Work::Plane {
                weights: [Weights::F64(down), Weights::F64(along)],
                boundaries,
                ..
            } => self.plane(
                [down, along],
                None,
                *boundaries,
                &before[from],
                &mut after[0],
                rows,
                scratch,
            ),
            Work::Plane { .. } => unreachable!("sums of sums are of the same type"),
            Work::Window {
                axis,
                fold,
                radius,
                boundary,
            } => {
                let window = Window {
                    axis: *axis,
                    fold: *fold,
                    radius: *radius,
                    boundary: *boundary,
                };
                with_type!(
                    graph.values[from].dtype,
                    T => if *axis == Axis::X && *fold != Fold::Sum {
                        let place = graph.values[from].place;
                        self.extremes::<T>(window, place, &before[from], &mut after[0], rows, scratch);
                    } else {
                        self.window::<T>(window, &before[from], &mut after[0], rows, scratch);
                    },
                    else ()
                );
            }
        }
    }

    fn copy(
        &self,
        graph: &RowGraph,
        step: &Step,
        before: &[Ring],
        after: &mut [Ring],
        outputs: &mut [ImageMut<'_>],
        rows: Range<i64>,
    ) {
        let (from, to) = (step.from[0], step.to[0]);
        let width = self.dims[2];
        let (source, target) = (&graph.values[from], &graph.values[to]);
        let is_last = match target.place {
            Place::Output(at) => self.past[at] && source.dtype == target.dtype,
            _ => false,
        };
        with_type!(source.dtype, T => with_type!(target.dtype, U => for y in rows {
            let input: &[T] = if let Place::Input(at) = source.place {
                row_of(&self.inputs[at], self.z, self.row(y))
            } else {
                let start = before[from].start(y);
                &before[from].block.as_slice()[start..start + width]
            };
            let output: &mut [U] = if let Place::Output(at) = target.place {
                row_of_mut(&mut outputs[at], (y - self.top) as usize)
            } else {
                let start = after[0].start(y);
                &mut after[0].block.as_mut_slice()[start..start + width]
            };
            if is_last {
                past::copy(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
            } else {
                dispatch!(self.level, _simd => cast(input, output));
            }
        }, else ()), else ());
    }

    /// Shows rows to a collector, from wherever they are.
    fn gather(
        &self,
        graph: &RowGraph,
        step: &Step,
        rings: &[Ring],
        outputs: &mut [ImageMut<'_>],
        rows: Range<i64>,
        collector: &Collector<'_>,
        part: &mut Part,
    ) {
        let value = step.from[0];
        let info = &graph.values[value];
        let width = self.dims[2];
        with_type!(info.dtype, T => for y in rows {
            let row: &[T] = match info.place {
                Place::Input(at) => row_of(&self.inputs[at], self.z, self.row(y)),
                Place::Output(at) => row_of_mut(&mut outputs[at], (y - self.top) as usize),
                Place::Ring => {
                    let start = rings[value].start(y);
                    &rings[value].block.as_slice()[start..start + width]
                }
            };
            collector.add(self.level, part, row);
        }, else ());
    }

    /// The row of the image that row `y` shows, when rows wrap around.
    fn row(&self, y: i64) -> usize {
        y.rem_euclid(self.dims[1] as i64) as usize
    }

    /// Where the rows `rows` start in a ring; outside the image as `boundary` says.
    fn starts(&self, ring: &Ring, rows: Range<i64>, boundary: Boundary, starts: &mut Vec<usize>) {
        starts.clear();
        starts.extend(rows.map(|y| {
            match boundary {
                // Rows are numbered on beyond the ends.
                Boundary::Wrap => ring.start(y),
                _ => boundary
                    .source(y, self.dims[1] as i64)
                    .map_or(ring.zeros(), |y| ring.start(y)),
            }
        }));
    }

    fn taps<T: Float>(
        &self,
        axis: Axis,
        taps: &Taps<T>,
        sums: Option<&Sums>,
        boundary: Boundary,
        src: &Ring,
        dst: &mut Ring,
        rows: Range<i64>,
        scratch: &mut Scratch,
    ) {
        // Along the rows it is the rows themselves that are read, beyond the ends too.
        let (before, after, beyond) = match axis {
            Axis::Y => (taps.before() as i64, taps.after() as i64, boundary),
            Axis::X => (0, 0, Boundary::Wrap),
        };
        self.starts(
            src,
            rows.start - before..rows.end + after,
            beyond,
            &mut scratch.from,
        );
        self.starts(dst, rows, Boundary::Wrap, &mut scratch.to);
        let width = self.dims[2];
        if let Some(sums) = sums {
            let (from, mut to, memory) = scratch.words(src, dst);
            match axis {
                Axis::Y => sums.down(from, &mut to, width, memory),
                Axis::X => sums.along(from, &mut to, width, boundary, memory),
            }
            return;
        }
        let from = Rows {
            data: src.block.as_slice::<T>(),
            starts: &scratch.from,
        };
        let mut to = RowsMut {
            data: dst.block.as_mut_slice::<T>(),
            starts: &scratch.to,
        };
        match axis {
            Axis::Y => dispatch!(self.level, simd =>
                taps::column::correlate(simd, from, taps, &mut to, width)),
            Axis::X => {
                let turn = &mut scratch.turn;
                dispatch!(self.level, simd =>
                    taps::across::rows(simd, from, taps, &mut to, width, boundary, turn));
            }
        }
    }

    fn plane<T: Float>(
        &self,
        taps: [&Taps<T>; 2],
        sums: Option<&[Arc<Sums>; 2]>,
        boundaries: [Boundary; 2],
        src: &Ring,
        dst: &mut Ring,
        rows: Range<i64>,
        scratch: &mut Scratch,
    ) {
        let (above, below) = (taps[0].before() as i64, taps[0].after() as i64);
        let wanted = rows.start - above..rows.end + below;
        self.starts(src, wanted, boundaries[0], &mut scratch.from);
        self.starts(dst, rows, Boundary::Wrap, &mut scratch.to);
        if let Some([down, along]) = sums {
            let (from, mut to, memory) = scratch.words(src, dst);
            along.along_those(down, from, &mut to, self.dims[2], boundaries[1], memory);
            return;
        }
        let from = Rows {
            data: src.block.as_slice::<T>(),
            starts: &scratch.from,
        };
        let mut to = RowsMut {
            data: dst.block.as_mut_slice::<T>(),
            starts: &scratch.to,
        };
        let (width, turn) = (self.dims[2], &mut scratch.turn);
        dispatch!(self.level, simd =>
            taps::across::plane(simd, from, taps, &mut to, width, boundaries[1], turn));
    }
}

/// A row of an input, whose element type is known by now.
fn row_of<'a, T: Pixel>(image: &Image<'a>, z: usize, y: usize) -> &'a [T] {
    with_image!(image, view => bytemuck::cast_slice(view.row(z, y)))
}

/// A row of a strip of an output.
fn row_of_mut<'a, T: Pixel>(image: &'a mut ImageMut<'_>, y: usize) -> &'a mut [T] {
    with_image_mut!(image, view => bytemuck::cast_slice_mut(view.row(0, y)))
}
