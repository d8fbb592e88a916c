//! What an expression is made of.

use std::fmt;

use serde::{Deserialize, Serialize};
use warploom_core::DType;

use crate::Boundary;

/// The type of a value while it is computed with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ty {
    /// True or false.
    Bool,
    /// 32 bits, signed. Wraps around.
    I32,
    /// 32 bits, unsigned. Wraps around.
    U32,
    /// Single precision.
    F32,
    /// Double precision; on devices without it a pair of single ones with 48 bits in all.
    F64,
}

impl Ty {
    /// The type in which an element of an image is loaded and stored.
    ///
    /// `None` for element types no operation takes.
    pub const fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::U8 | DType::U16 | DType::I16 | DType::I32 => Some(Self::I32),
            DType::U32 => Some(Self::U32),
            DType::F32 => Some(Self::F32),
            DType::F64 => Some(Self::F64),
            _ => None,
        }
    }

    /// Is it a floating-point type?
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Is it a whole-number type?
    pub const fn is_int(self) -> bool {
        matches!(self, Self::I32 | Self::U32)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// A node's number in its graph.
pub type Id = u32;

/// An operation of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Un {
    /// Minus; whole numbers wrap.
    Neg,
    /// Without its sign.
    Abs,
    /// Not; for whole numbers, of every bit.
    Not,
    /// Square root, correctly rounded.
    Sqrt,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// To the nearest whole number, ties to even.
    Round,
    /// Is it not a number?
    IsNan,
    /// The bits of an `f32` as `i32`.
    ToBits,
    /// An `i32`'s bits as `f32`.
    FromBits,
}

/// An operation of two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Bin {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; of whole numbers, towards zero.
    Div,
    /// Remainder of whole numbers, with the sign of the left.
    Rem,
    /// `(b < a) ? b : a`: a `b` that is not a number loses.
    Min,
    /// `(b > a) ? b : a`: a `b` that is not a number loses.
    Max,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Both; for whole numbers, bit by bit.
    And,
    /// Either; for whole numbers, bit by bit.
    Or,
    /// Exactly one; for whole numbers, bit by bit.
    Xor,
    /// Bits to the left; the count is 0 to 31.
    Shl,
    /// Bits to the right, with the sign for `i32`; the count is 0 to 31.
    Shr,
}

impl Bin {
    /// Does it compare?
    pub const fn compares(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Eq | Self::Ne)
    }
}

/// One node. Operands have smaller numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Node {
    /// A constant by its bits; booleans are 0 and 1.
    Const(Ty, u64),
    /// A number given at run time.
    Param {
        /// Its place among the numbers.
        index: u32,
        /// Its type.
        ty: Ty,
    },
    /// The position of the pixel that is computed, along z, y or x (0, 1, 2); an `i32`.
    Coord(u8),
    /// The extent of the image that is computed, along z, y or x; an `i32`.
    Extent(u8),
    /// The extent of an input image, along z, y or x; an `i32`.
    InputExtent {
        /// Which input.
        image: u32,
        /// Which axis.
        axis: u8,
    },
    /// An element of an input image, in the type [`Ty::of`] its element type.
    Load {
        /// Which input.
        image: u32,
        /// Position in z, y, x; whole numbers, outside allowed.
        at: [Id; 3],
        /// What is seen outside.
        boundary: Boundary,
    },
    /// A number computed earlier on the device; an `f64`.
    Scalar {
        /// Which input (a list of numbers).
        list: u32,
        /// Its place in the list.
        index: u32,
    },
    /// A variable of the kernel around the expression.
    Local(u32, Ty),
    /// An operation of one operand.
    Un(Un, Id),
    /// An operation of two operands.
    Bin(Bin, Id, Id),
    /// `a * b + c`, rounded once.
    Fma(Id, Id, Id),
    /// The second where the first holds, else the third.
    Select(Id, Id, Id),
    /// The same number in another type. From a float to a whole number it is cut towards zero and
    /// must be in range; [`Ex::saturate`](super::Ex::saturate) sees to that.
    Cast(Ty, Id),
}

impl Node {
    /// Its operands.
    pub fn operands(&self) -> impl Iterator<Item = Id> + use<> {
        let (ids, count) = match *self {
            Self::Load { at, .. } => (at, 3),
            Self::Un(_, a) | Self::Cast(_, a) => ([a, 0, 0], 1),
            Self::Bin(_, a, b) => ([a, b, 0], 2),
            Self::Fma(a, b, c) | Self::Select(a, b, c) => ([a, b, c], 3),
            _ => ([0; 3], 0),
        };
        ids.into_iter().take(count)
    }

    /// The same node with other operands.
    #[must_use]
    pub fn with_operands(self, mut of: impl FnMut(Id) -> Id) -> Self {
        match self {
            Self::Load {
                image,
                at,
                boundary,
            } => Self::Load {
                image,
                at: at.map(&mut of),
                boundary,
            },
            Self::Un(op, a) => Self::Un(op, of(a)),
            Self::Cast(ty, a) => Self::Cast(ty, of(a)),
            Self::Bin(op, a, b) => Self::Bin(op, of(a), of(b)),
            Self::Fma(a, b, c) => Self::Fma(of(a), of(b), of(c)),
            Self::Select(a, b, c) => Self::Select(of(a), of(b), of(c)),
            other => other,
        }
    }
}
