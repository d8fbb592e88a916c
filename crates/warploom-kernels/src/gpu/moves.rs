//! Pixels in other places: cut out, padded, reversed, axes exchanged.

use warploom_core::DType;

use crate::Boundary;
use crate::cpu::Pixel as _;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node};
use crate::kernel::{Access, Buf, Builder, Img, Space, Work};

use super::lanes::{Lanes, items, runs};
use super::launch::{Args, LaunchArg, Plan};
use super::near::Near;
use super::tuning::Tuning;

/// A part of an image, which may begin and end outside.
pub(super) fn crop(
    flow: &Flow,
    node: &Node,
    (start, boundary, fill): ([i64; 3], Boundary, f64),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let mut plan = Plan::default();
    let fill = one(&mut plan, from.dtype(), fill);
    let args = Args::new()
        .image(flow, input)
        .buffer(fill)
        .image(flow, output);
    let args = args.dims(to).dims(from);
    // An axis has under 2^31 pixels: what starts further away sees nothing but the outside.
    let far = |at: i64| i32::try_from(at.clamp(-(1 << 30), 1 << 30)).expect("clamped");
    let args = start.into_iter().fold(args, |args, at| args.int(far(at)));
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let fill = k.buffer("fill", from.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let extents = ["mz", "my", "mx"].map(|name| k.scalar(name, Ty::I32));
    let start = ["z", "y", "x"].map(|name| k.scalar(name, Ty::I32));
    runs(&k, tuning.run, dims, |run| {
        let near = Near {
            k: &k,
            src,
            dims: extents,
            boundary,
            ty: fill.ty(),
            outside: k.load(fill, k.graph().int(0)),
            run,
        };
        let copy = |lanes: Lanes<'_>, clear: bool| {
            let pixel = near.at(start, clear);
            lanes.each(|lane| k.put(dst, [run.z, run.y, run.first + lane], pixel(lane)));
        };
        if tuning.run == 1 {
            return copy(run.lanes, false);
        }
        // A run must be clear where it is read, and whole where it is written.
        let (left, right) = (run.first + start[2], run.first + tuning.run.cast_signed());
        let clear = left.ge(0) & (right + start[2]).le(extents[2]) & right.le(dims[2]);
        k.if_else(
            clear,
            || copy(Lanes::whole(&k, tuning.run), true),
            || {
                let is_even = matches!(boundary, Boundary::Zero | Boundary::Clamp);
                if !is_even {
                    return copy(run.lanes, false);
                }
                // Images that lie beside each other in a larger one have much around them.
                let beside = (right + start[2]).le(0) | left.ge(extents[2]);
                k.if_else(
                    beside & right.le(dims[2]),
                    || {
                        // All of a run beside the image sees what its first pixel sees.
                        let outside = match boundary {
                            Boundary::Zero => near.outside,
                            _ => k.let_(near.at(start, false)(k.graph().int(0))),
                        };
                        Lanes::whole(&k, tuning.run).each(|lane| {
                            k.put(dst, [run.z, run.y, run.first + lane], outside);
                        });
                    },
                    || copy(run.lanes, false),
                );
            },
        );
    });
    let def = k.finish("wl_crop", tuning.group);
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}

/// One element, rounded and saturated.
fn one(plan: &mut Plan, dtype: DType, value: f64) -> LaunchArg {
    match dtype {
        DType::U8 => plan.constant(&[u8::from_f64(value)]),
        DType::U16 => plan.constant(&[u16::from_f64(value)]),
        DType::I16 => plan.constant(&[i16::from_f64(value)]),
        DType::I32 => plan.constant(&[i32::from_f64(value)]),
        DType::U32 => plan.constant(&[u32::from_f64(value)]),
        DType::F32 => plan.constant(&[f32::from_f64(value)]),
        _ => plan.constant(&[value]),
    }
}

