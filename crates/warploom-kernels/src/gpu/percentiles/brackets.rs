//! Percentiles by way of a sample, for processors.
//!
//! A sample tells between which keys both ranks of a percentile almost surely lie. One pass counts what is below these
//! ends and at them, and keeps what is between, which is little, and among which the ranks are looked for. Where the
//! sample has deceived, a word says so and digits of all pixels are counted; otherwise those launches leave at once.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Builder, Space};

use super::super::gate::Gate;
use super::super::key::{self, Key, Keys};
use super::super::launch::{Args, LaunchArg, Plan};
use super::super::line::{each, int, item, launch, launch_each, wide, word};
use super::super::tuning::Tuning;
use super::nth::{FEW, few_of, nth};
use super::{Image, LOST, STATE};

/// More percentiles are left to digits, whose passes do not depend on how many there are.
const MOST: usize = 8;
/// An image of so many pixels is kept whole.
const WHOLE: u64 = 1 << 15;
/// Pixels of a sample at most, and pixels for each of them at least.
const SAMPLE: u64 = 1 << 14;
const APART: u64 = 64;
/// How many standard deviations of its place in a sample a rank may be off. With four, a third more is kept, and to keep it
/// takes longer than to count digits now and then.
const DEVIATIONS: f64 = 3.0;
/// Of so many pixels of a large image one may be kept for each percentile.
const KEPT: u64 = 16;
/// Pixels that are looked at together: their keys, and what is kept of them, stay in the first cache.
const BLOCK: u32 = 2048;
/// Items take blocks in turns, so that each has some of every part of an image.
const ITEMS: u64 = 64;

/// Words of the head: whether digits are wanted, the pixels that are numbers, and those of each bracket.
const FAILED: i32 = 0;
const NUMBERS: i32 = 1;
const WORDS: i32 = 8;
/// Words of a bracket: its ends, the pixels below and up to either, and how many are between.
const LOW: i32 = 0;
const COUNTS: i32 = 2;
const BETWEEN: i32 = 6;

/// Is this the way to find so many percentiles?
pub(super) fn are_of_use(dtype: DType, count: usize, tuning: &Tuning) -> bool {
    tuning.is_processor() && key::bits(dtype) == 32 && count <= MOST
}

/// The key of a pixel, above all numbers' for what is none.
fn number<'k>(k: &'k Builder, found: &Key<'k>) -> Ex<'k> {
    match found.nan {
        Some(nan) => k.let_(nan.select(word(k, u32::MAX), found.high)),
        None => k.let_(found.high),
    }
}

/// The greatest key of a number.
fn greatest(k: &Builder, dtype: DType) -> Ex<'_> {
    word(
        k,
        if dtype == DType::F32 {
            0xff80_0000
        } else {
            u32::MAX
        },
    )
}

/// Where a bracket's words begin.
fn words<'k>(k: &'k Builder, at: Ex<'k>) -> Ex<'k> {
    k.let_((at + 1) * WORDS)
}

pub(super) struct Brackets<'a> {
    image: &'a Image<'a>,
    head: LaunchArg,
    sample: LaunchArg,
    /// Pixels of the sample, none for an image that is kept whole.
    size: u64,
    kept: LaunchArg,
    /// Words that each bracket has of what is kept.
    room: u64,
}

impl<'a> Brackets<'a> {
    /// Finds both ranks of each percentile and leaves them in `state`, or says that digits are wanted.
    pub(super) fn find(image: &'a Image<'a>, plan: &mut Plan, state: LaunchArg) -> Gate {
        let elements = image.elements;
        let size = if elements <= WHOLE {
            0
        } else {
            (elements / APART).min(SAMPLE)
        };
        let room = elements.min(WHOLE + elements / KEPT);
        let few = u64::from(FEW);
        let brackets = Self {
            image,
            head: plan.scratch((image.count + 1) * u64::from(WORDS.unsigned_abs()) * 4),
            sample: plan.scratch((size + few) * 4),
            size,
            kept: plan.scratch((room * image.count + few) * 4),
            room,
        };
        brackets.draw(plan);
        brackets.end(plan);
        brackets.keep(plan);
        brackets.look(plan, state);
        Gate::of(brackets.head)
    }

