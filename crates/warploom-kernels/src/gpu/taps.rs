//! Weighted sums along one axis.
//!
//! Along y and z all pixels of a run have their neighbours in the same rows, so the position of a
//! row and what the boundary makes of it are computed once for all. Along x a run that stays clear
//! of both ends reads without conditions.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, Taps, Weights, real};
use crate::kernel::{Access, Buf, Builder, Img, Work};

use super::lanes::{Lanes, Run, each_run, items, runs, share};
use super::launch::{Args, Plan, along};
use super::strip;
use super::tuning::Tuning;

/// Distances whose pixels are added at once on a processor.
pub(super) const DISTANCES: i32 = 4;

/// The largest radius for which a run is copied with what lies beside it.
const PADDING: u32 = 256;

/// What a sum has for a pixel, at one distance.
type Term<'k> = Box<dyn Fn(Ex<'k>) -> Ex<'k> + 'k>;

/// What is summed, in terms of the neighbour at a distance.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Even,
    Odd,
    Any,
}

impl Form {
    fn of(weights: &Weights) -> Self {
        match weights {
            Weights::Even(_) => Self::Even,
            Weights::Odd(_) => Self::Odd,
            Weights::Any(_) => Self::Any,
        }
    }

    /// The first distance.
    pub(super) fn start(self) -> i32 {
        i32::from(self == Self::Odd)
    }
}

/// The kernel's arguments that the sums need.
#[derive(Clone, Copy)]
struct Frame<'k> {
    k: &'k Builder,
    form: Form,
    weights: Buf,
    ty: Ty,
    /// One past the last distance.
    end: Ex<'k>,
    radius: Ex<'k>,
}

impl<'k> Frame<'k> {
    /// A term of the sum, the first without a distance. `rows` is asked for the neighbours at a
    /// distance, outside the loop over pixels, and what it gives for a pixel's own, inside.
    fn term<F: Fn(Ex<'k>) -> Ex<'k> + 'k>(
        &self,
        distance: Option<Ex<'k>>,
        rows: &impl Fn(Ex<'k>) -> F,
    ) -> Term<'k> {
        let or = |first: i32| distance.unwrap_or_else(|| self.k.graph().int(first));
        match (self.form, distance) {
            (Form::Even, None) => Box::new(rows(or(0))),
            (Form::Even, Some(distance)) => {
                let (left, right) = (rows(-distance), rows(distance));
                Box::new(move |lane| left(lane) + right(lane))
            }
            (Form::Odd, _) => {
                let (left, right) = (rows(-or(1)), rows(or(1)));
                Box::new(move |lane| right(lane) - left(lane))
            }
            (Form::Any, _) => Box::new(rows(or(0) - self.radius)),
        }
    }

    /// The sums of a run, of which `written` are results.
    fn sums<F: Fn(Ex<'k>) -> Ex<'k> + 'k>(
        &self,
        lanes: Lanes<'k>,
        written: Lanes<'k>,
        rows: impl Fn(Ex<'k>) -> F,
        finish: impl Fn(Ex<'k>, Ex<'k>),
    ) {
        let k = self.k;
        let sums = lanes.values(self.ty);
        let weight = k.load(self.weights, k.graph().int(0));
        let term = self.term(None, &rows);
        lanes.each(|lane| sums.set(lane, weight * term(lane)));
        let start = self.form.start();
        let first = k.graph().int(start + 1);
        let mut next = first;
        if lanes.run > 1 {
            // Several distances for each time that the sums come from memory and go back.
            let rounds = (self.end - first).max(0) / k.graph().int(DISTANCES);
            next = k.let_(first + rounds * DISTANCES);
            k.for_by(first, next, k.graph().int(DISTANCES), |distance| {
                let several: Vec<_> = (0..DISTANCES)
                    .map(|on| {
                        let weight = k.load(self.weights, distance + (on - start));
                        (weight, self.term(Some(k.let_(distance + on)), &rows))
                    })
                    .collect();
                lanes.each(|lane| {
                    let add = |sum: Ex<'k>, (weight, term): &(Ex<'k>, Term<'k>)| {
                        k.let_(weight.fma(term(lane), sum))
                    };
                    sums.set(lane, several.iter().fold(sums.get(lane), add));
                });
            });
        }
        k.for_(next, self.end, |distance| {
            let weight = k.load(self.weights, distance - start);
            let term = self.term(Some(distance), &rows);
            lanes.each(|lane| sums.set(lane, weight.fma(term(lane), sums.get(lane))));
        });
        written.each(|lane| finish(lane, sums.get(lane)));
    }
}

