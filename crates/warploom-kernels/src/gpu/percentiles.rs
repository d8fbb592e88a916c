//! Exact percentiles: the digits of keys are counted from the highest on, and each wanted rank
//! walks down the counts. No pixel is moved, nothing is sorted. Processors look at a sample first, which almost always
//! makes that unnecessary.

mod brackets;
mod nth;

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::counts::{self, Count};
use super::gate::Gate;
use super::histogram::boxed;
use super::key::{self, Keys};
use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, for_long, int, launch_each, wide, word};
use super::tuning::Tuning;
use brackets::Brackets;

/// Ranks whose digits are counted together.
const BATCH: u32 = 8;
/// More percentiles are left to the host, which shares passes better.
const MOST: usize = 64;
/// Words of a rank's state: the digits found, in two words, and its rank among what shares them.
const STATE: i32 = 3;
/// Nothing is known: there is no pixel that is a number.
const LOST: u32 = u32::MAX;

/// What all launches of one image share.
struct Image<'a> {
    id: ValueId,
    dtype: DType,
    elements: u64,
    tuning: &'a Tuning,
    /// Bits of a digit.
    digit: u32,
    /// Which percentiles.
    q: LaunchArg,
    /// How many: each has two ranks.
    count: u64,
    /// The pixels that are numbers, one word.
    numbers: LaunchArg,
    table: LaunchArg,
    states: [LaunchArg; 2],
    /// Are there ranks that have not been found yet?
    gate: Gate,
}

pub(super) fn plan(flow: &Flow, node: &Node, q: &[f64], tuning: &Tuning) -> Option<Plan> {
    if q.len() > MOST {
        return None;
    }
    let kind = flow.kind(node.inputs[0]);
    let mut plan = Plan::default();
    let digit = digit(kind.dtype(), tuning);
    let count = q.len() as u64;
    let slots = u64::from(BATCH).min(2 * count);
    let bytes = 2 * count * 4 * u64::from(STATE.unsigned_abs());
    let mut image = Image {
        id: node.inputs[0],
        dtype: kind.dtype(),
        elements: kind.elements(),
        tuning,
        digit,
        q: plan.constant(q),
        count,
        numbers: plan.scratch(4),
        table: plan.scratch((slots << digit) * 4),
        states: [plan.scratch(bytes), plan.scratch(bytes)],
        gate: Gate::default(),
    };
    if brackets::are_of_use(image.dtype, q.len(), tuning) {
        image.gate = Brackets::find(&image, &mut plan, image.last());
    }
    image.find(&mut plan, node.outputs[0]);
    Some(plan)
}

/// Bits that are counted at once: a processor has caches for long tables, a group of a GPU only a
/// short one.
fn digit(dtype: DType, tuning: &Tuning) -> u32 {
    let digit = if tuning.is_processor() { 16 } else { 8 };
    digit.min(key::bits(dtype))
}

/// How often each pixel is read.
pub(super) fn reads(dtype: DType, count: usize, tuning: &Tuning) -> usize {
    if brackets::are_of_use(dtype, count, tuning) {
        return 1;
    }
    let digits = key::bits(dtype) / digit(dtype, tuning);
    1 + (digits as usize - 1) * (2 * count).div_ceil(BATCH as usize)
}

/// Some of the ranks: the first of them, and how many.
type Ranks = (u64, u32);

