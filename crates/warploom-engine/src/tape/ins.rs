//! The instructions.

use warploom_flow::expr::{Bin, Ty, Un};

/// Where an operand is: a slot, or a row of 32-bit elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Src {
    Slot(u16),
    Row(u16),
}

/// An operation of the accumulator and an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    AddF,
    SubF,
    /// The operand minus the accumulator.
    FromF,
    MulF,
    DivF,
    /// The operand over the accumulator.
    IntoF,
    /// `(operand < acc) ? operand : acc`.
    MinF,
    /// `(acc < operand) ? acc : operand`.
    OfMinF,
    MaxF,
    OfMaxF,
    LtF,
    LeF,
    GtF,
    GeF,
    EqF,
    NeF,
    AddI,
    SubI,
    FromI,
    MulI,
    MinI,
    MaxI,
    LtI,
    LeI,
    GtI,
    GeI,
    EqI,
    NeI,
    And,
    Or,
    Xor,
    MinU,
    MaxU,
    LtU,
    LeU,
    GtU,
    GeU,
    /// The accumulator's bits moved by as many as the operand says.
    Shl,
    ShrI,
    ShrU,
}

impl Op {
    /// The operation that takes its left side from the accumulator only.
    pub(super) fn shift(op: Bin, ty: Ty) -> Option<Self> {
        match (op, ty) {
            (Bin::Shl, _) => Some(Self::Shl),
            (Bin::Shr, Ty::I32) => Some(Self::ShrI),
            (Bin::Shr, Ty::U32) => Some(Self::ShrU),
            _ => None,
        }
    }

    /// The operation with the accumulator on the left, and with it on the right.
    pub(super) fn of(op: Bin, ty: Ty) -> Option<[Self; 2]> {
        Some(match (op, ty) {
            (Bin::Add, Ty::F32) => [Self::AddF, Self::AddF],
            (Bin::Sub, Ty::F32) => [Self::SubF, Self::FromF],
            (Bin::Mul, Ty::F32) => [Self::MulF, Self::MulF],
            (Bin::Div, Ty::F32) => [Self::DivF, Self::IntoF],
            (Bin::Min, Ty::F32) => [Self::MinF, Self::OfMinF],
            (Bin::Max, Ty::F32) => [Self::MaxF, Self::OfMaxF],
            (Bin::Lt, Ty::F32) => [Self::LtF, Self::GtF],
            (Bin::Le, Ty::F32) => [Self::LeF, Self::GeF],
            (Bin::Eq, Ty::F32) => [Self::EqF, Self::EqF],
            (Bin::Ne, Ty::F32) => [Self::NeF, Self::NeF],
            (Bin::Add, Ty::I32 | Ty::U32) => [Self::AddI, Self::AddI],
            (Bin::Sub, Ty::I32 | Ty::U32) => [Self::SubI, Self::FromI],
            (Bin::Mul, Ty::I32 | Ty::U32) => [Self::MulI, Self::MulI],
            (Bin::Min, Ty::I32) => [Self::MinI, Self::MinI],
            (Bin::Max, Ty::I32) => [Self::MaxI, Self::MaxI],
            (Bin::Lt, Ty::I32) => [Self::LtI, Self::GtI],
            (Bin::Le, Ty::I32) => [Self::LeI, Self::GeI],
            (Bin::Min, Ty::U32) => [Self::MinU, Self::MinU],
            (Bin::Max, Ty::U32) => [Self::MaxU, Self::MaxU],
            (Bin::Lt, Ty::U32) => [Self::LtU, Self::GtU],
            (Bin::Le, Ty::U32) => [Self::LeU, Self::GeU],
            (Bin::Eq, Ty::I32 | Ty::U32 | Ty::Bool) => [Self::EqI, Self::EqI],
            (Bin::Ne, Ty::I32 | Ty::U32) => [Self::NeI, Self::NeI],
            (Bin::Ne, Ty::Bool) | (Bin::Xor, Ty::I32 | Ty::U32 | Ty::Bool) => {
                [Self::Xor, Self::Xor]
            }
            (Bin::And, Ty::I32 | Ty::U32 | Ty::Bool) => [Self::And, Self::And],
            (Bin::Or, Ty::I32 | Ty::U32 | Ty::Bool) => [Self::Or, Self::Or],
            _ => return None,
        })
    }
}

