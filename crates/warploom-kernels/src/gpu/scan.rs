//! Sums of everything before: blocks are added up, the blocks' sums are, and then each element
//! learns what is before it. Used to number what is scattered.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Builder, Space};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{group, int, lane, launch, meet, word};
use super::tuning::Tuning;

/// Elements in a row that one item adds up.
fn share(tuning: &Tuning) -> u32 {
    if tuning.is_processor() { 16_384 } else { 16 }
}

/// What is scanned: filled in by a template's user.
pub(super) struct Holes<'k> {
    /// Elements from here on do not count; at most what the launch was made for.
    pub(super) limit: Ex<'k>,
    /// The number of an element, a `u32`.
    pub(super) number: Box<dyn Fn(Ex<'k>) -> Ex<'k> + 'k>,
    /// Does something with an element, the sum before it and its number.
    pub(super) put: Box<dyn Fn(Ex<'k>, Ex<'k>, Ex<'k>) + 'k>,
}

/// Scans `elements` elements; gives a list whose last word, at the number of blocks, is the sum of
/// all. `declare` declares what the holes use and gives its arguments in the same order; it is
/// called for two kernels.
pub(super) fn plan<D>(
    plan: &mut Plan,
    tuning: &Tuning,
    elements: u64,
    names: [&str; 2],
    declare: D,
) -> (LaunchArg, u64)
where
    D: for<'k> Fn(&'k Builder, Args) -> (Holes<'k>, Args),
{
    let block = u64::from(share(tuning)) * u64::from(tuning.lanes);
    let blocks = elements.div_ceil(block);
    let sums = plan.scratch((blocks + 1) * 4);
    for (pass, name) in names.into_iter().enumerate() {
        let k = Builder::new();
        let access = [Access::Write, Access::Read][pass];
        let buf = k.buffer("blocks", DType::U32, access);
        let args = Args::new().buffer(sums);
        let (holes, args) = declare(&k, args);
        let (at, mine) = (group(&k), lane(&k, tuning));
        let size = share(tuning).cast_signed();
        let start = k.let_((at * tuning.lanes.cast_signed() + mine) * size);
        let inside = k.let_(start.ge(0) & start.lt(holes.limit));
        let stop = k.let_(inside.select((holes.limit - start).min(size), 0));
        let sum = k.var(word(&k, 0));
        if pass == 0 || tuning.lanes > 1 {
            k.for_(int(&k, 0), stop, |i| {
                let number = (holes.number)(k.let_(start + i));
                k.set(sum, k.get(sum) + number);
            });
        }
        let shared = (tuning.lanes > 1).then(|| {
            let all = k.array(Ty::U32, tuning.lanes, Space::Shared);
            k.store(all, mine, k.get(sum));
            k.barrier();
            all
        });
        // The items of the group before this one; in the first pass, all of them.
        let before = k.var(word(&k, 0));
        if let Some(all) = shared {
            let to = if pass == 0 {
                int(&k, tuning.lanes.cast_signed())
            } else {
                mine
            };
            k.for_(int(&k, 0), to, |i| {
                k.set(before, k.get(before) + k.load(all, i));
            });
        }
        if pass == 0 {
            k.if_(mine.is(0), || {
                let whole = if shared.is_some() { before } else { sum };
                k.store(buf, at, k.get(whole));
            });
        } else {
            k.if_(inside, || {
                k.set(before, k.get(before) + k.load(buf, at));
                k.for_(int(&k, 0), stop, |i| {
                    let i = k.let_(start + i);
                    let number = k.let_((holes.number)(i));
                    let now = k.get(before);
                    (holes.put)(i, now, number);
                    k.set(before, now + number);
                });
            });
        }
        drop(holes);
        let items = blocks * u64::from(tuning.lanes);
        launch(plan, k.finish(name, tuning.line()), items, args);
        if pass == 0 {
            add_blocks(plan, tuning, sums, blocks);
        }
    }
    (sums, blocks)
}

/// Replaces sums of blocks by what is before each block, in one group.
fn add_blocks(plan: &mut Plan, tuning: &Tuning, sums: LaunchArg, blocks: u64) {
    let k = Builder::new();
    let buf = k.buffer("blocks", DType::U32, Access::ReadWrite);
    let count = k.scalar("count", Ty::I32);
    let mine = lane(&k, tuning);
    let lanes = tuning.lanes.cast_signed();
    let size = k.let_((count + (lanes - 1)) / int(&k, lanes));
    let start = k.let_((mine * size).min(count));
    let stop = k.let_((start + size).min(count));
    let sum = k.var(word(&k, 0));
    k.for_(start, stop, |i| k.set(sum, k.get(sum) + k.load(buf, i)));
    let before = k.var(word(&k, 0));
    if lanes > 1 {
        let all = k.array(Ty::U32, tuning.lanes, Space::Shared);
        k.store(all, mine, k.get(sum));
        meet(&k, tuning);
        k.for_(int(&k, 0), mine, |i| {
            k.set(before, k.get(before) + k.load(all, i));
        });
    }
    k.for_(start, stop, |i| {
        let number = k.load(buf, i);
        let now = k.get(before);
        k.store(buf, i, now);
        k.set(before, now + number);
    });
    k.if_(mine.is(lanes - 1), || k.store(buf, count, k.get(before)));
    let args = Args::new().buffer(sums).count(blocks);
    launch(plan, k.finish("wl_add_blocks", tuning.line()), 1, args);
}
