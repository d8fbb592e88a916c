//! Convolution with a kernel that is an image itself.

use crate::Boundary;
use crate::expr::{Ex, Ty};
use crate::flow::{Flow, Node, real};
use crate::kernel::{Access, Builder, Img};

use super::lanes::{Lanes, at_once, items, runs};
use super::launch::{Args, Plan};
use super::near::Near;
use super::patch::{self, PITCH, Patch};
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

/// The most weights along x that are taken at once.
const AT_ONCE: i32 = 4;

/// Sums of a piece of an image. Two rows share each pixel that is loaded: what one of them has for a row of
/// weights, the other one has for the row before that.
struct Pairs<'k> {
    patch: Patch<'k>,
    weights: Weights<'k>,
    ty: Ty,
    /// Which row of a pair is a row of weights ahead, and which is behind.
    ahead: i32,
}

impl<'k> Pairs<'k> {
    fn int(&self, value: i32) -> Ex<'k> {
        self.patch.k.graph().int(value)
    }

    /// Runs `body` for all weights along x, several at once: with the first of them, and how many there are.
    fn along(&self, body: impl Fn(Ex<'k>, i32)) {
        let (k, count) = (self.patch.k, self.weights.extents[2]);
        let end = k.let_(count / self.int(AT_ONCE) * AT_ONCE);
        k.for_by(self.int(0), end, self.int(AT_ONCE), |first| {
            body(first, AT_ONCE);
        });
        for rest in 1..AT_ONCE {
            k.if_((count - end).is(rest), || body(end, rest));
        }
    }

    /// Adds what rows of weights make of the pixels that they share: for each the row of a pair that has it.
    fn add(&self, z: Ex<'k>, rows: &[(Ex<'k>, Ex<'k>)]) {
        let (k, weights) = (self.patch.k, &self.weights);
        let (row, y) = rows[0];
        self.along(|first, many| {
            let weight =
                |y: Ex<'k>, on: i32| k.let_(k.pixel(weights.img, [z, y, first + on]).cast(self.ty));
            let lists = rows
                .iter()
                .map(|(_, y)| (0..many).map(|on| weight(*y, on)).collect());
            let lists: Vec<Vec<Ex<'k>>> = lists.collect();
            let offset = |on: i32| [weights.offset(1, y), weights.offset(2, first + on)];
            let from = (0..many).map(|on| k.let_(self.patch.place(row, offset(on))));
            let from: Vec<_> = from.collect();
            k.for_by(self.int(0), self.patch.height, self.int(2), |pair| {
                let of = rows.iter().map(|(row, _)| pair + *row);
                let begin = k.let_(pair * PITCH);
                self.patch.change(&of.collect::<Vec<_>>(), |column, sums| {
                    let load = |from: &Ex<'k>| k.load(self.patch.pixels, begin + *from + column);
                    let pixels: Vec<_> = from.iter().map(|from| k.let_(load(from))).collect();
                    let add = |(sum, weights): (&Ex<'k>, &Vec<Ex<'k>>)| {
                        let terms = weights.iter().zip(&pixels);
                        terms.fold(*sum, |sum, (weight, pixel)| k.let_(weight.fma(*pixel, sum)))
                    };
                    sums.iter().zip(&lists).map(add).collect()
                });
            });
        });
    }

    fn all(&self) {
        let (k, patch, weights) = (self.patch.k, &self.patch, &self.weights);
        let [ahead, behind] = [self.ahead, 1 - self.ahead].map(|row| self.int(row));
        patch.begin(0.0);
        k.for_(self.int(0), weights.extents[0], |z| {
            let rows = (patch.height + 1).shifted_right(1) * 2;
            patch.read(patch.plane + weights.offset(0, z), k.let_(rows));
            let count = weights.extents[1];
            k.for_(self.int(0), count + 1, |y| {
                k.if_else(
                    y.gt(0) & y.lt(count),
                    || self.add(z, &[(ahead, y), (behind, k.let_(y - 1))]),
                    || {
                        let is_first = k.let_(y.is(0));
                        let row = k.let_(is_first.select(ahead, behind));
                        self.add(z, &[(row, k.let_(is_first.select(y, y - 1)))]);
                    },
                );
            });
        });
        patch.write();
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
    let patches = tuning.is_processor() && patch::has_room(weights.dims().map(|extent| extent / 2));
    if patches {
        let reach = [1, 2].map(|axis: usize| k.let_(extents[axis].shifted_right(1)));
        let what = (from.dtype(), to.dtype(), boundary);
        Patch::each(&k, (src, dst), what, dims, reach, |patch| {
            let weights = Weights {
                img,
                extents,
                mirrored,
            };
            let ahead = i32::from(!mirrored);
            let pairs = Pairs {
                patch,
                weights,
                ty,
                ahead,
            };
            pairs.all();
        });
    } else {
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
    }
    let def = k.finish("wl_convolve", tuning.group);
    let mut plan = Plan::default();
    let args = Args::new()
        .image(flow, input)
        .image(flow, kernel)
        .image(flow, output)
        .dims(to)
        .dims(weights);
    let items = if patches {
        patch::items(to.dims())
    } else {
        items(to.dims(), tuning.run)
    };
    plan.launch(def, items, args);
    plan
}