/// An operation of the accumulator alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum One {
    NegF,
    AbsF,
    Sqrt,
    Floor,
    Ceil,
    Round,
    IsNan,
    NegI,
    AbsI,
    Not,
    IntToFloat,
    UnsignedToFloat,
    FloatToInt,
    FloatToUnsigned,
    /// A truth, all bits or none, as 1 or 0.
    TruthToInt,
    TruthToFloat,
}

impl One {
    pub(super) fn of(op: Un, ty: Ty) -> Option<Self> {
        Some(match (op, ty) {
            (Un::Neg, Ty::F32) => Self::NegF,
            (Un::Abs, Ty::F32) => Self::AbsF,
            (Un::Sqrt, Ty::F32) => Self::Sqrt,
            (Un::Floor, Ty::F32) => Self::Floor,
            (Un::Ceil, Ty::F32) => Self::Ceil,
            (Un::Round, Ty::F32) => Self::Round,
            (Un::IsNan, Ty::F32) => Self::IsNan,
            (Un::Neg, Ty::I32 | Ty::U32) => Self::NegI,
            (Un::Abs, Ty::I32) => Self::AbsI,
            (Un::Not, Ty::Bool | Ty::I32 | Ty::U32) => Self::Not,
            _ => return None,
        })
    }

    /// The cast between two 32-bit types; `None` when the bits stay.
    pub(super) fn cast(from: Ty, to: Ty) -> Option<Self> {
        Some(match (from, to) {
            (Ty::I32, Ty::F32) => Self::IntToFloat,
            (Ty::U32, Ty::F32) => Self::UnsignedToFloat,
            (Ty::F32, Ty::I32) => Self::FloatToInt,
            (Ty::F32, Ty::U32) => Self::FloatToUnsigned,
            (Ty::Bool, Ty::I32 | Ty::U32) => Self::TruthToInt,
            (Ty::Bool, Ty::F32) => Self::TruthToFloat,
            _ => return None,
        })
    }
}

/// An operation on slots of `f64`, from slot to slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wide {
    /// The slot from a row.
    Load(u16),
    Bin(Bin, u16, u16),
    /// A comparison; gives a truth.
    Compare(Bin, u16, u16),
    Un(Un, u16),
    /// Gives a truth.
    IsNan(u16),
    Fma(u16, u16, u16),
    /// The first slot holds a truth.
    Select(u16, u16, u16),
    /// From a slot of 32-bit numbers.
    From(Ty, u16),
    /// To a slot of 32-bit numbers.
    To(Ty, u16),
}

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ins {
    /// The accumulator becomes the operand.
    Take(Src),
    /// The accumulator becomes a row of small integers, as `i32`, or else as `f32`.
    Widen {
        row: u16,
        float: bool,
    },
    /// The accumulator becomes a position along z, y or x.
    Coord(u8),
    /// The accumulator is put down.
    Keep(u16),
    Bin(Op, Src),
    Un(One),
    /// `acc * a + b`.
    MulAdd(Src, Src),
    /// `a * b + acc`.
    AddMul(Src, Src),
    /// The accumulator decides between two operands.
    Choose(Src, Src),
    /// The first operand decides between the accumulator and the second.
    ChooseThis(Src, Src),
    /// The first operand decides between the second and the accumulator.
    ChooseThat(Src, Src),
    /// The accumulator is written to an output.
    Put(u16),
    /// A wide slot is written to an output.
    PutWide {
        out: u16,
        slot: u16,
    },
    Wide {
        op: Wide,
        to: u16,
    },
    /// Whole-number division, number by number, from slot to slot.
    Slow {
        op: Bin,
        signed: bool,
        a: u16,
        b: u16,
        to: u16,
    },
}
