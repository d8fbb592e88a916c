//! Images made sharper than they were taken.

use super::blur::gaussian;
use super::lowering::Lowering;
use crate::Boundary;
use crate::flow::{Prim, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    match at.name() {
        "richardson_lucy" => richardson_lucy(at),
        _ => at.unknown(),
    }
}

/// What blurs.
enum Blur {
    Bell([f64; 3]),
    Kernel(ValueId),
}

impl Blur {
    /// A bell is its own mirror image.
    fn apply(&self, at: &mut Lowering<'_>, image: ValueId, mirrored: bool) -> ValueId {
        let boundary = at.boundary();
        match self {
            Self::Bell(sigma) => gaussian(at.flow, image, *sigma, boundary),
            Self::Kernel(kernel) => {
                let prim = Prim::Convolve { mirrored, boundary };
                at.give(prim, &[image, *kernel])
            }
        }
    }
}

fn richardson_lucy(at: &mut Lowering<'_>) -> ValueId {
    let image = at.as_real(at.inputs[0]);
    let blur = match at.inputs.get(1) {
        Some(psf) => {
            let sum = (at.totals(*psf), 2);
            let dtype = at.real;
            let whole = at.map_with(dtype, [*psf], [sum], [], |[k], [sum], []| k / sum);
            Blur::Kernel(whole)
        }
        None => Blur::Bell(at.call.per_axis("sigma", 0.0)),
    };
    let mut left = at.call.params.integer("iterations");
    // The first estimate is 1, and so is its blur, unless there are zeros around it: what it is
    // multiplied with is the next.
    let mut estimate = if at.boundary() == Boundary::Zero {
        at.map([image], [], |[a], []| a.graph().number(a.ty(), 1.0))
    } else {
        left -= 1;
        blur.apply(at, image, true)
    };
    for _ in 0..left {
        let blurred = blur.apply(at, estimate, false);
        let ratio = at.map([image, blurred], [1e-12], |[a, blurred], [floor]| {
            a / blurred.max(floor)
        });
        let correction = blur.apply(at, ratio, true);
        estimate = at.map([estimate, correction], [], |[u, correction], []| {
            u * correction
        });
    }
    if estimate == at.inputs[0] {
        return at.copy(estimate);
    }
    estimate
}
