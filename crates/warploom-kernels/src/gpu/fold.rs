//! Many numbers made one.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::flow::Combine;

/// The running value after the first number. An extreme that is not a number does not count.
pub(super) fn begin(combine: Combine, first: Ex<'_>) -> Ex<'_> {
    let infinity = |sign: f64| first.graph().number(first.ty(), sign * f64::INFINITY);
    match combine {
        Combine::Min if first.ty().is_float() => infinity(1.0).min(first),
        Combine::Max if first.ty().is_float() => infinity(-1.0).max(first),
        _ => first,
    }
}

/// The running value after one more.
pub(super) fn add<'k>(combine: Combine, running: Ex<'k>, next: Ex<'k>) -> Ex<'k> {
    match combine {
        Combine::Sum => running + next,
        Combine::Min => running.min(next),
        Combine::Max => running.max(next),
    }
}

/// What nothing is, before the first number: the type's greatest for the least, and so on.
pub(super) fn nothing(combine: Combine, dtype: DType) -> f64 {
    let (least, greatest) = match dtype {
        DType::U8 => (0.0, 255.0),
        DType::U16 => (0.0, 65_535.0),
        DType::I16 => (-32_768.0, 32_767.0),
        DType::U32 => (0.0, 4_294_967_295.0),
        DType::F32 | DType::F64 => (f64::NEG_INFINITY, f64::INFINITY),
        _ => (f64::from(i32::MIN), f64::from(i32::MAX)),
    };
    match combine {
        Combine::Sum => 0.0,
        Combine::Min => greatest,
        Combine::Max => least,
    }
}

/// The type a neighbourhood is combined in, and the elements it gives.
pub(super) fn result(combine: Combine, from: DType) -> (DType, Ty) {
    let dtype = match combine {
        Combine::Sum => crate::flow::real(from),
        Combine::Min | Combine::Max => from,
    };
    (
        dtype,
        Ty::of(dtype).expect("an element type that operations take"),
    )
}
