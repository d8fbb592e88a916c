//! Numbers that a kernel is given when it runs: a new value never compiles anything again.

use crate::expr::{Datum, Ty};

/// A number of a [`Prim::Map`](super::Prim::Map), in the type its expression wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An `i32`.
    I32(i32),
    /// A `u32`.
    U32(u32),
    /// An `f32`.
    F32(f32),
    /// An `f64`; not for devices without.
    F64(f64),
}

impl Number {
    /// A real number in the type an expression computes in.
    ///
    /// # Panics
    /// When `ty` is no number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded once, or whole by contract"
    )]
    pub fn new(ty: Ty, value: f64) -> Self {
        match ty {
            Ty::I32 => Self::I32(value as i32),
            Ty::U32 => Self::U32(value as u32),
            Ty::F32 => Self::F32(value as f32),
            Ty::F64 => Self::F64(value),
            Ty::Bool => panic!("a truth is no number"),
        }
    }

    /// Its type.
    pub fn ty(self) -> Ty {
        match self {
            Self::I32(_) => Ty::I32,
            Self::U32(_) => Ty::U32,
            Self::F32(_) => Ty::F32,
            Self::F64(_) => Ty::F64,
        }
    }
}

impl From<Number> for Datum {
    fn from(number: Number) -> Self {
        match number {
            Number::I32(v) => Self::I32(v),
            Number::U32(v) => Self::U32(v),
            Number::F32(v) => Self::F32(v),
            Number::F64(v) => Self::F64(v),
        }
    }
}

/// The numbers of a [`Prim::Map`](super::Prim::Map).
pub type Numbers = Vec<Number>;
