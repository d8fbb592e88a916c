//! A row of numbers for every object.
//!
//! Sums are in `f64`, pixel by pixel in scan order inside bands of 256 rows, which are then added
//! in order: the same on every strict backend. A group goes over a band, and each of its items
//! looks after some of the objects, so no two ever add to one sum.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, Number};
use crate::kernel::{Access, Buf, Builder};

use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{LONG, each, for_long, group, int, launch, launch_each, wide, word};
use super::super::tuning::Tuning;
use super::slots::Slots;
use super::walk::{
    AREA, LEAST, MEAN, MOST, PLACES, SQUARES, START, STOP, SUM, SUMS, Tables, WHOLES, Walk,
};
use super::{ranks, renamed};

/// Rows of a band.
const ROWS: u64 = 256;
/// Memory for the sums of bands that are gone over together.
const MEMORY: u64 = 64 << 20;

/// Rounds of the loops in which an item goes over a band, where [`for_long`] shortens them.
pub(in super::super) fn rounds([nz, ny, nx]: [u64; 3]) -> u64 {
    (nz * ny).min(ROWS) * (nx.div_ceil(LONG) + 1)
}

/// What all launches share.
struct Measure<'a> {
    flow: &'a Flow,
    node: &'a Node,
    tuning: &'a Tuning,
    slots: Slots,
    /// From slots to rows of the table, from 1.
    names: LaunchArg,
    /// For every pixel the row of its object in the table, from 1; 0 for background.
    ranked: LaunchArg,
    /// The list whose word at the place is the number of objects.
    found: (LaunchArg, u64),
    /// Rows there is room for.
    rows: u64,
    /// For each band of a wave, then in total.
    sums: [LaunchArg; 2],
    wholes: [LaunchArg; 2],
}

pub(in super::super) fn plan(flow: &Flow, node: &Node, columns: u32, tuning: &Tuning) -> Plan {
    let mut plan = Plan::default();
    let slots = Slots::new(&mut plan, flow, node.inputs[0], tuning);
    let (names, found) = ranks(&mut plan, &slots, tuning);
    // Looked up here and not where pixels are added: going over a band must not search, because a
    // software driver counts the rounds of a loop that no pixel enters, too.
    let ranked = plan.scratch(slots.count * 4);
    renamed(&mut plan, &slots, tuning, names, ranked);
    let rows = (flow.kind(node.outputs[0]).elements() - 1) / u64::from(columns);
    let rows = rows.max(1);
    let [nz, ny, _] = flow.kind(node.inputs[0]).dims();
    let bands = (nz * ny).div_ceil(ROWS);
    let size = u64::from((SUMS * 8 + WHOLES * 4).unsigned_abs()) * rows;
    let wave = (MEMORY / size).clamp(1, bands.max(1));
    let mut tables = |count: u64| {
        let words = |many: i32, bytes: u64| u64::from(many.unsigned_abs()) * bytes * rows * count;
        (plan.scratch(words(SUMS, 8)), plan.scratch(words(WHOLES, 4)))
    };
    let (own, total) = (tables(wave), tables(1));
    let measure = Measure {
        flow,
        node,
        tuning,
        slots,
        names,
        ranked,
        found,
        rows,
        sums: [own.0, total.0],
        wholes: [own.1, total.1],
    };
    measure.clear(&mut plan, 1, 1);
    for pass in [Pass::Sums, Pass::Squares] {
        for first in (0..bands).step_by(usize::try_from(wave).expect("few")) {
            let count = wave.min(bands - first);
            measure.clear(&mut plan, 0, count);
            measure.band(&mut plan, pass, first, count);
            measure.merge(&mut plan, pass, count);
        }
    }
    measure.finish(&mut plan, columns);
    plan
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Sums,
    Squares,
}

