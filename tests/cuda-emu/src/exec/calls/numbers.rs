//! Arithmetic that is not worth compiling.

use crate::math;

/// See [`math::Arithmetic`].
pub(crate) extern "C" fn arithmetic(code: u32, a: u64, b: u64, c: u64) -> u64 {
    math::Arithmetic::from_code(code).run(a, b, c)
}

/// See [`math::Conversion`].
pub(crate) extern "C" fn convert(code: u32, bits: u64) -> u64 {
    math::convert(math::Conversion::from_code(code), bits)
}

/// See [`math::Function`].
pub(crate) extern "C" fn approximate(function: u32, x: f64) -> f64 {
    math::approximate(function, x)
}

/// See [`math::Lanes`].
pub(crate) extern "C" fn lanes(code: u32, a: u32, b: u32, c: u32) -> u32 {
    math::lanes(code, a, b, c)
}

/// `dp4a` and `dp2a`; bits of `code`: `a` is signed, `b` is signed, two products, upper half of `b`.
pub(crate) extern "C" fn dot(code: u32, a: u32, b: u32, c: u32) -> u32 {
    math::dot(code, a, b, c)
}

/// `prmt` in one of its modes.
pub(crate) extern "C" fn permute(mode: u32, a: u32, b: u32, selector: u32) -> u32 {
    math::permute(mode, a, b, selector)
}

/// `fns`: the place of a set bit, counted from `base`.
pub(crate) extern "C" fn find_set(mask: u32, base: u32, offset: u32) -> u32 {
    math::find_set(mask, base, offset.cast_signed())
}

/// Functions of the mathematical library that the code generator may call, by their C names.
pub(crate) fn library() -> [(&'static str, *const u8); 10] {
    extern "C" fn ceil(x: f64) -> f64 {
        x.ceil()
    }
    extern "C" fn ceilf(x: f32) -> f32 {
        x.ceil()
    }
    extern "C" fn floor(x: f64) -> f64 {
        x.floor()
    }
    extern "C" fn floorf(x: f32) -> f32 {
        x.floor()
    }
    extern "C" fn trunc(x: f64) -> f64 {
        x.trunc()
    }
    extern "C" fn truncf(x: f32) -> f32 {
        x.trunc()
    }
    extern "C" fn nearbyint(x: f64) -> f64 {
        x.round_ties_even()
    }
    extern "C" fn nearbyintf(x: f32) -> f32 {
        x.round_ties_even()
    }
    extern "C" fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    extern "C" fn fmaf(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    [
        ("ceil", ceil as *const u8),
        ("ceilf", ceilf as *const u8),
        ("floor", floor as *const u8),
        ("floorf", floorf as *const u8),
        ("trunc", trunc as *const u8),
        ("truncf", truncf as *const u8),
        ("nearbyint", nearbyint as *const u8),
        ("nearbyintf", nearbyintf as *const u8),
        ("fma", fma as *const u8),
        ("fmaf", fmaf as *const u8),
    ]
}
