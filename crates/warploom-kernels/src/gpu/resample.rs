//! Images read between their pixels.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, ValueKind, real};
use crate::kernel::{Access, Buf, Builder, Img};

use super::dealt::{self, Dealt};
use super::lanes::{Lanes, Run, items, runs, tile_items, tiles};
use super::launch::{Args, Plan};
use super::slope::Slope;
use super::tuning::Tuning;

/// Between two pixels along an axis.
#[derive(Clone, Copy)]
struct Between<'k> {
    low: Ex<'k>,
    high: Ex<'k>,
    part: Ex<'k>,
}

fn wide(at: Ex<'_>) -> Ex<'_> {
    at.cast(Ty::F64)
}

/// What a table says of one output pixel.
fn looked_up<'k>(k: &'k Builder, pairs: Buf, parts: Buf, at: Ex<'k>) -> Between<'k> {
    Between {
        low: k.load(pairs, at * 2),
        high: k.load(pairs, at * 2 + 1),
        part: k.load(parts, at),
    }
}

/// `a` and `b` mixed.
fn mix<'k>(part: Ex<'k>, a: Ex<'k>, b: Ex<'k>) -> Ex<'k> {
    part.fma(b - a, a)
}

/// Along which of z and y an image has one pixel, where nothing is mixed.
fn single(kind: ValueKind) -> [bool; 3] {
    let [nz, ny, _] = kind.dims();
    [nz == 1, ny == 1, false]
}

/// The image between pixels along x, then y, then z; along axes without a place it has one pixel.
fn value<'k>(k: &'k Builder, src: Img<'k>, ty: Ty, at: [Option<Between<'k>>; 3]) -> Ex<'k> {
    let zero = k.graph().int(0);
    let along = |place: Option<Between<'k>>, of: &dyn Fn(Ex<'k>) -> Ex<'k>| match place {
        None => of(zero),
        Some(place) => {
            let (a, b) = (of(place.low), of(place.high));
            k.let_(mix(place.part, a, b))
        }
    };
    along(at[0], &|z| {
        along(at[1], &|y| {
            let row = k.let_(k.index(src, [z, y, zero]));
            along(at[2], &|x| k.load(src.buf, row + x).cast(ty))
        })
    })
}

/// A run of pixels that lie along a row of the source, each one pixel after the other: what they
/// are mixed from lies side by side, too, and is read in vectors.
struct Shift<'k> {
    /// Is it so, and is all of it inside?
    applies: Ex<'k>,
    first: Ex<'k>,
    /// Where the first pixel lies along x, in whole pixels and exactly.
    low: Ex<'k>,
    start: Ex<'k>,
    beside: [Option<Between<'k>>; 2],
}

