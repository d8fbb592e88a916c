//! What becomes of sets of runs: numbers, or nothing for those that touch the edge.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::super::launch::{Args, Plan};
use super::super::line::{int, item, launch, word};
use super::super::tuning::Tuning;
use super::Sort;
use super::runs::{Runs, Table};

/// Numbers sets in the order of their first pixels.
pub(super) fn label(
    plan: &mut Plan,
    flow: &Flow,
    [mask, out]: [ValueId; 2],
    sort: Sort,
    tuning: &Tuning,
) {
    let runs = Runs::new(plan, flow, mask, sort, tuning);
    let roots = plan.scratch(runs.bands() * 4);

    let k = Builder::new();
    let found = k.buffer("roots", DType::U32, Access::Write);
    let (table, args) = runs.table(&k, Args::new().buffer(roots), Access::Read);
    let band = item(&k, tuning);
    let count = k.var(word(&k, 0));
    each_run(&k, &table, table.band(band), |_, run| {
        k.set(count, k.get(count) + is_root(&k, &table, run).cast(Ty::U32));
    });
    k.store(found, band, k.get(count));
    launch(
        plan,
        k.finish("wl_count_sets", tuning.line()),
        runs.bands(),
        args,
    );

    let k = Builder::new();
    let found = k.buffer("roots", DType::U32, Access::Read);
    let fates = k.buffer("fates", DType::U32, Access::ReadWrite);
    let args = Args::new().buffer(roots).buffer(runs.fates);
    let (table, args) = runs.table(&k, args, Access::Read);
    let band = item(&k, tuning);
    let next = k.var(word(&k, 0));
    k.for_(int(&k, 0), band, |before| {
        k.set(next, k.get(next) + k.load(found, before));
    });
    let [first, last] = table.band(band);
    let [start, _] = table.row(first.min(last - 1));
    each_run(&k, &table, [first, last], |_, run| {
        let parent = k.let_(k.load(table.parents, run).cast(Ty::I32) - 1);
        k.if_else(
            parent.is(run),
            || {
                k.set(next, k.get(next) + word(&k, 1));
                k.store(fates, run, k.get(next));
            },
            || {
                // A parent comes before its child. One in another band may have no number yet.
                k.if_(parent.ge(start), || {
                    k.store(fates, run, k.load(fates, parent));
                });
            },
        );
    });
    launch(
        plan,
        k.finish("wl_number_sets", tuning.line()),
        runs.bands(),
        args,
    );

    let k = Builder::new();
    let fates = k.buffer("fates", DType::U32, Access::Read);
    let to = k.buffer("out", DType::U32, Access::Write);
    let args = Args::new().buffer(runs.fates).value(out);
    let (table, args) = runs.table(&k, args, Access::Read);
    paint(&k, &table, tuning, to, |run, _| {
        let number = k.var(k.load(fates, run));
        k.if_(k.get(number).is(word(&k, 0)), || {
            k.set(number, k.load(fates, table.root(run)));
        });
        k.get(number)
    });
    launch(
        plan,
        k.finish("wl_paint", tuning.line()),
        runs.shares(),
        args,
    );
}

/// Removes sets that touch the edge.
pub(super) fn clear(
    plan: &mut Plan,
    flow: &Flow,
    [labels, out]: [ValueId; 2],
    sort: Sort,
    tuning: &Tuning,
) {
    let runs = Runs::new(plan, flow, labels, sort, tuning);
    let [nz, ny, _] = runs.dims;

    let k = Builder::new();
    let fates = k.buffer("fates", DType::U32, Access::Write);
    let (table, args) = runs.table(&k, Args::new().buffer(runs.fates), Access::Read);
    let [depth, height] = ["nz", "ny"].map(|name| k.scalar(name, Ty::I32));
    let args = args.count(nz).count(ny);
    let width = table.nx;
    let [first, last] = table.some_rows(item(&k, tuning));
    each_run(&k, &table, [first, last], |row, run| {
        let z = k.let_(row / height);
        let y = k.let_(row - z * height);
        let [start, end] = table.ends(run);
        let mut edge = (depth * height * width).is(1);
        for (at, length) in [(z, depth), (y, height)] {
            edge = edge | (length.gt(1) & (at.is(0) | at.is(length - 1)));
        }
        edge = edge | (width.gt(1) & (start.is(0) | end.is(width)));
        // Several may say so; they say the same.
        k.if_(edge, || k.store(fates, table.root(run), word(&k, 1)));
    });
    launch(
        plan,
        k.finish("wl_touch_edges", tuning.line()),
        runs.shares(),
        args,
    );

    let k = Builder::new();
    let fates = k.buffer("fates", DType::U32, Access::Read);
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("out", DType::U32, Access::Write);
    let args = Args::new().buffer(runs.fates).value(labels).value(out);
    let (table, args) = runs.table(&k, args, Access::Read);
    paint(&k, &table, tuning, to, |run, first| {
        let gone = k.load(fates, table.root(run)).is_not(word(&k, 0));
        k.let_(gone.select(word(&k, 0), k.load(from, first)))
    });
    launch(
        plan,
        k.finish("wl_paint_inner", tuning.line()),
        runs.shares(),
        args,
    );
}

fn is_root<'k>(k: &'k Builder, table: &Table<'k>, run: Ex<'k>) -> Ex<'k> {
    k.load(table.parents, run).is((run + 1).cast(Ty::U32))
}

/// Calls `body` with every run of some rows: its row and its number.
fn each_run<'k>(
    k: &'k Builder,
    table: &Table<'k>,
    [first, last]: [Ex<'k>; 2],
    body: impl Fn(Ex<'k>, Ex<'k>),
) {
    k.for_(first, last, |row| {
        let [start, count] = table.row(row);
        k.for_(start, start + count, |run| body(row, run));
    });
}

/// Writes rows: every run in the color that `color` says, given its number and its first pixel's,
/// zero between.
fn paint<'k>(
    k: &'k Builder,
    table: &Table<'k>,
    tuning: &Tuning,
    to: Buf,
    color: impl Fn(Ex<'k>, Ex<'k>) -> Ex<'k>,
) {
    let [first, last] = table.some_rows(item(k, tuning));
    k.for_(first, last, |row| {
        let base = k.let_(row * table.nx);
        let done = k.var(base);
        let [start, count] = table.row(row);
        let blank = |stop: Ex<'k>| {
            k.for_(k.get(done), stop, |i| k.store(to, i, word(k, 0)));
        };
        k.for_(start, start + count, |run| {
            let [begin, end] = table.ends(run).map(|x| k.let_(base + x));
            let color = color(run, begin);
            blank(begin);
            k.for_(begin, end, |i| k.store(to, i, color));
            k.set(done, end);
        });
        blank(k.let_(base + table.nx));
    });
}
