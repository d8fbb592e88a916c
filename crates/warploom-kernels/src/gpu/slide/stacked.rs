//! Windows across rows, of numbers that vectors hold as they are.
//!
//! A window is the end of one block of the axis and the start of the next, and the ends of a block are
//! kept in memory of the item's own. Where the results go they would have to be read again, from rows
//! that are often a power of two apart and push each other out of the nearest cache. Extremes are taken
//! in the order of the definition, so zeros of either sign need no second look.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node};
use crate::kernel::{Access, Buf, Builder, Img, Work};

use super::super::fold;
use super::super::lanes::{Lanes, Values};
use super::super::launch::{Plan, along};
use super::super::tuning::Tuning;
use super::super::window::Window;
use super::Frame;

/// Rows of a piece, unless one window is longer, and the largest radius.
const STACK: [u32; 2] = [64, 64];
/// The smallest radius, as it was measured for sums and for extremes: in shorter windows what is kept
/// costs more than reading it again.
const LEAST: u32 = 5;
/// Columns of a piece.
const COLUMNS: u32 = 64;

/// Windows across some rows of some columns.
#[derive(Clone, Copy)]
struct Stack<'k> {
    frame: Frame<'k>,
    combine: Combine,
    boundary: Boundary,
    /// What the windows of a block have of it, for each of its rows.
    ends: Buf,
    /// The columns, and what they have of the rows so far.
    lanes: Lanes<'k>,
    running: Values<'k>,
    column: Ex<'k>,
    plane: Ex<'k>,
}

impl<'k> Stack<'k> {
    fn int(&self, value: i32) -> Ex<'k> {
        self.frame.k.graph().int(value)
    }

    /// The element of an image in a row, of the first column.
    fn at(&self, img: Img<'k>, row: Ex<'k>) -> Ex<'k> {
        let start = img.offset + self.plane * img.pitch[0];
        self.frame.k.let_(start + row * img.pitch[1] + self.column)
    }

    /// The first of the ends in a row of the block.
    fn end(&self, row: Ex<'k>) -> Ex<'k> {
        self.frame.k.let_(row * COLUMNS.cast_signed())
    }

    /// The pixels of a row, by the rule where it is outside.
    fn row(&self, row: Ex<'k>) -> impl Fn(Ex<'k>) -> Ex<'k> + use<'k> {
        let (k, src, ty) = (self.frame.k, self.frame.src, self.ends.ty());
        let (source, inside) = k.source(row, self.frame.length, self.boundary);
        let inside = inside.map(|inside| k.let_(inside));
        let start = self.at(src, source);
        // The next item has the columns behind these.
        let next = start + COLUMNS.cast_signed();
        k.soon(src, next, COLUMNS, Access::Read);
        let zero = k.graph().number(ty, 0.0);
        move |lane| {
            let value = k.load(src.buf, start + lane).cast(ty);
            inside.map_or(value, |inside| inside.select(value, zero))
        }
    }

    /// Begins with a row; `keep` gets what the columns have then.
    fn begin(&self, row: Ex<'k>, keep: impl Fn(Ex<'k>, Ex<'k>)) {
        let (k, row) = (self.frame.k, self.row(row));
        self.lanes.each(|lane| {
            let begun = k.let_(fold::begin(self.combine, row(lane)));
            self.running.set(lane, begun);
            keep(lane, begun);
        });
    }

    /// Goes on with a row.
    fn add(&self, row: Ex<'k>, keep: impl Fn(Ex<'k>, Ex<'k>)) {
        let (k, row) = (self.frame.k, self.row(row));
        self.lanes.each(|lane| {
            let more = fold::add(self.combine, self.running.get(lane), row(lane));
            let more = k.let_(more);
            self.running.set(lane, more);
            keep(lane, more);
        });
    }

    /// The results behind `start`, as many as a window is long.
    fn block(&self, start: Ex<'k>) {
        let (k, frame) = (self.frame.k, &self.frame);
        let window = frame.window;
        let here = k.let_(start - frame.radius);
        let next = k.let_(here + window);
        k.if_else(
            start.ge(0),
            || {
                self.ends(here);
                let many = k.let_((frame.length - 1 - start).min(window - 1));
                // A window of the end from this row of the block on, and of the start so far.
                let put = |row: Ex<'k>| {
                    let (from, to) = (self.end(row), self.at(frame.dst, start + row));
                    move |lane: Ex<'k>, running: Ex<'k>| {
                        let end = k.load(self.ends, from + lane);
                        let whole = k.let_(fold::add(self.combine, end, running));
                        k.store(frame.dst.buf, to + lane, whole);
                    }
                };
                self.begin(next, put(self.int(1)));
                k.for_(self.int(1), many, |on| self.add(next + on, put(on + 1)));
            },
            || {
                self.begin(next, |_, _| {});
                k.for_(self.int(1), window - 1, |on| self.add(next + on, |_, _| {}));
            },
        );
        // The last window is a block itself.
        k.if_((start + window).lt(frame.length), || {
            let to = self.at(frame.dst, start + window);
            self.add(next + (window - 1), |lane, running| {
                k.store(frame.dst.buf, to + lane, running);
            });
        });
    }

    /// The ends of a block, the shortest first.
    fn ends(&self, here: Ex<'k>) {
        let (k, frame, last) = (self.frame.k, &self.frame, self.frame.window - 1);
        let keep = |row: Ex<'k>| {
            let to = self.end(row);
            move |lane: Ex<'k>, running: Ex<'k>| k.store(self.ends, to + lane, running)
        };
        self.begin(here + last, keep(last));
        k.for_(self.int(1), last, |back| {
            let row = k.let_(last - back);
            let result = self.at(frame.dst, here + frame.radius + row);
            k.soon(frame.dst, result, COLUMNS, Access::Write);
            self.add(here + row, keep(row));
        });
    }
}

