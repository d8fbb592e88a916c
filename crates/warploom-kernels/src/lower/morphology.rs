//! Grey-value morphology: minima and maxima one after the other.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::expr::{Ex, Ty};
use crate::flow::{Combine, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let name = at.name();
    let kind = name.strip_suffix("_box").or(name.strip_suffix("_sphere"));
    let dtype = at.result().dtype;
    match kind {
        Some("opening") => opening(at, image),
        Some("closing") => closing(at, image),
        Some("top_hat") => {
            let opened = opening(at, image);
            at.native(dtype, [image, opened], |[a, opened]| {
                difference(a, opened, dtype)
            })
        }
        Some("bottom_hat") => {
            let closed = closing(at, image);
            at.native(dtype, [image, closed], |[a, closed]| {
                difference(closed, a, dtype)
            })
        }
        _ => at.unknown(),
    }
}

fn opening(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let low = at.extreme(image, Combine::Min);
    at.extreme(low, Combine::Max)
}

fn closing(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let high = at.extreme(image, Combine::Max);
    at.extreme(high, Combine::Min)
}

/// `a - b`, kept in the range of 32-bit numbers where it would leave it; smaller types are kept in
/// theirs when they are stored.
fn difference<'g>(a: Ex<'g>, b: Ex<'g>, dtype: DType) -> Ex<'g> {
    match dtype {
        DType::U32 => a.ge(b).select(a - b, 0),
        DType::I32 => {
            // Around the circle and back: a wrong sign tells that it went too far.
            let difference = (a.cast(Ty::U32) - b.cast(Ty::U32)).cast(Ty::I32);
            let up = difference.lt(0).select(a.graph().int(i32::MAX), difference);
            let down = difference.lt(0).select(difference, i32::MIN);
            a.lt(b).select(down, up)
        }
        _ => a - b,
    }
}