/// An image reversed along an axis, or its rows in the places of planes.
pub(super) fn reorder(flow: &Flow, node: &Node, order: Order, tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let to = flow.kind(output);
    let [nz, ny, nx] = flow
        .kind(input)
        .dims()
        .map(|n| i32::try_from(n).expect("below 2^31"));
    // Planes and rows are walked in any order by their pitch; only rows themselves are special.
    let (at, pitch) = match order {
        Order::Reversed(0) => ((nz - 1) * ny * nx, [-ny * nx, nx]),
        Order::Reversed(1) => ((ny - 1) * nx, [ny * nx, -nx]),
        Order::Reversed(_) => (0, [ny * nx, nx]),
        Order::RowsAsPlanes => (0, [nx, ny * nx]),
    };
    let backwards = matches!(order, Order::Reversed(axis) if axis > 1);
    let k = Builder::new();
    let src = k.image("src", to.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    runs(&k, tuning.run, dims, |run| {
        let row = k.let_(k.index(src, [run.z, run.y, k.graph().int(0)]));
        let last = k.let_(row + dims[2] - 1 - run.first);
        let first = k.let_(row + run.first);
        run.both_ways(&k, |lanes| {
            lanes.each(|lane| {
                let from = if backwards { last - lane } else { first + lane };
                let value = k.load(src.buf, from);
                k.put(dst, [run.z, run.y, run.first + lane], value);
            });
        });
    });
    let name = if backwards {
        "wl_reverse"
    } else {
        "wl_reorder"
    };
    let def = k.finish(name, tuning.group);
    let args = Args::new()
        .value(input)
        .int(at)
        .int(pitch[0])
        .int(pitch[1])
        .image(flow, output)
        .dims(to);
    let mut plan = Plan::default();
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}

/// In what order planes, rows and pixels are taken.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// Reversed along an axis.
    Reversed(u8),
    /// Rows of all planes become planes of all rows.
    RowsAsPlanes,
}

/// Rows and columns of the result that a processor turns in vectors before it writes any: of the source two cache
/// lines of `f32` side by side, which are fetched together, of the result rows as long as is worth fetching ahead.
const TILE: [u32; 2] = [32, 128];
/// Tiles that an item turns, one after the other along rows of the source.
const TILES: u32 = 4;
/// Sides of the tile a group turns in its shared memory.
const SHARED: u32 = 32;
/// Rows of a group; each item takes several of the tile's.
const SHARED_ROWS: u32 = 8;

/// An image, and what it becomes when rows and columns change places.
struct Turned<'k> {
    k: &'k Builder,
    src: Img<'k>,
    dst: Img<'k>,
    side: Ex<'k>,
}