impl<'k> Shift<'k> {
    /// `rows` are, for each axis, the place where the row starts, the step along it, and the last
    /// place inside.
    fn of(
        k: &'k Builder,
        run: Run<'k>,
        rows: &[(Ex<'k>, Ex<'k>, Ex<'k>)],
        extents: [Ex<'k>; 3],
        single: [bool; 3],
    ) -> Self {
        let (start, step, _) = rows[2];
        let mut applies = step.is(1.0) & (run.first + run.lanes.run.cast_signed()).le(run.end);
        let mut beside = [None; 2];
        for axis in 0..2 {
            let (start, step, last) = rows[axis];
            let place = k.let_(start + step * wide(run.first));
            applies = applies & step.is(0.0) & place.ge(0.0) & place.le(last);
            if !single[axis] {
                let kept = k.let_(place.clamp(0.0, last));
                let low = k.let_(kept.cast(Ty::I32));
                let high = k.let_((low + 1).min(extents[axis] - 1));
                let part = kept - wide(low);
                beside[axis] = Some(Between { low, high, part });
            }
        }
        let place = |lane: i32| k.let_(start + wide(run.first + lane));
        let ends = [place(0), place(run.lanes.run.cast_signed() - 1)];
        // Places outside are not cut off: they could be too large for the type.
        let low = ends.map(|end| k.let_(end.clamp(0.0, rows[2].2).cast(Ty::I32)));
        // Places that grow are rounded up to a whole number from some place on or nowhere, so that
        // both ends tell of all between.
        let even = (low[1] - low[0]).is(run.lanes.run.cast_signed() - 1);
        let inside = ends[0].ge(0.0) & (low[1] + 1).lt(extents[2]);
        Self {
            applies: k.let_(applies & even & inside),
            first: run.first,
            low: low[0],
            start,
            beside,
        }
    }

    /// What a pixel of the run is mixed from.
    fn places(&self, k: &'k Builder, ty: Ty, lane: Ex<'k>) -> [Option<Between<'k>>; 3] {
        let place = self.start + wide(self.first + lane);
        let low = self.low + lane;
        let part = k.let_((place - wide(low)).cast(ty));
        let beside = |axis: usize| {
            self.beside[axis].map(|between| Between {
                part: between.part.cast(ty),
                ..between
            })
        };
        let along = Between {
            low,
            high: low + 1,
            part,
        };
        [beside(0), beside(1), Some(along)]
    }
}

/// The image where a matrix points to. Places are computed in `f64`; on devices without, a place
/// within 2^-48 of the edge may count as the other side of it.
pub(super) fn affine(flow: &Flow, node: &Node, matrix: &[[f64; 4]; 3], tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let ty = Ty::of(real(from.dtype())).expect("a real type");
    let single = single(from);
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let numbers = k.buffer("matrix", DType::F64, Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let extents = ["mz", "my", "mx"].map(|name| k.scalar(name, Ty::I32));
    // Neighbouring rows are read from the same lines of the image: rows of a tile find them in the nearest cache.
    tiles(&k, tuning.run, dims, |run| {
        let int = |value: usize| k.graph().int(i32::try_from(value).expect("small"));
        let rows: Vec<_> = (0..3)
            .map(|axis| {
                let m = [0, 1, 2, 3].map(|at| k.load(numbers, int(axis * 4 + at)));
                // All but the last term is the same along a row.
                let start = k.let_((m[3] + m[0] * wide(run.z)) + m[1] * wide(run.y));
                let last = k.let_(wide(extents[axis] - 1));
                (start, m[2], last)
            })
            .collect();
        let mixed = || {
            run.lanes.each(|lane| {
                let x = run.first + lane;
                let mut inside = k.graph().number(Ty::Bool, 1.0);
                let mut at = [None; 3];
                for (axis, (start, step, last)) in rows.iter().enumerate() {
                    let p = k.let_(*start + *step * wide(x));
                    inside = inside & p.ge(0.0) & p.le(*last);
                    if single[axis] {
                        continue;
                    }
                    let kept = k.let_(p.clamp(0.0, *last));
                    let low = k.let_(kept.floor().cast(Ty::I32));
                    let part = k.let_((kept - wide(low)).cast(ty));
                    let high = k.let_((low + 1).min(extents[axis] - 1));
                    at[axis] = Some(Between { low, high, part });
                }
                let found = value(&k, src, ty, at);
                let found = inside.select(found, 0.0);
                k.put(dst, [run.z, run.y, x], found.saturate(to.dtype()));
            });
        };
        if !tuning.is_processor() {
            return mixed();
        }
        let shift = Shift::of(&k, run, &rows, extents, single);
        k.if_else(
            shift.applies,
            || {
                Lanes::whole(&k, tuning.run).each(|lane| {
                    let found = value(&k, src, ty, shift.places(&k, ty, lane));
                    let at = [run.z, run.y, run.first + lane];
                    k.put(dst, at, found.saturate(to.dtype()));
                });
            },
            || {
                let slope = Slope::new(&k, run, &rows, single);
                k.if_else(
                    slope.applies(),
                    || {
                        slope.read(src, (from.dtype(), ty), |lane, found| {
                            let at = [run.z, run.y, run.first + lane];
                            k.put(dst, at, found.saturate(to.dtype()));
                        });
                    },
                    mixed,
                );
            },
        );
    });
    let def = k.finish("wl_affine", tuning.group);
    let mut plan = Plan::default();
    let numbers = plan.constant::<f64>(matrix.as_flattened());
    let args = Args::new()
        .image(flow, input)
        .buffer(numbers)
        .image(flow, output)
        .dims(to)
        .dims(from);
    plan.launch(def, tile_items(to.dims(), tuning.run), args);
    plan
}

/// Where each output pixel lies along an axis: the pixels before and behind, and how far it is on
/// the way. The nearest pixel is given as both.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "positions inside an axis"
)]
fn places(from: u64, to: u64, linear: bool) -> (Vec<i32>, Vec<f64>) {
    let last = from - 1;
    let (mut pairs, mut parts) = (Vec::new(), Vec::new());
    for at in 0..to {
        let p = ((at as f64 + 0.5) * from as f64) / to as f64;
        let p = if linear {
            (p - 0.5).clamp(0.0, last as f64)
        } else {
            p.floor()
        };
        let low = p.floor() as u64;
        let high = if linear { (low + 1).min(last) } else { low };
        pairs.extend([low as i32, high as i32]);
        parts.push(p - low as f64);
    }
    (pairs, parts)
}

/// How many pixels results lie apart along x, where that is a whole number and a processor can deal out
/// every so manieth: then a result lies in the middle of as many.
fn distance(from: ValueKind, to: ValueKind, tuning: &Tuning) -> Option<u32> {
    let [from, to] = [from, to].map(|kind| kind.dims()[2]);
    let distance = u32::try_from(from / to).ok()?;
    let even = from % to == 0 && dealt::is_possible(distance);
    (even && tuning.is_processor()).then_some(distance)
}

/// The rows that results are mixed from, from a place along x on: of two planes or one, of each two rows or one.
fn rows<'k>(
    k: &'k Builder,
    src: Img<'k>,
    [z, y]: [Option<Between<'k>>; 2],
    x: Ex<'k>,
) -> Vec<Ex<'k>> {
    let ends = |place: Option<Between<'k>>| match place {
        None => vec![k.graph().int(0)],
        Some(place) => vec![place.low, place.high],
    };
    let mut rows = Vec::new();
    for z in ends(z) {
        for y in ends(y) {
            rows.push(k.let_(k.index(src, [z, y, x])));
        }
    }
    rows
}

