//! What a routine computes.

/// The number of an instruction, by which its result is known.
pub type Value = u32;

/// How a pixel lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// 32 bits of any type.
    Word,
    /// A real number of 64 bits.
    Double,
}

impl Element {
    /// Bytes of one.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// An operation of one operand. Truths are all bits or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Un {
    /// Minus a real number.
    NegF,
    /// A real number without its sign.
    AbsF,
    /// The square root, correctly rounded.
    Sqrt,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// To the nearest whole number, ties to even.
    Round,
    /// Is it not a number?
    IsNan,
    /// Minus a whole number; wraps.
    NegI,
    /// A whole number without its sign; wraps.
    AbsI,
    /// Every bit turned.
    Not,
    /// From `i32` to `f32`.
    IntToFloat,
    /// From `u32` to `f32`.
    UnsignedToFloat,
    /// From `f32` to `i32`, towards zero; what is out of range gives the least `i32`.
    FloatToInt,
    /// From `f32` to `u32`, towards zero; what is out of range, the nearest; no number, zero.
    FloatToUnsigned,
    /// A truth as 1 or 0.
    TruthToInt,
    /// A truth as 1.0 or 0.0.
    TruthToFloat,
}

/// An operation of two operands. Truths are all bits or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bin {
    /// Sum of real numbers.
    AddF,
    /// Difference of real numbers.
    SubF,
    /// Product of real numbers.
    MulF,
    /// Quotient of real numbers.
    DivF,
    /// `(b < a) ? b : a`.
    MinF,
    /// `(b > a) ? b : a`.
    MaxF,
    /// Less, of real numbers.
    LtF,
    /// Less or equal, of real numbers.
    LeF,
    /// Equal real numbers.
    EqF,
    /// Different real numbers.
    NeF,
    /// Sum of whole numbers; wraps.
    AddI,
    /// Difference of whole numbers; wraps.
    SubI,
    /// Product of whole numbers; wraps.
    MulI,
    /// The lesser `i32`.
    MinI,
    /// The greater `i32`.
    MaxI,
    /// The lesser `u32`.
    MinU,
    /// The greater `u32`.
    MaxU,
    /// Less, of `i32`.
    LtI,
    /// Less or equal, of `i32`.
    LeI,
    /// Less, of `u32`.
    LtU,
    /// Less or equal, of `u32`.
    LeU,
    /// The same bits.
    EqI,
    /// Different bits.
    NeI,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of exactly one.
    Xor,
    /// Bits to the left, by the count's last five bits.
    Shl,
    /// Bits to the right, with the sign, by the count's last five bits.
    ShrI,
    /// Bits to the right, by the count's last five bits.
    ShrU,
    /// The same with each of the four bytes of a word; bytes have no sign.
    Bytes(BinB),
}

/// An operation on each byte of two words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinB {
    /// Sum; wraps.
    Add,
    /// Difference; wraps.
    Sub,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// Less; a truth of 8 bits, as are the others.
    Lt,
    /// Less or equal.
    Le,
    /// Equal.
    Eq,
    /// Different.
    Ne,
}

impl Bin {
    /// Is it a truth about two numbers of 32 bits?
    pub(crate) const fn compares(self) -> bool {
        matches!(
            self,
            Self::LtF
                | Self::LeF
                | Self::EqF
                | Self::NeF
                | Self::LtI
                | Self::LeI
                | Self::LtU
                | Self::LeU
                | Self::EqI
                | Self::NeI
        )
    }

    /// May its operands be exchanged?
    pub(crate) const fn commutes(self) -> bool {
        matches!(
            self,
            Self::AddF
                | Self::MulF
                | Self::EqF
                | Self::NeF
                | Self::AddI
                | Self::MulI
                | Self::MinI
                | Self::MaxI
                | Self::MinU
                | Self::MaxU
                | Self::EqI
                | Self::NeI
                | Self::And
                | Self::Or
                | Self::Xor
                | Self::Bytes(BinB::Add | BinB::Min | BinB::Max | BinB::Eq | BinB::Ne)
        )
    }
}

/// Real numbers of 64 bits need two vectors for the pixels of one: each is a value of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Half {
    /// That of the first pixels.
    Low,
    /// That of the others.
    High,
}

/// What 32 bits are that become 64, or the other way round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A real number.
    Float,
    /// An `i32`. What becomes one is within its range, and loses what is behind the point.
    Int,
    /// A `u32`, likewise.
    Unsigned,
    /// A truth: all bits or none.
    Truth,
}

/// An operation on half a vector of real numbers of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnD {
    /// Minus.
    Neg,
    /// Without its sign.
    Abs,
    /// The square root, correctly rounded.
    Sqrt,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// To the nearest whole number, ties to even.
    Round,
    /// Is it not a number? A truth of 64 bits.
    IsNan,
}

/// An operation on two halves of vectors of real numbers of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinD {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// `(b < a) ? b : a`.
    Min,
    /// `(b > a) ? b : a`.
    Max,
    /// Less; a truth of 64 bits, as are the others.
    Lt,
    /// Less or equal.
    Le,
    /// Equal.
    Eq,
    /// Different.
    Ne,
}

