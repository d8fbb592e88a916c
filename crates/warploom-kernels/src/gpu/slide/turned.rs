//! Sums of windows along x: rows beside each other are turned, so that what is summed one after the
//! other has the same sums of other rows beside it, and the loop over those becomes vector code.
//!
//! Rows are copied as they lie, and turned by putting halves together as often as the number of rows has
//! bits: the first pixels of all rows are neighbours then. Dealing out turns the results back. All of that
//! is moves and shuffles of whole vectors; pixel by pixel it took three quarters of the time.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::Ex;
use crate::flow::{Flow, Node};
use crate::kernel::{Access, Buf, Builder, Img, Space, Work};

use super::super::launch::Plan;
use super::super::tuning::Tuning;
use super::super::window::Window;
use super::Frame;

/// Pixels along x of a turned piece. Short windows leave much of a short piece for results; long ones need more.
const PLACES: [u32; 2] = [128, 512];
/// The largest radius whose windows go by short pieces, and by any.
const RADII: [u32; 2] = [10, 63];

/// Rows of a piece, few where it is long or of `f64`: so both of its arrays stay in the nearest caches. Its pixels at one
/// place are summed side by side.
const ROWS: [u32; 2] = [8, 32];

/// Rows of a piece of such elements for windows of a radius.
fn rows(dtype: DType, radius: u32) -> u32 {
    ROWS[usize::from(dtype != DType::F64 && radius <= RADII[0])]
}

/// Pixels along x of a piece for windows of a radius.
fn places(radius: u32) -> u32 {
    PLACES[usize::from(radius > RADII[0])]
}

/// How many windows of so many pixels follow each other in a piece, where another one has room behind.
fn blocks(places: u32, window: u32) -> u32 {
    places / window - 1
}

/// Sums of windows along x, of some rows at once.
struct Turned<'k> {
    frame: Frame<'k>,
    boundary: Boundary,
    /// What is summed, turned: the rows' pixels at one place are beside each other.
    tile: Buf,
    /// The same rows as they lie, one behind the other.
    lines: Buf,
    rows: u32,
    /// Pixels of each.
    places: u32,
    /// The first of the rows, and where the piece starts.
    row: Ex<'k>,
    start: Ex<'k>,
    plane: Ex<'k>,
    /// How many windows follow each other in the piece.
    blocks: Ex<'k>,
}