    /// Draws the sample: the keys of pixels that do not lie at the same distance, which could be that of an image's own
    /// pattern.
    fn draw(&self, plan: &mut Plan) {
        let tuning = self.image.tuning;
        let k = Builder::new();
        let keys = Keys::new(&k, self.image.dtype, tuning);
        let sample = k.buffer("sample", DType::U32, Access::Write);
        let size = k.scalar("size", Ty::I32);
        let step = k.scalar("step", Ty::I32);
        each(&k, tuning, size, |at| {
            let turn = at.cast(Ty::U32) * word(&k, 0x9e37_79b1);
            let off = k.let_(turn.shifted_right(8) % step.cast(Ty::U32));
            let place = k.let_(at * step + off.cast(Ty::I32));
            k.store(sample, at, number(&k, &keys.load(&k, place)));
        });
        let args = Args::new()
            .value(self.image.id)
            .buffer(self.sample)
            .count(self.size)
            .count(self.image.elements / self.size.max(1));
        let def = k.finish("wl_draw", tuning.line());
        launch_each(plan, tuning, def, self.size, args);
    }

    /// Finds the ends of each bracket in the sample.
    fn end(&self, plan: &mut Plan) {
        let tuning = self.image.tuning;
        let k = Builder::new();
        let sample = k.buffer("sample", DType::U32, Access::Read);
        let wanted = k.buffer("q", DType::F64, Access::Read);
        let head = k.buffer("head", DType::U32, Access::Write);
        let size = k.scalar("size", Ty::I32);
        let count = k.scalar("count", Ty::I32);
        let top = greatest(&k, self.image.dtype);
        let at = item(&k, tuning);
        k.if_(at.lt(count), || {
            let base = words(&k, at);
            let zero = |i: Ex<'_>| k.store(head, i, word(&k, 0));
            k.for_(base, base + WORDS, zero);
            k.if_(at.is(0), || k.for_(int(&k, 0), int(&k, WORDS), zero));
            let numbers = k.var(int(&k, 0));
            k.for_(int(&k, 0), size, |i| {
                let is_one = k.load(sample, i).le(top).cast(Ty::I32);
                k.set(numbers, k.get(numbers) + is_one);
            });
            let numbers = k.let_(k.get(numbers).cast(Ty::F64));
            let part = k.let_(k.load(wanted, at) / wide(&k, 100.0));
            let middle = k.let_(part * numbers);
            let spread = (middle * (wide(&k, 1.0) - part)).sqrt();
            let off = k.let_((spread + wide(&k, 1.0)) * DEVIATIONS);
            k.for_(int(&k, 0), int(&k, 2), |end| {
                let is_low = k.let_(end.is(0));
                let place = k.let_(is_low.select(middle - off, middle + off + wide(&k, 1.0)));
                // At the ends anything may come that the sample has not seen.
                let key = k.var(is_low.select(word(&k, 0), top));
                k.if_(place.ge(1.0) & place.lt(numbers), || {
                    let all = (sample, int(&k, 0), size);
                    let rank = k.let_(place.cast(Ty::U32));
                    k.set(key, nth(&k, all, [word(&k, 0), top], rank).key);
                });
                k.store(head, base + LOW + end, k.get(key));
            });
        });
        let args = Args::new()
            .buffer(self.sample)
            .buffer(self.image.q)
            .buffer(self.head)
            .count(self.size)
            .count(self.image.count);
        let def = k.finish("wl_brackets", tuning.line());
        launch(plan, def, self.image.count, args);
    }