impl Image<'_> {
    /// The state in which all digits are known.
    fn last(&self) -> LaunchArg {
        let digits = key::bits(self.dtype) / self.digit;
        self.states[(digits as usize - 1) % 2]
    }

    fn find(&self, plan: &mut Plan, list: ValueId) {
        let ranks = 2 * self.count;
        let mut shift = key::bits(self.dtype) - self.digit;
        let [mut now, mut next] = self.states;
        self.count_digits(plan, None, shift);
        self.begin(plan, now);
        while shift > 0 {
            shift -= self.digit;
            for first in (0..ranks).step_by(BATCH as usize) {
                let count = u64::from(BATCH).min(ranks - first);
                let some = (first, u32::try_from(count).expect("few"));
                self.count_digits(plan, Some((now, some)), shift);
                self.descend(plan, [now, next], some);
            }
            std::mem::swap(&mut now, &mut next);
        }
        let values = self.values(plan, now);
        self.between(plan, list, values);
    }

    /// Where a percentile is among sorted pixels: `(n - 1) * (q / 100)`.
    fn place<'k>(k: &'k Builder, q: Ex<'k>, numbers: Ex<'k>) -> Ex<'k> {
        let last = (numbers - word(k, 1)).cast(Ty::F64);
        k.let_(last * (q / wide(k, 100.0)))
    }

    /// Walks up the counts from `base` on until they reach the rank `left`; gives the digit and
    /// the rank among what has it.
    fn walk<'k>(&self, k: &'k Builder, table: Buf, base: Ex<'k>, left: Ex<'k>) -> [Ex<'k>; 2] {
        let last = (1_i32 << self.digit) - 1;
        let (left, at) = (k.var(left), k.var(int(k, 0)));
        k.while_(
            || {
                let here = k.get(at);
                let more = k.load(table, base + here);
                here.lt(last) & k.get(left).ge(more)
            },
            || {
                let here = k.get(at);
                k.set(left, k.get(left) - k.load(table, base + here));
                k.set(at, here + 1);
            },
        );
        [k.let_(k.get(at).cast(Ty::U32)), k.get(left)]
    }

    /// Counts the pixels that are numbers, finds the ranks that are wanted and their first digits.
    fn begin(&self, plan: &mut Plan, state: LaunchArg) {
        let k = Builder::new();
        let table = k.buffer("table", DType::U32, Access::Read);
        let wanted = k.buffer("q", DType::F64, Access::Read);
        let state_ = k.buffer("state", DType::U32, Access::Write);
        let numbers = k.buffer("numbers", DType::U32, Access::Write);
        let args = Args::new()
            .buffer(self.table)
            .buffer(self.q)
            .buffer(state)
            .buffer(self.numbers);
        let (gate, args) = self.gate.declare(&k, args);
        let count = k.scalar("count", Ty::I32);
        let size = int(&k, 1 << self.digit);
        let begin = |rank: Ex<'_>| {
            let all = k.var(word(&k, 0));
            for_long(&k, self.tuning, int(&k, 0), size, |i| {
                k.set(all, k.get(all) + k.load(table, i));
            });
            let all = k.get(all);
            let none = k.let_(all.is(word(&k, 0)));
            k.if_(rank.is(0), || k.store(numbers, rank, all));
            let some = k.let_(none.select(word(&k, 1), all));
            let q = k.load(wanted, rank.shifted_right(1));
            let floor = Self::place(&k, q, some).floor();
            let floor = k.let_(floor.cast(Ty::U32));
            let second = (rank & int(&k, 1)).cast(Ty::U32);
            let left = k.let_((floor + second).min(some - word(&k, 1)));
            let [digit, left] = self.walk(&k, table, int(&k, 0), left);
            let base = k.let_(rank * STATE);
            k.store(state_, base, word(&k, 0));
            k.store(state_, base + 1, digit);
            k.store(state_, base + 2, k.let_(none.select(word(&k, LOST), left)));
        };
        gate.through(|| each(&k, self.tuning, count, begin));
        let args = args.count(2 * self.count);
        let def = k.finish("wl_ranks", self.tuning.line());
        launch_each(plan, self.tuning, def, 2 * self.count, args);
    }

    /// Counts the digit at `shift` of all keys that begin as one of some ranks' does, or of all.
    /// Ranks that begin alike share the counts of the first of them.
    fn count_digits(&self, plan: &mut Plan, some: Option<(LaunchArg, Ranks)>, shift: u32) {
        let digit = self.digit;
        let bits = key::bits(self.dtype);
        let slots = some.map_or(1, |(_, (_, count))| count);
        let count = Count {
            table: self.table,
            places: u64::from(slots) << digit,
            elements: self.elements,
            sparse: some.is_some(),
            gate: self.gate,
        };
        let size = 1_i32 << digit;
        counts::plan(plan, self.tuning, &count, "wl_digits", |k, args| {
            let keys = Keys::new(k, self.dtype, self.tuning);
            let mut args = args.value(self.id);
            let none = int(k, slots.cast_signed() * size);
            let mut wanted = Vec::new();
            if let Some((state, (first, _))) = some {
                let buf = k.buffer("state", DType::U32, Access::Read);
                let start = k.scalar("first", Ty::I32);
                args = args.buffer(state).count(first);
                let base = k.let_(start * STATE);
                for rank in 0..slots.cast_signed() {
                    let load = |at: i32| k.load(buf, base + (rank * STATE + at));
                    wanted.push((rank, [load(0), load(1)]));
                }
            }
            let place = boxed(move |at| {
                let found = keys.load(k, at);
                let [high, low] = [found.high, found.low.unwrap_or(word(k, 0))].map(|w| k.let_(w));
                let digits = k.let_(part([high, low], bits, shift, digit).cast(Ty::I32));
                if wanted.is_empty() {
                    return match found.nan {
                        Some(nan) => nan.select(none, digits),
                        None => digits,
                    };
                }
                // What is no number begins as no rank does, or lies beyond all of them.
                let begin = beginning(k, [high, low], bits, shift + digit);
                let mut place = none;
                for (slot, wanted) in wanted.iter().rev() {
                    let alike = begin[0].is(wanted[0]) & begin[1].is(wanted[1]);
                    place = alike.select(digits + *slot * size, place);
                }
                match found.nan {
                    Some(nan) => nan.select(none, place),
                    None => place,
                }
            });
            (place, args)
        });
    }

    /// Some ranks find their next digit. New state is written beside the old one, since ranks look
    /// at each other's.
    fn descend(&self, plan: &mut Plan, [now, after]: [LaunchArg; 2], (first, count): Ranks) {
        let tuning = self.tuning;
        let k = Builder::new();
        let state = k.buffer("state", DType::U32, Access::Read);
        let next = k.buffer("next", DType::U32, Access::Write);
        let table = k.buffer("table", DType::U32, Access::Read);
        let args = Args::new().buffer(now).buffer(after).buffer(self.table);
        let (gate, args) = self.gate.declare(&k, args);
        let start = k.scalar("first", Ty::I32);
        let length = k.scalar("count", Ty::I32);
        let descend = |at: Ex<'_>| {
            let base = k.let_((start + at) * STATE);
            let [high, low, left] = [0, 1, 2].map(|word| k.load(state, base + word));
            // The first of the ranks that begin like this one has the counts.
            let slot = k.var(at);
            k.for_(int(&k, 0), at, |other| {
                let place = k.let_((start + other) * STATE);
                let same = k.load(state, place).is(high) & k.load(state, place + 1).is(low);
                k.if_(same, || k.set(slot, k.get(slot).min(other)));
            });
            let counts = k.let_(k.get(slot) * (1_i32 << self.digit));
            let [digit, rest] = self.walk(&k, table, counts, left);
            // Digits found so far are kept at the low end of two words.
            let shift = self.digit.cast_signed();
            let up = high.shifted_left(shift) | low.shifted_right(32 - shift);
            k.store(next, base, k.let_(up));
            k.store(next, base + 1, k.let_(low.shifted_left(shift) | digit));
            let lost = left.is(word(&k, LOST));
            k.store(next, base + 2, k.let_(lost.select(left, rest)));
        };
        gate.through(|| each(&k, tuning, length, descend));
        let args = args.count(first).count(u64::from(count));
        let def = k.finish("wl_descend", tuning.line());
        launch_each(plan, tuning, def, u64::from(count), args);
    }

    /// From keys to values: a list of `f64`, which is not a number where nothing is known.
    fn values(&self, plan: &mut Plan, state: LaunchArg) -> LaunchArg {
        let tuning = self.tuning;
        let list = plan.scratch(2 * self.count * 8);
        let is_wide = self.dtype == DType::F64;
        let k = Builder::new();
        let states = k.buffer("state", DType::U32, Access::Read);
        let kept = if is_wide { DType::U32 } else { DType::F64 };
        let values = k.buffer("values", kept, Access::Write);
        let count = k.scalar("count", Ty::I32);
        each(&k, tuning, count, |rank| {
            let base = k.let_(rank * STATE);
            let [high, low, left] = [0, 1, 2].map(|at| k.load(states, base + at));
            let none = k.let_(left.is(word(&k, LOST)));
            if is_wide {
                // The key of a quiet NaN.
                let nan = word(&k, u32::MAX);
                let words = [high, low].map(|part| k.let_(none.select(nan, part)));
                key::put_wide(&k, tuning, values, rank, words);
            } else {
                let value = key::value(&k, self.dtype, low);
                let value = none.select(wide(&k, f64::NAN), value);
                k.store(values, rank, k.let_(value));
            }
        });
        let args = Args::new().buffer(state).buffer(list).count(2 * self.count);
        let def = k.finish("wl_values_of_keys", tuning.line());
        launch_each(plan, tuning, def, 2 * self.count, args);
        list
    }

    /// Linear between the two values of each percentile.
    fn between(&self, plan: &mut Plan, list: ValueId, values: LaunchArg) {
        let tuning = self.tuning;
        let k = Builder::new();
        let known = k.buffer("values", DType::F64, Access::Read);
        let wanted = k.buffer("q", DType::F64, Access::Read);
        let numbers = k.buffer("numbers", DType::U32, Access::Read);
        let out = k.buffer("out", DType::F64, Access::Write);
        let count = k.scalar("count", Ty::I32);
        each(&k, tuning, count, |at| {
            let all = k.load(numbers, int(&k, 0));
            let place = Self::place(&k, k.load(wanted, at), all);
            let part = k.let_(place - place.floor());
            let low = k.load(known, at * 2);
            let high = k.load(known, at * 2 + 1);
            let apart = k.let_(high - low);
            // From the nearer end, so that both ends come out exactly.
            let above = high - apart * (wide(&k, 1.0) - part);
            let value = part.ge(0.5).select(above, low + apart * part);
            k.store(out, at, k.let_(value));
        });
        let args = Args::new()
            .buffer(values)
            .buffer(self.q)
            .buffer(self.numbers)
            .value(list)
            .count(self.count);
        let def = k.finish("wl_percentiles", tuning.line());
        launch_each(plan, tuning, def, self.count, args);
    }
}

