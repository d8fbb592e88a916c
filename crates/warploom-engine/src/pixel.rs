//! What the CPU engine asks of an element type, and how values change type.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use warploom_core::{DType, Element};

/// An element type of images: `u8 u16 i16 i32 u32 f32 f64`.
pub trait Pixel: Element + Copy + Default + PartialOrd + Debug + 'static {
    /// What operations compute in: `f64` for `f64`, `f32` for all others.
    type Real: Real;
    /// Bits that sort as unsigned numbers the way the values do, -0 before +0.
    type Key: Copy + Ord + Into<u64> + Send + Sync + Debug;

    /// Nothing.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Where a maximum starts: the type's least value, minus infinity for floats.
    const LEAST: Self;
    /// Where a minimum starts: the type's greatest value, infinity for floats.
    const GREATEST: Self;
    /// Whether it has fractions, infinities and NaN.
    const IS_FLOAT: bool;

    /// The nearest `f32`.
    fn to_f32(self) -> f32;
    /// The value; exact, since every type's values are `f64` values.
    fn to_f64(self) -> f64;
    /// The value in the type it is computed in.
    fn to_real(self) -> Self::Real;
    /// Rounded to nearest even and saturated; NaN becomes 0 in integers.
    fn from_f32(value: f32) -> Self;
    /// Rounded to nearest even and saturated; NaN becomes 0 in integers.
    fn from_f64(value: f64) -> Self;
    /// The computed value, rounded and saturated as the two above.
    fn from_real(value: Self::Real) -> Self;
    /// The value's [`Self::Key`].
    fn key(self) -> Self::Key;
    /// The value whose key this is; digits beyond the key's width are ignored.
    fn from_key(key: u64) -> Self;

    /// The lesser; `self` when they are equal or `other` is NaN.
    #[inline(always)]
    #[must_use]
    fn lesser(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// The greater; `self` when they are equal or `other` is NaN.
    #[inline(always)]
    #[must_use]
    fn greater(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

/// A type that operations compute in: `f32` or `f64`.
pub trait Real:
    Pixel<Real = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// `self * factor + summand`, rounded once.
    #[must_use]
    fn fused(self, factor: Self, summand: Self) -> Self;
    /// The root, correctly rounded.
    #[must_use]
    fn root(self) -> Self;
    /// Without its sign.
    #[must_use]
    fn magnitude(self) -> Self;
}

/// Nearest even by adding and taking away a number so large that no fraction is left: the same
/// result as `round_ties_even`, without a call where the processor's base set cannot round.
macro_rules! nearest_even {
    ($name:ident, $real:ty, $large:literal) => {
        #[inline(always)]
        fn $name(value: $real) -> $real {
            let large = (<$real>::copysign)($large, value);
            if value.abs() < $large {
                (value + large) - large
            } else {
                value
            }
        }
    };
}
nearest_even!(nearest_even_f32, f32, 8_388_608.0);
nearest_even!(nearest_even_f64, f64, 4_503_599_627_370_496.0);

macro_rules! integers {
    ($($type:ident as $unsigned:ident, flip $flip:expr;)*) => {$(
        impl Pixel for $type {
            type Real = f32;
            type Key = $unsigned;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            const IS_FLOAT: bool = false;

            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn to_real(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                nearest_even_f32(value) as Self
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                nearest_even_f64(value) as Self
            }
            #[inline(always)]
            fn from_real(value: f32) -> Self {
                Self::from_f32(value)
            }
            #[inline(always)]
            fn key(self) -> $unsigned {
                self as $unsigned ^ $flip
            }
            #[inline(always)]
            fn from_key(key: u64) -> Self {
                (key as $unsigned ^ $flip) as Self
            }
        }
    )*};
}
integers! {
    u8 as u8, flip 0;
    u16 as u16, flip 0;
    u32 as u32, flip 0;
    i16 as u16, flip 1 << 15;
    i32 as u32, flip 1 << 31;
}

macro_rules! floats {
    ($($type:ident as $bits:ident, $sign:expr;)*) => {$(
        impl Pixel for $type {
            type Real = $type;
            type Key = $bits;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = Self::NEG_INFINITY;
            const GREATEST: Self = Self::INFINITY;
            const IS_FLOAT: bool = true;

            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn to_real(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                Self::from(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn from_real(value: Self) -> Self {
                value
            }
            #[inline(always)]
            fn key(self) -> $bits {
                let bits = self.to_bits();
                if bits & $sign == 0 { bits | $sign } else { !bits }
            }
            #[inline(always)]
            fn from_key(key: u64) -> Self {
                let key = key as $bits;
                Self::from_bits(if key & $sign == 0 { !key } else { key & !$sign })
            }
        }

        impl Real for $type {
            #[inline(always)]
            fn fused(self, factor: Self, summand: Self) -> Self {
                self.mul_add(factor, summand)
            }
            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
        }
    )*};
}
floats! {
    f32 as u32, 1_u32 << 31;
    f64 as u64, 1_u64 << 63;
}

/// Every value as another type: rounded to nearest even, saturated; NaN becomes 0 in integers.
#[inline(always)]
pub(crate) fn cast<T: Pixel, U: Pixel>(from: &[T], to: &mut [U]) {
    if T::DTYPE == U::DTYPE {
        to.copy_from_slice(bytemuck::cast_slice(from));
        return;
    }
    let pairs = to.iter_mut().zip(from);
    if U::DTYPE == DType::F32 || T::DTYPE == DType::F32 {
        pairs.for_each(|(to, from)| *to = U::from_f32(from.to_f32()));
    } else {
        pairs.for_each(|(to, from)| *to = U::from_f64(from.to_f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_round_to_even_saturate_and_lose_nan() {
        assert_eq!(
            [0.5, 1.5, 2.5, 300.0, -3.0].map(u8::from_f32),
            [0, 2, 2, 255, 0]
        );
        assert_eq!(
            [-0.5, -1.5, -1e9, 1e9].map(i16::from_f64),
            [0, -2, i16::MIN, i16::MAX]
        );
        assert_eq!(i32::from_f32(f32::NAN), 0);
        assert_eq!(u32::from_f64(4_294_967_294.5), 4_294_967_294);
        assert_eq!(u32::from_f64(f64::INFINITY), u32::MAX);
        assert_eq!(i32::from_f32(16_777_217.0), 16_777_216);
    }

    proptest::proptest! {
        #[test]
        fn rounding_is_round_ties_even(bits in proptest::prelude::any::<u32>(), near in -4000_i16..4000) {
            for value in [f32::from_bits(bits), f32::from(near) / 2.0] {
                proptest::prop_assert_eq!(i32::from_f32(value), value.round_ties_even() as i32);
                let wide = f64::from(value) * 1.000_000_1;
                proptest::prop_assert_eq!(i32::from_f64(wide), wide.round_ties_even() as i32);
            }
        }

        #[test]
        fn keys_sort_as_values(a in proptest::prelude::any::<u32>(), b in proptest::prelude::any::<u32>()) {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            proptest::prop_assert_eq!(f32::from_key(x.key().into()).to_bits(), a);
            if x < y {
                proptest::prop_assert!(x.key() < y.key());
            }
            let (x, y) = (a.cast_signed(), b.cast_signed());
            proptest::prop_assert_eq!(x.cmp(&y), x.key().cmp(&y.key()));
            proptest::prop_assert_eq!(i32::from_key(x.key().into()), x);
            let (x, y) = (x as i16, y as i16);
            proptest::prop_assert_eq!(x.cmp(&y), x.key().cmp(&y.key()));
            proptest::prop_assert_eq!(i16::from_key(x.key().into()), x);
        }
    }

    #[test]
    fn extremes_ignore_nan() {
        assert_eq!(
            f32::GREATEST.lesser(f32::NAN).lesser(3.0).lesser(f32::NAN),
            3.0
        );
        assert_eq!(f64::LEAST.greater(f64::NAN), f64::NEG_INFINITY);
    }
}
