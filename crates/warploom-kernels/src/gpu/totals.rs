//! Least, greatest, sum, mean and standard deviation of all pixels.
//!
//! Pixels in C order are cut into chunks of 4096; in a chunk, lane `l` of 16 adds pixels `l`,
//! `l + 16`, … in order; lanes are added in order, then chunks in groups of 256, then groups. This
//! order is fixed, so that every strict backend rounds alike.

use warploom_core::DType;

use crate::expr::{Ex, Node as Term, Ty};
use crate::flow::{Flow, Node, Prim, ValueId};
use crate::kernel::{Access, Buf, Builder, Space, Var};

use super::launch::{Args, LaunchArg, Plan};
use super::line::{int, item, lane, launch, meet, wide};
use super::tuning::Tuning;

const CHUNK: u32 = 4096;
const LANES: u32 = 16;
const GROUP: u32 = 256;
/// Pixels that a lane adds before its values go back to memory, on a processor.
const ROUNDS: u32 = 8;

/// What [`first`] leaves in its list.
pub(super) const MIN: i32 = 0;
pub(super) const MAX: i32 = 1;
const SUM: i32 = 2;
const MEAN: i32 = 3;
const STD: i32 = 4;

pub(super) fn plan(flow: &Flow, node: &Node, tuning: &Tuning) -> Plan {
    let mut plan = Plan::default();
    let (image, list) = (node.inputs[0], node.outputs[0]);
    let scratch = first(&mut plan, flow, image, LaunchArg::Value(list), tuning);
    if wants_deviation(flow, list) {
        second(&mut plan, flow, image, list, &scratch, tuning);
    }
    plan
}

/// How often each pixel is read.
pub(super) fn reads(flow: &Flow, list: ValueId) -> usize {
    1 + usize::from(wants_deviation(flow, list))
}

/// The second pass is left out when nobody looks at what it finds.
fn wants_deviation(flow: &Flow, list: ValueId) -> bool {
    let looks = |node: &Node| match &node.prim {
        Prim::Map { dag, .. } => dag.nodes().iter().any(|(term, _)| match term {
            Term::Scalar { list: at, index } => {
                node.inputs[*at as usize] == list && *index == STD.unsigned_abs()
            }
            _ => false,
        }),
        Prim::Histogram { .. } => false,
        _ => true,
    };
    let mut readers = flow.readers(list).map(|at| &flow.nodes()[at]);
    flow.is_output(list) || readers.any(looks)
}

/// The element type a pixel is kept in beside sums.
fn kept(dtype: DType) -> DType {
    match dtype {
        DType::U32 | DType::F32 | DType::F64 => dtype,
        _ => DType::I32,
    }
}

