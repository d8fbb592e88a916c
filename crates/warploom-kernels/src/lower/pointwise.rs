//! One pixel in, one pixel out.

use std::array;

use warploom_core::DType;

use super::lowering::Lowering;
use crate::expr::{Ex, Ty};
use crate::flow::{Number, ValueId};

pub(super) fn lower(at: &mut Lowering<'_>) -> ValueId {
    let image = at.inputs[0];
    match at.name() {
        "affine_intensity" if at.is_late() => {
            let numbers = [at.source("scale", 1.0), at.source("offset", 0.0)];
            at.map_with(at.real, [image], numbers, [], |[a], [scale, offset], []| {
                a.fma(scale, offset)
            })
        }
        "affine_intensity" => {
            let numbers = [at.number("scale"), at.number("offset")];
            at.map([image], numbers, |[a], [scale, offset]| {
                a.fma(scale, offset)
            })
        }
        "power" => power(at, image, at.number("exponent")),
        "gamma" => {
            let gamma = split(at.ty, at.number("gamma"));
            with_white(at, image, gamma, |a, white, [gamma, rest]| {
                (a / white).pow_of_sum(gamma, rest) * white
            })
        }
        "exp" => {
            let scale = split(at.ty, at.number("scale"));
            at.map([image], scale, |[a], [scale, rest]| {
                let x = a * scale;
                // What the product lost counts as much as the number is large.
                x.exp_of_sum(a.fma(rest, a.fma(scale, -x)))
            })
        }
        "log1p" => at.map([image], [], |[a], []| a.log1p()),
        "sqrt" => at.map([image], [], |[a], []| a.sqrt()),
        "abs" => at.map([image], [], |[a], []| a.abs()),
        "invert" => with_white(at, image, [], |a, white, []| white - a),
        "clip" if at.is_late() => {
            let low = at.source("low", f64::NEG_INFINITY);
            let limits = [low, at.source("high", f64::INFINITY)];
            at.map_with(at.real, [image], limits, [], |[a], [low, high], []| {
                a.max(low).min(high)
            })
        }
        "clip" => {
            let limit = |name, otherwise| at.call.params.maybe_number(name).unwrap_or(otherwise);
            let limits = [
                limit("low", f64::NEG_INFINITY),
                limit("high", f64::INFINITY),
            ];
            at.map([image], limits, |[a], [low, high]| a.max(low).min(high))
        }
        "cast" => cast(at, image),
        _ => at.unknown(),
    }
}

/// A number as two of a type: what it rounds to and what that leaves.
fn split(ty: Ty, number: f64) -> [f64; 2] {
    match Number::new(ty, number) {
        Number::F32(high) if high.is_finite() => [f64::from(high), number - f64::from(high)],
        _ => [number, 0.0],
    }
}

/// Powers that are one operation are done as such; for a general one a new exponent needs no new
/// kernel.
fn power(at: &mut Lowering<'_>, image: ValueId, exponent: f64) -> ValueId {
    match exponent {
        2.0 => at.map([image], [], |[a], []| a * a),
        1.0 => at.map([image], [], |[a], []| a),
        -1.0 => at.map([image], [], |[a], []| a.graph().number(a.ty(), 1.0) / a),
        // As numpy does it: the root of minus infinity is NaN, and that of -0 is -0.
        0.5 => at.map([image], [], |[a], []| a.sqrt()),
        // Two or three roundings, and nothing in between that leaves the range before the result does.
        3.0 => at.map([image], [], |[a], []| a * a * a),
        4.0 => at.map([image], [], |[a], []| {
            let square = a * a;
            square * square
        }),
        -2.0 => at.map([image], [], |[a], []| {
            let inverse = a.graph().number(a.ty(), 1.0) / a;
            inverse * inverse
        }),
        // The root of minus infinity is no number, and the whole is infinity.
        1.5 => at.map([image], [], |[a], []| {
            let infinity = a.graph().number(a.ty(), f64::INFINITY);
            a.is(-infinity).select(infinity, a * a.sqrt())
        }),
        _ => {
            let exponent = split(at.ty, exponent);
            at.map([image], exponent, |[a], [high, low]| {
                a.pow_of_sum(high, low)
            })
        }
    }
}

/// A formula with the value that stands for white: the one given, else the image's largest.
fn with_white<const N: usize>(
    at: &mut Lowering<'_>,
    image: ValueId,
    numbers: [f64; N],
    formula: impl for<'g> FnOnce(Ex<'g>, Ex<'g>, [Ex<'g>; N]) -> Ex<'g>,
) -> ValueId {
    let numbers = numbers.map(|number| Number::new(at.ty, number));
    let (ty, dtype, images) = (at.ty, at.real, [image]);
    if let Some(white) = at.call.params.maybe_number("maximum") {
        let numbers = [&[Number::new(ty, white)], &numbers[..]].concat();
        return at.terms(dtype, images, [], &numbers, |[a], [], n| {
            formula(a.cast(ty), n[0], array::from_fn(|at| n[at + 1]))
        });
    }
    let white = (at.totals(image), 1);
    at.terms(dtype, images, [white], &numbers, |[a], [white], n| {
        formula(a.cast(ty), white.cast(ty), array::from_fn(|at| n[at]))
    })
}

/// The range of a type on which `cast` maps.
fn range(dtype: DType) -> [f64; 2] {
    match dtype {
        DType::U8 => [0.0, 255.0],
        DType::U16 => [0.0, 65_535.0],
        DType::I16 => [-32_768.0, 32_767.0],
        DType::I32 => [f64::from(i32::MIN), f64::from(i32::MAX)],
        DType::U32 => [0.0, f64::from(u32::MAX)],
        _ => [0.0, 1.0],
    }
}

fn cast(at: &mut Lowering<'_>, image: ValueId) -> ValueId {
    let params = &at.call.params;
    let (from, to) = (at.flow.image(image).dtype, params.dtype("type"));
    let wraps = params.choice("mode") == "wrap";
    let scale = |name, dtype| match params.numbers(name) {
        [] => range(dtype),
        [high] => [0.0, *high],
        [low, high, ..] => [*low, *high],
    };
    if params.numbers("scale_from").is_empty() && params.numbers("scale_to").is_empty() {
        return at.native(to, [image], |[a]| if wraps { wrap(a, to) } else { a });
    }
    let [from_low, from_high] = scale("scale_from", from);
    let [to_low, to_high] = scale("scale_to", to);
    let numbers = [from_low, to_high - to_low, from_high - from_low, to_low];
    let numbers = numbers.map(Number::F64);
    at.terms(to, [image], [], &numbers, |[a], [], n| {
        // Multiplied before it is divided: whole numbers stay whole as long as they can.
        (a.cast(Ty::F64) - n[0]) * n[1] / n[2] + n[3]
    })
}

/// Whole numbers modulo the size of their type. Others are left to be saturated: numpy leaves open
/// what becomes of them.
fn wrap(a: Ex<'_>, to: DType) -> Ex<'_> {
    if a.ty().is_float() {
        return a;
    }
    let bits = a.cast(Ty::U32);
    match to {
        DType::U8 => bits & 255,
        DType::U16 => bits & 65_535,
        DType::I16 => bits.shifted_left(16).cast(Ty::I32).shifted_right(16),
        DType::I32 => bits.cast(Ty::I32),
        DType::U32 => bits,
        _ => a,
    }
}