    /// Counts what lies below each bracket's ends and at them, and keeps what lies between.
    fn keep(&self, plan: &mut Plan) {
        let tuning = self.image.tuning;
        let k = Builder::new();
        let keys = Keys::new(&k, self.image.dtype, tuning);
        let head = k.buffer("head", DType::U32, Access::ReadWrite);
        let kept = k.buffer("kept", DType::U32, Access::Write);
        let [elements, blocks, items, count, room] =
            ["elements", "blocks", "items", "count", "room"].map(|name| k.scalar(name, Ty::I32));
        let own = k.array(Ty::U32, BLOCK, Space::Private);
        let picked = k.array(Ty::U32, BLOCK, Space::Private);
        let most = u32::try_from(4 * MOST).expect("few");
        let sums = k.array(Ty::I32, most, Space::Private);
        let (none, size) = (int(&k, 0), int(&k, BLOCK.cast_signed()));
        let top = greatest(&k, self.image.dtype);
        k.for_(none, count * 4, |i| k.store(sums, i, none));
        let (block, numbers, open) = (k.var(item(&k, tuning)), k.var(none), k.var(int(&k, 1)));
        let more = || k.get(block).lt(blocks) & k.get(open).is_not(0);
        k.while_(more, || {
            let start = k.let_(k.get(block) * size);
            k.set(block, k.get(block) + items);
            let length = k.let_((elements - start).min(size));
            let put = |i: Ex<'_>| k.store(own, i, number(&k, &keys.load(&k, k.let_(start + i))));
            k.if_else(
                length.is(size),
                || k.for_(none, size, put),
                || {
                    k.for_(none, length, put);
                    // Such a key may be that of a whole number. Then they count up to the last end, above all ranks.
                    k.for_(length, size, |i| k.store(own, i, word(&k, u32::MAX)));
                },
            );
            if self.image.dtype == DType::F32 {
                k.for_(none, size, |i| {
                    let is_one = k.load(own, i).le(top).cast(Ty::I32);
                    k.set(numbers, k.get(numbers) + is_one);
                });
            }
            k.for_(none, count, |bracket| {
                let base = words(&k, bracket);
                let [low, high] = [0, 1].map(|end| k.load(head, base + LOW + end));
                let found = [none; 4].map(|start| k.var(start));
                k.for_(none, size, |i| {
                    let key = k.load(own, i);
                    let holds = [key.lt(low), key.le(low), key.lt(high), key.le(high)];
                    for (sum, holds) in found.into_iter().zip(holds) {
                        k.set(sum, k.get(sum) + holds.cast(Ty::I32));
                    }
                });
                let found = found.map(|sum| k.get(sum));
                for (which, sum) in (0..).zip(found) {
                    let place = k.let_(bracket * 4 + which);
                    k.store(sums, place, k.load(sums, place) + sum);
                }
                k.if_(found[2].gt(found[1]), || {
                    let least = k.let_(low + word(&k, 1));
                    let width = k.let_(high - least - word(&k, 1));
                    let length = k.var(none);
                    few_of(&k, (own, none, size), [least, width], |off| {
                        let next = k.get(length);
                        k.store(picked, next, k.let_(off + least));
                        k.set(length, next + off.le(width).cast(Ty::I32));
                    });
                    let length = k.get(length);
                    let add = k.let_(length.cast(Ty::U32));
                    let place = k.atomic_add(head, base + BETWEEN, add);
                    k.if_else(
                        (place + add).le(room.cast(Ty::U32)),
                        || {
                            let to = k.let_(bracket * room + place.cast(Ty::I32));
                            k.for_(none, length, |i| k.store(kept, to + i, k.load(picked, i)));
                        },
                        || k.set(open, none),
                    );
                });
            });
        });
        k.for_(none, count, |bracket| {
            let base = words(&k, bracket);
            k.for_(none, int(&k, 4), |which| {
                let sum = k.load(sums, bracket * 4 + which).cast(Ty::U32);
                k.atomic_add(head, base + COUNTS + which, k.let_(sum));
            });
        });
        let numbers = k.let_(k.get(numbers).cast(Ty::U32));
        k.atomic_add(head, int(&k, NUMBERS), numbers);
        let blocks = self.image.elements.div_ceil(u64::from(BLOCK));
        let items = blocks.clamp(1, ITEMS);
        let args = Args::new()
            .value(self.image.id)
            .buffer(self.head)
            .buffer(self.kept)
            .count(self.image.elements)
            .count(blocks)
            .count(items)
            .count(self.image.count)
            .count(self.room);
        launch(plan, k.finish("wl_keep", tuning.line()), items, args);
    }

