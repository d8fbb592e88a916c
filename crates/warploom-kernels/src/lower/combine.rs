//! Several images, pixel by pixel.

use super::lowering::Lowering;
use crate::expr::{Ex, Ty};
use crate::flow::ValueId;

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let (result, ty) = (at.result().dtype, at.ty);
    // Images of one type are chosen from as they are, others as real numbers.
    let pictures = at.inputs.iter().rev().take(2);
    let mut types = pictures.map(|id| at.flow.image(*id).dtype);
    let cast = (types.next() != types.next()).then_some(ty);
    match (at.name(), at.inputs) {
        ("mask_image", [image, mask]) => at.native(result, [*image, *mask], |[a, mask]| {
            mask.is_not(0).select(a, 0)
        }),
        ("select", [mask, a, b]) => at.native(result, [*mask, *a, *b], |[mask, a, b]| {
            mask.is_not(0).select(common(a, cast), common(b, cast))
        }),
        ("maximum_images", [a, b]) => at.native(result, [*a, *b], |[a, b]| {
            numbers_first(common(a, cast), common(b, cast), Ex::max)
        }),
        ("minimum_images", [a, b]) => at.native(result, [*a, *b], |[a, b]| {
            numbers_first(common(a, cast), common(b, cast), Ex::min)
        }),
        (name, [a, b]) => {
            let formula = two(name).unwrap_or_else(|| at.unknown());
            at.map([*a, *b], [], |[a, b], []| formula(a, b))
        }
        _ => at.unknown(),
    }
}

/// In a type both have.
fn common(a: Ex<'_>, cast: Option<Ty>) -> Ex<'_> {
    cast.map_or(a, |ty| a.cast(ty))
}

/// The extreme, of which a NaN on the right is no part, without one on the left too.
fn numbers_first<'g>(
    a: Ex<'g>,
    b: Ex<'g>,
    extreme: impl FnOnce(Ex<'g>, Ex<'g>) -> Ex<'g>,
) -> Ex<'g> {
    if a.ty().is_float() {
        a.is_nan().select(b, extreme(a, b))
    } else {
        extreme(a, b)
    }
}

fn two(name: &str) -> Option<for<'g> fn(Ex<'g>, Ex<'g>) -> Ex<'g>> {
    Some(match name {
        "add_images" => |a, b| a + b,
        "subtract_images" => |a, b| a - b,
        "multiply_images" => |a, b| a * b,
        "divide_images" => |a, b| a / b,
        "absolute_difference" => |a, b| (a - b).abs(),
        _ => return None,
    })
}
