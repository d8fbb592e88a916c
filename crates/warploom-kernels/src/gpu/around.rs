//! Sums and extremes of any neighbourhood, offset by offset.

use crate::Boundary;
use crate::expr::Ty;
use crate::flow::{Combine, Flow, Footprint, Node};
use crate::kernel::{Access, Builder};

use super::fold;
use super::lanes::{at_once, items, runs};
use super::launch::{Args, Plan};
use super::lines;
use super::near::Near;
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
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let (dtype, ty) = fold::result(combine, from.dtype());
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let offsets = k.buffer("offsets", warploom_core::DType::I32, Access::Read);
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
