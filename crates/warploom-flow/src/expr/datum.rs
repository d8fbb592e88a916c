//! One number of an expression, and what the operations make of it: the meaning of every node.

use warploom_core::DType;

use super::node::{Bin, Node, Ty, Un};

/// A number, or a truth, in the type it is computed in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datum {
    /// True or false.
    Bool(bool),
    /// An `i32`.
    I32(i32),
    /// A `u32`.
    U32(u32),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
}

impl Datum {
    /// A constant by its bits, as [`Node::Const`] keeps them.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "narrow types are kept in 64 bits"
    )]
    pub fn of(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::Bool => Self::Bool(bits != 0),
            Ty::I32 => Self::I32(bits as i32),
            Ty::U32 => Self::U32(bits as u32),
            Ty::F32 => Self::F32(f32::from_bits(bits as u32)),
            Ty::F64 => Self::F64(f64::from_bits(bits)),
        }
    }

    /// The constant it is.
    pub(super) fn node(self) -> Node {
        match self {
            Self::Bool(v) => Node::Const(Ty::Bool, u64::from(v)),
            Self::I32(v) => Node::Const(Ty::I32, u64::from(v.cast_unsigned())),
            Self::U32(v) => Node::Const(Ty::U32, u64::from(v)),
            Self::F32(v) => Node::Const(Ty::F32, u64::from(v.to_bits())),
            Self::F64(v) => Node::Const(Ty::F64, v.to_bits()),
        }
    }

    /// The first element of `bytes`, in the type it is computed in; `None` for element types no
    /// operation takes.
    pub fn read(dtype: DType, bytes: &[u8]) -> Option<Self> {
        fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.first_chunk::<N>().copied()
        }
        Some(match dtype {
            DType::U8 => Self::I32(first::<1>(bytes)?[0].into()),
            DType::U16 => Self::I32(u16::from_ne_bytes(first(bytes)?).into()),
            DType::I16 => Self::I32(i16::from_ne_bytes(first(bytes)?).into()),
            DType::I32 => Self::I32(i32::from_ne_bytes(first(bytes)?)),
            DType::U32 => Self::U32(u32::from_ne_bytes(first(bytes)?)),
            DType::F32 => Self::F32(f32::from_ne_bytes(first(bytes)?)),
            DType::F64 => Self::F64(f64::from_ne_bytes(first(bytes)?)),
            _ => return None,
        })
    }

    /// Writes it as an element; it is in the element type's range already.
    ///
    /// # Panics
    /// When `bytes` is not as long as the element.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "results of expressions are in the element type's range"
    )]
    pub fn write(self, dtype: DType, bytes: &mut [u8]) {
        match (self, dtype) {
            (Self::Bool(v), _) => Self::I32(v.into()).write(dtype, bytes),
            (Self::I32(v), DType::U8) => bytes.copy_from_slice(&[v as u8]),
            (Self::I32(v), DType::U16) => bytes.copy_from_slice(&(v as u16).to_ne_bytes()),
            (Self::I32(v), DType::I16) => bytes.copy_from_slice(&(v as i16).to_ne_bytes()),
            (Self::I32(v), _) => bytes.copy_from_slice(&v.to_ne_bytes()),
            (Self::U32(v), _) => bytes.copy_from_slice(&v.to_ne_bytes()),
            (Self::F32(v), _) => bytes.copy_from_slice(&v.to_ne_bytes()),
            (Self::F64(v), _) => bytes.copy_from_slice(&v.to_ne_bytes()),
        }
    }

    /// As a real number.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Bool(v) => f64::from(u8::from(v)),
            Self::I32(v) => f64::from(v),
            Self::U32(v) => f64::from(v),
            Self::F32(v) => f64::from(v),
            Self::F64(v) => v,
        }
    }

    /// Nothing, in this type.
    pub fn zero(ty: Ty) -> Self {
        Self::of(ty, 0)
    }
}

/// What a node of one operand gives; nothing for a type that the operation does not take.
pub fn unary(op: Un, value: Datum) -> Option<Datum> {
    Some(match (op, value) {
        (Un::Neg, Datum::I32(v)) => Datum::I32(v.wrapping_neg()),
        (Un::Neg, Datum::U32(v)) => Datum::U32(v.wrapping_neg()),
        (Un::Neg, Datum::F32(v)) => Datum::F32(-v),
        (Un::Neg, Datum::F64(v)) => Datum::F64(-v),
        (Un::Abs, Datum::I32(v)) => Datum::I32(v.wrapping_abs()),
        (Un::Abs, Datum::U32(v)) => Datum::U32(v),
        (Un::Abs, Datum::F32(v)) => Datum::F32(v.abs()),
        (Un::Abs, Datum::F64(v)) => Datum::F64(v.abs()),
        (Un::Not, Datum::Bool(v)) => Datum::Bool(!v),
        (Un::Not, Datum::I32(v)) => Datum::I32(!v),
        (Un::Not, Datum::U32(v)) => Datum::U32(!v),
        (Un::Sqrt, Datum::F32(v)) => Datum::F32(v.sqrt()),
        (Un::Sqrt, Datum::F64(v)) => Datum::F64(v.sqrt()),
        (Un::Floor, Datum::F32(v)) => Datum::F32(v.floor()),
        (Un::Floor, Datum::F64(v)) => Datum::F64(v.floor()),
        (Un::Ceil, Datum::F32(v)) => Datum::F32(v.ceil()),
        (Un::Ceil, Datum::F64(v)) => Datum::F64(v.ceil()),
        (Un::Round, Datum::F32(v)) => Datum::F32(v.round_ties_even()),
        (Un::Round, Datum::F64(v)) => Datum::F64(v.round_ties_even()),
        (Un::IsNan, Datum::F32(v)) => Datum::Bool(v.is_nan()),
        (Un::IsNan, Datum::F64(v)) => Datum::Bool(v.is_nan()),
        (Un::ToBits, Datum::F32(v)) => Datum::I32(v.to_bits().cast_signed()),
        (Un::FromBits, Datum::I32(v)) => Datum::F32(f32::from_bits(v.cast_unsigned())),
        _ => return None,
    })
}

