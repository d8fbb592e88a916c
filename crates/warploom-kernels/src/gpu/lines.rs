//! Extremes of neighbourhoods on a processor, by lines.
//!
//! What a neighbourhood takes of a line is a window along x. An item has a tile of the result. It reads each
//! line that the tile sees once, makes the extremes of windows of all lengths that occur, each from shorter
//! ones, and compares them with every row of the tile that sees the line: a neighbourhood costs as much as it
//! has lines, not pixels. Lines come in C order and of equal elements the first wins, so that even the sign of
//! a zero is that of the elements taken one by one.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Footprint, Node};
use crate::kernel::{Access, Buf, Builder, Img, Work};

use super::fold;
use super::launch::{Args, Plan};
use super::tuning::Tuning;

/// Pixels that loops go over, of which compilers know that they are so many.
const BLOCK: u32 = 64;
/// Columns of a tile at most, and its rows.
const COLUMNS: u32 = 512;
const ROWS: u32 = 64;
/// How far lines reach beyond a tile at most.
const REACH: u32 = 32;
/// From line to line of those that are made of one: beyond a whole line there is room for what is read
/// together with its end, so that none is read where another is written.
const STRIDE: u32 = COLUMNS + 2 * REACH + BLOCK;
/// Lines made of one, itself included, at most.
const LINES: u32 = 24;

/// A neighbourhood as windows of lines.
struct Windows {
    /// From which line to which windows are joined, and how far from each other they start.
    joins: Vec<[i32; 3]>,
    /// For each line of the neighbourhood, in C order, where its windows start; negative if it has none.
    starts: Vec<i32>,
}

impl Windows {
    /// `None` where there is no room for them.
    fn of(footprint: &Footprint) -> Option<Self> {
        let reach = footprint.reach();
        if reach[2] > REACH {
            return None;
        }
        let [rz, ry, rx] = reach.map(u32::cast_signed);
        let height = 2 * ry + 1;
        let line = |z: i32, y: i32| usize::try_from((z + rz) * height + y + ry);
        let mut lengths = vec![0; line(rz, ry).ok()? + 1];
        for [z, y, _] in footprint.offsets() {
            lengths[line(z, y).ok()?] += 1;
        }
        let mut all: Vec<i32> = lengths.iter().copied().filter(|n| *n > 0).collect();
        all.sort_unstable();
        all.dedup();
        let (mut joins, mut known) = (Vec::new(), Vec::new());
        let (mut from, mut span) = (0, 1);
        for length in all {
            while span < length {
                let step = span.min(length - span);
                let to = from + STRIDE.cast_signed();
                joins.push([from, to, step]);
                (from, span) = (to, span + step);
            }
            known.push((length, from));
        }
        let start = |length: &i32| {
            let line = known.iter().find(|(known, _)| known == length);
            line.map_or(-1, |(_, from)| from + rx - length / 2)
        };
        let starts = lengths.iter().map(start).collect();
        (joins.len() < LINES as usize).then_some(Self { joins, starts })
    }
}

/// The tile an item makes.
struct Tile<'k> {
    k: &'k Builder,
    combine: Combine,
    boundary: Boundary,
    src: Img<'k>,
    dims: [Ex<'k>; 3],
    reach: [Ex<'k>; 3],
    left: Ex<'k>,
    width: Ex<'k>,
    lines: Buf,
    best: Buf,
}

impl<'k> Tile<'k> {
    /// Runs `body` for so many pixels, and those that make the last block whole.
    fn blocks(&self, count: Ex<'k>, body: impl FnOnce(Ex<'k>)) {
        let (k, int) = (self.k, |value: u32| self.k.graph().int(value.cast_signed()));
        k.for_by(int(0), count, int(BLOCK), |block| {
            k.for_(int(0), int(BLOCK), |lane| body(block + lane));
        });
    }

    /// Reads a line, with what neighbourhoods reach on both sides.
    fn read(&self, z: Ex<'k>, y: Ex<'k>) {
        let (k, src, nx) = (self.k, self.src, self.dims[2]);
        let (z, inside_z) = k.source(z, self.dims[0], self.boundary);
        let (y, inside_y) = k.source(y, self.dims[1], self.boundary);
        let inside = inside_z.zip(inside_y).map(|(z, y)| k.let_(z & y));
        let zero = k.graph().number(src.buf.ty(), 0.0);
        let row = k.let_(k.index(src, [z, y, k.graph().int(0)]));
        let first = k.let_(self.left - self.reach[2]);
        let length = k.let_(self.width + self.reach[2] + self.reach[2]);
        let keep = |at: Ex<'k>, value: Ex<'k>, inside: Option<Ex<'k>>| {
            let value = inside.map_or(value, |inside| inside.select(value, zero));
            let value = k.let_(value);
            k.store(self.lines, at, k.let_(fold::begin(self.combine, value)));
        };
        let outside = |at: Ex<'k>| {
            let (x, here) = k.source(first + at, nx, self.boundary);
            let value = k.load(src.buf, row + x);
            keep(at, value, inside.zip(here).map(|(row, here)| row & here));
        };
        let before = k.let_((-first).max(0));
        let behind = k.let_((nx - first).min(length));
        let from = k.let_(row + first);
        k.for_(k.graph().int(0), before, outside);
        k.for_(before, behind, |at| {
            keep(at, k.load(src.buf, from + at), inside);
        });
        k.for_(behind, length, outside);
    }

    /// Makes the extremes of longer windows.
    fn widen(&self, table: Buf, joins: Ex<'k>) {
        let k = self.k;
        let length = k.let_(self.width + self.reach[2] + self.reach[2]);
        k.for_(k.graph().int(0), joins, |join| {
            let [from, to, step] = [0, 1, 2].map(|at| k.load(table, join * 3 + at));
            self.blocks(length, |at| {
                let (a, b) = (
                    k.load(self.lines, from + at),
                    k.load(self.lines, from + step + at),
                );
                let best = k.let_(fold::add(self.combine, a, b));
                k.store(self.lines, to + at, best);
            });
        });
    }

    /// Compares what starts at a place of the lines with a row of the tile.
    fn compare(&self, row: Ex<'k>, start: Ex<'k>) {
        let k = self.k;
        let to = k.let_(row * COLUMNS.cast_signed());
        self.blocks(self.width, |at| {
            let best = fold::add(
                self.combine,
                k.load(self.best, to + at),
                k.load(self.lines, start + at),
            );
            k.store(self.best, to + at, k.let_(best));
        });
    }
}