/// An instruction. Operands are results of instructions before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ins {
    /// The pixels of a row; small ones become `i32`.
    Row {
        /// Which row.
        row: u8,
        /// How its pixels lie.
        element: Element,
    },
    /// The pixels of a row of [`Element::Word`], from so many places further on.
    Beside {
        /// Which row.
        row: u8,
        /// How many places.
        by: u16,
    },
    /// No value: pixels of a row that a later run reads are fetched into the caches.
    Soon {
        /// Which row.
        row: u8,
        /// How its pixels lie.
        element: Element,
    },
    /// A number that is the same for all pixels.
    Number(u16),
    /// The position along the row, an `i32`.
    Along,
    /// An operation of one operand.
    Un(Un, Value),
    /// An operation of two operands.
    Bin(Bin, Value, Value),
    /// `a * b + c`, rounded once.
    Fma(Value, Value, Value),
    /// `a * b - c`, rounded once. Whoever negates a summand need not ask for it: it is found.
    Fms(Value, Value, Value),
    /// `c - a * b`, rounded once; likewise.
    Fnma(Value, Value, Value),
    /// A comparison's two operands, then what is taken where it holds and what elsewhere; likewise, where
    /// the machine has masks.
    SelectIf(Bin, [Value; 2], [Value; 2]),
    /// The second operand where the first is true, else the third; of halves by truths of 64 bits.
    Select(Value, Value, Value),
    /// The last bits of a value, as many as an element has, are written.
    Put {
        /// Which output.
        out: u8,
        /// How its pixels lie.
        element: Element,
        /// What is written.
        value: Value,
    },
    /// Half of the pixels of a row of [`Element::Double`].
    Doubles {
        /// Which row.
        row: u8,
        /// Which half.
        half: Half,
    },
    /// Half of a value, with 64 bits for each pixel; real numbers, or truths.
    Widen {
        /// What it is of.
        from: Kind,
        /// Which half.
        half: Half,
        /// The whole.
        value: Value,
    },
    /// Two halves, with 32 bits for each pixel.
    Narrow {
        /// What it becomes.
        to: Kind,
        /// The half of the first pixels.
        low: Value,
        /// That of the others.
        high: Value,
    },
    /// An operation on a half.
    UnD(UnD, Value),
    /// An operation on two halves.
    BinD(BinD, Value, Value),
    /// `a * b + c` of halves, rounded once.
    FmaD(Value, Value, Value),
    /// A half is written to an output of [`Element::Double`].
    PutDoubles {
        /// Which output.
        out: u8,
        /// Which half.
        half: Half,
        /// What is written.
        value: Value,
    },
}

impl Ins {
    /// The results it takes, in order.
    pub(crate) fn operands(self) -> impl DoubleEndedIterator<Item = Value> {
        let all = match self {
            Self::Row { .. }
            | Self::Beside { .. }
            | Self::Soon { .. }
            | Self::Doubles { .. }
            | Self::Number(_)
            | Self::Along => [None; 4],
            Self::Un(_, a)
            | Self::UnD(_, a)
            | Self::Widen { value: a, .. }
            | Self::Put { value: a, .. }
            | Self::PutDoubles { value: a, .. } => [Some(a), None, None, None],
            Self::Bin(_, a, b)
            | Self::BinD(_, a, b)
            | Self::Narrow {
                low: a, high: b, ..
            } => [Some(a), Some(b), None, None],
            Self::Fma(a, b, c)
            | Self::Fms(a, b, c)
            | Self::Fnma(a, b, c)
            | Self::FmaD(a, b, c)
            | Self::Select(a, b, c) => [Some(a), Some(b), Some(c), None],
            Self::SelectIf(_, [a, b], [c, d]) => [a, b, c, d].map(Some),
        };
        all.into_iter().flatten()
    }

    /// The same with other operands.
    pub(crate) fn with_operands(mut self, other: impl Fn(Value) -> Value) -> Self {
        match &mut self {
            Self::Row { .. }
            | Self::Beside { .. }
            | Self::Soon { .. }
            | Self::Doubles { .. }
            | Self::Number(_)
            | Self::Along => {}
            Self::Un(_, a)
            | Self::UnD(_, a)
            | Self::Widen { value: a, .. }
            | Self::Put { value: a, .. }
            | Self::PutDoubles { value: a, .. } => *a = other(*a),
            Self::Bin(_, a, b)
            | Self::BinD(_, a, b)
            | Self::Narrow {
                low: a, high: b, ..
            } => (*a, *b) = (other(*a), other(*b)),
            Self::Fma(a, b, c)
            | Self::Fms(a, b, c)
            | Self::Fnma(a, b, c)
            | Self::FmaD(a, b, c)
            | Self::Select(a, b, c) => (*a, *b, *c) = (other(*a), other(*b), other(*c)),
            Self::SelectIf(_, pair, choice) => {
                for value in pair.iter_mut().chain(choice) {
                    *value = other(*value);
                }
            }
        }
        self
    }

    /// Is it written or fetched, and no value?
    pub(crate) const fn is_put(self) -> bool {
        matches!(
            self,
            Self::Put { .. } | Self::PutDoubles { .. } | Self::Soon { .. }
        )
    }

    /// Can it be read from memory wherever it is needed?
    pub(crate) const fn rests_in_memory(self) -> bool {
        matches!(
            self,
            Self::Number(_)
                | Self::Beside { .. }
                | Self::Doubles { .. }
                | Self::Row {
                    element: Element::Word,
                    ..
                }
        )
    }
}
