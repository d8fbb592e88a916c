//! Tiles of pixels, each made one.

use crate::expr::{Ex, Ty};
use crate::flow::{Combine, Flow, Node, Reach, Tile};
use crate::kernel::{Access, Builder};

use super::dealt::{self, Dealt};
use super::fold;
use super::lanes::{Lanes, Run, items, runs};
use super::launch::{Args, Plan};
use super::tuning::Tuning;

/// Pixels of a tile that are read one after the other.
const FEW: u32 = 16;

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (factor, tile): (Reach, Tile),
    tuning: &Tuning,
) -> Plan {
    let (input, output) = (node.inputs[0], node.outputs[0]);
    let (from, to) = (flow.kind(input), flow.kind(output));
    let (combine, ty) = match tile {
        Tile::Max => (Combine::Max, fold::result(Combine::Max, from.dtype()).1),
        Tile::Mean | Tile::Sum => (Combine::Sum, Ty::F64),
    };
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let factors = ["fz", "fy", "fx"].map(|name| k.scalar(name, Ty::I32));
    // Pixels at a distance that the compiler knows are read in vectors.
    let known = (tuning.is_processor() && factor[2] <= 4).then_some(factor[2]);
    // Of few of them nothing has to be kept until the next row.
    let few = tuning.is_processor() && factor.iter().product::<u32>() <= FEW;
    let nothing = k.graph().number(ty, fold::nothing(combine, from.dtype()));
    let count = factors[0] * factors[1] * factors[2];
    let put = |run: Run<'_>, lane: Ex<'_>, value: Ex<'_>| {
        let value = match tile {
            Tile::Mean => value / count.cast(Ty::F64),
            Tile::Sum | Tile::Max => value,
        };
        let at = [run.z, run.y, run.first + lane];
        k.put(dst, at, value.saturate(to.dtype()));
    };
    let body = |run: Run<'_>, lanes: Lanes<'_>| {
        let zero = k.graph().int(0);
        let corner: [Ex<'_>; 3] = [
            k.let_(run.z * factors[0]),
            k.let_(run.y * factors[1]),
            k.let_(run.first * factors[2]),
        ];
        if few {
            let [fz, fy, fx] = factor.map(u32::cast_signed);
            let rows = (0..fz).flat_map(|dz| (0..fy).map(move |dy| (dz, dy)));
            let rows = rows.map(|(dz, dy)| [corner[0] + dz, corner[1] + dy, corner[2]]);
            let rows: Vec<Ex<'_>> = rows.map(|at| k.let_(k.index(src, at))).collect();
            if lanes.whole && dealt::is_possible(factor[2]) {
                let rows = Dealt::read(&k, src, (from.dtype(), &rows), factor[2]);
                return lanes.each(|lane| {
                    let mut all = nothing;
                    for row in 0..rows.count() {
                        for dx in 0..fx {
                            let value = rows.pixel(row, dx, lane).cast(ty);
                            all = k.let_(fold::add(combine, all, value));
                        }
                    }
                    put(run, lane, all);
                });
            }
            lanes.each(|lane| {
                let mut all = nothing;
                for &row in &rows {
                    for dx in 0..fx {
                        let value = k.load(src.buf, row + lane * fx + dx).cast(ty);
                        all = k.let_(fold::add(combine, all, value));
                    }
                }
                put(run, lane, all);
            });
            return;
        }
        let running = lanes.values(ty);
        lanes.each(|lane| running.set(lane, nothing));
        k.for_(zero, factors[0], |dz| {
            k.for_(zero, factors[1], |dy| {
                let place = [corner[0] + dz, corner[1] + dy, corner[2]];
                let row = k.let_(k.index(src, place));
                if let Some(known) = known {
                    let known = known.cast_signed();
                    return lanes.each(|lane| {
                        let all = (0..known).fold(running.get(lane), |sum, dx| {
                            let value = k.load(src.buf, row + lane * known + dx).cast(ty);
                            k.let_(fold::add(combine, sum, value))
                        });
                        running.set(lane, all);
                    });
                }
                k.for_(zero, factors[2], |dx| {
                    lanes.each(|lane| {
                        let value = k.load(src.buf, row + dx + lane * factors[2]).cast(ty);
                        running.set(lane, fold::add(combine, running.get(lane), value));
                    });
                });
            });
        });
        lanes.each(|lane| put(run, lane, running.get(lane)));
    };
    runs(&k, tuning.run, dims, |run| {
        run.both_ways(&k, |lanes| body(run, lanes));
    });
    let def = k.finish("wl_bin", tuning.group);
    let mut plan = Plan::default();
    let args = Args::new()
        .image(flow, input)
        .image(flow, output)
        .dims(to)
        .count(u64::from(factor[0]))
        .count(u64::from(factor[1]))
        .count(u64::from(factor[2]));
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