/// A type's greatest and least value; infinities for floats.
fn ends(k: &Builder, dtype: DType) -> (Ex<'_>, Ex<'_>) {
    let (least, greatest) = match dtype {
        DType::U8 => (0.0, 255.0),
        DType::U16 => (0.0, 65_535.0),
        DType::I16 => (-32_768.0, 32_767.0),
        DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
        DType::U32 => (0.0, 4_294_967_295.0),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let ty = Ty::of(dtype).expect("images have types that operations take");
    let number = |value| k.graph().number(ty, value);
    (number(greatest), number(least))
}

/// Memory between the launches: sums of chunks and groups, extremes of chunks.
pub(super) struct Scratch {
    sums: LaunchArg,
    groups: LaunchArg,
    chunks: u64,
}

/// Finds min, max, sum and mean and leaves them in a list.
pub(super) fn first(
    plan: &mut Plan,
    flow: &Flow,
    image: ValueId,
    list: LaunchArg,
    tuning: &Tuning,
) -> Scratch {
    let kind = flow.kind(image);
    let (dtype, count) = (kind.dtype(), kind.elements());
    let chunks = count.div_ceil(u64::from(CHUNK));
    let bytes = kept(dtype).bytes();
    let scratch = Scratch {
        sums: plan.scratch(chunks * 8),
        groups: plan.scratch(chunks.div_ceil(u64::from(GROUP)) * 8),
        chunks,
    };
    let (least, most) = (plan.scratch(chunks * bytes), plan.scratch(chunks * bytes));

    let k = Builder::new();
    let pixels = k.buffer("in", dtype, Access::Read);
    let sums = k.buffer("sums", DType::F64, Access::Write);
    let lows = k.buffer("least", kept(dtype), Access::Write);
    let highs = k.buffer("most", kept(dtype), Access::Write);
    let length = k.scalar("count", Ty::I32);
    let (greatest, lowest) = ends(&k, dtype);
    let starts = [
        (wide(&k, 0.0), Join::Sum),
        (greatest, Join::Least),
        (lowest, Join::Most),
    ];
    chunkwise(
        &k,
        tuning,
        (pixels, length),
        &starts,
        |pixel, now| {
            let sum = now[0] + pixel.cast(Ty::F64);
            vec![sum, now[1].min(pixel), now[2].max(pixel)]
        },
        &[sums, lows, highs],
    );
    let args = Args::new()
        .value(image)
        .buffer(scratch.sums)
        .buffer(least)
        .buffer(most)
        .count(count);
    launch_chunks(
        plan,
        tuning,
        k.finish("wl_totals", tuning.line()),
        chunks,
        args,
    );

    let k = Builder::new();
    let sums = k.buffer("sums", DType::F64, Access::Read);
    let groups = k.buffer("groups", DType::F64, Access::ReadWrite);
    let lows = k.buffer("least", kept(dtype), Access::Read);
    let highs = k.buffer("most", kept(dtype), Access::Read);
    let out = k.buffer("out", DType::F64, Access::Write);
    let length = k.scalar("chunks", Ty::I32);
    let pixels = k.scalar("count", Ty::I32);
    let ty = lows.ty();
    let mine = lane(&k, tuning);
    let (greatest, lowest) = ends(&k, dtype);
    let (low, high) = (k.var(greatest), k.var(lowest));
    let step = int(&k, tuning.lanes.cast_signed());
    k.for_by(mine, length, step, |i| {
        k.set(low, k.get(low).min(k.load(lows, i)));
        k.set(high, k.get(high).max(k.load(highs, i)));
    });
    let shared = |start: Var| {
        let all = k.array(ty, tuning.lanes, Space::Shared);
        k.store(all, mine, k.get(start));
        all
    };
    let (all_low, all_high) = (shared(low), shared(high));
    group_sums(&k, tuning, sums, groups, length);
    meet(&k, tuning);
    k.if_(mine.is(0), || {
        let (low, high) = (k.var(greatest), k.var(lowest));
        k.for_(int(&k, 0), step, |i| {
            k.set(low, k.get(low).min(k.load(all_low, i)));
            k.set(high, k.get(high).max(k.load(all_high, i)));
        });
        let sum = total(&k, groups, length);
        let put = |at, value: Ex<'_>| k.store(out, int(&k, at), k.let_(value.cast(Ty::F64)));
        put(MIN, k.get(low));
        put(MAX, k.get(high));
        put(SUM, sum);
        put(MEAN, sum / pixels.cast(Ty::F64));
    });
    let args = Args::new()
        .buffer(scratch.sums)
        .buffer(scratch.groups)
        .buffer(least)
        .buffer(most)
        .buffer(list)
        .count(chunks)
        .count(count);
    launch(plan, k.finish("wl_totals_end", tuning.line()), 1, args);
    scratch
}

/// The standard deviation, about the mean that is already in the list.
fn second(
    plan: &mut Plan,
    flow: &Flow,
    image: ValueId,
    list: ValueId,
    scratch: &Scratch,
    tuning: &Tuning,
) {
    let kind = flow.kind(image);
    let k = Builder::new();
    let pixels = k.buffer("in", kind.dtype(), Access::Read);
    let known = k.buffer("list", DType::F64, Access::Read);
    let sums = k.buffer("sums", DType::F64, Access::Write);
    let length = k.scalar("count", Ty::I32);
    let mean = k.load(known, int(&k, MEAN));
    chunkwise(
        &k,
        tuning,
        (pixels, length),
        &[(wide(&k, 0.0), Join::Sum)],
        |pixel, now| {
            let off = k.let_(pixel.cast(Ty::F64) - mean);
            vec![now[0] + off * off]
        },
        &[sums],
    );
    let args = Args::new()
        .value(image)
        .value(list)
        .buffer(scratch.sums)
        .count(kind.elements());
    let def = k.finish("wl_squares", tuning.line());
    launch_chunks(plan, tuning, def, scratch.chunks, args);

    let k = Builder::new();
    let sums = k.buffer("sums", DType::F64, Access::Read);
    let groups = k.buffer("groups", DType::F64, Access::ReadWrite);
    let out = k.buffer("list", DType::F64, Access::ReadWrite);
    let length = k.scalar("chunks", Ty::I32);
    let pixels = k.scalar("count", Ty::I32);
    group_sums(&k, tuning, sums, groups, length);
    meet(&k, tuning);
    k.if_(lane(&k, tuning).is(0), || {
        let sum = total(&k, groups, length);
        let std = k.let_((sum / pixels.cast(Ty::F64)).sqrt());
        k.store(out, int(&k, STD), std);
    });
    let args = Args::new()
        .buffer(scratch.sums)
        .buffer(scratch.groups)
        .value(list)
        .count(scratch.chunks)
        .count(kind.elements());
    launch(plan, k.finish("wl_squares_end", tuning.line()), 1, args);
}

/// The mean of all pixels that are numbers, in a list of one.
pub(super) fn mean(plan: &mut Plan, flow: &Flow, image: ValueId, list: ValueId, tuning: &Tuning) {
    let kind = flow.kind(image);
    let chunks = kind.elements().div_ceil(u64::from(CHUNK));
    let parts = [0, 1].map(|_| {
        let groups = chunks.div_ceil(u64::from(GROUP));
        [plan.scratch(chunks * 8), plan.scratch(groups * 8)]
    });

    let k = Builder::new();
    let pixels = k.buffer("in", kind.dtype(), Access::Read);
    let sums = ["sums", "counts"].map(|name| k.buffer(name, DType::F64, Access::Write));
    let length = k.scalar("count", Ty::I32);
    // Pixels of a chunk are few: to count them takes no number of double precision.
    let starts = [(wide(&k, 0.0), Join::Sum), (int(&k, 0), Join::Sum)];
    chunkwise(
        &k,
        tuning,
        (pixels, length),
        &starts,
        |pixel, now| {
            if !pixel.ty().is_float() {
                return vec![now[0] + pixel.cast(Ty::F64), now[1] + 1];
            }
            let nan = k.let_(pixel.is_nan());
            let value = nan.select(k.graph().number(pixel.ty(), 0.0), pixel);
            vec![now[0] + value.cast(Ty::F64), now[1] + (!nan).cast(Ty::I32)]
        },
        &sums,
    );
    let args = Args::new()
        .value(image)
        .buffer(parts[0][0])
        .buffer(parts[1][0])
        .count(kind.elements());
    let def = k.finish("wl_numbers", tuning.line());
    launch_chunks(plan, tuning, def, chunks, args);

    let k = Builder::new();
    let bufs = ["sums", "counts"].map(|name| {
        let sums = k.buffer(name, DType::F64, Access::Read);
        [sums, k.buffer("groups", DType::F64, Access::ReadWrite)]
    });
    let out = k.buffer("out", DType::F64, Access::Write);
    let length = k.scalar("chunks", Ty::I32);
    for [sums, groups] in bufs {
        group_sums(&k, tuning, sums, groups, length);
    }
    meet(&k, tuning);
    k.if_(lane(&k, tuning).is(0), || {
        let [sum, count] = bufs.map(|[_, groups]| total(&k, groups, length));
        k.store(out, int(&k, 0), k.let_(sum / count));
    });
    let args = parts
        .iter()
        .flatten()
        .fold(Args::new(), |args, part| args.buffer(*part));
    let args = args.value(list).count(chunks);
    launch(plan, k.finish("wl_numbers_end", tuning.line()), 1, args);
}

/// One item for a chunk, or one for each of its lanes.
fn launch_chunks(
    plan: &mut Plan,
    tuning: &Tuning,
    def: crate::kernel::KernelDef,
    chunks: u64,
    args: Args,
) {
    let items = if tuning.is_processor() { 1 } else { LANES };
    launch(plan, def, chunks * u64::from(items), args);
}

/// How values of lanes become one.
#[derive(Clone, Copy)]
enum Join {
    Sum,
    Least,
    Most,
}

impl Join {
    fn of<'k>(self, a: Ex<'k>, b: Ex<'k>) -> Ex<'k> {
        match self {
            Self::Sum => a + b,
            Self::Least => a.min(b),
            Self::Most => a.max(b),
        }
    }
}

/// Folds every chunk: `step` gives the next values of a lane from a pixel and the lane's values
/// now; lanes are then joined, value by value.
fn chunkwise<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    (pixels, count): (Buf, Ex<'k>),
    starts: &[(Ex<'k>, Join)],
    step: impl Fn(Ex<'k>, &[Ex<'k>]) -> Vec<Ex<'k>>,
    out: &[Buf],
) {
    let size = CHUNK.cast_signed();
    let lanes = LANES.cast_signed();
    let advance = |vars: &[Var], at: Ex<'k>| {
        let pixel = k.load(pixels, at);
        let now: Vec<Ex<'k>> = vars.iter().map(|var| k.get(*var)).collect();
        for (var, next) in vars.iter().zip(step(pixel, &now)) {
            k.set(*var, next);
        }
    };
    let new = || -> Vec<Var> { starts.iter().map(|(start, _)| k.var(*start)).collect() };
    if tuning.is_processor() {
        return side_by_side(k, tuning, (pixels, count), starts, step, out);
    }
    let (at, mine) = (item(k, tuning), lane(k, tuning));
    let (chunk, first) = (k.let_(at.shifted_right(4)), k.let_(at & int(k, lanes - 1)));
    let start = k.let_(chunk * size);
    let inside = k.let_(start.ge(0) & start.lt(count));
    let vars = new();
    k.if_(inside, || {
        let length = k.let_((count - start).min(size));
        k.for_by(first, length, int(k, lanes), |i| advance(&vars, start + i));
    });
    let shared: Vec<Buf> = vars
        .iter()
        .zip(starts)
        .map(|(var, (start, _))| {
            let all = k.array(start.ty(), tuning.lanes, Space::Shared);
            k.store(all, mine, k.get(*var));
            all
        })
        .collect();
    k.barrier();
    k.if_(inside & first.is(0), || {
        for (which, (out, all)) in out.iter().zip(&shared).enumerate() {
            let sum = k.var(starts[which].0);
            k.for_(int(k, 0), int(k, lanes), |i| {
                let next = k.load(*all, mine + i);
                k.set(sum, starts[which].1.of(k.get(sum), next));
            });
            k.store(*out, chunk, k.let_(k.get(sum).cast(out.ty())));
        }
    });
}

/// The same in one item for a chunk: an array for each value, and loops over its lanes, which become
/// vector code.
fn side_by_side<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    (pixels, count): (Buf, Ex<'k>),
    starts: &[(Ex<'k>, Join)],
    step: impl Fn(Ex<'k>, &[Ex<'k>]) -> Vec<Ex<'k>>,
    out: &[Buf],
) {
    let (size, lanes) = (CHUNK.cast_signed(), LANES.cast_signed());
    let chunk = item(k, tuning);
    let start = k.let_(chunk * size);
    k.if_(start.ge(0) & start.lt(count), || {
        let length = k.let_((count - start).min(size));
        let values: Vec<Buf> = starts
            .iter()
            .map(|(start, _)| k.array(start.ty(), LANES, Space::Private))
            .collect();
        k.for_(int(k, 0), int(k, lanes), |lane| {
            for (value, (start, _)) in values.iter().zip(starts) {
                k.store(*value, lane, *start);
            }
        });
        // Some pixels of lanes from `at` on, one after the other for each.
        let some = |at: Ex<'k>, lanes: Ex<'k>, rounds: u32| {
            k.for_(int(k, 0), lanes, |lane| {
                let mut now: Vec<Ex<'k>> =
                    values.iter().map(|value| k.load(*value, lane)).collect();
                for round in 0..rounds {
                    let offset = (round * LANES).cast_signed();
                    let pixel = k.load(pixels, start + at + offset + lane);
                    now = step(pixel, &now)
                        .into_iter()
                        .map(|next| k.let_(next))
                        .collect();
                }
                for (value, next) in values.iter().zip(now) {
                    k.store(*value, lane, next);
                }
            });
        };
        let long = (LANES * ROUNDS).cast_signed();
        let far = k.let_(length - length % int(k, long));
        let all = k.let_(length - length % int(k, lanes));
        k.for_by(int(k, 0), far, int(k, long), |at| {
            some(at, int(k, lanes), ROUNDS);
        });
        k.for_by(far, all, int(k, lanes), |at| some(at, int(k, lanes), 1));
        some(all, k.let_(length - all), 1);
        for (which, (out, value)) in out.iter().zip(&values).enumerate() {
            let sum = k.var(starts[which].0);
            k.for_(int(k, 0), int(k, lanes), |lane| {
                let next = k.load(*value, lane);
                k.set(sum, starts[which].1.of(k.get(sum), next));
            });
            k.store(*out, chunk, k.let_(k.get(sum).cast(out.ty())));
        }
    });
}

/// Adds sums of chunks in groups, each group in one item.
fn group_sums<'k>(k: &'k Builder, tuning: &Tuning, sums: Buf, groups: Buf, chunks: Ex<'k>) {
    let size = GROUP.cast_signed();
    let mine = lane(k, tuning);
    let count = group_count(k, chunks);
    k.for_by(mine, count, int(k, tuning.lanes.cast_signed()), |at| {
        let sum = k.var(wide(k, 0.0));
        let first = k.let_(at * size);
        k.for_(first, (first + size).min(chunks), |i| {
            k.set(sum, k.get(sum) + k.load(sums, i));
        });
        k.store(groups, at, k.get(sum));
    });
}

fn group_count<'k>(k: &'k Builder, chunks: Ex<'k>) -> Ex<'k> {
    let size = GROUP.cast_signed();
    k.let_((chunks + (size - 1)) / int(k, size))
}

/// Adds the groups, in order.
fn total<'k>(k: &'k Builder, groups: Buf, chunks: Ex<'k>) -> Ex<'k> {
    let sum = k.var(wide(k, 0.0));
    k.for_(int(k, 0), group_count(k, chunks), |i| {
        k.set(sum, k.get(sum) + k.load(groups, i));
    });
    k.get(sum)
}
