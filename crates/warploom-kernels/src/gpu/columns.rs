//! Ranks of bytes in large boxes, on a processor: by the counts of columns.
//!
//! An item has some columns, some rows high. How many pixels of a column, as high as a box, have each
//! value is counted once and kept up to date from row to row by one pixel that comes and one that
//! goes. Along a row a box gains a column and loses one, so its size hardly matters.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Footprint, Node};
use crate::kernel::{Access, Buf, Builder, Img, Work};

use super::launch::{Args, Plan};
use super::tuning::Tuning;

/// Columns and rows of an item's results.
const SIZE: [i32; 2] = [64, 64];
/// The largest radius along x for which there is room.
const REACH: u32 = 32;
/// Values of a byte in a group, and groups of them.
const GROUP: i32 = 16;
/// The smallest box that is counted: below, bits of the result are found one by one. Where the two cross was
/// estimated and not measured.
const LEAST: usize = 169;

/// The reach of a box that is counted, where that is a processor's way.
pub(super) fn reach(footprint: &Footprint, dtype: DType, tuning: &Tuning) -> Option<[u32; 3]> {
    let Footprint::Box(reach) = footprint else {
        return None;
    };
    let count: usize = reach.iter().map(|r| 2 * *r as usize + 1).product();
    let fits = reach[2] <= REACH && (LEAST..=usize::from(u16::MAX)).contains(&count);
    (fits && tuning.is_processor() && dtype == DType::U8).then_some(*reach)
}

/// What an item counts.
struct Columns<'k> {
    k: &'k Builder,
    src: Img<'k>,
    boundary: Boundary,
    dims: [Ex<'k>; 3],
    reach: [Ex<'k>; 3],
    plane: Ex<'k>,
    left: Ex<'k>,
    /// Columns with those beside the results.
    width: Ex<'k>,
    /// For every column, pixels by group of values, and by value.
    groups: Buf,
    values: Buf,
}

impl<'k> Columns<'k> {
    fn int(&self, value: i32) -> Ex<'k> {
        self.k.graph().int(value)
    }

    fn change(&self, counts: Buf, at: Ex<'k>, by: i32) {
        let now = self.k.load(counts, at);
        self.k.store(counts, at, now + by);
    }

    /// A row of pixels, of all planes of the boxes, comes or goes.
    fn count(&self, row: Ex<'k>, by: i32) {
        let k = self.k;
        let (y, inside_y) = k.source(row, self.dims[1], self.boundary);
        let y = k.let_(y);
        k.for_(-self.reach[0], self.reach[0] + 1, |dz| {
            let (z, inside_z) = k.source(self.plane + dz, self.dims[0], self.boundary);
            let start = k.let_(k.index(self.src, [z, y, self.int(0)]));
            k.for_(self.int(0), self.width, |column| {
                let at = self.left + column - self.reach[2];
                let (x, inside_x) = k.source(at, self.dims[2], self.boundary);
                let value = k.load(self.src.buf, start + x);
                let inside = [inside_z, inside_y, inside_x].into_iter().flatten();
                let inside = inside.reduce(|a, b| a & b);
                let value = inside.map_or(value, |inside| inside.select(value, 0));
                let value = k.let_(value);
                let group = value.shifted_right(4);
                self.change(self.groups, k.let_(column * GROUP + group), by);
                self.change(self.values, k.let_(column * (GROUP * GROUP) + value), by);
            });
        });
    }

    /// Adds 16 counts to others, or takes them away.
    fn merge(&self, (to, at): (Buf, Ex<'k>), (from, start): (Buf, Ex<'k>), more: bool) {
        let k = self.k;
        k.for_(self.int(0), self.int(GROUP), |lane| {
            let (now, by) = (k.load(to, at + lane), k.load(from, start + lane));
            k.store(to, at + lane, if more { now + by } else { now - by });
        });
    }

    /// The place of a rank among 16 counts, and the rank among what is there.
    fn place(&self, counts: Buf, from: Ex<'k>, rank: Ex<'k>) -> [Ex<'k>; 2] {
        let k = self.k;
        let (left, at) = (k.var(rank), k.var(self.int(0)));
        k.while_(
            || {
                let here = k.get(at);
                let count = k.load(counts, from + here);
                here.lt(GROUP - 1) & k.get(left).ge(count)
            },
            || {
                let here = k.get(at);
                let count = k.load(counts, from + here);
                k.set(left, k.get(left) - count);
                k.set(at, here + 1);
            },
        );
        [k.get(at), k.get(left)]
    }

    /// One row of results. The values of a group are brought up to date when the rank is in it.
    fn row(&self, rank: Ex<'k>, results: Ex<'k>, put: impl Fn(Ex<'k>, Ex<'k>)) {
        let (k, window) = (self.k, self.k.let_(self.reach[2] + self.reach[2] + 1));
        let all = k.line(DType::U16, GROUP.unsigned_abs());
        let inner = k.line(DType::U16, (GROUP * GROUP).unsigned_abs());
        let ends = k.line(DType::I32, GROUP.unsigned_abs());
        k.for_(self.int(0), self.int(GROUP), |lane| {
            k.store(all, lane, self.int(0));
            k.store(ends, lane, self.int(0));
        });
        let zero = self.int(0);
        k.for_(zero, window - 1, |column| {
            self.merge((all, zero), (self.groups, k.let_(column * GROUP)), true);
        });
        k.for_(zero, results, |x| {
            let end = k.let_(x + window);
            self.merge((all, zero), (self.groups, k.let_((end - 1) * GROUP)), true);
            k.if_(x.gt(0), || {
                self.merge((all, zero), (self.groups, k.let_((x - 1) * GROUP)), false);
            });
            let [group, left] = self.place(all, zero, rank);
            let here = k.let_(group * GROUP);
            let known = k.load(ends, group);
            k.store(ends, group, end);
            let values = |column: Ex<'k>| k.let_(column * (GROUP * GROUP) + here);
            let add = |from: Ex<'k>, to: Ex<'k>, more: bool| {
                k.for_(from, to, |column| {
                    self.merge((inner, here), (self.values, values(column)), more);
                });
            };
            k.if_else(
                known.le(x),
                || {
                    k.for_(zero, self.int(GROUP), |lane| {
                        k.store(inner, here + lane, zero);
                    });
                    add(x, end, true);
                },
                || {
                    add(known, end, true);
                    add(k.let_(known - window), x, false);
                },
            );
            let [at, _] = self.place(inner, here, left);
            put(x, here + at);
        });
    }
}

