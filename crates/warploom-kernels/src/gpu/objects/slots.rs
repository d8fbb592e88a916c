//! A slot for every label of an image, in the order of the labels.
//!
//! As long as no label is greater than there is room for in a table, a label is its own slot. An
//! image with greater ones has its labels sorted, and a slot is found by halving.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Number, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::super::fill;
use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{int, launch, word};
use super::super::scan::{self, Holes};
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

    /// Sorts labels by merging longer and longer stretches, a launch for each length, and keeps one of
    /// each. Nothing is done where labels have places in a table.
    fn sort(&self, plan: &mut Plan, tuning: &Tuning) {
        let other = plan.scratch(self.count * 4);
        let lengths = std::iter::successors(Some(1_u64), |length| Some(length * 2));
        let lengths: Vec<u64> = lengths.take_while(|n| *n < self.count).collect();
        // Every merging goes from one to the other; the last leaves them where the choice takes them from.
        let place = |left: usize| [other, self.sorted][left % 2];
        self.take(plan, tuning, place(lengths.len()));
        for (at, &length) in lengths.iter().enumerate() {
            let left = lengths.len() - at;
            self.merge(plan, tuning, [place(left), place(left - 1)], length);
        }
        let passes = ["wl_count_labels", "wl_choose_labels"];
        let (sums, last) = scan::plan(plan, tuning, self.count, passes, |k, args| {
            let from = k.buffer("other", DType::U32, Access::Read);
            let to = k.buffer("sorted", DType::U32, Access::ReadWrite);
            let args = args.buffer(other).buffer(self.sorted);
            let (count, args) = self.unsorted(k, args);
            let holes = Holes {
                limit: count,
                // The first of each, but for what is no label.
                number: Box::new(move |i| {
                    let label = k.load(from, i);
                    let before = k.var(word(k, 0));
                    k.if_(i.gt(0), || k.set(before, k.load(from, i - 1)));
                    let is_first = label.is_not(k.get(before));
                    k.let_(is_first.select(word(k, 1), word(k, 0)))
                }),
                put: Box::new(move |i, before: Ex<'_>, number| {
                    k.if_(number.is_not(0), || {
                        k.store(to, before.cast(Ty::I32), k.load(from, i));
                    });
                }),
            };
            (holes, args)
        });
        let k = Builder::new();
        let sums_ = k.buffer("sums", DType::U32, Access::Read);
        let at = k.scalar("at", Ty::I32);
        let facts = k.buffer("facts", DType::U32, Access::ReadWrite);
        let room = k.scalar("room", Ty::U32);
        let is_first = super::super::line::item(&k, tuning).is(0);
        k.if_(is_first & k.load(facts, int(&k, 0)).gt(room), || {
            k.store(facts, int(&k, 1), k.load(sums_, at));
        });
        let args = Args::new().buffer(sums).count(last).buffer(self.facts);
        let args = args.number(self.most());
        launch(plan, k.finish("wl_labels_found", tuning.line()), 1, args);
    }

    /// The greatest label that has a place in a table.
    fn most(&self) -> Number {
        Number::U32(u32::try_from(self.room).unwrap_or(u32::MAX))
    }

    /// How many labels are to be sorted: all or none.
    fn unsorted<'k>(&self, k: &'k Builder, args: Args) -> (Ex<'k>, Args) {
        let facts = k.buffer("facts", DType::U32, Access::Read);
        let count = k.scalar("count", Ty::I32);
        let room = k.scalar("room", Ty::U32);
        let dense = k.load(facts, int(k, 0)).le(room);
        let count = k.let_(dense.select(int(k, 0), count));
        let args = args.buffer(self.facts).count(self.count);
        (count, args.number(self.most()))
    }

    /// Copies labels to where they are sorted.
    fn take(&self, plan: &mut Plan, tuning: &Tuning, to: LaunchArg) {
        let k = Builder::new();
        let labels = k.buffer("labels", DType::U32, Access::Read);
        let target = k.buffer("to", DType::U32, Access::Write);
        let args = Args::new().value(self.labels).buffer(to);
        let (count, args) = self.unsorted(&k, args);
        let [start, stop] = Self::share(&k, tuning, count);
        k.for_(int(&k, 0), stop, |i| {
            let at = k.let_(start + i);
            k.store(target, at, k.load(labels, at));
        });
        let def = k.finish("wl_take_labels", tuning.line());
        self.launch_shares(plan, tuning, def, args);
    }

    /// Merges stretches of `length` sorted labels two by two: each label finds its place by itself.
    fn merge(&self, plan: &mut Plan, tuning: &Tuning, [from, to]: [LaunchArg; 2], length: u64) {
        let k = Builder::new();
        let source = k.buffer("from", DType::U32, Access::Read);
        let target = k.buffer("to", DType::U32, Access::Write);
        let half = k.scalar("half", Ty::I32);
        let args = Args::new().buffer(from).buffer(to).count(length);
        let (count, args) = self.unsorted(&k, args);
        let [first, stop] = Self::share(&k, tuning, count);
        k.for_(int(&k, 0), stop, |i| {
            let i = k.let_(first + i);
            let label = k.load(source, i);
            let stretch = k.let_(i / half);
            let is_right = k.let_((stretch % int(&k, 2)).is(1));
            let start = k.let_(stretch * half);
            // The other stretch: before this one, or behind it.
            let from = k.let_(is_right.select(start - half, start + (count - start).min(half)));
            let length = k.let_((count - from).min(half));
            // How many there come before: smaller ones, and equal ones of the left.
            let (low, high) = (k.var(int(&k, 0)), k.var(length));
            k.while_(
                || k.get(low).lt(k.get(high)),
                || {
                    let middle = k.let_((k.get(low) + k.get(high)).shifted_right(1));
                    let there = k.load(source, from + middle);
                    let before = there.lt(label) | (is_right & there.is(label));
                    k.if_else(before, || k.set(low, middle + 1), || k.set(high, middle));
                },
            );
            let base = is_right.select(from, start);
            k.store(target, base + (i - start) + k.get(low), label);
        });
        let def = k.finish("wl_merge_labels", tuning.line());
        self.launch_shares(plan, tuning, def, args);
    }

    /// Declares what [`Finder`] needs.
    pub(super) fn finder<'k>(&self, k: &'k Builder, args: Args) -> (Finder<'k>, Args) {
        let facts = k.buffer("facts", DType::U32, Access::Read);
        let sorted = k.buffer("sorted", DType::U32, Access::Read);
        let room = k.scalar("room", Ty::U32);
        let args = args.buffer(self.facts).buffer(self.sorted);
        let args = args.number(self.most());
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
