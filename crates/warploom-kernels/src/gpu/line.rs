//! Work in one dimension: elements in a row, cut as the device likes it.

use crate::expr::{Ex, Ty};
use crate::flow::Number;
use crate::kernel::{Builder, KernelDef, Target, Work};

use super::launch::{Args, Plan};
use super::tuning::Tuning;

/// Elements in a row for one item of a processor: enough to make a launch cheap, few enough to
/// keep all cores busy.
const RUN: u32 = 8192;
/// Groups along x before a launch gets a second dimension; devices allow 65,535.
const WIDTH: u64 = 1 << 15;

impl Tuning {
    /// Does one item of a group do the work of many?
    pub(super) fn is_processor(&self) -> bool {
        self.lanes == 1
    }

    /// The group of a one-dimensional kernel.
    pub(super) fn line(&self) -> [u32; 3] {
        [self.lanes, 1, 1]
    }

    /// Elements in a row that one item does in [`each`].
    pub(super) fn stretch(&self) -> u32 {
        if self.is_processor() { RUN } else { 1 }
    }
}

/// Whole numbers are written often.
pub(super) fn int(k: &Builder, value: i32) -> Ex<'_> {
    k.graph().int(value)
}

/// An unsigned constant.
pub(super) fn word(k: &Builder, value: u32) -> Ex<'_> {
    k.graph().number(Ty::U32, f64::from(value))
}

/// A double-precision constant.
pub(super) fn wide(k: &Builder, value: f64) -> Ex<'_> {
    k.graph().number(Ty::F64, value)
}

/// The group's number in a launch made by [`launch`].
pub(super) fn group(k: &Builder) -> Ex<'_> {
    let (x, y) = (k.work(Work::Group(0)), k.work(Work::Group(1)));
    k.let_(x + y * k.work(Work::Groups(0)))
}

/// The item's number in a launch made by [`launch`].
pub(super) fn item<'k>(k: &'k Builder, tuning: &Tuning) -> Ex<'k> {
    let group = group(k);
    if tuning.lanes == 1 {
        return group;
    }
    k.let_(group * tuning.lanes.cast_signed() + k.work(Work::Local(0)))
}

/// The item's number in its group.
pub(super) fn lane<'k>(k: &'k Builder, tuning: &Tuning) -> Ex<'k> {
    if tuning.lanes == 1 {
        return int(k, 0);
    }
    k.work(Work::Local(0))
}

/// Waits for the group, where it has more than one item.
pub(super) fn meet(k: &Builder, tuning: &Tuning) {
    if tuning.lanes > 1 {
        k.barrier();
    }
}

/// Runs `body` for every whole number below `count`, each in one item of a [`launch_each`].
pub(super) fn each<'k>(k: &'k Builder, tuning: &Tuning, count: Ex<'k>, body: impl FnOnce(Ex<'k>)) {
    let at = item(k, tuning);
    if tuning.is_processor() {
        let run = tuning.stretch().cast_signed();
        let start = k.let_(at * run);
        // The end is found by a difference, since a sum could leave the range of the type.
        let inside = start.ge(0) & start.lt(count);
        k.if_(inside, || {
            let length = k.let_((count - start).min(run));
            k.for_(int(k, 0), length, |i| body(k.let_(start + i)));
        });
        return;
    }
    k.if_(at.ge(0) & at.lt(count), || body(at));
}

/// Launches a kernel over `items` items in a row.
pub(super) fn launch(plan: &mut Plan, def: KernelDef, items: u64, args: Args) {
    let lanes = u64::from(def.group[0]);
    let groups = items.div_ceil(lanes).max(1);
    let rows = groups.div_ceil(WIDTH);
    let columns = groups.div_ceil(rows);
    plan.launch(def, [columns * lanes, rows, 1], args);
}

/// Launches a kernel whose work is cut by [`each`].
pub(super) fn launch_each(
    plan: &mut Plan,
    tuning: &Tuning,
    def: KernelDef,
    count: u64,
    args: Args,
) {
    let items = count.div_ceil(u64::from(tuning.stretch()));
    launch(plan, def, items, args);
}

/// A double-precision number given at launch; two single ones where the language has none.
pub(super) fn wide_scalar<'k>(k: &'k Builder, tuning: &Tuning, name: &str) -> Ex<'k> {
    if tuning.target != Target::Wgsl {
        return k.scalar(name, Ty::F64);
    }
    let high = k.scalar(&format!("{name}_high"), Ty::F32);
    let low = k.scalar(&format!("{name}_low"), Ty::F32);
    k.let_(high.cast(Ty::F64) + low.cast(Ty::F64))
}

/// The argument of a [`wide_scalar`].
pub(super) fn wide_number(args: Args, tuning: &Tuning, value: f64) -> Args {
    if tuning.target != Target::Wgsl {
        return args.number(Number::F64(value));
    }
    let [high, low] = halves(value);
    args.number(Number::F32(high)).number(Number::F32(low))
}

/// A double-precision number as two single ones whose sum it nearly is.
#[expect(clippy::cast_possible_truncation, reason = "split into two on purpose")]
pub(super) fn halves(value: f64) -> [f32; 2] {
    let high = value as f32;
    let low = if high.is_finite() {
        (value - f64::from(high)) as f32
    } else {
        0.0
    };
    [high, low]
}

/// Steps of one round in [`for_long`].
pub(super) const LONG: u64 = 16;

/// Runs `body` for whole numbers from `from` up to `to`, several in each round of a loop: a
/// software Vulkan driver ends every item's loops after 65,535 rounds.
pub(super) fn for_long<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    from: Ex<'k>,
    to: Ex<'k>,
    body: impl Fn(Ex<'k>),
) {
    if tuning.target != Target::Wgsl {
        k.for_(from, to, body);
        return;
    }
    let steps = i32::try_from(LONG).expect("few");
    k.for_by(from, to, int(k, steps), |first| {
        for step in 0..steps {
            let at = k.let_(first + step);
            k.if_(at.lt(to), || body(at));
        }
    });
}
