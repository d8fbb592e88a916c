//! Convolution with a kernel that is an image itself.

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, real};
use crate::kernel::{Access, Builder, Img};

use super::lanes::{Lanes, at_once, items, runs};
use super::launch::{Args, Plan};
use super::near::Near;
use super::tuning::Tuning;

/// Weights as the kernel has them.
struct Weights<'k> {
    img: Img<'k>,
    extents: [Ex<'k>; 3],
    mirrored: bool,
}

impl<'k> Weights<'k> {
    /// Where along an axis the pixel is that weight `j` is for.
    fn offset(&self, axis: usize, j: Ex<'k>) -> Ex<'k> {
        let middle = self.extents[axis].shifted_right(1);
        if self.mirrored {
            j - middle
        } else {
            middle - j
        }
    }

    fn sums(&self, near: Near<'k>, lanes: Lanes<'k>, clear: bool, finish: impl Fn(Ex<'k>, Ex<'k>)) {
        let (k, zero) = (near.k, near.k.graph().int(0));
        let sums = lanes.values(near.ty);
        let nothing = k.graph().number(near.ty, 0.0);
        lanes.each(|lane| sums.set(lane, nothing));
        k.for_(zero, self.extents[0], |z| {
            k.for_(zero, self.extents[1], |y| {
                at_once(k, clear, self.extents[2], |first, many| {
                    let term = |on: i32| {
                        let x = first + on;
                        let weight = k.let_(k.pixel(self.img, [z, y, x]).cast(near.ty));
                        let at = [(0, z), (1, y), (2, x)].map(|(axis, j)| self.offset(axis, j));
                        (weight, near.at(at, clear))
                    };
                    let terms: Vec<_> = (0..many).map(term).collect();
                    lanes.each(|lane| {
                        let sum = terms.iter().fold(sums.get(lane), |sum, (weight, pixel)| {
                            k.let_(weight.fma(pixel(lane), sum))
                        });
                        sums.set(lane, sum);
                    });
                });
            });
        });
        lanes.each(|lane| finish(lane, sums.get(lane)));
    }
}

pub(super) fn plan(
    flow: &Flow,
    node: &Node,
    (mirrored, boundary): (bool, Boundary),
    tuning: &Tuning,
) -> Plan {
    let (input, kernel, output) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let (from, to, weights) = (flow.kind(input), flow.kind(output), flow.kind(kernel));
    let ty = Ty::of(real(from.dtype())).expect("a real type");
    let k = Builder::new();
    let src = k.image("src", from.dtype(), Access::Read);
    let img = k.image("weights", weights.dtype(), Access::Read);
    let dst = k.image("dst", to.dtype(), Access::Write);
    let dims = ["nz", "ny", "nx"].map(|name| k.scalar(name, Ty::I32));
    let extents = ["kz", "ky", "kx"].map(|name| k.scalar(name, Ty::I32));
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
        let weights = Weights {
            img,
            extents,
            mirrored,
        };
        // Of an even extent one side reaches further than the other; half is enough for both.
        let reach = k.let_(extents[2].shifted_right(1));
        near.both_ways(reach, reach, |lanes, clear| {
            weights.sums(near, lanes, clear, |lane, sum| {
                let at = [run.z, run.y, run.first + lane];
                k.put(dst, at, sum.saturate(to.dtype()));
            });
        });
    });
    let def = k.finish("wl_convolve", tuning.group);
    let mut plan = Plan::default();
    let args = Args::new()
        .image(flow, input)
        .image(flow, kernel)
        .image(flow, output)
        .dims(to)
        .dims(weights);
    plan.launch(def, items(to.dims(), tuning.run), args);
    plan
}
