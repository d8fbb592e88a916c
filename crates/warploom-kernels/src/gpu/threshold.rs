//! Thresholds from histograms, in one group of a few items.
//!
//! Sums run over bins one after the other, as in the reference, whose weights are single
//! precision: another order would round otherwise.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, ThresholdMethod, ValueId};
use crate::kernel::{Access, Buf, Builder};

use super::histogram::{self, Edges, Limit, Range};
use super::key;
use super::launch::{Args, LaunchArg, Plan};
use super::line::{for_long, int, launch, meet, wide, word};
use super::totals;
use super::tuning::Tuning;

/// Running sums a method needs at most; each is made by one item.
const SUMS: u32 = 4;

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    method: ThresholdMethod,
    bins: u32,
    tuning: &Tuning,
) -> Option<Plan> {
    let (image, out) = (node.inputs[0], node.outputs[0]);
    let dtype = flow.kind(image).dtype();
    let mut plan = Plan::default();
    if method == ThresholdMethod::Mean {
        totals::mean(&mut plan, flow, image, out, tuning);
        return Some(plan);
    }
    // Li's looks at all pixels again until it settles, and images of large whole numbers have as
    // many bins as values: how much work and memory that is, only the pixels tell.
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    if method == ThresholdMethod::Li || (!is_float && key::bits(dtype) > 16) {
        return None;
    }
    let (table, places, list) = if is_float {
        let list = plan.scratch(5 * 8);
        totals::first(&mut plan, flow, image, list, tuning);
        let table = plan.scratch(u64::from(bins) * 4);
        let range = Range {
            low: Limit::Listed(totals::MIN),
            high: Limit::Listed(totals::MAX),
            list: Some(list),
        };
        histogram::count(&mut plan, flow, image, table, bins, range, tuning);
        (table, u64::from(bins), Some(list))
    } else {
        let (table, places) = histogram::by_value(&mut plan, flow, image, tuning);
        (table, places, None)
    };
    judge(&mut plan, dtype, method, (table, places), list, out, tuning);
    Some(plan)
}

/// What the methods look at.
struct Bins<'k> {
    k: &'k Builder,
    tuning: Tuning,
    table: Buf,
    /// The first bin's place in the table, and how many bins there are.
    first: Ex<'k>,
    count: Ex<'k>,
    /// For whole numbers, the first bin's value; for others, the edges.
    value: Option<Ex<'k>>,
    edges: Option<Edges<'k>>,
    /// First and last bin that is not empty.
    ends: [Ex<'k>; 2],
    /// Running sums: single precision twice, double precision twice.
    sums: [Buf; 4],
    /// The item's number.
    lane: Ex<'k>,
}

fn judge(
    plan: &mut Plan,
    dtype: DType,
    method: ThresholdMethod,
    (table, places): (LaunchArg, u64),
    limits_of: Option<LaunchArg>,
    out: ValueId,
    tuning: &Tuning,
) {
    let lanes = if tuning.is_processor() { 1 } else { SUMS };
    let tuning = Tuning { lanes, ..*tuning };
    let k = Builder::new();
    let counts = k.buffer("table", DType::U32, Access::Read);
    let mut args = Args::new().buffer(table);
    let known = limits_of.map(|list| {
        args = std::mem::take(&mut args).buffer(list);
        k.buffer("list", DType::F64, Access::Read)
    });
    let sums = [DType::F32, DType::F32, DType::F64, DType::F64].map(|dtype| {
        let scratch = plan.scratch(places * dtype.bytes());
        args = std::mem::take(&mut args).buffer(scratch);
        k.buffer("sums", dtype, Access::ReadWrite)
    });
    let to = k.buffer("out", DType::F64, Access::Write);
    let length = k.scalar("places", Ty::I32);
    let args = args.value(out).count(places);

    let (first, last) = (k.var(length), k.var(int(&k, -1)));
    for_long(&k, &tuning, int(&k, 0), length, |i| {
        k.if_(k.load(counts, i).is_not(0), || {
            k.set(first, k.get(first).min(i));
            k.set(last, i);
        });
    });
    let (first, last) = (k.get(first), k.get(last));
    let limits = known.map(|known| [totals::MIN, totals::MAX].map(|at| k.load(known, int(&k, at))));
    let edges = limits.map(|[low, high]| Edges::between(&k, low, high, length));
    let value = known
        .is_none()
        .then(|| key::value(&k, dtype, first.cast(Ty::U32)));
    let bins = Bins {
        k: &k,
        tuning,
        table: counts,
        first: if value.is_some() { first } else { int(&k, 0) },
        count: match value {
            Some(_) => k.let_(last - first + 1),
            None => length,
        },
        value,
        edges,
        ends: match value {
            Some(_) => [int(&k, 0), k.let_(last - first)],
            None => [first, last],
        },
        sums,
        lane: if lanes == 1 {
            int(&k, 0)
        } else {
            k.work(crate::kernel::Work::Local(0))
        },
    };
    let found = match method {
        ThresholdMethod::Otsu => bins.otsu(),
        ThresholdMethod::Triangle => bins.triangle(),
        ThresholdMethod::Yen => bins.yen(),
        _ => bins.isodata(),
    };
    let lane = bins.lane;
    k.if_(lane.is(0), || {
        let result = match (limits, bins.value) {
            // One value, or no pixel that is a number.
            (Some([low, high]), _) => {
                let found = if method == ThresholdMethod::Yen {
                    found
                } else {
                    low.is(high).select(low, found)
                };
                low.gt(high).select(wide(&k, f64::NAN), found)
            }
            (None, Some(value)) => bins.count.is(1).select(value, found),
            (None, None) => found,
        };
        k.store(to, int(&k, 0), k.let_(result));
    });
    launch(plan, k.finish("wl_threshold", tuning.line()), 1, args);
}

