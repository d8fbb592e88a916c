//! From image to mask.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::expr::Ty;
use crate::flow::{Prim, ThresholdMethod, ValueId, ValueKind};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let method = match at.name() {
        "threshold_otsu" => ThresholdMethod::Otsu,
        "threshold_triangle" => ThresholdMethod::Triangle,
        "threshold_li" => ThresholdMethod::Li,
        "threshold_yen" => ThresholdMethod::Yen,
        "threshold_isodata" => ThresholdMethod::Isodata,
        "threshold_mean" => ThresholdMethod::Mean,
        "threshold_local" => {
            let (sums, count) = at.box_sums(image, at.real);
            let numbers = [count, at.number("offset")];
            return at.map_to(
                DType::U8,
                [image, sums],
                numbers,
                |[a, sum], [count, offset]| a.gt(sum / count + offset),
            );
        }
        _ => at.unknown(),
    };
    let bins = u32::try_from(at.call.params.integer("bins")).unwrap_or(u32::MAX);
    let prim = Prim::Threshold { method, bins };
    let threshold = at.flow.add(prim, &[image], ValueKind::scalars(1));
    // In f64 no pixel and no threshold is rounded.
    at.terms(DType::U8, [image], [(threshold, 0)], &[], |[a], [t], _| {
        a.cast(Ty::F64).gt(t)
    })
}