/// The launch.
pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (reach, rank, boundary): ([u32; 3], u32, Boundary),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let kind = flow.kind(output);
    let k = Builder::new();
    let src = k.image("src", DType::U8, Access::Read);
    let dst = k.image("dst", DType::U8, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let reaches = ["rz", "ry", "rx"].map(|name| k.scalar(name, Ty::I32));
    let wanted = k.scalar("rank", Ty::I32);
    let int = |value: i32| k.graph().int(value);
    let plane = k.work(Work::Global(2));
    let top = k.let_(k.work(Work::Global(1)) * SIZE[1]);
    let left = k.let_(k.work(Work::Global(0)) * SIZE[0]);
    k.if_(
        plane.lt(dims[0]) & top.lt(dims[1]) & left.lt(dims[2]),
        || {
            let results = k.let_((dims[2] - left).min(SIZE[0]));
            let width = k.let_(results + reaches[2] + reaches[2]);
            let room = SIZE[0].unsigned_abs() + 2 * REACH;
            let columns = Columns {
                k: &k,
                src,
                boundary,
                dims,
                reach: reaches,
                plane,
                left,
                width,
                groups: k.line(DType::U16, room * GROUP.unsigned_abs()),
                values: k.line(DType::U16, room * (GROUP * GROUP).unsigned_abs()),
            };
            k.for_(int(0), width * GROUP, |at| {
                k.store(columns.groups, at, int(0));
            });
            k.for_(int(0), width * (GROUP * GROUP), |at| {
                k.store(columns.values, at, int(0));
            });
            k.for_(-reaches[1], reaches[1], |row| columns.count(top + row, 1));
            k.for_(int(0), (dims[1] - top).min(SIZE[1]), |row| {
                let y = k.let_(top + row);
                columns.count(y + reaches[1], 1);
                columns.row(wanted, results, |x, value| {
                    k.put(dst, [plane, y, left + x], value);
                });
                columns.count(y - reaches[1], -1);
            });
        },
    );
    let def = k.finish("wl_rank_columns", tuning.group);
    let mut plan = Plan::default();
    let args = Args::new()
        .image(flow, input)
        .image(flow, output)
        .dims(kind);
    let args = reach.iter().fold(args, |args, r| args.count(u64::from(*r)));
    let args = args.count(u64::from(rank));
    let [nz, ny, nx] = kind.dims();
    let many = |extent: u64, size: i32| extent.div_ceil(u64::from(size.unsigned_abs()));
    plan.launch(def, [many(nx, SIZE[0]), many(ny, SIZE[1]), nz], args);
    plan
}
