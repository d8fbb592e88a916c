//! A slot for every label of an image, in the order of the labels.
//!
//! As long as no label is greater than there is room for in a table, a label is its own slot. An
//! image with greater ones has its labels sorted by one group, and a slot is found by halving.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::super::fill;
use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{for_long, int, lane, launch, meet, word};
use super::super::tuning::Tuning;

/// The least room in tables, so that small images may have large labels.
const ROOM: u64 = 1 << 18;
/// Pixels one item looks at.
pub(super) const SHARE: [u32; 2] = [8192, 64];

/// What is known of an image's labels.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) labels: ValueId,
    /// Pixels.
    pub(super) count: u64,
    /// The greatest slot a table must have a place for.
    pub(super) room: u64,
    /// Two words: the greatest label, the greatest slot.
    facts: LaunchArg,
    /// Labels in use, ascending, if they need sorting.
    sorted: LaunchArg,
}

impl Slots {
    /// Finds the greatest label and, if it has no place in a table, sorts all.
    pub(super) fn new(plan: &mut Plan, flow: &Flow, labels: ValueId, tuning: &Tuning) -> Self {
        let count = flow.kind(labels).elements();
        let slots = Self {
            labels,
            count,
            room: count.max(ROOM),
            facts: plan.scratch(8),
            sorted: plan.scratch(count * 4),
        };
        fill::words(plan, tuning, slots.facts, 2, 0);
        slots.greatest(plan, tuning);
        slots.sort(plan, tuning);
        slots
    }

