//! How many pixels have which intensity, in numpy's bins.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, ValueId};
use crate::kernel::{Access, Builder};

use super::counts::{self, Count, Place};
use super::fill;
use super::gate::Gate;
use super::key::{self, Keys};
use super::launch::{Args, LaunchArg, Plan};
use super::line::{each, int, launch_each, wide, wide_number, wide_scalar};
use super::totals;
use super::tuning::Tuning;

/// Where a limit of a histogram comes from.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    /// Known now.
    Known(f64),
    /// A number of the list that comes with the limits.
    Listed(i32),
}

/// The limits of a histogram, and the list they may be in.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) low: Limit,
    pub(super) high: Limit,
    pub(super) list: Option<LaunchArg>,
}

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    bins: u32,
    [low, high]: [Option<f64>; 2],
    tuning: &Tuning,
) -> Option<Plan> {
    let list = node.inputs.get(1).map(|id| LaunchArg::Value(*id));
    let limit = |known: Option<f64>, at| match (known, list) {
        (Some(value), _) => Some(Limit::Known(value)),
        (None, Some(_)) => Some(Limit::Listed(at)),
        (None, None) => None,
    };
    let range = Range {
        low: limit(low, totals::MIN)?,
        high: limit(high, totals::MAX)?,
        list: if low.is_some() && high.is_some() {
            None
        } else {
            list
        },
    };
    let mut plan = Plan::default();
    let table = LaunchArg::Value(node.outputs[0]);
    count(&mut plan, flow, node.inputs[0], table, bins, range, tuning);
    Some(plan)
}

/// Counts the pixels of an image in equal bins.
pub(super) fn count(
    plan: &mut Plan,
    flow: &Flow,
    image: ValueId,
    table: LaunchArg,
    bins: u32,
    range: Range,
    tuning: &Tuning,
) {
    let kind = flow.kind(image);
    let (dtype, elements) = (kind.dtype(), kind.elements());
    // However small the image is: one way for all sizes is one kernel for all sizes.
    if key::bits(dtype) <= 16 {
        let (values, places) = by_value(plan, flow, image, tuning);
        rebin(plan, dtype, (values, places), (table, bins), range, tuning);
        return;
    }
    let count = Count {
        table,
        places: u64::from(bins),
        elements,
        sparse: false,
        gate: Gate::default(),
    };
    counts::plan(plan, tuning, &count, "wl_histogram", |k, args| {
        let pixels = k.buffer("in", dtype, Access::Read);
        let args = args.value(image);
        let (edges, args) = Edges::new(k, args, bins, range, tuning);
        let place = boxed(move |at| edges.place(k, k.load(pixels, at).cast(Ty::F64)));
        (place, args)
    });
}

pub(super) fn boxed<'k>(place: impl Fn(Ex<'k>) -> Ex<'k> + 'k) -> Place<'k> {
    Box::new(place)
}

/// Counts every value of a type of one or two bytes, by its key; gives the table and its length.
pub(super) fn by_value(
    plan: &mut Plan,
    flow: &Flow,
    image: ValueId,
    tuning: &Tuning,
) -> (LaunchArg, u64) {
    let kind = flow.kind(image);
    let dtype = kind.dtype();
    let places = 1 << key::bits(dtype);
    let table = plan.scratch(places * 4);
    let count = Count {
        table,
        places,
        elements: kind.elements(),
        sparse: false,
        gate: Gate::default(),
    };
    counts::plan(plan, tuning, &count, "wl_values", |k, args| {
        let keys = Keys::new(k, dtype, tuning);
        let place = boxed(move |at| keys.load(k, at).high.cast(Ty::I32));
        (place, args.value(image))
    });
    (table, places)
}

