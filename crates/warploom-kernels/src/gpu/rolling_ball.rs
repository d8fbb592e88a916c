//! The background under a rolling ball.

use crate::Boundary;
use crate::expr::Ty;
use crate::flow::{Flow, Node, real};
use crate::kernel::{Access, Builder};

use super::ball;
use super::lanes::{at_once, items, runs};
use super::launch::{Args, Plan};
use super::near::Near;
use super::tuning::Tuning;

/// The offsets that a ball covers in an image of these extents, in C order, each with how far its
/// surface lies below its top there. Axes of one pixel have no neighbours.
#[expect(
    clippy::cast_possible_truncation,
    reason = "radii are checked to be small"
)]
pub(super) fn covered(dims: [u64; 3], radius: f64) -> (Vec<[i32; 3]>, Vec<f64>) {
    let reach = dims.map(|n| if n > 1 { radius.floor() as i32 } else { 0 });
    let (mut offsets, mut drops) = (Vec::new(), Vec::new());
    for z in -reach[0]..=reach[0] {
        for y in -reach[1]..=reach[1] {
            for x in -reach[2]..=reach[2] {
                let square: f64 = [z, y, x]
                    .iter()
                    .map(|d| f64::from(*d) * f64::from(*d))
                    .sum();
                if square.sqrt() <= radius {
                    offsets.push([z, y, x]);
                    drops.push(radius - (radius * radius - square).max(0.0).sqrt());
                }
            }
        }
    }
    (offsets, drops)
}

pub(super) fn plan(flow: &Flow, node: &Node, radius: f64, tuning: &Tuning) -> Plan {
    if let Some(plan) = ball::plan(flow, node, radius, tuning) {
        return plan;
    }
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let real = real(from.dtype());
    let ty = Ty::of(real).expect("a real type");
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let offsets = k.buffer("offsets", warploom_core::DType::I32, Access::Read);
    let drops = k.buffer("drops", real, Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let [count, reach] = ["count", "reach"].map(|name| k.scalar(name, Ty::I32));
    let infinity = k.graph().number(ty, f64::INFINITY);
    runs(&k, tuning.run, dims, |run| {
        let near = Near {
            k: &k,
            src,
            dims,
            boundary: Boundary::Zero,
            ty,
            outside: infinity,
            run,
        };
        near.both_ways(reach, reach, |lanes, clear| {
            let heights = lanes.values(ty);
            lanes.each(|lane| heights.set(lane, infinity));
            at_once(&k, clear, count, |first, many| {
                let pixel = |on: i32| {
                    let at = (first + on) * 3;
                    let offset = [0, 1, 2].map(|axis| k.load(offsets, at + axis));
                    (near.at(offset, clear), k.load(drops, first + on))
                };
                let pixels: Vec<_> = (0..many).map(pixel).collect();
                lanes.each(|lane| {
                    let least = pixels
                        .iter()
                        .fold(heights.get(lane), |height, (pixel, drop)| {
                            k.let_(height.min(pixel(lane) + *drop))
                        });
                    heights.set(lane, least);
                });
            });
            lanes.each(|lane| {
                let height = heights.get(lane).saturate(to.dtype());
                k.put(dst, [run.z, run.y, run.first + lane], height);
            });
        });
    });
    let def = k.finish("wl_rolling_ball", tuning.group);
    let mut plan = Plan::default();
    let (list, heights) = covered(from.dims(), radius);
    let constant = plan.constant::<i32>(list.as_flattened());
    let heights = plan.reals(real, &heights);
    let reach = list.iter().map(|offset| offset[2]).max().unwrap_or(0);
    let args = Args::new()
        .image(flow, input)
        .buffer(constant)
        .buffer(heights)
        .image(flow, output)
        .dims(to)
        .count(list.len() as u64)
        .int(reach);
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
