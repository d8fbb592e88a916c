//! One plane of a stack: every column of pixels along z made one.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node, Project, real};
use crate::kernel::{Access, Builder, Img};

use super::fold;
use super::lanes::{Lanes, Run, Values, items, runs};
use super::launch::{Args, Plan};
use super::order;
use super::tuning::Tuning;

/// The stack above a run.
#[derive(Clone, Copy)]
struct Columns<'k> {
    k: &'k Builder,
    src: Img<'k>,
    dtype: DType,
    depth: Ex<'k>,
    run: Run<'k>,
}

impl<'k> Columns<'k> {
    fn lanes(&self) -> Lanes<'k> {
        self.run.lanes
    }

    /// Runs `body` for every plane, with its pixels.
    fn each(&self, body: impl Fn(Ex<'k>, &dyn Fn(Ex<'k>) -> Ex<'k>)) {
        let (k, src) = (self.k, self.src);
        k.for_(k.graph().int(0), self.depth, |z| {
            let row = k.let_(k.index(src, [z, self.run.y, self.run.first]));
            body(z, &|lane| k.load(src.buf, row + lane));
        });
    }

    /// Sums of a function of the pixels, in `f64`.
    fn sums(&self, of: impl Fn(Ex<'k>, Ex<'k>) -> Ex<'k>) -> Values<'k> {
        let sums = self.lanes().values(Ty::F64);
        let zero = self.k.graph().number(Ty::F64, 0.0);
        self.lanes().each(|lane| sums.set(lane, zero));
        self.each(|_, pixel| {
            self.lanes().each(|lane| {
                let value = of(lane, pixel(lane).cast(Ty::F64));
                sums.set(lane, sums.get(lane) + value);
            });
        });
        sums
    }

    fn extremes(&self, combine: Combine) -> Values<'k> {
        let ty = Ty::of(self.dtype).expect("an element type that operations take");
        let best = self.lanes().values(ty);
        let nothing = self
            .k
            .graph()
            .number(ty, fold::nothing(combine, self.dtype));
        self.lanes().each(|lane| best.set(lane, nothing));
        self.each(|_, pixel| {
            self.lanes().each(|lane| {
                best.set(lane, fold::add(combine, best.get(lane), pixel(lane)));
            });
        });
        best
    }

    /// Where the first greatest is. Until a number was found, minus infinity is one.
    fn places(&self) -> Values<'k> {
        let ty = Ty::of(self.dtype).expect("an element type that operations take");
        let (best, place) = (self.lanes().values(ty), self.lanes().values(Ty::U32));
        let least = fold::nothing(Combine::Max, self.dtype);
        let [zero, none] =
            [0.0, f64::from(u32::MAX)].map(|value| self.k.graph().number(Ty::U32, value));
        self.lanes().each(|lane| {
            best.set(lane, self.k.graph().number(ty, least));
            place.set(lane, if ty.is_float() { none } else { zero });
        });
        self.each(|z, pixel| {
            self.lanes().each(|lane| {
                let (value, most) = (pixel(lane), best.get(lane));
                let here = if ty.is_float() {
                    value.gt(most) | (value.ge(most) & place.get(lane).is(none))
                } else {
                    value.gt(most)
                };
                place.set(lane, here.select(z.cast(Ty::U32), place.get(lane)));
                best.set(lane, most.max(value));
            });
        });
        if ty.is_float() {
            self.lanes().each(|lane| {
                let found = place.get(lane);
                place.set(lane, found.is(none).select(zero, found));
            });
        }
        place
    }

    /// Elements of a rank, in real.
    fn ranked(&self, rank: Ex<'k>, real: Ty) -> impl Fn(Ex<'k>) -> Ex<'k> + 'k {
        let ty = Ty::of(self.dtype).expect("an element type that operations take");
        let keyed = order::bits(self.dtype).is_some();
        let each = |body: order::Body<'_, 'k>| self.each(|_, pixel| body(pixel));
        let found = if keyed {
            order::halved(self.k, self.lanes(), self.dtype, rank, &each)
        } else {
            order::compared(self.k, self.lanes(), ty, rank, &each)
        };
        let dtype = self.dtype;
        move |lane| {
            let value = found.get(lane);
            let value = if keyed {
                order::element(dtype, value)
            } else {
                value
            };
            value.cast(real)
        }
    }

    /// The middle ones, or half of the sum of two; a column with something that is no number has
    /// none.
    fn medians(&self, real: Ty) -> Values<'k> {
        let (k, lanes) = (self.k, self.lanes());
        let lost = lanes.values(Ty::I32);
        let middle = lanes.values(real);
        let float = Ty::of(self.dtype).is_some_and(Ty::is_float);
        if float {
            lanes.each(|lane| lost.set(lane, k.graph().int(0)));
            self.each(|_, pixel| {
                lanes.each(|lane| {
                    let nan = pixel(lane).is_nan().cast(Ty::I32);
                    lost.set(lane, lost.get(lane) | nan);
                });
            });
        }
        let low = self.ranked((self.depth - 1).shifted_right(1), real);
        lanes.each(|lane| middle.set(lane, low(lane)));
        k.if_((self.depth & 1).is(0), || {
            let high = self.ranked(self.depth.shifted_right(1), real);
            lanes.each(|lane| middle.set(lane, (middle.get(lane) + high(lane)) * 0.5));
        });
        if float {
            let nan = k.graph().number(real, f64::NAN);
            lanes.each(|lane| {
                let bad = lost.get(lane).is_not(0);
                middle.set(lane, bad.select(nan, middle.get(lane)));
            });
        }
        middle
    }

    /// The same, of columns that are sorted side by side.
    fn sorted_medians(&self, sorter: order::Listed<'k>, real: Ty) -> Values<'k> {
        let (k, lanes, dtype) = (self.k, self.lanes(), self.dtype);
        self.each(|z, pixel| {
            let to = sorter.at(z);
            lanes.each(|lane| sorter.set(to + lane, order::key(dtype, pixel(lane))));
        });
        sorter.sort();
        let middle = lanes.values(real);
        let [low, high] = [self.depth - 1, self.depth].map(|end| sorter.at(end.shifted_right(1)));
        let last = sorter.at(self.depth - 1);
        let odd = k.let_((self.depth & 1).is(1));
        let nan = k.graph().number(real, f64::NAN);
        lanes.each(|lane| {
            let value = |at: Ex<'k>| order::element(dtype, sorter.get(at + lane)).cast(real);
            let upper = k.let_(value(high));
            let found = odd.select(upper, (value(low) + upper) * 0.5);
            // What is no number is the greatest key.
            let lost = sorter.get(last + lane).is(i32::MAX);
            let is_float = Ty::of(dtype).is_some_and(Ty::is_float);
            middle.set(
                lane,
                if is_float {
                    lost.select(nan, found)
                } else {
                    found
                },
            );
        });
        middle
    }
}