impl<'k> Turned<'k> {
    fn row(&self, img: Img<'k>, row: Ex<'k>) -> Ex<'k> {
        let k = self.frame.k;
        k.let_(img.offset + self.plane * img.pitch[0] + row * img.pitch[1])
    }

    fn int(&self, value: i32) -> Ex<'k> {
        self.frame.k.graph().int(value)
    }

    fn lanes(&self, body: impl FnOnce(Ex<'k>)) {
        let k = self.frame.k;
        k.for_(self.int(0), self.int(self.rows.cast_signed()), body);
    }

    /// The first element of a place in the tile.
    fn at(&self, place: Ex<'k>) -> Ex<'k> {
        self.frame.k.let_(place * self.rows.cast_signed())
    }

    fn read(&self) {
        let (k, frame) = (self.frame.k, &self.frame);
        let ty = self.tile.ty();
        let zero = k.graph().number(ty, 0.0);
        let first = k.let_(self.start - frame.radius);
        let length = k.let_(self.blocks * frame.window + frame.window);
        let before = k.let_((-first).max(0).min(length));
        let behind = k.let_((frame.length - first).max(before).min(length));
        self.lanes(|lane| {
            // What is beside the image is read from its last row and written nowhere.
            let row = self.row(frame.src, (self.row + lane).min(frame.side - 1));
            let to = k.let_(lane * self.places.cast_signed());
            let keep =
                |place: Ex<'k>, value: Ex<'k>| k.store(self.lines, to + place, k.let_(value));
            let outside = |place: Ex<'k>| {
                let (source, inside) = k.source(first + place, frame.length, self.boundary);
                let value = k.load(frame.src.buf, row + source).cast(ty);
                keep(
                    place,
                    inside.map_or(value, |inside| inside.select(value, zero)),
                );
            };
            let next = self.blocks * frame.window;
            // The rest of a long row processors guess themselves.
            let soon = self.places.min(PLACES[0]);
            k.soon(frame.src, row + first + next, soon, Access::Read);
            let result = self.row(frame.dst, self.row + lane) + self.start;
            k.soon(frame.dst, result, soon, Access::Write);
            k.for_(self.int(0), before, outside);
            k.for_(before, behind, |place| {
                keep(place, k.load(frame.src.buf, row + first + place).cast(ty));
            });
            k.for_(behind, length, outside);
        });
    }

    /// Leaves the results of a block where its pixels were: that of its last window first.
    fn sum(&self) {
        let (k, tile) = (self.frame.k, self.tile);
        let (window, int) = (self.frame.window, |value: i32| self.int(value));
        let running = k.array(tile.ty(), self.rows, Space::Private);
        k.for_(int(0), self.blocks, |block| {
            let here = k.let_(block * window);
            let last = self.at(here + (window - 1));
            self.lanes(|lane| k.store(running, lane, k.load(tile, last + lane)));
            k.for_(int(1), window - 1, |back| {
                let at = self.at(here + (window - 1 - back));
                self.lanes(|lane| {
                    let sum = k.let_(k.load(running, lane) + k.load(tile, at + lane));
                    k.store(running, lane, sum);
                    k.store(tile, at + lane, sum);
                });
            });
            let next = k.let_(here + window);
            let (from, to) = (self.at(next), self.at(here + 1));
            self.lanes(|lane| {
                let first = k.load(tile, from + lane);
                k.store(running, lane, first);
                k.store(tile, to + lane, k.let_(k.load(tile, to + lane) + first));
            });
            k.for_(int(1), window - 1, |on| {
                let (from, to) = (self.at(next + on), self.at(here + 1 + on));
                self.lanes(|lane| {
                    let sum = k.let_(k.load(running, lane) + k.load(tile, from + lane));
                    k.store(running, lane, sum);
                    k.store(tile, to + lane, k.let_(k.load(tile, to + lane) + sum));
                });
            });
            let (from, to) = (self.at(next + (window - 1)), self.at(here));
            self.lanes(|lane| {
                let sum = k.load(running, lane) + k.load(tile, from + lane);
                k.store(tile, to + lane, k.let_(sum));
            });
        });
        // The last window of a block is a block itself, and lies where the block begins: the one before.
        k.for_(int(0), self.blocks, |done| {
            let block = self.blocks - 1 - done;
            let from = self.at(block * window);
            let to = k.let_(from + window * self.rows.cast_signed());
            self.lanes(|lane| k.store(tile, to + lane, k.load(tile, from + lane)));
        });
    }

    /// Turns the rows, or what was made of them.
    fn turn(&self, back: bool) {
        let [mut from, mut to] = if back {
            [self.tile, self.lines]
        } else {
            [self.lines, self.tile]
        };
        let times = self.rows.ilog2();
        assert!(
            !times.is_multiple_of(2),
            "what is turned ends in the other array"
        );
        for _ in 0..times {
            if back {
                self.frame.k.deal(from, to);
            } else {
                self.frame.k.riffle(from, to);
            }
            (from, to) = (to, from);
        }
    }

    fn write(&self) {
        let (k, frame) = (self.frame.k, &self.frame);
        let some = k.let_((frame.side - self.row).min(self.rows.cast_signed()));
        let begin = k.let_((-self.start).max(1));
        let all = self.blocks * frame.window + 1;
        let end = k.let_((frame.length - self.start).min(all));
        k.for_(self.int(0), some, |lane| {
            let row = k.let_(self.row(frame.dst, self.row + lane) + self.start);
            let from = k.let_(lane * self.places.cast_signed());
            k.for_(begin, end, |place| {
                k.store(frame.dst.buf, row + place, k.load(self.lines, from + place));
            });
        });
    }
}

/// How often each pixel is read, unless the window goes another way or is too long.
pub(super) fn reads(window: Window) -> Option<f64> {
    let able = window.axis == 2 && (1..=RADII[1]).contains(&window.radius);
    let width = 2 * window.radius + 1;
    able.then(|| 1.0 + 1.0 / f64::from(blocks(places(window.radius), width)))
}

/// The launch, unless the window goes another way or is too long.
pub(super) fn plan(flow: &Flow, node: &Node, window: Window, tuning: &Tuning) -> Option<Plan> {
    reads(window)?;
    let kind = flow.kind(node.outputs[0]);
    let k = Builder::new();
    let frame = Frame::new(&k, flow.kind(node.inputs[0]).dtype(), kind.dtype());
    let (rows, places) = (rows(kind.dtype(), window.radius), places(window.radius));
    let plane = k.work(Work::Global(2));
    let row = k.let_(k.work(Work::Global(1)) * rows.cast_signed());
    let blocks_here = k.let_(k.graph().int(places.cast_signed()) / frame.window - 1);
    // Blocks count from the one before the first.
    let start = k.let_((k.work(Work::Global(0)) * blocks_here - 1) * frame.window);
    let some = start.lt(0) | start.lt(frame.length - 1);
    k.if_(plane.lt(frame.planes) & row.lt(frame.side) & some, || {
        let [tile, lines] = [0, 1].map(|_| k.line(kind.dtype(), places * rows));
        let piece = Turned {
            frame,
            boundary: window.boundary,
            tile,
            lines,
            rows,
            places,
            row,
            start,
            plane,
            blocks: blocks_here,
        };
        piece.read();
        piece.turn(false);
        piece.sum();
        piece.turn(true);
        piece.write();
    });
    let def = k.finish("wl_window_turned", tuning.group);
    let [planes, side, length] = kind.dims();
    let width = window.radius * 2 + 1;
    let all = 1 + (length - 1).div_ceil(u64::from(width));
    let items = [
        all.div_ceil(u64::from(blocks(places, width))),
        side.div_ceil(u64::from(rows)),
        planes,
    ];
    let mut plan = Plan::default();
    plan.launch(def, items, Frame::args(flow, node, window));
    Some(plan)
}
