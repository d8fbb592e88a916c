//! Exact Euclidean distances, one axis after the other, in whole numbers.
//!
//! Along the first axis distances are scanned. Along each further one the squared distance is the
//! lower envelope of parabolas, which is found as the lower hull of points.

mod envelope;
mod near;

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, ValueKind};
use crate::kernel::{Access, Builder, Space};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, int, item, launch, launch_each, wide_number, wide_scalar, word};
use super::{fill, tuning::Tuning};
use envelope::Along;

/// Nothing is this far.
const FAR: i32 = 1 << 20;
/// Columns side by side that one item of a processor scans.
const COLUMNS: u32 = 128;

/// Squares are kept in 31 bits, and no distance is longer than the diagonal.
fn fits(kind: &ValueKind) -> bool {
    let squares = kind.dims().map(|extent| extent.saturating_mul(extent));
    squares
        .iter()
        .fold(0, |sum: u64, square| sum.saturating_add(*square))
        < 1 << 31
}

/// Axes longer than one pixel, slowest first; one at least.
fn axes(kind: &ValueKind) -> Vec<usize> {
    let dims = kind.dims();
    let long: Vec<usize> = (0..3).filter(|axis| dims[*axis] > 1).collect();
    if long.is_empty() { vec![2] } else { long }
}

pub(super) fn plan(flow: &Flow, node: &Node, tuning: &Tuning) -> Option<Plan> {
    let (mask, out) = (node.inputs[0], node.outputs[0]);
    let kind = flow.kind(mask);
    if !fits(&kind) {
        return None;
    }
    let mut plan = Plan::default();
    let count = kind.elements();
    let squares = plan.scratch(count * 4);
    let axes = axes(&kind);
    let any = any_zero(&mut plan, &kind, LaunchArg::Value(mask), tuning);
    scan(
        &mut plan,
        &kind,
        LaunchArg::Value(mask),
        any,
        squares,
        axes[0],
        tuning,
    );
    for axis in &axes[1..] {
        let along = Along::new(kind.dims(), *axis, squares, None);
        along.plan(&mut plan, tuning);
    }

    let k = Builder::new();
    let from = k.buffer("squares", DType::I32, Access::Read);
    let to = k.buffer("out", flow.kind(out).dtype(), Access::Write);
    let limit = k.scalar("count", Ty::I32);
    let ty = to.ty();
    each(&k, tuning, limit, |i| {
        // The root of a whole number of 31 bits, rounded once more to single precision, is the
        // nearest of them.
        let root = k.load(from, i).cast(Ty::F64).sqrt();
        k.store(to, i, k.let_(root.cast(ty)));
    });
    let args = Args::new().buffer(squares).value(out).count(count);
    let def = k.finish("wl_roots_of_squares", tuning.line());
    launch_each(&mut plan, tuning, def, count, args);
    Some(plan)
}

/// Is any pixel zero? One word.
fn any_zero(plan: &mut Plan, kind: &ValueKind, mask: LaunchArg, tuning: &Tuning) -> LaunchArg {
    let any = plan.scratch(4);
    fill::words(plan, tuning, any, 1, 0);
    let k = Builder::new();
    let from = k.buffer("in", kind.dtype(), Access::Read);
    let to = k.buffer("any", DType::U32, Access::ReadWrite);
    let count = k.scalar("count", Ty::I32);
    let size = if tuning.is_processor() { 16_384 } else { 64 };
    let start = k.let_(item(&k, tuning) * size);
    let inside = start.ge(0) & start.lt(count);
    let stop = k.let_(inside.select((count - start).min(size), 0));
    let found = k.var(int(&k, 0));
    k.for_(int(&k, 0), stop, |i| {
        let pixel = k.load(from, start + i);
        let zero = pixel.is(k.graph().number(pixel.ty(), 0.0));
        k.set(found, k.get(found) | zero.cast(Ty::I32));
    });
    k.if_(k.get(found).is_not(0), || {
        k.atomic_or(to, int(&k, 0), word(&k, 1));
    });
    let args = Args::new().buffer(mask).buffer(any).count(kind.elements());
    let items = kind.elements().div_ceil(u64::from(size.unsigned_abs()));
    launch(plan, k.finish("wl_any_zero", tuning.line()), items, args);
    any
}

