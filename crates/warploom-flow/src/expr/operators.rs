//! Formulas: operators and functions on expressions.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

use warploom_core::DType;

use super::graph::Ex;
use super::node::{Bin, Node, Ty, Un};

/// What can stand on the right of an operator: an expression, or a number in the left's type.
pub trait Operand<'g> {
    /// As an expression beside `left`.
    fn beside(self, left: Ex<'g>) -> Ex<'g>;
}

impl<'g> Operand<'g> for Ex<'g> {
    fn beside(self, _: Ex<'g>) -> Ex<'g> {
        self
    }
}

impl<'g> Operand<'g> for f64 {
    fn beside(self, left: Ex<'g>) -> Ex<'g> {
        left.graph().number(left.ty(), self)
    }
}

impl<'g> Operand<'g> for i32 {
    fn beside(self, left: Ex<'g>) -> Ex<'g> {
        left.graph().number(left.ty(), f64::from(self))
    }
}

macro_rules! operators {
    ($($trait:ident::$method:ident => $op:ident),*) => {$(
        impl<'g, R: Operand<'g>> $trait<R> for Ex<'g> {
            type Output = Self;
            fn $method(self, right: R) -> Self {
                self.bin(Bin::$op, right)
            }
        }
    )*};
}
operators!(Add::add => Add, Sub::sub => Sub, Mul::mul => Mul, Div::div => Div, Rem::rem => Rem,
    BitAnd::bitand => And, BitOr::bitor => Or, BitXor::bitxor => Xor);

impl Neg for Ex<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.un(Un::Neg)
    }
}

impl Not for Ex<'_> {
    type Output = Self;
    fn not(self) -> Self {
        self.un(Un::Not)
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $method(self, right: impl Operand<'g>) -> Self {
            self.bin(Bin::$op, right)
        }
    )*};
}

impl<'g> Ex<'g> {
    fn bin(self, op: Bin, right: impl Operand<'g>) -> Self {
        let right = right.beside(self);
        self.graph().add(Node::Bin(op, self.id(), right.id()))
    }

    fn un(self, op: Un) -> Self {
        self.graph().add(Node::Un(op, self.id()))
    }

    methods! {
        /// The smaller; a right side that is not a number loses.
        min => Min;
        /// The larger; a right side that is not a number loses.
        max => Max;
        /// Less?
        lt => Lt;
        /// Less or equal?
        le => Le;
        /// Equal?
        is => Eq;
        /// Different?
        is_not => Ne;
        /// Bits to the left.
        shifted_left => Shl;
        /// Bits to the right.
        shifted_right => Shr;
    }

    /// Greater?
    #[must_use]
    pub fn gt(self, right: impl Operand<'g>) -> Self {
        right.beside(self).lt(self)
    }

    /// Greater or equal?
    #[must_use]
    pub fn ge(self, right: impl Operand<'g>) -> Self {
        right.beside(self).le(self)
    }

    /// Without its sign.
    #[must_use]
    pub fn abs(self) -> Self {
        self.un(Un::Abs)
    }

    /// Square root.
    #[must_use]
    pub fn sqrt(self) -> Self {
        self.un(Un::Sqrt)
    }

    /// Towards minus infinity.
    #[must_use]
    pub fn floor(self) -> Self {
        self.un(Un::Floor)
    }

    /// Towards plus infinity.
    #[must_use]
    pub fn ceil(self) -> Self {
        self.un(Un::Ceil)
    }

    /// To the nearest whole number, ties to even.
    #[must_use]
    pub fn round(self) -> Self {
        self.un(Un::Round)
    }

    /// Is it not a number?
    #[must_use]
    pub fn is_nan(self) -> Self {
        self.un(Un::IsNan)
    }

    /// An `f32`'s bits.
    #[must_use]
    pub fn to_bits(self) -> Self {
        self.un(Un::ToBits)
    }

    /// The `f32` of these bits.
    #[must_use]
    pub fn from_bits(self) -> Self {
        self.un(Un::FromBits)
    }

    /// `self * factor + term`, rounded once.
    #[must_use]
    pub fn fma(self, factor: impl Operand<'g>, term: impl Operand<'g>) -> Self {
        let (factor, term) = (factor.beside(self), term.beside(self));
        self.graph()
            .add(Node::Fma(self.id(), factor.id(), term.id()))
    }

    /// `yes` where this holds, else `no`.
    #[must_use]
    pub fn select(self, yes: Ex<'g>, no: impl Operand<'g>) -> Self {
        let no = no.beside(yes);
        self.graph().add(Node::Select(self.id(), yes.id(), no.id()))
    }

    /// Between two numbers; what is not a number becomes `low`.
    #[must_use]
    pub fn clamp(self, low: impl Operand<'g>, high: impl Operand<'g>) -> Self {
        low.beside(self).max(self).min(high)
    }

    /// In another type; towards zero from a float to a whole number, which must be in range.
    #[must_use]
    pub fn cast(self, ty: Ty) -> Self {
        self.graph().add(Node::Cast(ty, self.id()))
    }

    /// In the type [`Ty::of`] an element type, rounded to nearest even and kept in its range; what
    /// is not a number becomes 0 as a whole number.
    ///
    /// # Panics
    /// When no operation takes the element type.
    #[must_use]
    pub fn saturate(self, dtype: DType) -> Self {
        let ty = Ty::of(dtype).expect("an element type that operations take");
        let Some((low, high)) = range(dtype) else {
            return self.cast(ty);
        };
        match self.ty() {
            Ty::Bool => self.cast(ty),
            Ty::F32 | Ty::F64 => {
                let number = self
                    .is_nan()
                    .select(self.graph().number(self.ty(), 0.0), self);
                // 2^31 - 1 and 2^32 - 1 are no f32: the largest below are.
                let top = match (self.ty(), dtype) {
                    (Ty::F32, DType::I32) => 2_147_483_520.0,
                    (Ty::F32, DType::U32) => 4_294_967_040.0,
                    _ => high,
                };
                let kept = number.clamp(low, top).round().cast(ty);
                let over = number.ge(high);
                if top < high {
                    over.select(self.graph().number(ty, high), kept)
                } else {
                    kept
                }
            }
            Ty::I32 => match dtype {
                DType::I32 => self,
                DType::U32 => self.max(0).cast(Ty::U32),
                _ => self.clamp(low, high),
            },
            Ty::U32 => match dtype {
                DType::U32 => self,
                _ => self.min(high).cast(Ty::I32),
            },
        }
    }
}

/// The range of a whole-number element type.
fn range(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::U8 => Some((0.0, 255.0)),
        DType::U16 => Some((0.0, 65_535.0)),
        DType::I16 => Some((-32_768.0, 32_767.0)),
        DType::I32 => Some((-2_147_483_648.0, 2_147_483_647.0)),
        DType::U32 => Some((0.0, 4_294_967_295.0)),
        _ => None,
    }
}