    /// Pixels of a row for one item: from, count and step, inside a launch of
    /// [`launch_shares`](Self::launch_shares).
    pub(super) fn share<'k>(k: &'k Builder, tuning: &Tuning, count: Ex<'k>) -> [Ex<'k>; 2] {
        let size = SHARE[usize::from(!tuning.is_processor())].cast_signed();
        let at = super::super::line::item(k, tuning);
        let start = k.let_(at * size);
        let inside = start.ge(0) & start.lt(count);
        let stop = inside.select((count - start).min(size), 0);
        [start, k.let_(stop)]
    }

    /// Launches a kernel that shares pixels out by [`share`](Self::share).
    pub(super) fn launch_shares(
        &self,
        plan: &mut Plan,
        tuning: &Tuning,
        def: crate::kernel::KernelDef,
        args: Args,
    ) {
        let size = SHARE[usize::from(!tuning.is_processor())];
        launch(plan, def, self.count.div_ceil(u64::from(size)), args);
    }

    fn greatest(&self, plan: &mut Plan, tuning: &Tuning) {
        let k = Builder::new();
        let labels = k.buffer("labels", DType::U32, Access::Read);
        let facts = k.buffer("facts", DType::U32, Access::ReadWrite);
        let count = k.scalar("count", Ty::I32);
        let [start, stop] = Self::share(&k, tuning, count);
        let most = k.var(word(&k, 0));
        k.for_(int(&k, 0), stop, |i| {
            k.set(most, k.get(most).max(k.load(labels, start + i)));
        });
        let most = k.get(most);
        k.if_(most.is_not(0), || {
            k.atomic_max(facts, int(&k, 0), most);
            k.atomic_max(facts, int(&k, 1), most);
        });
        let args = Args::new()
            .value(self.labels)
            .buffer(self.facts)
            .count(self.count);
        let def = k.finish("wl_greatest", tuning.line());
        self.launch_shares(plan, tuning, def, args);
    }

    /// Sorts labels in one group, by merging longer and longer stretches, and keeps one of each.
    /// Loops have no rounds when labels have places in a table.
    fn sort(&self, plan: &mut Plan, tuning: &Tuning) {
        let copy = plan.scratch(self.count * 4);
        let k = Builder::new();
        let labels = k.buffer("labels", DType::U32, Access::Read);
        let facts = k.buffer("facts", DType::U32, Access::ReadWrite);
        let sorted = k.buffer("sorted", DType::U32, Access::ReadWrite);
        let other = k.buffer("other", DType::U32, Access::ReadWrite);
        let count = k.scalar("count", Ty::I32);
        let room = k.scalar("room", Ty::U32);
        let mine = lane(&k, tuning);
        let step = int(&k, tuning.lanes.cast_signed());
        let dense = k.load(facts, int(&k, 0)).le(room);
        let count = k.let_(dense.select(int(&k, 0), count));
        k.for_by(mine, count, step, |i| k.store(sorted, i, k.load(labels, i)));
        meet(&k, tuning);
        let width = k.var(int(&k, 1));
        k.while_(
            || k.get(width).lt(count) & k.get(width).gt(0),
            || {
                let half = k.get(width);
                k.for_by(mine, count, step, |i| {
                    let label = k.load(sorted, i);
                    let is_right = k.let_((i / half % int(&k, 2)).is(1));
                    let start = k.let_(i / half * half);
                    // The other stretch: before this one, or behind it.
                    let from = k.let_(is_right.select(start - half, (start + half).min(count)));
                    let length = k.let_((count - from).min(half));
                    // How many there come before: smaller ones, and equal ones of the left.
                    let (low, high) = (k.var(int(&k, 0)), k.var(length));
                    k.while_(
                        || k.get(low).lt(k.get(high)),
                        || {
                            let middle = k.let_((k.get(low) + k.get(high)).shifted_right(1));
                            let there = k.load(sorted, from + middle);
                            let before = there.lt(label) | (is_right & there.is(label));
                            k.if_else(before, || k.set(low, middle + 1), || k.set(high, middle));
                        },
                    );
                    let base = is_right.select(from, start);
                    k.store(other, base + (i - start) + k.get(low), label);
                });
                meet(&k, tuning);
                k.for_by(mine, count, step, |i| k.store(sorted, i, k.load(other, i)));
                meet(&k, tuning);
                k.set(width, half + half);
            },
        );
        k.if_(mine.is(0) & count.gt(0), || {
            let (last, found) = (k.var(word(&k, 0)), k.var(int(&k, 0)));
            for_long(&k, tuning, int(&k, 0), count, |i| {
                let label = k.load(sorted, i);
                k.if_(label.is_not(k.get(last)), || {
                    k.store(sorted, k.get(found), label);
                    k.set(found, k.get(found) + 1);
                    k.set(last, label);
                });
            });
            k.store(facts, int(&k, 1), k.let_(k.get(found).cast(Ty::U32)));
        });
        #[expect(clippy::cast_possible_truncation, reason = "under 2^31")]
        let room = crate::flow::Number::U32(self.room as u32);
        let args = Args::new()
            .value(self.labels)
            .buffer(self.facts)
            .buffer(self.sorted)
            .buffer(copy)
            .count(self.count)
            .number(room);
        launch(plan, k.finish("wl_sort_labels", tuning.line()), 1, args);
    }

    /// Declares what [`Finder`] needs.
    pub(super) fn finder<'k>(&self, k: &'k Builder, args: Args) -> (Finder<'k>, Args) {
        let facts = k.buffer("facts", DType::U32, Access::Read);
        let sorted = k.buffer("sorted", DType::U32, Access::Read);
        let room = k.scalar("room", Ty::U32);
        #[expect(clippy::cast_possible_truncation, reason = "under 2^31")]
        let number = crate::flow::Number::U32(self.room as u32);
        let args = args.buffer(self.facts).buffer(self.sorted).number(number);
        let [most, slots] = [0, 1].map(|at| k.load(facts, int(k, at)));
        let finder = Finder {
            k,
            sorted,
            is_sorted: k.let_(most.gt(room)),
            slots: k.let_(slots.cast(Ty::I32)),
        };
        (finder, args)
    }
}

/// From labels to slots and back, inside a kernel.
#[derive(Clone, Copy)]
pub(super) struct Finder<'k> {
    k: &'k Builder,
    sorted: Buf,
    is_sorted: Ex<'k>,
    /// The greatest slot.
    pub(super) slots: Ex<'k>,
}

impl<'k> Finder<'k> {
    /// The slot of a label in use, from 1; 0 for background.
    pub(super) fn slot(&self, label: Ex<'k>) -> Ex<'k> {
        let k = self.k;
        let slot = k.var(label.cast(Ty::I32));
        k.if_(self.is_sorted & label.is_not(0), || {
            let (low, high) = (k.var(int(k, 0)), k.var(self.slots));
            k.while_(
                || k.get(low).lt(k.get(high)),
                || {
                    let middle = k.let_((k.get(low) + k.get(high)).shifted_right(1));
                    k.if_else(
                        k.load(self.sorted, middle).lt(label),
                        || k.set(low, middle + 1),
                        || k.set(high, middle),
                    );
                },
            );
            k.set(slot, k.get(low) + 1);
        });
        k.get(slot)
    }

    /// The label of a slot.
    pub(super) fn label(&self, slot: Ex<'k>) -> Ex<'k> {
        let k = self.k;
        let label = k.var(slot.cast(Ty::U32));
        k.if_(self.is_sorted & slot.gt(0), || {
            k.set(label, k.load(self.sorted, slot - 1));
        });
        k.get(label)
    }
}
