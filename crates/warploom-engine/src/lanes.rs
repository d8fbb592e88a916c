//! Vectors: what the row kernels ask of an element type on any instruction set.
//!
//! Kernels are written once over [`Simd`] and compiled for every instruction set of the
//! architecture; `dispatch!` picks one when the program runs. All of them give the same bits:
//! every operation is one that IEEE 754 defines exactly, a fused multiply-add is one rounding
//! everywhere (a call of the mathematics library where the processor has none: right, but slow).

use fearless_simd::prelude::*;
pub use fearless_simd::{Level, Simd};

use super::Pixel;

/// Runs an expression compiled for the instruction set of `level`, whose token it is given.
///
/// On x86 there are three of them: AVX-512, AVX2 and what every processor has. Every further one
/// would make every kernel for every element type once more, and take minutes to build; processors
/// that have SSE 4.2 and not AVX2 are older than any GPU this is for.
macro_rules! dispatch {
    ($level:expr, $simd:pat => $op:expr) => {{
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            match $level {
                $crate::lanes::Level::Avx512(token) => {
                    match token {
                        $simd => fearless_simd::Simd::vectorize(
                            token,
                            #[inline(always)]
                            || $op,
                        ),
                    }
                }
                $crate::lanes::Level::Avx2(token) => {
                    match token {
                        $simd => fearless_simd::Simd::vectorize(
                            token,
                            #[inline(always)]
                            || $op,
                        ),
                    }
                }
                level => {
                    let token = level.as_sse2().expect("the first set that x86-64 has");
                    match token {
                        $simd => fearless_simd::Simd::vectorize(
                            token,
                            #[inline(always)]
                            || $op,
                        ),
                    }
                }
            }
        }
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        fearless_simd::dispatch!($level, $simd => $op)
    }};
}
pub(crate) use dispatch;

/// An element type that has vectors.
pub trait Lane: SimdElement + Pixel {
    /// The machine's widest vector of it.
    type Native<S: Simd>: SimdBase<S, Element = Self>;
}

macro_rules! lanes {
    ($($type:ty: $vector:ident;)*) => {$(
        impl Lane for $type {
            type Native<S: Simd> = S::$vector;
        }
    )*};
}

lanes! {
    u8: u8s;
    u16: u16s;
    i16: i16s;
    u32: u32s;
    i32: i32s;
    f32: f32s;
    f64: f64s;
}

/// A type that rows are computed in: `f32` or `f64`.
pub trait Float: Lane + SimdFloatElement {}

impl Float for f32 {}
impl Float for f64 {}

/// The machine's widest vector of `T`.
pub(crate) type Vector<S, T> = <T as Lane>::Native<S>;
/// The same, with what floats add.
pub(crate) type Reals<S, T> = <T as SimdFloatElement>::Native<S>;

/// How many `T` the widest vector of any machine holds; rows are padded to multiples of it.
pub(crate) const fn widest<T>() -> usize {
    64 / size_of::<T>()
}

/// `(b < a) ? b : a`: the accumulator stays where they are equal or `b` is NaN.
#[inline(always)]
pub(crate) fn lesser<S: Simd, V: SimdBase<S>>(a: V, b: V) -> V {
    // The instruction of x86 is this very definition; others treat NaN in their own ways.
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        b.min(a)
    } else {
        b.simd_lt(a).select(b, a)
    }
}

/// `(b > a) ? b : a`: the accumulator stays where they are equal or `b` is NaN.
#[inline(always)]
pub(crate) fn greater<S: Simd, V: SimdBase<S>>(a: V, b: V) -> V {
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        b.max(a)
    } else {
        b.simd_gt(a).select(b, a)
    }
}

/// The vector that starts at `at`.
#[inline(always)]
pub(crate) fn load<S: Simd, V: SimdBase<S>>(simd: S, row: &[V::Element], at: usize) -> V {
    V::from_slice(simd, &row[at..at + V::LEN])
}

/// As many vectors as are asked for, each made by itself.
///
/// The library's function for it is called and not inlined where it is long, and then compiled without
/// the vector instructions of its surroundings.
#[inline(always)]
pub(crate) fn vectors<V: Copy, const N: usize>(mut make: impl FnMut(usize) -> V) -> [V; N] {
    let mut all = [make(0); N];
    for (at, vector) in all.iter_mut().enumerate().skip(1) {
        *vector = make(at);
    }
    all
}

/// Writes the vector that starts at `at`.
#[inline(always)]
pub(crate) fn store<S: Simd, V: SimdBase<S>>(value: V, row: &mut [V::Element], at: usize) {
    value.store_slice(&mut row[at..at + V::LEN]);
}

/// Every instruction set this machine has, widest first: what tests force.
#[cfg(test)]
pub(crate) fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        let all = [
            best.as_avx512().map(Level::Avx512),
            best.as_avx2().map(Level::Avx2),
            best.as_sse2().map(Level::Sse2),
        ];
        all.into_iter().flatten().collect()
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    vec![best]
}