impl<'k> Bins<'k> {
    fn number(&self, bin: Ex<'k>) -> Ex<'k> {
        self.k.load(self.table, self.first + bin)
    }

    /// The count as the reference keeps it: in `f32`.
    fn weight(&self, bin: Ex<'k>) -> Ex<'k> {
        self.number(bin).cast(Ty::F32)
    }

    fn middle(&self, bin: Ex<'k>) -> Ex<'k> {
        match (&self.edges, self.value) {
            (Some(edges), _) => {
                let (low, high) = (edges.edge(bin), edges.edge(self.k.let_(bin + 1)));
                self.k.let_((low + high) * 0.5)
            }
            (None, Some(value)) => self.k.let_(value + bin.cast(Ty::F64)),
            (None, None) => unreachable!("bins have edges or values"),
        }
    }

    fn moment(&self, bin: Ex<'k>) -> Ex<'k> {
        self.weight(bin).cast(Ty::F64) * self.middle(bin)
    }

    /// Adds up from the first bin on, or from the last one down, in one item.
    fn running(&self, item: i32, sum: usize, back: bool, number: impl Fn(Ex<'k>) -> Ex<'k>) {
        let k = self.k;
        let mine = if self.tuning.lanes == 1 {
            int(k, 0).is(0)
        } else {
            self.lane.is(item)
        };
        let to = self.sums[sum];
        k.if_(mine, || {
            let all = k.var(k.graph().number(to.ty(), 0.0));
            for_long(k, &self.tuning, int(k, 0), self.count, |i| {
                let bin = if back { k.let_(self.count - 1 - i) } else { i };
                let next = k.let_(k.get(all) + number(bin));
                k.set(all, next);
                k.store(to, bin, next);
            });
        });
    }

    /// The first of the greatest below `count`; a NaN counts as greater than all.
    fn first_greatest(
        &self,
        from: Ex<'k>,
        to: Ex<'k>,
        number: impl Fn(Ex<'k>) -> Ex<'k>,
    ) -> Ex<'k> {
        let k = self.k;
        let best = k.var(wide(k, f64::NEG_INFINITY));
        let (place, done) = (k.var(from), k.var(int(k, 0)));
        for_long(k, &self.tuning, from, to, |at| {
            let value = k.let_(number(at));
            let nan = k.let_(value.is_nan());
            let better = (nan | value.gt(k.get(best))) & k.get(done).is(0);
            k.if_(better, || {
                k.set(best, value);
                k.set(place, at);
                k.if_(nan, || k.set(done, int(k, 1)));
            });
        });
        k.get(place)
    }

    fn otsu(&self) -> Ex<'k> {
        let k = self.k;
        self.running(0, 0, false, |bin| self.weight(bin));
        self.running(1, 1, true, |bin| self.weight(bin));
        self.running(2, 2, false, |bin| self.moment(bin));
        self.running(3, 3, true, |bin| self.moment(bin));
        meet(k, &self.tuning);
        let [below, above, low, high] = self.sums;
        let best = self.first_greatest(int(k, 0), self.count - 1, |cut| {
            let after = k.let_(cut + 1);
            let (below, above) = (k.load(below, cut), k.load(above, after));
            let low = k.load(low, cut) / below.cast(Ty::F64);
            let apart = k.let_(low - k.load(high, after) / above.cast(Ty::F64));
            (below * above).cast(Ty::F64) * (apart * apart)
        });
        self.middle(best)
    }

    fn triangle(&self) -> Ex<'k> {
        let k = self.k;
        let count = |bin| self.number(bin).cast(Ty::F64);
        let peak = self.first_greatest(int(k, 0), self.count, count);
        let [low, high] = self.ends;
        let flip = k.let_((peak - low).lt(high - peak));
        let last = k.let_(self.count - 1);
        let at = |bin: Ex<'k>| k.let_(flip.select(last - bin, bin));
        let low = k.let_(flip.select(last - high, low));
        let peak = at(peak);
        let width = k.let_((peak - low).cast(Ty::F64));
        let height = k.let_(count(at(peak)));
        let norm = k.let_((height * height + width * width).sqrt());
        let (width, height) = (k.let_(width / norm), k.let_(height / norm));
        let best = self.first_greatest(low, peak, |bin| {
            height * (bin - low).cast(Ty::F64) - width * count(at(bin))
        });
        self.middle(at(best))
    }

    fn yen(&self) -> Ex<'k> {
        let k = self.k;
        let total = k.var(word(k, 0));
        for_long(k, &self.tuning, int(k, 0), self.count, |bin| {
            k.set(total, k.get(total) + self.number(bin));
        });
        let total = k.let_(k.get(total).cast(Ty::F32));
        let share = |bin| k.let_(self.weight(bin) / total);
        self.running(0, 0, false, share);
        self.running(1, 1, true, |bin| {
            let share = share(bin);
            share * share
        });
        // The third sum is single precision too, and kept in a wider place.
        let third = self.sums[2];
        let mine = if self.tuning.lanes == 1 {
            int(k, 0).is(0)
        } else {
            self.lane.is(2)
        };
        k.if_(mine, || {
            let all = k.var(k.graph().float(0.0));
            for_long(k, &self.tuning, int(k, 0), self.count, |bin| {
                let share = share(bin);
                let next = k.let_(k.get(all) + share * share);
                k.set(all, next);
                k.store(third, bin, k.let_(next.cast(Ty::F64)));
            });
        });
        meet(k, &self.tuning);
        let [below, above, ..] = self.sums;
        let best = self.first_greatest(int(k, 0), self.count - 1, |cut| {
            let below = k.load(below, cut);
            let one = k.graph().float(1.0);
            let inside = k.let_(below * (one - below));
            let squares = k.load(third, cut).cast(Ty::F32) * k.load(above, cut + 1);
            let value = k.let_((one / squares) * (inside * inside));
            // Rounded once, as a logarithm in f32 is: what it makes equal counts as equal.
            value.cast(Ty::F64).log().cast(Ty::F32).cast(Ty::F64)
        });
        self.middle(best)
    }

    fn isodata(&self) -> Ex<'k> {
        let k = self.k;
        self.running(0, 0, false, |bin| self.weight(bin));
        self.running(1, 2, false, |bin| self.moment(bin));
        meet(k, &self.tuning);
        let [below, _, moments, _] = self.sums;
        let last = k.let_(self.count - 1);
        let width = k.let_(self.middle(int(k, 1)) - self.middle(int(k, 0)));
        let (all, sum) = (k.load(below, last), k.load(moments, last));
        let found = k.var(int(k, -1));
        for_long(k, &self.tuning, int(k, 0), last, |cut| {
            let (weight, moment) = (k.load(below, cut), k.load(moments, cut));
            let low = moment / weight.cast(Ty::F64);
            let high = (sum - moment) / (all - weight).cast(Ty::F64);
            let off = k.let_((low + high) * 0.5 - self.middle(cut));
            let fits = off.ge(0.0) & off.lt(width) & k.get(found).lt(0);
            k.if_(fits, || k.set(found, cut));
        });
        let found = k.get(found);
        // Where rounding hides every fixed point, and for one value, there is the mean.
        let mean = k.let_(sum / all.cast(Ty::F64));
        found.lt(0).select(mean, self.middle(found.max(0)))
    }
}
