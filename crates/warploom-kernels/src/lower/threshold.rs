//! From image to mask.

use warploom_core::DType;

use super::lowering::Lowering;
use crate::expr::Ty;
use crate::flow::{Number, Prim, ThresholdMethod, ValueId, ValueKind};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    let method = match at.name() {
        "threshold_otsu" => ThresholdMethod::Otsu,
        "threshold_triangle" => ThresholdMethod::Triangle,
        "threshold_li" => ThresholdMethod::Li,
        "threshold_yen" => ThresholdMethod::Yen,
        "threshold_isodata" => ThresholdMethod::Isodata,
        "threshold_mean" => ThresholdMethod::Mean,
        "threshold_local" => return local(at, image),
        _ => at.unknown(),
    };
    let bins = u32::try_from(at.call.params.integer("bins")).unwrap_or(u32::MAX);
    let prim = Prim::Threshold { method, bins };
    let threshold = at.flow.add(prim, &[image], ValueKind::scalars(1));
    let dtype = at.flow.image(image).dtype;
    if method == ThresholdMethod::Mean && matches!(dtype, DType::F64 | DType::I32 | DType::U32) {
        // A sum of many digits is rounded, and then the mean of one value may be below it: no mean
        // is below the least value.
        let least = (at.totals(image), 0);
        let limits = [(threshold, 0), least];
        return at.terms(DType::U8, [image], limits, &[], |[a], [mean, least], _| {
            a.cast(Ty::F64).gt(mean) & a.cast(Ty::F64).gt(least)
        });
    }
    // In f64 no pixel and no threshold is rounded.
    at.terms(DType::U8, [image], [(threshold, 0)], &[], |[a], [t], _| {
        a.cast(Ty::F64).gt(t)
    })
}

/// Whether a pixel is above the mean of its window and an offset. Whole numbers are compared with
/// all their digits: `a*count - sum > offset*count`, where the left side is a whole number.
fn local(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    /// Up to here every whole number is an f32.
    const WHOLE: f64 = 16_777_216.0;
    let dtype = at.flow.image(image).dtype;
    let offset = at.number("offset");
    let largest = match dtype {
        DType::F32 | DType::F64 => {
            let (sums, count) = at.box_sums(image, at.real);
            return at.map_to(
                DType::U8,
                [image, sums],
                [count, offset],
                |[a, sum], [count, offset]| a.gt(sum / count + offset),
            );
        }
        DType::U8 => 255.0,
        DType::I16 | DType::U16 => 65_535.0,
        _ => f64::from(u32::MAX),
    };
    let (kind, ty) = if at.box_count() * largest < WHOLE {
        (DType::F32, Ty::F32)
    } else {
        (DType::F64, Ty::F64)
    };
    let (sums, count) = at.box_sums(image, kind);
    // Whole numbers above a limit are those above the whole number before it; what no difference of
    // such sums reaches need not be exact.
    let limit = (offset * count).floor();
    let numbers = [count, limit].map(|number| Number::new(ty, number));
    at.terms(DType::U8, [image, sums], [], &numbers, |[a, sum], [], n| {
        (a.cast(ty) * n[0] - sum).gt(n[1])
    })
}