    /// Looks for the ranks in what was kept, unless the sample has deceived.
    fn look(&self, plan: &mut Plan, state: LaunchArg) {
        let tuning = self.image.tuning;
        let k = Builder::new();
        let head = k.buffer("head", DType::U32, Access::ReadWrite);
        let kept = k.buffer("kept", DType::U32, Access::Read);
        let wanted = k.buffer("q", DType::F64, Access::Read);
        let state_ = k.buffer("state", DType::U32, Access::Write);
        let numbers = k.buffer("numbers", DType::U32, Access::Write);
        let [elements, count, room] =
            ["elements", "count", "room"].map(|name| k.scalar(name, Ty::I32));
        let at = item(&k, tuning);
        k.if_(at.lt(count), || {
            let all = match self.image.dtype {
                DType::F32 => k.load(head, int(&k, NUMBERS)),
                _ => k.let_(elements.cast(Ty::U32)),
            };
            let none = k.let_(all.is(0));
            let some = k.let_(none.select(word(&k, 1), all));
            let last = k.let_(some - word(&k, 1));
            let floor = Image::place(&k, k.load(wanted, at), some).floor();
            let floor = k.let_(floor.cast(Ty::U32));
            let [first, second] = [0, 1].map(|up| k.let_((floor + word(&k, up)).min(last)));
            let base = words(&k, at);
            let [
                low,
                high,
                below_low,
                upto_low,
                below_high,
                upto_high,
                length,
            ] = [0, 1, 2, 3, 4, 5, 6].map(|word| k.load(head, base + word));
            let fits = length.le(room.cast(Ty::U32)) & first.ge(below_low) & second.lt(upto_high);
            k.if_else(
                none | fits,
                || {
                    let start = k.let_(at * room);
                    let length = k.let_(length.cast(Ty::I32));
                    // What the first is, and how many are not above it.
                    let (one, upto) = (k.var(low), k.var(upto_low));
                    k.if_(first.ge(below_high), || {
                        k.set(one, high);
                        k.set(upto, upto_high);
                    });
                    k.if_(first.ge(upto_low) & first.lt(below_high), || {
                        let inner = [low + word(&k, 1), high - word(&k, 1)].map(|end| k.let_(end));
                        let found = nth(&k, (kept, start, length), inner, k.let_(first - upto_low));
                        k.set(one, found.key);
                        k.set(upto, first - found.before + found.equal);
                    });
                    // The second is the same, or the next one.
                    let one = k.get(one);
                    let two = k.var(one);
                    k.if_(second.ge(k.get(upto)), || {
                        let next = k.var(high);
                        k.for_(int(&k, 0), length, |i| {
                            let key = k.load(kept, start + i);
                            let above = key.gt(one).select(key, high);
                            k.set(next, k.get(next).min(k.let_(above)));
                        });
                        k.set(two, k.get(next));
                    });
                    let lost = k.let_(none.select(word(&k, LOST), 0));
                    for (which, key) in [(0, one), (STATE, k.get(two))] {
                        let place = k.let_(at * (2 * STATE) + which);
                        k.store(state_, place, word(&k, 0));
                        k.store(state_, place + 1, key);
                        k.store(state_, place + 2, lost);
                    }
                    k.if_(at.is(0), || k.store(numbers, at, all));
                },
                || k.store(head, int(&k, FAILED), word(&k, 1)),
            );
        });
        let args = Args::new()
            .buffer(self.head)
            .buffer(self.kept)
            .buffer(self.image.q)
            .buffer(state)
            .buffer(self.image.numbers)
            .count(self.image.elements)
            .count(self.image.count)
            .count(self.room);
        let def = k.finish("wl_look", tuning.line());
        launch(plan, def, self.image.count, args);
    }
}
