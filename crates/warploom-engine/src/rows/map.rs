//! The step that computes expressions.

use std::ops::Range;

use warploom_core::DType;

use super::super::block::Block;
use super::super::image::{Image, ImageMut, with_image, with_image_mut};
use super::super::lanes::Level;
use super::super::tape::{Read, RowIn, RowOut, Slots, Tape};
use super::graph::{Place, RowGraph, Step};
use super::strip::Ring;
use warploom_flow::Boundary;
use warploom_flow::expr::Datum;

/// An input of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    Value(usize),
    List(usize),
}

/// An expression with what it reads.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) tape: Tape,
    pub(super) operands: Vec<Operand>,
    pub(super) numbers: Vec<Datum>,
    /// Rows that are read beside the pixel, and how far.
    lines: Vec<Line>,
    /// Which of them each read of the tape uses.
    line_of: Vec<Option<usize>>,
}

/// A row with what lies beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    read: usize,
    pad: usize,
    /// The first line of the same image with the same boundary: what one of them holds for a row, it
    /// holds for the others in other rows.
    family: usize,
}

impl Map {
    pub(super) fn new(tape: Tape, operands: Vec<Operand>, numbers: Vec<Datum>) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let mut line_of = Vec::new();
        for (at, read) in tape.reads().iter().enumerate() {
            let beside = |line: &Line| {
                let other = &tape.reads()[line.read];
                (other.image, other.boundary) == (read.image, read.boundary)
                    && other.offset[..2] == read.offset[..2]
            };
            let pad = read.offset[2].unsigned_abs() as usize;
            line_of.push((pad > 0).then(|| {
                let place = lines.iter().position(beside).unwrap_or(lines.len());
                if place == lines.len() {
                    let alike = |line: &Line| {
                        let other = &tape.reads()[line.read];
                        (other.image, other.boundary) == (read.image, read.boundary)
                    };
                    let family = lines.iter().position(alike).unwrap_or(place);
                    let read = at;
                    lines.push(Line { read, pad, family });
                }
                // All of a family are as wide, so that each can be taken for another.
                let family = lines[place].family;
                let widest = lines.iter().filter(|line| line.family == family);
                let pad = widest.map(|line| line.pad).fold(pad, usize::max);
                for line in lines.iter_mut().filter(|line| line.family == family) {
                    line.pad = pad;
                }
                place
            }));
        }
        Self {
            tape,
            operands,
            numbers,
            lines,
            line_of,
        }
    }

    /// The value an image of the expression is.
    pub(super) fn value(&self, image: usize) -> usize {
        match self.operands[image] {
            Operand::Value(value) => value,
            Operand::List(_) => unreachable!("a list has no pixels"),
        }
    }

    /// Rows of other values above and below that are read, and what lies outside.
    pub(super) fn reach(&self, rings: impl Fn(usize) -> bool) -> (i64, i64, Boundary) {
        let (mut before, mut after, mut boundary) = (0, 0, Boundary::Clamp);
        for read in self.tape.reads() {
            let dy = i64::from(read.offset[1]);
            if dy != 0 && rings(self.value(read.image)) {
                before = before.max(-dy);
                after = after.max(dy);
                boundary = read.boundary;
            }
        }
        (before, after, boundary)
    }
}

/// Memory of a map that runs.
#[derive(Debug, Default)]
pub(super) struct MapMemory {
    pub(super) slots: Slots,
    lines: Vec<Padded>,
    /// Which of them is each line of the map.
    places: Vec<usize>,
    zeros: Block,
    /// Rows that are written over while they are read.
    own: Vec<Block>,
}

/// A row with what lies beside it, and which row that is.
#[derive(Debug, Default)]
struct Padded {
    block: Block,
    holds: Held,
}

/// Which row of its image something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// Outside, where there are zeros.
    Outside,
    /// Its plane and its place.
    Row([i64; 2]),
}

/// What is the same for all rows.
pub(super) struct Around<'a, 'b> {
    pub(super) level: Level,
    pub(super) inputs: &'a [Image<'b>],
    /// Inputs that lie in the memory of an output.
    pub(super) over: &'a [(usize, usize)],
    pub(super) dims: [usize; 3],
    pub(super) z: usize,
    pub(super) top: i64,
    /// Which outputs may go past the caches.
    pub(super) past: &'a [bool],
}