/// Columns of a run along x: longer runs have less to read beside them.
fn along_x(tuning: &Tuning) -> u32 {
    if tuning.is_processor() {
        2 * tuning.run
    } else {
        tuning.run
    }
}

/// How often each pixel is read from the image.
pub(super) fn reads(taps: &Taps, tuning: &Tuning) -> f64 {
    let radius = taps.weights.radius();
    let copied = |size: u32| 1.0 + 2.0 * radius as f64 / f64::from(size);
    match (taps.axis, tuning.is_processor()) {
        (2, true) if radius <= PADDING as usize => copied(along_x(tuning)),
        (0 | 1, true) if radius <= strip::REACH => copied(strip::ROWS.unsigned_abs()),
        _ => 2.0 * radius as f64 + 1.0,
    }
}

/// What the kernel's text depends on.
#[derive(Clone, Copy)]
pub(super) struct Sort {
    pub(super) form: Form,
    pub(super) from: DType,
    pub(super) to: DType,
    /// Not along x.
    across: bool,
    pub(super) boundary: Boundary,
    run: u32,
    /// Are runs copied, with what the rule makes of the pixels beside the image?
    padded: bool,
}

fn write<'k>(k: &'k Builder, sort: Sort) {
    let real = real(sort.from);
    let ty = Ty::of(real).expect("a real type");
    let src = k.image("src", sort.from, Access::Read);
    let weights = k.buffer("weights", real, Access::Read);
    let dst = k.image("dst", sort.to, Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [end, radius] = ["end", "radius"].map(|name| k.scalar(name, Ty::I32));
    let frame = Frame {
        k,
        form: sort.form,
        weights,
        ty,
        end,
        radius,
    };
    let zero = k.graph().number(ty, 0.0);
    let pixel = move |at: Ex<'k>, inside: Option<Ex<'k>>| {
        let value = k.load(src.buf, at).cast(ty);
        inside.map_or(value, |inside| inside.select(value, zero))
    };
    if sort.padded && !sort.across {
        return padded(frame, sort, (src, dst), dims, &pixel);
    }
    runs(k, sort.run, dims, |run| {
        let Run {
            z, y, first, lanes, ..
        } = run;
        let finish = |lane: Ex<'k>, sum: Ex<'k>| {
            k.put(dst, [z, y, first + lane], sum.saturate(sort.to));
        };
        if sort.across {
            let start = k.let_(src.offset + z * src.pitch[0] + first);
            let rows = |distance: Ex<'k>| {
                let (place, inside) = k.source(y + distance, dims[1], sort.boundary);
                let row = k.let_(start + place * src.pitch[1]);
                let inside = inside.map(|inside| k.let_(inside));
                move |lane: Ex<'k>| pixel(row + lane, inside)
            };
            frame.sums(lanes, lanes, rows, finish);
            return;
        }
        let row = k.let_(k.index(src, [z, y, k.graph().int(0)]));
        let edge = || {
            let rows = |distance: Ex<'k>| {
                move |lane: Ex<'k>| {
                    let at = first + lane + distance;
                    let (place, inside) = k.source(at, dims[2], sort.boundary);
                    pixel(row + place, inside)
                }
            };
            frame.sums(lanes, lanes, rows, finish);
        };
        if sort.run == 1 {
            return edge();
        }
        let clear = first.ge(radius) & (first + radius + sort.run.cast_signed()).le(dims[2]);
        let middle = || {
            let rows = |distance: Ex<'k>| {
                let start = k.let_(row + first + distance);
                move |lane: Ex<'k>| pixel(start + lane, None)
            };
            let whole = Lanes::whole(k, sort.run);
            frame.sums(whole, whole, rows, finish);
        };
        k.if_else(clear, middle, edge);
    });
}