/// Squared distances to zeros along the first axis; -1 where there is none. With no zero anywhere,
/// one is taken to be before the first pixel along the axis, at the start of the others.
fn scan(
    plan: &mut Plan,
    kind: &ValueKind,
    mask: LaunchArg,
    any: LaunchArg,
    squares: LaunchArg,
    axis: usize,
    tuning: &Tuning,
) {
    let dims = kind.dims();
    let width: u64 = dims[axis + 1..].iter().product();
    let length = dims[axis];
    let columns = if tuning.is_processor() { COLUMNS } else { 1 };
    let k = Builder::new();
    let from = k.buffer("in", kind.dtype(), Access::Read);
    let known = k.buffer("any", DType::U32, Access::Read);
    let to = k.buffer("squares", DType::I32, Access::ReadWrite);
    let wide_ = k.scalar("width", Ty::I32);
    let long = k.scalar("length", Ty::I32);
    let first = k.let_(item(&k, tuning) * columns.cast_signed());
    k.if_(first.ge(0) & first.lt(wide_), || {
        let count = k.let_((wide_ - first).min(columns.cast_signed()));
        let last = k.array(Ty::I32, columns, Space::Private);
        let beside = |body: Box<dyn Fn(Ex<'_>) + '_>| {
            if columns == 1 {
                body(int(&k, 0));
            } else {
                k.for_(int(&k, 0), count, &body);
            }
        };
        let none = k.let_(k.load(known, int(&k, 0)).is(0));
        beside(Box::new(|c| {
            let outside = none & (first + c).is(0);
            k.store(last, c, k.let_(outside.select(int(&k, 0), FAR)));
        }));
        k.for_(int(&k, 0), long, |at| {
            let base = k.let_(at * wide_ + first);
            beside(Box::new(|c| {
                let pixel = k.load(from, base + c);
                let zero = pixel.is(k.graph().number(pixel.ty(), 0.0));
                let next = (k.load(last, c) + 1).min(FAR);
                let steps = k.let_(zero.select(int(&k, 0), next));
                k.store(last, c, steps);
                k.store(to, base + c, steps);
            }));
        });
        beside(Box::new(|c| k.store(last, c, int(&k, FAR))));
        k.for_(int(&k, 0), long, |i| {
            let base = k.let_((long - 1 - i) * wide_ + first);
            beside(Box::new(|c| {
                let steps = k.load(to, base + c).min(k.load(last, c) + 1);
                let steps = k.let_(steps.min(FAR));
                k.store(last, c, steps);
                let far = steps.ge(FAR);
                let square = far.select(int(&k, -1), steps * steps);
                k.store(to, base + c, k.let_(square));
            }));
        });
    });
    let args = Args::new()
        .buffer(mask)
        .buffer(any)
        .buffer(squares)
        .count(width)
        .count(length);
    let items = width.div_ceil(u64::from(columns));
    launch(
        plan,
        k.finish("wl_scan_columns", tuning.line()),
        items,
        args,
    );
}

pub(super) fn expand(flow: &Flow, node: &Node, distance: f64, tuning: &Tuning) -> Option<Plan> {
    let (labels, out) = (node.inputs[0], node.outputs[0]);
    let kind = flow.kind(labels);
    if tuning.is_processor()
        && let Some(limit) = near::Limit::new(distance)
    {
        return Some(near::plan(flow, node, limit, tuning));
    }
    if !fits(&kind) {
        return None;
    }
    let mut plan = Plan::default();
    let count = kind.elements();
    let (squares, places) = (plan.scratch(count * 4), plan.scratch(count * 4));
    // From the slowest axis to the fastest: which of several as near is taken depends on it.
    let axes = axes(&kind);
    nearest_in_columns(
        &mut plan,
        &kind,
        LaunchArg::Value(labels),
        [squares, places],
        axes[0],
        tuning,
    );
    for axis in &axes[1..] {
        Along::new(kind.dims(), *axis, squares, Some(places)).plan(&mut plan, tuning);
    }

    let k = Builder::new();
    let from = k.buffer("labels", kind.dtype(), Access::Read);
    let squares_ = k.buffer("squares", DType::I32, Access::Read);
    let places_ = k.buffer("places", DType::I32, Access::Read);
    let to = k.buffer("out", flow.kind(out).dtype(), Access::Write);
    let limit = k.scalar("count", Ty::I32);
    let reach = wide_scalar(&k, tuning, "distance");
    each(&k, tuning, limit, |i| {
        let square = k.load(squares_, i);
        let root = square.max(0).cast(Ty::F64).sqrt();
        let near = square.ge(0) & root.le(reach);
        let label = k.load(from, k.load(places_, i).max(0));
        k.store(to, i, k.let_(near.select(label, 0)));
    });
    let args = Args::new()
        .value(labels)
        .buffer(squares)
        .buffer(places)
        .value(out)
        .count(count);
    let args = wide_number(args, tuning, distance);
    let def = k.finish("wl_expand", tuning.line());
    launch_each(&mut plan, tuning, def, count, args);
    Some(plan)
}

/// The nearest label along the first axis, the one before of two as near: squared distance and
/// place, both -1 where there is none.
fn nearest_in_columns(
    plan: &mut Plan,
    kind: &ValueKind,
    labels: LaunchArg,
    [squares, places]: [LaunchArg; 2],
    axis: usize,
    tuning: &Tuning,
) {
    let dims = kind.dims();
    let width: u64 = dims[axis + 1..].iter().product();
    let k = Builder::new();
    let from = k.buffer("labels", kind.dtype(), Access::Read);
    let to = k.buffer("squares", DType::I32, Access::ReadWrite);
    let place = k.buffer("places", DType::I32, Access::ReadWrite);
    let columns = k.scalar("width", Ty::I32);
    let length = k.scalar("length", Ty::I32);
    let column = item(&k, tuning);
    k.if_(column.ge(0) & column.lt(columns), || {
        let last = k.var(int(&k, -1));
        let look = |at: Ex<'_>, step: Ex<'_>| {
            let label = k.load(from, at);
            k.if_(label.is_not(k.graph().number(label.ty(), 0.0)), || {
                k.set(last, step);
            });
        };
        k.for_(int(&k, 0), length, |step| {
            let at = k.let_(step * columns + column);
            look(at, step);
            let found = k.get(last);
            let off = k.let_(step - found);
            let none = k.let_(found.lt(0));
            k.store(to, at, k.let_(none.select(int(&k, -1), off * off)));
            let there = found * columns + column;
            k.store(place, at, k.let_(none.select(int(&k, -1), there)));
        });
        k.set(last, int(&k, -1));
        k.for_(int(&k, 0), length, |i| {
            let step = k.let_(length - 1 - i);
            let at = k.let_(step * columns + column);
            look(at, step);
            let found = k.get(last);
            let off = k.let_(found - step);
            let now = k.load(to, at);
            let nearer = found.ge(0) & (now.lt(0) | (off * off).lt(now));
            k.if_(nearer, || {
                k.store(to, at, k.let_(off * off));
                k.store(place, at, k.let_(found * columns + column));
            });
        });
    });
    let args = Args::new()
        .buffer(labels)
        .buffer(squares)
        .buffer(places)
        .count(width)
        .count(dims[axis]);
    launch(
        plan,
        k.finish("wl_nearest_in_columns", tuning.line()),
        width,
        args,
    );
}