/// What [`value`] gives for a result in the middle of `distance` pixels of such rows.
fn between<'k>(
    k: &'k Builder,
    pixels: &Dealt<'k>,
    ty: Ty,
    ([z, y], part, distance): ([Option<Between<'k>>; 2], Ex<'k>, u32),
    lane: Ex<'k>,
) -> Ex<'k> {
    let middle = (distance / 2).cast_signed();
    let pixel = |row: i32, far: i32| pixels.pixel(row, far, lane).cast(ty);
    let line = |row: i32| k.let_(mix(part, pixel(row, middle - 1), pixel(row, middle)));
    let plane = |first: i32| match y {
        None => line(first),
        Some(y) => k.let_(mix(y.part, line(first), line(first + 1))),
    };
    match z {
        None => plane(0),
        Some(z) => k.let_(mix(z.part, plane(0), plane(pixels.count() / 2))),
    }
}

/// The image in other extents. Places are looked up, since they are the same for all rows.
pub(super) fn resize(flow: &Flow, node: &Node, linear: bool, tuning: &Tuning) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let real = real(from.dtype());
    let ty = if linear {
        Ty::of(real).expect("a real type")
    } else {
        Ty::of(from.dtype()).expect("an element type that operations take")
    };
    let (single, distance) = (single(from), distance(from, to, tuning));
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let pairs = k.buffer("pairs", DType::I32, Access::Read);
    let parts = k.buffer("parts", real, Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    runs(&k, tuning.run, dims, |run| {
        // Places along z come first, then those along y and x.
        let z = k.let_(run.z);
        let y = k.let_(dims[0] + run.y);
        let first = k.let_(dims[0] + dims[1] + run.first);
        if !linear {
            let row = [k.load(pairs, z * 2), k.load(pairs, y * 2), k.graph().int(0)];
            let row = k.let_(k.index(src, row));
            let put = |lane: Ex<'_>, value: Ex<'_>| {
                k.put(dst, [run.z, run.y, run.first + lane], value);
            };
            let looked_up = |lanes: Lanes<'_>| {
                lanes.each(|lane| {
                    let x = k.load(pairs, (first + lane) * 2);
                    put(lane, k.load(src.buf, row + x));
                });
            };
            let Some(distance) = distance else {
                return looked_up(run.lanes);
            };
            return run.both_ways(&k, |lanes| {
                if !lanes.whole {
                    return looked_up(lanes);
                }
                let start = k.let_(row + run.first * distance.cast_signed());
                let pixels = Dealt::read(&k, src, (from.dtype(), &[start]), distance);
                let middle = (distance / 2).cast_signed();
                lanes.each(|lane| put(lane, pixels.pixel(0, middle, lane)));
            });
        }
        let z = (!single[0]).then(|| looked_up(&k, pairs, parts, z));
        let y = (!single[1]).then(|| looked_up(&k, pairs, parts, y));
        let put = |lane: Ex<'_>, found: Ex<'_>| {
            let at = [run.z, run.y, run.first + lane];
            k.put(dst, at, found.saturate(to.dtype()));
        };
        let mixed = |lanes: Lanes<'_>| {
            lanes.each(|lane| {
                let x = looked_up(&k, pairs, parts, first + lane);
                put(lane, value(&k, src, ty, [z, y, Some(x)]));
            });
        };
        let Some(distance) = distance else {
            return mixed(run.lanes);
        };
        run.both_ways(&k, |lanes| {
            if !lanes.whole {
                return mixed(lanes);
            }
            let x = k.let_(run.first * distance.cast_signed());
            let rows = rows(&k, src, [z, y], x);
            let pixels = Dealt::read(&k, src, (from.dtype(), &rows), distance);
            lanes.each(|lane| {
                let part = k.load(parts, first + lane);
                put(
                    lane,
                    between(&k, &pixels, ty, ([z, y], part, distance), lane),
                );
            });
        });
    });
    let def = k.finish("wl_resize", tuning.group);
    let mut plan = Plan::default();
    let (mut all_pairs, mut all_parts) = (Vec::new(), Vec::new());
    for (from, to) in from.dims().into_iter().zip(to.dims()) {
        let (pairs, parts) = places(from, to, linear);
        all_pairs.extend(pairs);
        all_parts.extend(parts);
    }
    let pairs = plan.constant::<i32>(&all_pairs);
    let parts = plan.reals(real, &all_parts);
    let args = Args::new()
        .image(flow, input)
        .buffer(pairs)
        .buffer(parts)
        .image(flow, output)
        .dims(to);
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