/// Writes sums along x whose share of a row is copied first, with what the rule makes of the pixels beside the image: by
/// the rule once for each of these, not for each term of each sum. All runs then have the same sums. Others for those
/// that stay clear of both ends, straight from the image, took a compiler as long again.
fn padded<'k>(
    frame: Frame<'k>,
    sort: Sort,
    (src, dst): (Img<'k>, Img<'k>),
    dims: [Ex<'k>; 3],
    pixel: &impl Fn(Ex<'k>, Option<Ex<'k>>) -> Ex<'k>,
) {
    let Frame { k, radius, .. } = frame;
    let int = |value: u32| k.graph().int(value.cast_signed());
    let (z, y) = (k.work(Work::Global(2)), k.work(Work::Global(1)));
    let start = k.let_(k.work(Work::Global(0)) * int(share(sort.run)));
    let inside = z.lt(dims[0]) & y.lt(dims[1]) & start.lt(dims[2]);
    k.if_(inside, || {
        let row = k.let_(k.index(src, [z, y, int(0)]));
        let line = k.line(real(sort.from), share(sort.run) + 2 * PADDING);
        let pixels = k.let_((dims[2] - start).min(int(share(sort.run))));
        let whole = (pixels + int(sort.run - 1)) / int(sort.run) * int(sort.run);
        let length = k.let_(whole + radius + radius);
        // The first place of the line that is in the image, and the first behind it.
        let first = k.let_((radius - start).max(0));
        let last = k.let_((dims[2] - start + radius).min(length));
        k.for_(first, last, |at| {
            k.store(line, at, k.let_(pixel(row + start + at - radius, None)));
        });
        k.for_(int(0), length - last + first, |beside| {
            let at = k.let_(beside.lt(first).select(beside, beside + last - first));
            let (place, inside) = k.source(start + at - radius, dims[2], sort.boundary);
            k.store(line, at, k.let_(pixel(row + place, inside)));
        });
        each_run(k, sort.run, (start, dims[2]), |first| {
            let here = k.let_(first - start + radius);
            let rows = |distance: Ex<'k>| {
                let from = k.let_(here + distance);
                move |lane: Ex<'k>| k.load(line, from + lane)
            };
            let finish = |lane: Ex<'k>, sum: Ex<'k>| {
                k.put(dst, [z, y, first + lane], sum.saturate(sort.to));
            };
            let lanes = Lanes::rest(k, sort.run, first, dims[2]);
            frame.sums(Lanes::whole(k, sort.run), lanes, rows, finish);
        });
    });
}

/// The launch.
pub(super) fn plan(flow: &Flow, node: &Node, taps: &Taps, tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let across = taps.axis != 2;
    let strips = across && tuning.is_processor() && taps.weights.radius() <= strip::REACH;
    let run = if across { tuning.run } else { along_x(tuning) };
    let padded = tuning.is_processor() && taps.weights.radius() <= PADDING as usize;
    let sort = Sort {
        form: Form::of(&taps.weights),
        from: from.dtype(),
        to: to.dtype(),
        across,
        boundary: taps.boundary,
        run,
        padded,
    };
    let k = Builder::new();
    let name = if strips {
        strip::write(&k, sort);
        "wl_taps_strip"
    } else {
        write(&k, sort);
        if across { "wl_taps_across" } else { "wl_taps" }
    };
    let def = k.finish(name, tuning.group);
    let mut plan = Plan::default();
    let list = plan.reals(real(from.dtype()), taps.weights.values());
    let radius = taps.weights.radius() as u64;
    let end = match sort.form {
        Form::Even | Form::Odd => radius + 1,
        Form::Any => 2 * radius + 1,
    };
    let args = Args::new()
        .image_along(flow, input, taps.axis)
        .buffer(list)
        .image_along(flow, output, taps.axis)
        .dims_along(to, taps.axis)
        .count(end)
        .count(radius);
    let dims = along(to.dims(), taps.axis);
    let items = if strips {
        strip::items(dims)
    } else {
        items(dims, run)
    };
    plan.launch(def, items, args);
    plan
}