/// Writes the kernel.
fn write(k: &Builder, dtype: DType, combine: Combine, boundary: Boundary) {
    let src = k.image("src", dtype, Access::Read);
    let table = k.buffer("table", DType::I32, Access::Read);
    let dst = k.image("dst", dtype, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let reach = ["rz", "ry", "rx"].map(|name| k.scalar(name, Ty::I32));
    let [columns, joins] = ["columns", "joins"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: u32| k.graph().int(value.cast_signed());
    let plane = k.work(Work::Global(2));
    let top = k.let_(k.work(Work::Global(1)) * ROWS.cast_signed());
    let left = k.let_(k.work(Work::Global(0)) * columns);
    let inside = plane.lt(dims[0]) & top.lt(dims[1]) & left.lt(dims[2]);
    k.if_(inside, || {
        let height = k.let_((dims[1] - top).min(ROWS.cast_signed()));
        let tile = Tile {
            k,
            combine,
            boundary,
            src,
            dims,
            reach,
            left,
            width: k.let_((dims[2] - left).min(columns)),
            lines: k.line(dtype, LINES * STRIDE),
            best: k.line(dtype, ROWS * COLUMNS),
        };
        let nothing = k
            .graph()
            .number(src.buf.ty(), fold::nothing(combine, dtype));
        k.for_(int(0), height, |row| {
            let to = k.let_(row * COLUMNS.cast_signed());
            tile.blocks(tile.width, |at| k.store(tile.best, to + at, nothing));
        });
        let [planes, lines] = [0, 1].map(|axis| k.let_(reach[axis] + reach[axis] + 1));
        k.for_(int(0), planes, |dz| {
            k.for_(int(0), height + lines - 1, |line| {
                tile.read(plane + dz - reach[0], top + line - reach[1]);
                tile.widen(table, joins);
                // Rows that see the line are as far above it as it is in their neighbourhood.
                let least = k.let_((line - height + 1).max(0));
                k.for_(least, lines.min(line + 1), |dy| {
                    let start = k.load(table, joins * 3 + dz * lines + dy);
                    k.if_(start.ge(0), || tile.compare(line - dy, start));
                });
            });
        });
        k.for_(int(0), height, |row| {
            let from = k.let_(row * COLUMNS.cast_signed());
            let to = k.let_(k.index(dst, [plane, top + row, left]));
            k.for_(int(0), tile.width, |at| {
                k.store(dst.buf, to + at, k.load(tile.best, from + at));
            });
        });
    });
}

/// The launch, where there is room for a neighbourhood's windows.
pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (footprint, combine, boundary): (&Footprint, Combine, Boundary),
    tuning: &Tuning,
) -> Option<Plan> {
    if !tuning.is_processor() || combine == Combine::Sum {
        return None;
    }
    let windows = Windows::of(footprint)?;
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let kind = flow.kind(output);
    let k = Builder::new();
    write(&k, kind.dtype(), combine, boundary);
    let def = k.finish("wl_lines", tuning.group);
    let mut plan = Plan::default();
    let mut table = windows.joins.as_flattened().to_vec();
    table.extend(&windows.starts);
    let table = plan.constant::<i32>(&table);
    let [nz, ny, nx] = kind.dims();
    // Tiles of a row are as wide as each other: one with few columns takes as long as a block.
    let tiles = nx.div_ceil(u64::from(COLUMNS)).max(1);
    let columns = nx.div_ceil(tiles).next_multiple_of(u64::from(BLOCK));
    let args = Args::new()
        .image(flow, input)
        .buffer(table)
        .image(flow, output)
        .dims(kind);
    let args = footprint
        .reach()
        .into_iter()
        .fold(args, |args, reach| args.count(u64::from(reach)))
        .count(columns)
        .count(windows.joins.len() as u64);
    let items = [
        nx.div_ceil(columns.max(1)),
        ny.div_ceil(u64::from(ROWS)),
        nz,
    ];
    plan.launch(def, items, args);
    Some(plan)
}
