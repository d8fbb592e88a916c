//! Ranks in small boxes, on a processor: columns are sorted once for all boxes that have them.
//!
//! An item has a share of a row. It sorts, for each column of pixels that its boxes reach, what lies above each
//! other, and keeps the least ones of all columns beside each other, then the second ones, and so on. Each
//! result is found among the sorted columns of its box: a third of the comparisons that boxes take one by one, and
//! each pixel becomes a whole number that compares alike as often as a box is high, not as often as it has pixels.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Footprint, Node};
use crate::kernel::{Access, Buf, Builder, Space, Work};

use super::lanes::{Lanes, Run, each_run, items, share};
use super::launch::{Args, Plan};
use super::near::Near;
use super::order;
use super::tuning::Tuning;

/// The reach of a box that is sorted so.
pub(super) fn reach(footprint: &Footprint, dtype: DType, tuning: &Tuning) -> Option<[u32; 3]> {
    let Footprint::Box(reach) = footprint else {
        return None;
    };
    let able = tuning.is_processor() && order::bits(dtype).is_some();
    able.then_some(*reach)
}

/// The elements that keys are kept in.
fn kept(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::U8,
        DType::U16 | DType::I16 => DType::U16,
        _ => DType::I32,
    }
}

/// What the kernel's text depends on.
#[derive(Clone, Copy)]
struct Sort {
    dtype: DType,
    boundary: Boundary,
    run: u32,
    reach: [u32; 3],
    rank: usize,
}

/// The columns that an item sorts.
struct Columns<'k> {
    near: Near<'k>,
    sort: Sort,
    /// Of all columns the least pixels, the next ones, and so on.
    lines: Vec<Buf>,
    /// How many there are.
    length: Ex<'k>,
}

impl<'k> Columns<'k> {
    /// Sorts them: those inside of the image in runs, the others by the rule.
    fn fill(&self) {
        let (k, run) = (self.near.k, self.sort.run.cast_signed());
        let int = |value: i32| k.graph().int(value);
        let [rz, ry, _] = self.sort.reach.map(u32::cast_signed);
        let start = self.near.run.first;
        let first = k.let_((-start).max(0));
        let last = k.let_((self.near.dims[2] - start).min(self.length));
        // Too few for a run are all found by the rule.
        let behind = k.let_((first + run).le(last).select(last, first));
        let rows = (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| [z, y]));
        let rows: Vec<_> = rows.map(|[z, y]| self.near.row(int(z), int(y))).collect();
        let sorted = |clear: bool, column: Ex<'k>| {
            let pixels = rows.iter().map(|row| {
                let pixel = row.at(int(0), clear)(column);
                k.let_(order::key(self.sort.dtype, pixel))
            });
            let sorted = order::sorted(pixels.collect());
            for (line, key) in self.lines.iter().zip(sorted) {
                k.store(*line, column, key);
            }
        };
        k.for_by(first, behind, int(run), |from| {
            // The last run ends where the image does, and makes some columns again.
            let from = k.let_(from.min(behind - run));
            Lanes::whole(k, self.sort.run).each(|lane| sorted(true, k.let_(from + lane)));
        });
        k.for_(int(0), self.length - behind + first, |beside| {
            let column = beside.lt(first).select(beside, beside + behind - first);
            sorted(false, k.let_(column));
        });
    }

    /// The key of a result, whose columns begin at a place.
    fn ranked(&self, place: Ex<'k>) -> Ex<'k> {
        let k = self.near.k;
        let columns = 2 * self.sort.reach[2].cast_signed() + 1;
        let column = |on: i32| {
            let of = self.lines.iter();
            of.map(|line| k.let_(k.load(*line, place + on))).collect()
        };
        order::among((0..columns).map(column).collect(), self.sort.rank)
    }
}

fn write(k: &Builder, sort: Sort) {
    let dtype = sort.dtype;
    let src = k.image("src", dtype, Access::Read);
    let dst = k.image("dst", dtype, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: u32| k.graph().int(value.cast_signed());
    let ty = src.buf.ty();
    let [rz, ry, rx] = sort.reach;
    let (z, y) = (k.work(Work::Global(2)), k.work(Work::Global(1)));
    let start = k.let_(k.work(Work::Global(0)) * int(share(sort.run)));
    k.if_(z.lt(dims[0]) & y.lt(dims[1]) & start.lt(dims[2]), || {
        let count = k.let_((dims[2] - start).min(int(share(sort.run))));
        let lines = 0..(2 * rz + 1) * (2 * ry + 1);
        let lines = lines.map(|_| k.line(kept(dtype), share(sort.run) + 2 * rx));
        let near = Near {
            k,
            src,
            dims,
            boundary: sort.boundary,
            ty,
            outside: k.graph().number(ty, 0.0),
            run: Run {
                z,
                y,
                first: k.let_(start - int(rx)),
                end: dims[2],
                lanes: Lanes::whole(k, sort.run),
            },
        };
        let columns = Columns {
            near,
            sort,
            lines: lines.collect(),
            length: k.let_(count + int(2 * rx)),
        };
        columns.fill();
        let found = k.array(Ty::I32, sort.run, Space::Private);
        each_run(k, sort.run, (start, dims[2]), |first| {
            let here = k.let_(first - start);
            Lanes::whole(k, sort.run).each(|lane| {
                k.store(found, lane, columns.ranked(k.let_(here + lane)));
            });
            let run = Run {
                first,
                lanes: Lanes::rest(k, sort.run, first, dims[2]),
                ..near.run
            };
            run.both_ways(k, |lanes| {
                lanes.each(|lane| {
                    let element = order::element(dtype, k.load(found, lane));
                    k.put(dst, [z, y, first + lane], element);
                });
            });
        });
    });
}

/// The launch.
pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (reach, rank, boundary): ([u32; 3], u32, Boundary),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let to = flow.kind(output);
    let k = Builder::new();
    write(
        &k,
        Sort {
            dtype: to.dtype(),
            boundary,
            run: tuning.run,
            reach,
            rank: rank as usize,
        },
    );
    let def = k.finish("wl_rank_sorted", tuning.group);
    let args = Args::new().image(flow, input).image(flow, output).dims(to);
    let mut plan = Plan::default();
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
