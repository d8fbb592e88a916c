//! Arithmetic that the host does not have: halves, directed rounding, conversions, approximations.
//!
//! Everything here is exact arithmetic on integers followed by one rounding, so that every format
//! and every rounding mode goes through the same few lines.

mod approx;
mod arithmetic;
mod convert;
mod float;
mod simd;

pub(crate) use self::approx::{Function, approximate};
pub(crate) use self::arithmetic::{Arithmetic, Operation};
pub(crate) use self::convert::{Conversion, Number, convert};
pub(crate) use self::float::{Format, Rounding};
pub(crate) use self::simd::{Lanes, dot, find_set, lanes, permute};