impl<'k> Turned<'k> {
    /// What a row of the result has in a column.
    fn read(&self, row: Ex<'k>, column: Ex<'k>) -> Ex<'k> {
        let (src, side) = (self.src, self.side);
        let at = src.offset + side * src.pitch[0] + column * src.pitch[1] + row;
        self.k.load(src.buf, at)
    }

    fn write(&self, row: Ex<'k>, column: Ex<'k>, value: Ex<'k>) {
        let (dst, side) = (self.dst, self.side);
        let at = dst.offset + side * dst.pitch[0] + row * dst.pitch[1] + column;
        self.k.store(dst.buf, at, value);
    }

    /// Turns some tiles, those that are whole in vectors.
    fn in_vectors(&self, dtype: DType, [sides, rows, columns]: [Ex<'k>; 3]) {
        let (k, [tall, wide]) = (self.k, TILE.map(u32::cast_signed));
        let all = tall * TILES.cast_signed();
        let left = k.let_(k.work(Work::Global(0)) * wide);
        let start = k.let_(k.work(Work::Global(1)) * all);
        k.if_(self.side.lt(sides), || {
            let end = k.let_((start + all).min(rows));
            let arrays = [0, 1].map(|_| k.line(dtype, TILE[0] * TILE[1]));
            k.for_by(start, end, k.graph().int(tall), |top| {
                let whole = (top + tall).le(rows) & (left + wide).le(columns);
                let parts = || {
                    k.for_(top, (top + tall).min(rows), |row| {
                        k.for_(left, (left + wide).min(columns), |column| {
                            self.write(row, column, self.read(row, column));
                        });
                    });
                };
                k.if_else(whole, || self.whole([top, left], arrays), parts);
            });
        });
    }

    /// Turns a whole tile.
    fn whole(&self, [top, left]: [Ex<'k>; 2], [mut from, mut to]: [Buf; 2]) {
        let (k, [tall, wide]) = (self.k, TILE.map(u32::cast_signed));
        let int = |value: i32| k.graph().int(value);
        k.for_(int(0), int(wide), |column| {
            k.for_(int(0), int(tall), |row| {
                let value = self.read(top + row, left + column);
                k.store(from, column * tall + row, value);
            });
        });
        // Each time the last digit of an element's number becomes its first. When all digits of its row have
        // moved, rows and columns have changed places.
        for _ in 0..TILE[0].ilog2() {
            k.deal(from, to);
            (from, to) = (to, from);
        }
        k.for_(int(0), int(tall), |row| {
            k.for_(int(0), int(wide), |column| {
                let value = k.load(from, row * wide + column);
                self.write(top + row, left + column, value);
            });
        });
    }
}

/// Two axes exchanged, one of them x.
pub(super) fn turn(flow: &Flow, node: &Node, axis: u8, tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let to = flow.kind(output);
    let [nz, ny, nx] = to.dims();
    let [_, my, mx] = flow.kind(input).dims();
    // Pitches of planes beside each other, and of what becomes a row, on both sides.
    let (sides, rows, from, into) = if axis == 1 {
        (nz, ny, [my * mx, mx], [ny * nx, nx])
    } else {
        (ny, nz, [mx, my * mx], [nx, ny * nx])
    };
    let k = Builder::new();
    let src = k.image("src", to.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let [sides_n, rows_n, columns_n] =
        ["sides", "rows", "columns"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: u32| k.graph().int(value.cast_signed());
    let side = k.work(Work::Global(2));
    let turned = Turned {
        k: &k,
        src,
        dst,
        side,
    };
    let read = |row, column| turned.read(row, column);
    let write = |row, column, value| turned.write(row, column, value);
    let (group, step, per) = if tuning.run == 1 {
        // Read along rows of the source, written along rows of the result, both side by side.
        let tile = k.array(src.buf.ty(), SHARED * (SHARED + 1), Space::Shared);
        let (x, y) = (k.work(Work::Local(0)), k.work(Work::Local(1)));
        let left = k.let_(k.work(Work::Group(0)) * SHARED.cast_signed());
        let top = k.let_(k.work(Work::Group(1)) * SHARED.cast_signed());
        k.for_by(int(0), int(SHARED), int(SHARED_ROWS), |down| {
            let (row, column) = (k.let_(top + x), k.let_(left + y + down));
            k.if_(row.lt(rows_n) & column.lt(columns_n), || {
                let value = read(row, column);
                k.store(tile, (y + down) * (SHARED + 1).cast_signed() + x, value);
            });
        });
        k.barrier();
        k.for_by(int(0), int(SHARED), int(SHARED_ROWS), |down| {
            let (row, column) = (k.let_(top + y + down), k.let_(left + x));
            k.if_(row.lt(rows_n) & column.lt(columns_n), || {
                let value = k.load(tile, x * (SHARED + 1).cast_signed() + y + down);
                write(row, column, value);
            });
        });
        (
            [SHARED, SHARED_ROWS, 1],
            [SHARED, SHARED],
            [SHARED, SHARED_ROWS],
        )
    } else {
        turned.in_vectors(to.dtype(), [sides_n, rows_n, columns_n]);
        ([1, 1, 1], [TILE[1], TILE[0] * TILES], [1, 1])
    };
    let def = k.finish("wl_turn", group);
    let args = Args::new()
        .value(input)
        .count(0)
        .count(from[0])
        .count(from[1])
        .value(output)
        .count(0)
        .count(into[0])
        .count(into[1])
        .count(sides)
        .count(rows)
        .count(nx);
    let tiles = |n: u64, axis: usize| n.div_ceil(u64::from(step[axis])) * u64::from(per[axis]);
    let mut plan = Plan::default();
    plan.launch(def, [tiles(nx, 0), tiles(rows, 1), sides], args);
    plan
}
