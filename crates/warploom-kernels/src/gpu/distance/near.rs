//! The nearest label within a few pixels, on a processor.
//!
//! Along each axis the least of all squares within reach is taken, for pixels side by side: for a short
//! reach that is a handful of vector instructions a pixel, where an envelope has branches that nobody
//! foresees. Labels travel with their squares, so nothing is looked up in the end.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node};
use crate::gpu::lanes::{items, runs};
use crate::gpu::launch::{Args, LaunchArg, Plan};
use crate::gpu::tuning::Tuning;
use crate::kernel::{Access, Buf, Builder, Img, Space, Work};

/// Up to this many pixels a window takes less time than an envelope does.
const REACH: u32 = 48;
/// More than any square here, with room for another one.
const FAR: i32 = 1 << 30;
/// Pixels of a row that an item makes.
const WIDTH: i32 = 512;
/// Pixels that are worked on together.
const RUN: i32 = 64;
/// Those of an item, and those beside them that labels come from, in whole runs.
const ROOM: i32 = (WIDTH + 2 * REACH.cast_signed() + RUN - 1) / RUN * RUN;
/// Neighbours that are looked at for each time that what is nearest comes from memory and goes back.
const AT_ONCE: i32 = 4;

/// How far a label is to grow, in whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// The greatest square whose root is no more than the distance.
    square: u32,
    /// The greatest distance along one axis.
    reach: u32,
}

impl Limit {
    /// `None` when it is too far for windows.
    pub(super) fn new(distance: f64) -> Option<Self> {
        // NaN is no distance, and nothing is as near.
        if !(0.0..f64::from(REACH + 1)).contains(&distance) {
            return None;
        }
        let within = |square: &u32| f64::from(*square).sqrt() <= distance;
        let most = (REACH + 1) * (REACH + 1);
        let square = (0..=most).take_while(within).last()?;
        let reach = square.isqrt();
        Some(Self { square, reach })
    }
}

/// Where labels are looked for: in the image, or among what was found along another axis.
#[derive(Clone, Copy)]
struct Known<'k> {
    labels: Img<'k>,
    /// How far they are.
    squares: Option<Buf>,
}

impl<'k> Known<'k> {
    fn new(k: &'k Builder, found: bool) -> Self {
        Self {
            labels: k.image("labels", DType::U32, Access::Read),
            squares: found.then(|| k.buffer("squares", DType::I32, Access::Read)),
        }
    }

    /// The label at an element, and the square of its distance when it is so far along this axis.
    fn at(self, k: &'k Builder, at: Ex<'k>, apart: Ex<'k>) -> (Ex<'k>, Ex<'k>) {
        let label = k.load(self.labels.buf, at);
        let square = match self.squares {
            Some(squares) => k.load(squares, at) + apart,
            None => label.is(0).select(k.graph().int(FAR), apart),
        };
        (label, k.let_(square))
    }
}

/// The nearest labels of pixels side by side, and the squares of their distances.
#[derive(Clone, Copy)]
struct Nearest<'k> {
    k: &'k Builder,
    labels: Buf,
    squares: Buf,
}

impl<'k> Nearest<'k> {
    fn new(k: &'k Builder, width: i32) -> Self {
        Self {
            k,
            labels: k.array(Ty::U32, width.unsigned_abs(), Space::Private),
            squares: k.array(Ty::I32, width.unsigned_abs(), Space::Private),
        }
    }

    /// Nothing is nearer than `square` yet.
    fn start(self, first: Ex<'k>, square: Ex<'k>) {
        let k = self.k;
        k.for_(k.graph().int(0), k.graph().int(RUN), |lane| {
            k.store(self.labels, first + lane, k.graph().number(Ty::U32, 0.0));
            k.store(self.squares, first + lane, square);
        });
    }

    /// Takes over what is nearer of the candidates from `from` up to `to`, in order. `candidate` is found for all
    /// pixels, then asked for the label and the square of each.
    fn take<F: Fn(Ex<'k>) -> (Ex<'k>, Ex<'k>)>(
        self,
        first: Ex<'k>,
        [from, to]: [Ex<'k>; 2],
        candidate: impl Fn(Ex<'k>) -> F,
    ) {
        let k = self.k;
        let int = |value: i32| k.graph().int(value);
        let several = |next: Ex<'k>, many: i32| {
            let found: Vec<F> = (0..many).map(|on| candidate(next + on)).collect();
            k.for_(int(0), int(RUN), |lane| {
                let at = k.let_(first + lane);
                let now = (k.load(self.labels, at), k.load(self.squares, at));
                let (label, square) = found.iter().fold(now, |(kept, nearest), found| {
                    let (label, square) = found(lane);
                    let is_nearer = k.let_(square.lt(nearest));
                    let kept = k.let_(is_nearer.select(label, kept));
                    (kept, k.let_(is_nearer.select(square, nearest)))
                });
                k.store(self.labels, at, label);
                k.store(self.squares, at, square);
            });
        };
        let next = k.let_(from + (to - from) / int(AT_ONCE) * AT_ONCE);
        k.for_by(from, next, int(AT_ONCE), |from| several(from, AT_ONCE));
        k.for_(next, to, |from| several(from, 1));
    }
}

/// Labels grow along the planes, then down the columns, then along the rows: of several as near, that of
/// the leftmost column is taken, then of the topmost row, then of the first plane.
pub(super) fn plan(flow: &Flow, node: &Node, limit: Limit, tuning: &Tuning) -> Plan {
    let (labels, out) = (node.inputs[0], node.outputs[0]);
    let kind = flow.kind(labels);
    let mut plan = Plan::default();
    let mut known = (LaunchArg::Value(labels), None);
    if kind.dims()[0] > 1 {
        let [found, squares] = [0, 1].map(|_| plan.scratch(kind.elements() * 4));
        let args = Args::new()
            .image(flow, labels)
            .packed(found, kind)
            .buffer(squares)
            .dims(kind)
            .count(u64::from(limit.reach));
        plan.launch(along_z(tuning), items(kind.dims(), tuning.run), args);
        known = (found, Some(squares));
    }
    let args = Args::new().packed(known.0, kind);
    let args = known.1.into_iter().fold(args, Args::buffer);
    let args = args
        .image(flow, out)
        .dims(kind)
        .count(u64::from(limit.reach))
        .count(u64::from(limit.square));
    let [nz, ny, nx] = kind.dims();
    let items = [nx.div_ceil(u64::from(WIDTH.unsigned_abs())), ny, nz];
    plan.launch(in_planes(known.1.is_some(), tuning), items, args);
    plan
}

/// The first and one past the last place within reach along an axis.
fn within<'k>(k: &'k Builder, at: Ex<'k>, reach: Ex<'k>, length: Ex<'k>) -> [Ex<'k>; 2] {
    [
        k.let_((at - reach).max(0)),
        k.let_((at + reach + 1).min(length)),
    ]
}