impl Measure<'_> {
    fn rows_of<'k>(k: &'k Builder, list: Buf, place: Ex<'k>, rows: Ex<'k>) -> Ex<'k> {
        let found = k.load(list, place).cast(Ty::I32);
        k.let_(found.min(rows))
    }

    fn found_args(&self, args: Args) -> Args {
        args.buffer(self.found.0)
    }

    /// Sets tables to nothing, as far as there are objects.
    fn clear(&self, plan: &mut Plan, which: usize, bands: u64) {
        let k = Builder::new();
        let rows = k.scalar("rows", Ty::I32);
        let tables = Tables::new(&k, Access::Write, rows);
        let list = k.buffer("found", DType::U32, Access::Read);
        let place = k.scalar("place", Ty::I32);
        let count = k.scalar("bands", Ty::I32);
        let used = Self::rows_of(&k, list, place, rows);
        each(&k, self.tuning, rows, |row| {
            k.if_(row.lt(used), || {
                k.for_(int(&k, 0), count, |band| {
                    for what in 0..SUMS {
                        let start = match what {
                            LEAST => f64::INFINITY,
                            MOST => f64::NEG_INFINITY,
                            _ => 0.0,
                        };
                        k.store(tables.sums, tables.sum_at(band, what, row), wide(&k, start));
                    }
                    for what in 0..WHOLES {
                        let start = if (START..STOP).contains(&what) {
                            u32::MAX
                        } else {
                            0
                        };
                        let at = tables.whole_at(band, what, row);
                        k.store(tables.wholes, at, word(&k, start));
                    }
                });
            });
        });
        let args = Args::new()
            .count(self.rows)
            .buffer(self.sums[which])
            .buffer(self.wholes[which]);
        let args = self.found_args(args).count(self.found.1).count(bands);
        let def = k.finish("wl_clear_objects", self.tuning.line());
        launch_each(plan, self.tuning, def, self.rows, args);
    }

    /// Goes over bands, one for each group.
    fn band(&self, plan: &mut Plan, pass: Pass, first: u64, count: u64) {
        let (labels, image) = (self.node.inputs[0], self.node.inputs[1]);
        let [nz, ny, nx] = self.flow.kind(labels).dims();
        let k = Builder::new();
        let from = k.buffer("ranks", DType::U32, Access::Read);
        let pixels = k.buffer("in", self.flow.kind(image).dtype(), Access::Read);
        let rows = k.scalar("rows", Ty::I32);
        let own = Tables::new(&k, Access::ReadWrite, rows);
        let args = Args::new()
            .buffer(self.ranked)
            .value(image)
            .buffer(self.sums[0])
            .buffer(self.wholes[0])
            .count(self.rows);
        let (total, args) = if pass == Pass::Squares {
            // Of the totals only the mean.
            let sums = k.buffer("totals", DType::F64, Access::Read);
            (Some(Tables { sums, ..own }), args.buffer(self.sums[1]))
        } else {
            (None, args)
        };
        let [start, bands, lines, height, width] =
            ["first", "bands", "lines", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
        let args = args
            .count(first)
            .count(count)
            .count(nz * ny)
            .count(ny)
            .count(nx);
        let at = group(&k);
        k.if_(at.lt(bands), || {
            let top = k.let_((start + at) * i32::try_from(ROWS).expect("small"));
            let bottom = k.let_(top + (lines - top).min(i32::try_from(ROWS).expect("small")));
            let walk = Walk::new(&k, self.tuning, own, total, at);
            k.for_(top, bottom, |line| {
                let base = k.let_(line * width);
                let last = k.var(word(&k, 0));
                let z = k.let_(line / height);
                let at = [z, k.let_(line - z * height)];
                for_long(&k, self.tuning, int(&k, 0), width, |x| {
                    let pixel = k.let_(base + x);
                    let rank = k.load(from, pixel);
                    k.if_(rank.is_not(k.get(last)), || {
                        k.set(last, rank);
                        walk.close(at, x);
                        walk.open(rank, x);
                    });
                    k.if_(k.get(walk.row).ge(0), || {
                        walk.add(k.load(pixels, pixel).cast(Ty::F64));
                    });
                });
                walk.close(at, width);
            });
        });
        let name = match pass {
            Pass::Sums => "wl_measure",
            Pass::Squares => "wl_deviations",
        };
        let items = count * u64::from(self.tuning.lanes);
        launch(plan, k.finish(name, self.tuning.line()), items, args);
    }

    /// Adds the bands of a wave to the totals, in order.
    fn merge(&self, plan: &mut Plan, pass: Pass, count: u64) {
        let k = Builder::new();
        let rows = k.scalar("rows", Ty::I32);
        let own = Tables::new(&k, Access::Read, rows);
        let total = Tables::new(&k, Access::ReadWrite, rows);
        let list = k.buffer("found", DType::U32, Access::Read);
        let place = k.scalar("place", Ty::I32);
        let bands = k.scalar("bands", Ty::I32);
        let used = Self::rows_of(&k, list, place, rows);
        let zero = int(&k, 0);
        each(&k, self.tuning, rows, |row| {
            k.if_(row.lt(used), || {
                let sum = |from: i32, to: i32| {
                    let to = total.sum_at(zero, to, row);
                    let value = k.var(k.load(total.sums, to));
                    k.for_(zero, bands, |band| {
                        let (now, next) =
                            (k.get(value), k.load(own.sums, own.sum_at(band, from, row)));
                        k.set(
                            value,
                            match from {
                                LEAST => now.min(next),
                                MOST => now.max(next),
                                _ => now + next,
                            },
                        );
                    });
                    k.store(total.sums, to, k.get(value));
                };
                if pass == Pass::Squares {
                    sum(SUM, SQUARES);
                    return;
                }
                for what in 0..SQUARES {
                    sum(what, what);
                }
                for what in 0..WHOLES {
                    let to = total.whole_at(zero, what, row);
                    let value = k.var(k.load(total.wholes, to));
                    k.for_(zero, bands, |band| {
                        let now = k.get(value);
                        let next = k.load(own.wholes, own.whole_at(band, what, row));
                        k.set(
                            value,
                            match what {
                                AREA => now + next,
                                START..STOP => now.min(next),
                                _ => now.max(next),
                            },
                        );
                    });
                    k.store(total.wholes, to, k.get(value));
                }
                let area = k.load(total.wholes, total.whole_at(zero, AREA, row));
                let sum = k.load(total.sums, total.sum_at(zero, SUM, row));
                let mean = k.let_(sum / area.cast(Ty::F64));
                k.store(total.sums, total.sum_at(zero, MEAN, row), mean);
            });
        });
        let args = Args::new()
            .count(self.rows)
            .buffer(self.sums[0])
            .buffer(self.wholes[0])
            .buffer(self.sums[1])
            .buffer(self.wholes[1]);
        let args = self.found_args(args).count(self.found.1).count(count);
        let name = match pass {
            Pass::Sums => "wl_add_bands",
            Pass::Squares => "wl_add_deviations",
        };
        let def = k.finish(name, self.tuning.line());
        launch_each(plan, self.tuning, def, self.rows, args);
    }

    /// Writes the table.
    fn finish(&self, plan: &mut Plan, columns: u32) {
        let labels = self.labels(plan);
        let k = Builder::new();
        let rows = k.scalar("rows", Ty::I32);
        let total = Tables::new(&k, Access::Read, rows);
        let list = k.buffer("found", DType::U32, Access::Read);
        let known = k.buffer("labels", DType::U32, Access::Read);
        let out = k.buffer("out", DType::F64, Access::Write);
        let place = k.scalar("place", Ty::I32);
        let width = columns.cast_signed();
        let zero = int(&k, 0);
        each(&k, self.tuning, rows, |row| {
            let found = k.load(list, place);
            k.if_(row.is(0), || {
                k.store(out, zero, k.let_(found.cast(Ty::F64)));
            });
            let base = k.let_(row * width + 1);
            let put = |at: i32, value: Ex<'_>| {
                let value = value.cast(Ty::F64);
                k.store(out, base + at, k.let_(value));
            };
            let sum = |what| k.load(total.sums, total.sum_at(zero, what, row));
            let whole = |what| k.load(total.wholes, total.whole_at(zero, what, row));
            k.if_else(
                row.lt(found.cast(Ty::I32)),
                || {
                    let area = k.let_(whole(AREA).cast(Ty::F64));
                    let whole_sum = sum(SUM);
                    put(0, k.load(known, row));
                    put(1, area);
                    put(2, whole_sum);
                    put(3, sum(MEAN));
                    put(4, sum(LEAST));
                    put(5, sum(MOST));
                    put(6, (sum(SQUARES) / area).sqrt());
                    let axes = (width - 7) / 3;
                    for axis in 0..axes {
                        let along = 3 - axes + axis;
                        put(7 + axis, sum(PLACES + along) / area);
                        put(7 + axes + axis, whole(START + along));
                        put(7 + 2 * axes + axis, whole(STOP + along));
                    }
                },
                || {
                    for at in 0..width {
                        put(at, wide(&k, 0.0));
                    }
                },
            );
        });
        let args = Args::new()
            .count(self.rows)
            .buffer(self.sums[1])
            .buffer(self.wholes[1]);
        let args = self
            .found_args(args)
            .buffer(labels)
            .value(self.node.outputs[0])
            .count(self.found.1);
        let def = k.finish("wl_statistics", self.tuning.line());
        launch_each(plan, self.tuning, def, self.rows, args);
    }

    /// The label of every row.
    fn labels(&self, plan: &mut Plan) -> LaunchArg {
        let labels = plan.scratch(self.rows * 4);
        let k = Builder::new();
        let names = k.buffer("names", DType::U32, Access::Read);
        let to = k.buffer("labels", DType::U32, Access::Write);
        let rows = k.scalar("rows", Ty::U32);
        #[expect(clippy::cast_possible_truncation, reason = "under 2^31")]
        let number = Number::U32(self.rows as u32);
        let args = Args::new().buffer(self.names).buffer(labels).number(number);
        let (finder, args) = self.slots.finder(&k, args);
        each(&k, self.tuning, finder.slots + 1, |slot| {
            let row = k.load(names, slot);
            k.if_(row.is_not(0) & row.le(rows), || {
                k.store(to, row.cast(Ty::I32) - 1, finder.label(slot));
            });
        });
        let def = k.finish("wl_labels_of_rows", self.tuning.line());
        launch_each(plan, self.tuning, def, self.slots.room + 1, args);
        labels
    }
}