/// How often each pixel is read, unless the window goes another way, is too short or too long, or its
/// elements are smaller than what they would be kept as.
pub(super) fn reads(dtype: DType, window: Window) -> Option<f64> {
    let real = matches!(dtype, DType::F32 | DType::F64);
    let able = window.axis != 2 && (LEAST..=STACK[1]).contains(&window.radius);
    (real && able).then_some(2.0)
}

/// The launch, unless the window is none for it.
pub(super) fn plan(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Option<Plan> {
    let kind = flow.kind(node.outputs[0]);
    reads(kind.dtype(), window)?;
    let ty = Ty::of(kind.dtype())?;
    let k = Builder::new();
    let frame = Frame::new(&k, flow.kind(node.inputs[0]).dtype(), kind.dtype());
    let columns = COLUMNS.cast_signed();
    let int = |value: i32| k.graph().int(value);
    let plane = k.work(Work::Global(2));
    let column = k.let_(k.work(Work::Global(0)) * columns);
    let blocks = k.let_((int(STACK[0].cast_signed()) / frame.window).max(1));
    let first = k.let_(k.work(Work::Global(1)) * blocks);
    k.if_(plane.lt(frame.planes) & column.lt(frame.side), || {
        let ends = k.line(kind.dtype(), (2 * STACK[1] + 1) * COLUMNS);
        let body = |lanes| {
            let stack = Stack {
                frame,
                combine: window.combine,
                boundary: window.boundary,
                ends,
                lanes,
                running: lanes.values(ty),
                column,
                plane,
            };
            k.for_(int(0), blocks, |block| {
                // Blocks count from the one before the first.
                let start = k.let_((first + block - 1) * frame.window);
                let some = start.lt(0) | start.lt(frame.length - 1);
                k.if_(some, || stack.block(start));
            });
        };
        // A number of columns that the compiler knows makes better code.
        k.if_else(
            (column + columns).le(frame.side),
            || body(Lanes::whole(&k, COLUMNS)),
            || body(Lanes::rest(&k, COLUMNS, column, frame.side)),
        );
    });
    let def = k.finish("wl_window_stacked", tuning.group);
    let [planes, length, side] = along(kind.dims(), window.axis);
    let width = u64::from(window.radius) * 2 + 1;
    let all = 1 + (length - 1).div_ceil(width);
    let items = [
        side.div_ceil(u64::from(COLUMNS)),
        all.div_ceil((u64::from(STACK[0]) / width).max(1)),
        planes,
    ];
    let mut plan = Plan::default();
    plan.launch(def, items, Frame::args(flow, node, window));
    Some(plan)
}
