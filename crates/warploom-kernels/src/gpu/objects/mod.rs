//! Label images: objects chosen by their size, and numbered anew.

mod slots;
pub(super) mod statistics;
mod walk;

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, Number};
use crate::kernel::{Access, Builder};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, int, launch_each, word};
use super::scan::{self, Holes};
use super::tuning::Tuning;
use slots::{Finder, Slots};

/// A word for every slot of an image's labels, at first zero.
fn table(plan: &mut Plan, slots: &Slots, tuning: &Tuning) -> LaunchArg {
    let table = plan.scratch((slots.room + 1) * 4);
    let k = Builder::new();
    let to = k.buffer("table", DType::U32, Access::Write);
    let (finder, args) = slots.finder(&k, Args::new().buffer(table));
    each(&k, tuning, finder.slots + 1, |i| {
        k.store(to, i, word(&k, 0));
    });
    let def = k.finish("wl_clear_table", tuning.line());
    launch_each(plan, tuning, def, slots.room + 1, args);
    table
}

/// Does something with every run of one label in an item's share: its slot and its length.
fn each_run<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    finder: Finder<'k>,
    (labels, count): (crate::kernel::Buf, Ex<'k>),
    run: impl Fn(Ex<'k>, Ex<'k>),
) {
    let [start, stop] = Slots::share(k, tuning, count);
    k.if_(stop.gt(0), || {
        let last = k.var(k.load(labels, start));
        let length = k.var(int(k, 0));
        let close = || {
            let label = k.get(last);
            k.if_(label.is_not(0), || run(finder.slot(label), k.get(length)));
        };
        k.for_(int(k, 0), stop, |i| {
            let label = k.load(labels, start + i);
            k.if_(label.is_not(k.get(last)), || {
                close();
                k.set(last, label);
                k.set(length, int(k, 0));
            });
            k.set(length, k.get(length) + 1);
        });
        close();
    });
}

/// Writes for every pixel what `becomes` of its label and slot.
fn rewrite<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    finder: Finder<'k>,
    [labels, out]: [crate::kernel::Buf; 2],
    count: Ex<'k>,
    becomes: impl Fn(Ex<'k>, Ex<'k>) -> Ex<'k>,
) {
    let [start, stop] = Slots::share(k, tuning, count);
    let (last, value) = (k.var(word(k, 0)), k.var(word(k, 0)));
    k.for_(int(k, 0), stop, |i| {
        let at = k.let_(start + i);
        let label = k.load(labels, at);
        // Labels come in runs, so most pixels need no look at the table.
        k.if_(label.is_not(k.get(last)), || {
            k.set(last, label);
            k.set(value, word(k, 0));
            k.if_(label.is_not(0), || {
                k.set(value, becomes(label, finder.slot(label)));
            });
        });
        k.store(out, at, k.get(value));
    });
}

pub(super) fn keep_sizes(
    flow: &Flow,
    node: &Node,
    [least, most]: [u64; 2],
    tuning: &Tuning,
) -> Plan {
    let mut plan = Plan::default();
    let (labels, out) = (node.inputs[0], node.outputs[0]);
    let slots = Slots::new(&mut plan, flow, labels, tuning);
    let sizes = table(&mut plan, &slots, tuning);

    let k = Builder::new();
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("sizes", DType::U32, Access::ReadWrite);
    let count = k.scalar("count", Ty::I32);
    let args = Args::new().value(labels).buffer(sizes).count(slots.count);
    let (finder, args) = slots.finder(&k, args);
    each_run(&k, tuning, finder, (from, count), |slot, length| {
        k.atomic_add(to, slot, length.cast(Ty::U32));
    });
    let def = k.finish("wl_sizes", tuning.line());
    slots.launch_shares(&mut plan, tuning, def, args);

    let k = Builder::new();
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("out", DType::U32, Access::Write);
    let sizes_ = k.buffer("sizes", DType::U32, Access::Read);
    let count = k.scalar("count", Ty::I32);
    let [low, high] = ["least", "most"].map(|name| k.scalar(name, Ty::U32));
    // An image has fewer pixels than a word can count.
    let number = |value: u64| Number::U32(u32::try_from(value).unwrap_or(u32::MAX));
    let args = Args::new()
        .value(labels)
        .value(out)
        .buffer(sizes)
        .count(slots.count)
        .number(number(least))
        .number(number(most));
    let (finder, args) = slots.finder(&k, args);
    rewrite(&k, tuning, finder, [from, to], count, |label, slot| {
        let size = k.load(sizes_, slot);
        let keep = size.ge(low) & size.le(high);
        keep.select(label, word(&k, 0))
    });
    let def = k.finish("wl_keep_sizes", tuning.line());
    slots.launch_shares(&mut plan, tuning, def, args);
    plan
}

/// A table from slots to 1, 2, …, for labels in use; with it a list whose word at the second
/// place is their number.
fn ranks(plan: &mut Plan, slots: &Slots, tuning: &Tuning) -> (LaunchArg, (LaunchArg, u64)) {
    let names = table(plan, slots, tuning);
    let k = Builder::new();
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("names", DType::U32, Access::ReadWrite);
    let count = k.scalar("count", Ty::I32);
    let args = Args::new()
        .value(slots.labels)
        .buffer(names)
        .count(slots.count);
    let (finder, args) = slots.finder(&k, args);
    each_run(&k, tuning, finder, (from, count), |slot, _| {
        k.atomic_or(to, slot, word(&k, 1));
    });
    let def = k.finish("wl_present", tuning.line());
    slots.launch_shares(plan, tuning, def, args);
    let passes = ["wl_count_present", "wl_rank_present"];
    let total = scan::plan(plan, tuning, slots.room + 1, passes, |k, args| {
        let table = k.buffer("names", DType::U32, Access::ReadWrite);
        let (finder, args) = slots.finder(k, args.buffer(names));
        let holes = Holes {
            limit: k.let_(finder.slots + 1),
            number: Box::new(move |i| k.load(table, i)),
            put: Box::new(move |i: Ex<'_>, before, number| {
                let rank = number.is(0).select(word(k, 0), before + word(k, 1));
                k.store(table, i, k.let_(rank));
            }),
        };
        (holes, args)
    });
    (names, total)
}

/// Writes for every pixel what its label's slot has in a table.
fn renamed(plan: &mut Plan, slots: &Slots, tuning: &Tuning, names: LaunchArg, out: LaunchArg) {
    let k = Builder::new();
    let from = k.buffer("labels", DType::U32, Access::Read);
    let to = k.buffer("out", DType::U32, Access::Write);
    let table = k.buffer("names", DType::U32, Access::Read);
    let count = k.scalar("count", Ty::I32);
    let args = Args::new()
        .value(slots.labels)
        .buffer(out)
        .buffer(names)
        .count(slots.count);
    let (finder, args) = slots.finder(&k, args);
    rewrite(&k, tuning, finder, [from, to], count, |_, slot| {
        k.load(table, slot)
    });
    let def = k.finish("wl_relabel", tuning.line());
    slots.launch_shares(plan, tuning, def, args);
}

pub(super) fn relabel(flow: &Flow, node: &Node, tuning: &Tuning) -> Plan {
    let mut plan = Plan::default();
    let slots = Slots::new(&mut plan, flow, node.inputs[0], tuning);
    let (names, _) = ranks(&mut plan, &slots, tuning);
    let out = LaunchArg::Value(node.outputs[0]);
    renamed(&mut plan, &slots, tuning, names, out);
    plan
}