/// Are columns sorted? A processor finds both middle ones by far fewer comparisons so than bit by bit, and has memory of
/// its own for them.
fn is_sorted(project: Project, dtype: DType, planes: u64, tuning: &Tuning) -> bool {
    let able = tuning.is_processor() && order::bits(dtype).is_some();
    able && project == Project::Median && planes <= order::LISTED as u64
}

pub(super) fn plan(flow: &Flow, node: &Node, project: Project, tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let planes = from.dims()[0];
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let depth = k.scalar("depth", Ty::I32);
    let mut plan = Plan::default();
    let args = Args::new()
        .image(flow, input)
        .image(flow, output)
        .dims(to)
        .count(planes);
    let (sorter, args) = if is_sorted(project, from.dtype(), planes, tuning) {
        let depth = usize::try_from(planes).expect("few planes");
        // The last one tells whether there is anything that is no number.
        let ranks = [(depth - 1) / 2, depth / 2, depth - 1];
        let sorter = order::Listed::new(&k, tuning.run);
        let args = order::listed(&mut plan, args, &order::pairs(depth, &ranks));
        (Some(sorter), args)
    } else {
        (None, args)
    };
    runs(&k, tuning.run, dims, |run| {
        let columns = Columns {
            k: &k,
            src,
            dtype: from.dtype(),
            depth,
            run,
        };
        let count = depth.cast(Ty::F64);
        let values = match project {
            Project::Sum => columns.sums(|_, value| value),
            Project::Max => columns.extremes(Combine::Max),
            Project::Min => columns.extremes(Combine::Min),
            Project::ArgMax => columns.places(),
            Project::Median => {
                let real = Ty::of(real(from.dtype())).expect("a real type");
                match sorter {
                    Some(sorter) => columns.sorted_medians(sorter, real),
                    None => columns.medians(real),
                }
            }
            Project::Mean | Project::Std => {
                let means = columns.sums(|_, value| value);
                run.lanes
                    .each(|lane| means.set(lane, means.get(lane) / count));
                if project == Project::Mean {
                    means
                } else {
                    let squares = columns.sums(|lane, value| {
                        let off = k.let_(value - means.get(lane));
                        off * off
                    });
                    run.lanes.each(|lane| {
                        squares.set(lane, (squares.get(lane) / count).sqrt());
                    });
                    squares
                }
            }
        };
        run.lanes.each(|lane| {
            let value = values.get(lane).saturate(to.dtype());
            k.put(dst, [run.z, run.y, run.first + lane], value);
        });
    });
    let name = if sorter.is_some() {
        "wl_median_sorted"
    } else {
        "wl_project"
    };
    let def = k.finish(name, tuning.group);
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
