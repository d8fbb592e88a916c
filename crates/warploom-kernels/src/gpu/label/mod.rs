//! Connected components: what touches becomes one set, and sets are numbered or judged.

mod bands;
mod pixels;
mod runs;
mod sets;

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Connectivity, Flow, Node};
use crate::kernel::{Access, Builder};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, int, launch_each, word};
use super::scan::{self, Holes};
use super::tuning::Tuning;

/// Marks a word of a table of parents; places are below it.
const FLAG: u32 = 1 << 31;

/// What belongs together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Pixels that are set and touch.
    Mask(Connectivity),
    /// Pixels of one label that touch, corners included.
    Labels,
}

pub(super) fn label(flow: &Flow, node: &Node, connectivity: Connectivity, tuning: &Tuning) -> Plan {
    let mut plan = Plan::default();
    let (mask, out) = (node.inputs[0], node.outputs[0]);
    let sort = Sort::Mask(connectivity);
    if tuning.is_processor() {
        bands::label(&mut plan, flow, [mask, out], sort, tuning);
        return plan;
    }
    let parents = LaunchArg::Value(out);
    pixels::connect(&mut plan, flow, mask, parents, sort, tuning);
    let count = flow.kind(mask).elements();

    scan::plan(
        &mut plan,
        tuning,
        count,
        ["wl_count_roots", "wl_number_roots"],
        |k, args| {
            let table = k.buffer("parents", DType::U32, Access::ReadWrite);
            let limit = k.scalar("count", Ty::I32);
            let holes = Holes {
                limit,
                number: Box::new(move |i| {
                    let root = k.load(table, i).is((i + 1).cast(Ty::U32));
                    k.let_(root.cast(Ty::U32))
                }),
                put: Box::new(move |i: Ex<'_>, before, number| {
                    k.if_(number.is_not(0), || {
                        k.store(table, i, k.let_((before + word(k, 1)) | word(k, FLAG)));
                    });
                }),
            };
            (holes, args.buffer(parents).count(count))
        },
    );

    // Roots lose their mark while others look at them: both forms say the same number.
    let k = Builder::new();
    let table = k.buffer("parents", DType::U32, Access::ReadWrite);
    let limit = k.scalar("count", Ty::I32);
    each(&k, tuning, limit, |i| {
        let found = k.load(table, i);
        k.if_(found.is_not(0), || {
            let number = k.var(found);
            k.if_((found & word(&k, FLAG)).is(0), || {
                k.set(number, k.load(table, found.cast(Ty::I32) - 1));
            });
            k.store(table, i, k.let_(k.get(number) & word(&k, !FLAG)));
        });
    });
    let args = Args::new().buffer(parents).count(count);
    let def = k.finish("wl_labels", tuning.line());
    launch_each(&mut plan, tuning, def, count, args);
    plan
}

pub(super) fn clear_border(flow: &Flow, node: &Node, tuning: &Tuning) -> Plan {
    let mut plan = Plan::default();
    let (labels, out) = (node.inputs[0], node.outputs[0]);
    if tuning.is_processor() {
        bands::clear(&mut plan, flow, [labels, out], Sort::Labels, tuning);
        return plan;
    }
    let kind = flow.kind(labels);
    let count = kind.elements();
    let parents = plan.scratch(count * 4);
    pixels::connect(&mut plan, flow, labels, parents, Sort::Labels, tuning);

    let k = Builder::new();
    let table = k.buffer("parents", DType::U32, Access::ReadWrite);
    let limit = k.scalar("count", Ty::I32);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    each(&k, tuning, limit, |i| {
        let row = k.let_(i / dims[2]);
        let at = [row / dims[1], row % dims[1], i - row * dims[2]];
        let mut edge = limit.is(1);
        for axis in 0..3 {
            let ends = at[axis].is(0) | at[axis].is(dims[axis] - 1);
            edge = edge | (dims[axis].gt(1) & ends);
        }
        k.if_(edge, || {
            let found = k.load(table, i) & word(&k, !FLAG);
            k.if_(found.is_not(0), || {
                k.atomic_or(table, found.cast(Ty::I32) - 1, word(&k, FLAG));
            });
        });
    });
    let args = Args::new().buffer(parents).count(count).dims(kind);
    let def = k.finish("wl_mark_edges", tuning.line());
    launch_each(&mut plan, tuning, def, count, args);

    let k = Builder::new();
    let table = k.buffer("parents", DType::U32, Access::Read);
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("out", DType::U32, Access::Write);
    let limit = k.scalar("count", Ty::I32);
    each(&k, tuning, limit, |i| {
        let root = k.let_((k.load(table, i) & word(&k, !FLAG)).cast(Ty::I32));
        let marked = k.load(table, k.let_((root - 1).max(0))) & word(&k, FLAG);
        let keep = root.is_not(0) & marked.is(word(&k, 0));
        k.store(to, i, k.let_(keep.select(k.load(from, i), word(&k, 0))));
    });
    let args = Args::new()
        .buffer(parents)
        .value(labels)
        .value(out)
        .count(count);
    let def = k.finish("wl_clear_border", tuning.line());
    launch_each(&mut plan, tuning, def, count, args);
    plan
}

/// A constant that is always there.
fn zero(k: &Builder) -> Ex<'_> {
    int(k, 0)
}