fn float<T: PartialOrd + Copy>(
    op: Bin,
    a: T,
    b: T,
    wrap: fn(T) -> Datum,
    math: [T; 4],
) -> Option<Datum> {
    let [sum, difference, product, quotient] = math;
    Some(match op {
        Bin::Add => wrap(sum),
        Bin::Sub => wrap(difference),
        Bin::Mul => wrap(product),
        Bin::Div => wrap(quotient),
        Bin::Min => wrap(if b < a { b } else { a }),
        Bin::Max => wrap(if b > a { b } else { a }),
        Bin::Lt => Datum::Bool(a < b),
        Bin::Le => Datum::Bool(a <= b),
        Bin::Eq => Datum::Bool(a == b),
        Bin::Ne => Datum::Bool(a != b),
        _ => return None,
    })
}

macro_rules! whole {
    ($op:ident, $a:ident, $b:ident, $wrap:path, $count:expr) => {
        Some(match $op {
            Bin::Add => $wrap($a.wrapping_add($b)),
            Bin::Sub => $wrap($a.wrapping_sub($b)),
            Bin::Mul => $wrap($a.wrapping_mul($b)),
            Bin::Div if $b != 0 => $wrap($a.wrapping_div($b)),
            Bin::Rem if $b != 0 => $wrap($a.wrapping_rem($b)),
            Bin::Div | Bin::Rem => return None,
            Bin::Min => $wrap($a.min($b)),
            Bin::Max => $wrap($a.max($b)),
            Bin::Lt => Datum::Bool($a < $b),
            Bin::Le => Datum::Bool($a <= $b),
            Bin::Eq => Datum::Bool($a == $b),
            Bin::Ne => Datum::Bool($a != $b),
            Bin::And => $wrap($a & $b),
            Bin::Or => $wrap($a | $b),
            Bin::Xor => $wrap($a ^ $b),
            Bin::Shl => $wrap($a.wrapping_shl($count)),
            Bin::Shr => $wrap($a.wrapping_shr($count)),
        })
    };
}

/// What a node of two operands gives; nothing where no rule says so (an integer divided by zero).
pub fn binary(op: Bin, a: Datum, b: Datum) -> Option<Datum> {
    match (a, b) {
        (Datum::F32(a), Datum::F32(b)) => float(op, a, b, Datum::F32, [a + b, a - b, a * b, a / b]),
        (Datum::F64(a), Datum::F64(b)) => float(op, a, b, Datum::F64, [a + b, a - b, a * b, a / b]),
        (Datum::I32(a), Datum::I32(b)) => whole!(op, a, b, Datum::I32, b.cast_unsigned()),
        (Datum::U32(a), Datum::U32(b)) => whole!(op, a, b, Datum::U32, b),
        (Datum::Bool(a), Datum::Bool(b)) => Some(Datum::Bool(match op {
            Bin::And => a & b,
            Bin::Or => a | b,
            Bin::Xor | Bin::Ne => a ^ b,
            Bin::Eq => a == b,
            _ => return None,
        })),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "in range by the node's contract"
)]
/// A value in another type, saturating as the definition of casts says.
pub fn cast(to: Ty, value: Datum) -> Option<Datum> {
    let wide = match value {
        Datum::I32(v) if to == Ty::U32 => return Some(Datum::U32(v.cast_unsigned())),
        Datum::U32(v) if to == Ty::I32 => return Some(Datum::I32(v.cast_signed())),
        other => other.to_f64(),
    };
    match to {
        Ty::Bool => None,
        Ty::I32 => Some(Datum::I32(wide as i32)),
        Ty::U32 => Some(Datum::U32(wide as u32)),
        Ty::F32 => Some(Datum::F32(wide as f32)),
        Ty::F64 => Some(Datum::F64(wide)),
    }
}

/// `a * b + c`, rounded once.
pub fn fused(a: Datum, b: Datum, c: Datum) -> Option<Datum> {
    match (a, b, c) {
        (Datum::F32(a), Datum::F32(b), Datum::F32(c)) => Some(Datum::F32(a.mul_add(b, c))),
        (Datum::F64(a), Datum::F64(b), Datum::F64(c)) => Some(Datum::F64(a.mul_add(b, c))),
        _ => None,
    }
}