/// The square of how far two places are apart.
fn square<'k>(k: &'k Builder, a: Ex<'k>, b: Ex<'k>) -> Ex<'k> {
    let apart = k.let_(a - b);
    k.let_(apart * apart)
}

/// The nearest labels along z.
fn along_z(tuning: &Tuning) -> crate::kernel::KernelDef {
    let k = Builder::new();
    let known = Known::new(&k, false);
    let to = k.image("found", DType::U32, Access::Write);
    let squares = k.buffer("squares", DType::I32, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let reach = k.scalar("reach", Ty::I32);
    let zero = k.graph().int(0);
    runs(&k, tuning.run, dims, |run| {
        let nearest = Nearest::new(&k, RUN);
        nearest.start(zero, k.graph().int(FAR));
        let planes = within(&k, run.z, reach, dims[0]);
        let last = k.let_(dims[2] - 1 - run.first);
        nearest.take(zero, planes, |z| {
            let row = k.let_(k.index(known.labels, [z, run.y, run.first]));
            let apart = square(&k, z, run.z);
            let k = &k;
            // What is beside the image is computed too, and written nowhere.
            move |lane| known.at(k, row + lane.min(last), apart)
        });
        let row = k.let_(k.index(to, [run.z, run.y, run.first]));
        run.both_ways(&k, |lanes| {
            lanes.each(|lane| {
                k.store(to.buf, row + lane, k.load(nearest.labels, lane));
                k.store(squares, row + lane, k.load(nearest.squares, lane));
            });
        });
    });
    k.finish("wl_near_along_z", tuning.group)
}

/// The nearest labels within planes, of those in the image or of those found along z.
fn in_planes(found: bool, tuning: &Tuning) -> crate::kernel::KernelDef {
    let k = Builder::new();
    let known = Known::new(&k, found);
    let to = k.image("out", DType::U32, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [reach, limit] = ["reach", "limit"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: i32| k.graph().int(value);
    let (z, y) = (k.work(Work::Global(2)), k.work(Work::Global(1)));
    let left = k.let_(k.work(Work::Global(0)) * WIDTH);
    k.if_(z.lt(dims[0]) & y.lt(dims[1]) & left.lt(dims[2]), || {
        let end = k.let_((left + WIDTH).min(dims[2]));
        // A row with what lies beyond its ends.
        let around = Nearest::new(&k, ROOM);
        let rows = within(&k, y, reach, dims[1]);
        k.for_by(int(0), end - left + reach + reach, int(RUN), |at| {
            let x = k.let_(left - reach + at);
            around.start(at, int(FAR));
            let take = |inside: bool| {
                around.take(at, rows, |row| {
                    let apart = square(&k, row, y);
                    let row = k.let_(k.index(known.labels, [z, row, int(0)]));
                    let k = &k;
                    move |lane: Ex<'_>| {
                        let there = x + lane;
                        if inside {
                            return known.at(k, row + there, apart);
                        }
                        let near = there.max(0).min(dims[2] - 1);
                        let (label, square) = known.at(k, row + near, apart);
                        let outside = there.lt(0) | there.ge(dims[2]);
                        (label, k.let_(outside.select(k.graph().int(FAR), square)))
                    }
                });
            };
            k.if_else(
                x.ge(0) & (x + RUN).le(dims[2]),
                || take(true),
                || take(false),
            );
        });
        let here = Nearest::new(&k, RUN);
        let row = k.let_(k.index(to, [z, y, left]));
        k.for_by(int(0), end - left, int(RUN), |at| {
            // Only what is within the limit is nearer than this.
            here.start(int(0), k.let_(limit + 1));
            let shifts = [int(0), k.let_(reach + reach + 1)];
            here.take(int(0), shifts, |shift| {
                let apart = square(&k, shift, reach);
                let from = k.let_(at + shift);
                let k = &k;
                move |lane: Ex<'_>| {
                    let label = k.load(around.labels, from + lane);
                    let square = k.load(around.squares, from + lane) + apart;
                    (label, k.let_(square))
                }
            });
            let put = |lane: Ex<'_>| {
                k.store(to.buf, row + at + lane, k.load(here.labels, lane));
            };
            let rest = k.let_(end - left - at);
            k.if_else(
                rest.ge(RUN),
                || k.for_(int(0), int(RUN), put),
                || k.for_(int(0), rest, put),
            );
        });
    });
    k.finish("wl_near_in_planes", tuning.group)
}