/// `digit` bits of a key from `shift` on.
fn part([high, low]: [Ex<'_>; 2], bits: u32, shift: u32, digit: u32) -> Ex<'_> {
    let (word_, shift) = match bits {
        64 if shift < 32 => (low, shift),
        64 => (high, shift - 32),
        _ => (high, shift),
    };
    let moved = if shift == 0 {
        word_
    } else {
        word_.shifted_right(shift.cast_signed())
    };
    if shift + digit >= 32 {
        moved
    } else {
        moved & f64::from((1_u32 << digit) - 1)
    }
}

/// What is above `shift`, moved to the low end of two words.
fn beginning<'k>(k: &'k Builder, [high, low]: [Ex<'k>; 2], bits: u32, shift: u32) -> [Ex<'k>; 2] {
    let zero = word(k, 0);
    let down = |word_: Ex<'k>, by: u32| match by {
        0 => word_,
        32.. => zero,
        by => word_.shifted_right(by.cast_signed()),
    };
    if bits < 64 {
        return [zero, k.let_(down(high, shift))];
    }
    if shift >= 32 {
        return [zero, k.let_(down(high, shift - 32))];
    }
    let carried = high.shifted_left((32 - shift).cast_signed());
    [
        k.let_(down(high, shift)),
        k.let_(carried | down(low, shift)),
    ]
}
