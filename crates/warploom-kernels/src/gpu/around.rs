//! Sums and extremes of any neighbourhood, offset by offset.

use warploom_core::DType;

use crate::Boundary;
use crate::expr::Ty;
use crate::flow::{Combine, Flow, Footprint, Node};
use crate::kernel::{Access, Builder};

use super::fold;
use super::lanes::{at_once, items, runs};
use super::launch::{Args, Plan};
use super::lines;
use super::near::Near;
use super::patch::{self, PITCH, Patch};
use super::tuning::Tuning;

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (footprint, combine, boundary): (&Footprint, Combine, Boundary),
    tuning: &Tuning,
) -> Plan {
    if let Some(plan) = lines::plan(flow, node, (footprint, combine, boundary), tuning) {
        return plan;
    }
    let extents = footprint.reach().map(u64::from);
    if combine == Combine::Sum && tuning.is_processor() && patch::has_room(extents) {
        return sums(flow, node, (footprint, boundary), tuning);
    }
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let (dtype, ty) = fold::result(combine, from.dtype());
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let offsets = k.buffer("offsets", DType::I32, Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [count, reach] = ["count", "reach"].map(|name| k.scalar(name, Ty::I32));
    runs(&k, tuning.run, dims, |run| {
        let near = Near {
            k: &k,
            src,
            dims,
            boundary,
            ty,
            outside: k.graph().number(ty, 0.0),
            run,
        };
        near.both_ways(reach, reach, |lanes, clear| {
            let running = lanes.values(ty);
            let nothing = match combine {
                // Added to minus zero everything stays as it is, zeros of both signs included.
                Combine::Sum => -0.0,
                _ => fold::nothing(combine, dtype),
            };
            let nothing = k.graph().number(ty, nothing);
            lanes.each(|lane| running.set(lane, nothing));
            at_once(&k, clear, count, |first, many| {
                let pixel = |on: i32| {
                    let at = (first + on) * 3;
                    let offset = [0, 1, 2].map(|axis| k.load(offsets, at + axis));
                    near.at(offset, clear)
                };
                let pixels: Vec<_> = (0..many).map(pixel).collect();
                lanes.each(|lane| {
                    let all = pixels.iter().fold(running.get(lane), |value, pixel| {
                        k.let_(fold::add(combine, value, pixel(lane)))
                    });
                    running.set(lane, all);
                });
            });
            lanes.each(|lane| {
                let value = running.get(lane).saturate(to.dtype());
                k.put(dst, [run.z, run.y, run.first + lane], value);
            });
        });
    });
    let def = k.finish("wl_around", tuning.group);
    let mut plan = Plan::default();
    let list = footprint.offsets();
    let constant = plan.constant::<i32>(list.as_flattened());
    let args = Args::new()
        .image(flow, input)
        .buffer(constant)
        .image(flow, output)
        .dims(to)
        .count(list.len() as u64)
        .count(u64::from(footprint.reach()[2]));
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}

/// Sums on a processor, of pieces of the image.
fn sums(
    flow: &Flow,
    node: &Node,
    (footprint, boundary): (&Footprint, Boundary),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    // Where each plane's places begin, then the places of all.
    let list = k.buffer("list", DType::I32, Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [rz, ry, rx] = ["rz", "ry", "rx"].map(|name| k.scalar(name, Ty::I32));
    let int = |value: i32| k.graph().int(value);
    let what = (from.dtype(), to.dtype(), boundary);
    Patch::each(&k, (src, dst), what, dims, [ry, rx], |patch| {
        // Added to minus zero everything stays as it is, zeros of both signs included.
        patch.begin(-0.0);
        k.for_(int(0), rz + rz + 1, |z| {
            patch.read(patch.plane + z - rz, patch.height);
            let [first, end] = [z, z + 1].map(|at| k.let_(k.load(list, at)));
            at_once(&k, true, end - first, |next, many| {
                let middle = patch.place(int(0), [int(0), int(0)]);
                let from = |on: i32| k.let_(middle + k.load(list, first + next + on));
                let from: Vec<_> = (0..many).map(from).collect();
                k.for_(int(0), patch.height, |row| {
                    let begin = k.let_(row * PITCH);
                    patch.change(&[row], |column, sums| {
                        let pixel = |from| k.let_(k.load(patch.pixels, begin + from + column));
                        let pixels = from.iter().map(|from| pixel(*from));
                        vec![pixels.fold(sums[0], |sum, pixel| k.let_(sum + pixel))]
                    });
                });
            });
        });
        patch.write();
    });
    let def = k.finish("wl_around_sums", tuning.group);
    let mut plan = Plan::default();
    let offsets = footprint.offsets();
    let reach = footprint.reach().map(u32::cast_signed);
    let before = |z: i32| offsets.iter().filter(|offset| offset[0] < z).count();
    let head = 2 * reach[0] + 2;
    let starts = (-reach[0]..=reach[0] + 1).map(|z| head + i32::try_from(before(z)).expect("few"));
    let places = offsets.iter().map(|[_, y, x]| y * PITCH + x);
    let list = plan.constant::<i32>(&starts.chain(places).collect::<Vec<_>>());
    let args = Args::new()
        .image(flow, input)
        .buffer(list)
        .image(flow, output)
        .dims(to);
    let args = reach.into_iter().fold(args, Args::int);
    plan.launch(def, patch::items(to.dims()), args);
    plan
}