impl Around<'_, '_> {
    /// May all that a map makes go past the caches?
    fn goes_past(&self, graph: &RowGraph, step: &Step) -> bool {
        let mut values = step.to.iter();
        values.all(|&value| match graph.values[value].place {
            Place::Output(at) => self.past[at],
            _ => false,
        })
    }

    /// Copies what lies where results of row `y` go: a row and its results are never borrowed at once.
    /// The copy stays in the cache.
    fn keep(&self, outputs: &mut [ImageMut<'_>], y: i64, own: &mut [Block]) {
        for ((_, output), own) in self.over.iter().zip(own) {
            let row: &[u8] = with_image_mut!(&mut outputs[*output], view =>
                bytemuck::cast_slice(view.row(0, (y - self.top) as usize)));
            own.reserve::<u8>(row.len())[..row.len()].copy_from_slice(row);
        }
    }
}

/// Rows a map reads without asking for memory.
const FEW: usize = 40;
/// Outputs of one map.
pub(crate) const MOST: usize = 8;

impl Map {
    /// Makes rows `rows` of its outputs, which `after` and `outputs` hold.
    pub(super) fn run(
        &self,
        graph: &RowGraph,
        step: &Step,
        around: &Around<'_, '_>,
        before: &[Ring],
        after: &mut [Ring],
        outputs: &mut [ImageMut<'_>],
        rows: Range<i64>,
        memory: &mut MapMemory,
    ) {
        let MapMemory {
            slots,
            lines,
            places,
            zeros,
            own,
        } = memory;
        let [_, ny, width] = around.dims;
        let zeros: &[u8] = zeros.reserve::<u8>(width * 8);
        lines.resize_with(self.lines.len(), Padded::default);
        // What they hold is of other rows, and maybe of another image.
        for line in &mut *lines {
            line.holds = Held::Nothing;
        }
        places.resize(self.lines.len(), 0);
        own.resize_with(around.over.len(), Block::default);
        let past = around.goes_past(graph, step);
        for y in rows {
            around.keep(outputs, y, own);
            let place = [around.z as i32, y.rem_euclid(ny as i64) as i32];
            let row = |read: &Read| -> (DType, Held, &[u8]) {
                let value = self.value(read.image);
                let dtype = graph.values[value].dtype;
                let length = width * dtype.bytes() as usize;
                let [dz, dy, _] = read.offset.map(i64::from);
                let found = if let Place::Input(at) = graph.values[value].place
                    && let Some(lies) = around.over.iter().position(|(input, _)| *input == at)
                {
                    let which = Held::Row([around.z as i64, i64::from(place[1])]);
                    Some((which, own[lies].as_slice::<u8>()))
                } else if let Place::Input(at) = graph.values[value].place {
                    let z = around.z as i64 + dz;
                    let z = read.boundary.source(z, around.dims[0] as i64);
                    let y = read.boundary.source(i64::from(place[1]) + dy, ny as i64);
                    z.zip(y).map(|(z, y)| {
                        let bytes = with_image!(&around.inputs[at], view =>
                            bytemuck::cast_slice(view.row(z as usize, y as usize)));
                        (Held::Row([z, y]), bytes)
                    })
                } else {
                    // Where rows wrap around they are numbered on beyond the ends.
                    let at = match read.boundary {
                        rule if dy != 0 && rule != Boundary::Wrap => rule.source(y + dy, ny as i64),
                        _ => Some(y + dy),
                    };
                    at.map(|y| (Held::Row([0, y]), before[value].bytes(dtype, y)))
                };
                let (which, bytes) = found.unwrap_or((Held::Outside, zeros));
                (dtype, which, &bytes[..length])
            };
            self.fill(lines, places, &row);
            let input = |read: usize| {
                let at = self.tape.given(read);
                let (dtype, _, bytes) = row(at);
                let Some(line) = self.line_of.get(read).copied().flatten() else {
                    return RowIn::new(dtype, bytes);
                };
                let shift = self.lines[line].pad.cast_signed() + at.offset[2] as isize;
                let start = shift.cast_unsigned() * dtype.bytes() as usize;
                RowIn::new(
                    dtype,
                    &lines[places[line]].block.as_slice::<u8>()[start..start + bytes.len()],
                )
            };
            let mut few = [RowIn::U8(&[]); FEW];
            let many: Vec<RowIn<'_>>;
            let count = self.tape.reads().len() + self.tape.ahead().len();
            let ins: &[RowIn<'_>] = if count <= FEW {
                for (read, slot) in few[..count].iter_mut().enumerate() {
                    *slot = input(read);
                }
                &few[..count]
            } else {
                many = (0..count).map(input).collect();
                &many
            };
            let mut outs: [RowOut<'_>; MOST] = std::array::from_fn(|_| RowOut::U8(&mut []));
            for ((&value, ring), out) in step.to.iter().zip(&mut *after).zip(&mut outs) {
                let info = &graph.values[value];
                if info.place == Place::Ring {
                    let bytes = ring.bytes_mut(info.dtype, y);
                    let length = width * info.dtype.bytes() as usize;
                    *out = RowOut::new(info.dtype, &mut bytes[..length]);
                }
            }
            for (at, image) in outputs.iter_mut().enumerate() {
                let place = step
                    .to
                    .iter()
                    .position(|&v| graph.values[v].place == Place::Output(at));
                if let Some(place) = place {
                    let dtype = image.dtype();
                    let bytes = with_image_mut!(image, view =>
                        bytemuck::cast_slice_mut(view.row(0, (y - around.top) as usize)));
                    outs[place] = RowOut::new(dtype, bytes);
                }
            }
            let outs = &mut outs[..step.to.len()];
            self.tape
                .run(around.level, slots, ins, outs, place, width, past);
        }
    }
}

impl Map {
    /// Has every line hold its row. Most are held by a line already, for which they were another
    /// one's a row before.
    fn fill<'r>(
        &self,
        lines: &mut [Padded],
        places: &mut [usize],
        row: &impl Fn(&Read) -> (DType, Held, &'r [u8]),
    ) {
        // No byte all over: that would be a call which stores under a mask, and what is read right behind such
        // a store waits for it; for a short row as long as the row takes.
        const NONE: usize = usize::MAX / 2;
        if self.lines.is_empty() {
            return;
        }
        places.fill(NONE);
        for stage in [false, true] {
            for (at, line) in self.lines.iter().enumerate() {
                if places[at] != NONE {
                    continue;
                }
                let (dtype, which, bytes) = row(&self.tape.reads()[line.read]);
                let of_family = |place: &usize| self.lines[*place].family == line.family;
                let held = |place: &usize| lines[*place].holds == which;
                let mut all = (0..lines.len()).filter(of_family);
                if let Some(place) = all.find(held) {
                    places[at] = place;
                } else if stage {
                    // There are as many as there are lines of the family, so that one is free.
                    let mut all = (0..lines.len()).filter(of_family);
                    let free = all.find(|place| !places.contains(place));
                    let place = free.expect("a line that no other has");
                    let boundary = self.tape.reads()[line.read].boundary;
                    pad(bytes, dtype, line.pad, boundary, &mut lines[place].block);
                    lines[place].holds = which;
                    places[at] = place;
                }
            }
        }
    }
}

/// A row with `pad` pixels to both sides of it.
fn pad(row: &[u8], dtype: DType, pad: usize, boundary: Boundary, block: &mut Block) {
    let size = dtype.bytes() as usize;
    let width = row.len() / size;
    let line = block.reserve::<u8>(row.len() + 2 * pad * size);
    line[pad * size..][..row.len()].copy_from_slice(row);
    let mut put = |to: usize, from: i64| {
        let to = &mut line[to * size..][..size];
        match boundary.source(from, width as i64) {
            Some(from) => to.copy_from_slice(&row[from as usize * size..][..size]),
            None => to.fill(0),
        }
    };
    for i in 0..pad {
        put(i, i as i64 - pad as i64);
        put(pad + width + i, (width + i) as i64);
    }
}