/// From counts of values to counts of bins.
fn rebin(
    plan: &mut Plan,
    dtype: DType,
    (values, places): (LaunchArg, u64),
    (table, bins): (LaunchArg, u32),
    range: Range,
    tuning: &Tuning,
) {
    fill::words(plan, tuning, table, u64::from(bins), 0);
    let k = Builder::new();
    let from = k.buffer("values", DType::U32, Access::Read);
    let to = k.buffer("table", DType::U32, Access::ReadWrite);
    let length = k.scalar("places", Ty::I32);
    let args = Args::new().buffer(values).buffer(table).count(places);
    let (edges, args) = Edges::new(&k, args, bins, range, tuning);
    each(&k, tuning, length, |i| {
        let found = k.load(from, i);
        k.if_(found.is_not(0), || {
            let value = key::value(&k, dtype, i.cast(Ty::U32));
            let place = k.let_(edges.place(&k, value));
            k.if_(place.lt(edges.bins), || {
                k.atomic_add(to, place, found);
            });
        });
    });
    let def = k.finish("wl_rebin", tuning.line());
    launch_each(plan, tuning, def, places, args);
}

/// Equal bins, as `numpy.linspace` rounds their edges.
#[derive(Clone, Copy)]
pub(super) struct Edges<'k> {
    low: Ex<'k>,
    high: Ex<'k>,
    step: Ex<'k>,
    scale: Ex<'k>,
    bins: Ex<'k>,
}

impl<'k> Edges<'k> {
    /// Declares what is needed and computes it once.
    pub(super) fn new(
        k: &'k Builder,
        args: Args,
        bins: u32,
        range: Range,
        tuning: &Tuning,
    ) -> (Self, Args) {
        let number = k.scalar("bins", Ty::I32);
        let mut args = args.count(u64::from(bins));
        let list = range.list.map(|list| {
            args = std::mem::take(&mut args).buffer(list);
            k.buffer("range", DType::F64, Access::Read)
        });
        let [low, high] =
            [("low", range.low), ("high", range.high)].map(|(name, limit)| match (limit, list) {
                (Limit::Listed(at), Some(buf)) => k.load(buf, int(k, at)),
                (Limit::Known(value), _) => {
                    args = wide_number(std::mem::take(&mut args), tuning, value);
                    wide_scalar(k, tuning, name)
                }
                (Limit::Listed(_), None) => unreachable!("a list comes with what is in it"),
            });
        (Self::between(k, low, high, number), args)
    }

    /// Between two numbers; equal ones are moved apart by a half each.
    pub(super) fn between(k: &'k Builder, low: Ex<'k>, high: Ex<'k>, bins: Ex<'k>) -> Self {
        let same = k.let_(low.is(high));
        let half = wide(k, 0.5);
        let (low, high) = (
            k.let_(same.select(low - half, low)),
            k.let_(same.select(high + half, high)),
        );
        let width = k.let_(high - low);
        let count = k.let_(bins.cast(Ty::F64));
        Self {
            low,
            high,
            step: k.let_(width / count),
            scale: k.let_(count / width),
            bins,
        }
    }

    /// An edge, by its number.
    pub(super) fn edge(&self, at: Ex<'k>) -> Ex<'k> {
        at.lt(self.bins).select(self.inner(at), self.high)
    }

    /// One before the last.
    fn inner(&self, at: Ex<'k>) -> Ex<'k> {
        at.cast(Ty::F64) * self.step + self.low
    }

    /// The bin of a value, `bins` when it is in none: a guess, put right by the edges themselves.
    fn place(&self, k: &'k Builder, value: Ex<'k>) -> Ex<'k> {
        let value = k.let_(value);
        let inside = k.let_(value.ge(self.low) & value.le(self.high));
        let last = self.bins - 1;
        // Outside, and where bounds are infinite, the guess may be no number: it becomes 0.
        let guess = ((value - self.low) * self.scale).clamp(0.0, last.cast(Ty::F64));
        let guess = k.let_(guess.cast(Ty::I32));
        let below = value.lt(self.inner(guess)) & guess.gt(0);
        let guess = k.let_(guess - below.cast(Ty::I32));
        let above = value.ge(self.inner(k.let_(guess + 1))) & guess.lt(last);
        inside.select(guess + above.cast(Ty::I32), self.bins)
    }
}
