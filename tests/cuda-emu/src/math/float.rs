//! Binary floating point formats: taking values apart and putting them together again.

/// A floating point format, given by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Format {
    F16 = 0,
    Bf16 = 1,
    F32 = 2,
    F64 = 3,
}

/// Where a value goes that lies between two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rounding {
    /// To the nearer one, to the even one in the middle.
    Near = 0,
    /// Towards zero.
    Zero = 1,
    /// Towards minus infinity.
    Down = 2,
    /// Towards plus infinity.
    Up = 3,
}

/// A value taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// `significand * 2^exponent`, with a sign that zero has as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) significand: u128,
    pub(super) exponent: i32,
    /// Whether the true value is a little farther from zero.
    pub(super) more: bool,
}

impl Exact {
    pub(super) fn new(negative: bool, significand: u128, exponent: i32) -> Self {
        Self {
            negative,
            significand,
            exponent,
            more: false,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.significand == 0 && !self.more
    }

    /// Number of bits of the significand.
    pub(super) fn length(&self) -> i32 {
        (128 - self.significand.leading_zeros()).cast_signed()
    }

    /// The same value with its highest bit at place `top`, which must not lose bits.
    pub(super) fn with_top(self, top: i32) -> Self {
        let shift = top + 1 - self.length();
        Self {
            significand: self.significand << shift,
            exponent: self.exponent - shift,
            ..self
        }
    }
}

impl Format {
    /// The inverse of `self as u8`.
    pub(super) fn of(number: u8) -> Self {
        match number & 3 {
            0 => Self::F16,
            1 => Self::Bf16,
            2 => Self::F32,
            _ => Self::F64,
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::F32 => 32,
            Self::F64 => 64,
        }
    }

    /// Bits behind the point.
    fn fraction(self) -> u32 {
        match self {
            Self::F16 => 10,
            Self::Bf16 => 7,
            Self::F32 => 23,
            Self::F64 => 52,
        }
    }

    /// The largest value of the exponent field.
    fn top_exponent(self) -> u64 {
        (1 << (self.bits() - 1 - self.fraction())) - 1
    }

    fn bias(self) -> i32 {
        match self {
            Self::F16 => 15,
            Self::Bf16 | Self::F32 => 127,
            Self::F64 => 1023,
        }
    }

    pub(super) fn sign_bit(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// What PTX gives for a result that is no number.
    pub(super) fn nan(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 0x7fff,
            Self::F32 => 0x7fff_ffff,
            Self::F64 => 0xfff8_0000_0000_0000,
        }
    }

    pub(super) fn infinity(self, negative: bool) -> u64 {
        self.signed(negative, self.top_exponent() << self.fraction())
    }

    pub(super) fn zero(self, negative: bool) -> u64 {
        self.signed(negative, 0)
    }

    pub(super) fn one(self) -> u64 {
        u64::from(self.bias().unsigned_abs()) << self.fraction()
    }

    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative {
            magnitude | self.sign_bit()
        } else {
            magnitude
        }
    }

    pub(super) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity(false)
    }

    /// Subnormal values become zeros of the same sign.
    pub(super) fn flushed(self, bits: u64) -> u64 {
        let magnitude = bits & (self.sign_bit() - 1);
        if magnitude < 1 << self.fraction() {
            bits & self.sign_bit()
        } else {
            bits
        }
    }

    pub(super) fn unpack(self, bits: u64) -> Value {
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        let field = magnitude >> self.fraction();
        let fraction = magnitude & ((1 << self.fraction()) - 1);
        if field == self.top_exponent() {
            return match fraction {
                0 => Value::Infinite { negative },
                _ => Value::Nan,
            };
        }
        let (significand, field) = match field {
            0 => (fraction, 1),
            _ => (fraction | 1 << self.fraction(), field),
        };
        let field = i32::try_from(field).unwrap_or(i32::MAX);
        let exponent = field - self.bias() - self.fraction().cast_signed();
        Value::Finite(Exact::new(negative, u128::from(significand), exponent))
    }

    /// The nearest value of this format, in the direction of `rounding`.
    pub(super) fn pack(self, value: Exact, rounding: Rounding) -> u64 {
        let negative = value.negative;
        if value.is_zero() {
            return self.zero(negative);
        }
        let fraction = self.fraction().cast_signed();
        // Exponent of the last bit that the result has.
        let smallest = 1 - self.bias() - fraction;
        let normal = value.exponent + value.length() - 1 - fraction;
        let last = normal.max(smallest);
        let (kept, inexact) = round(value, last, rounding);
        // For normal numbers the highest bit of `kept` adds one to the exponent field.
        let field = i64::from(last - smallest);
        let magnitude = (u128::from(field.unsigned_abs()) << self.fraction()) + kept;
        let infinity = u128::from(self.infinity(false));
        if magnitude < infinity {
            let magnitude = u64::try_from(magnitude).unwrap_or(u64::MAX);
            return self.signed(negative, magnitude);
        }
        debug_assert!(inexact || magnitude >= infinity);
        let is_away = match rounding {
            Rounding::Near => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        let largest = self.infinity(false) - u64::from(!is_away);
        self.signed(negative, largest)
    }
}

/// The significand in units of `2^last`, rounded, and whether anything was lost.
pub(super) fn round(value: Exact, last: i32, rounding: Rounding) -> (u128, bool) {
    let shift = last - value.exponent;
    if shift <= 0 {
        // Only values that came without a remainder get here with few bits.
        return (value.significand << -shift, value.more);
    }
    let (kept, rest, half) = if shift >= 128 {
        // Half of the unit lies above every bit there is.
        (0, u128::from(value.significand != 0), u128::MAX)
    } else {
        let kept = value.significand >> shift;
        (kept, value.significand - (kept << shift), 1 << (shift - 1))
    };
    let inexact = rest != 0 || value.more;
    let up = match rounding {
        Rounding::Near => {
            let is_tie = rest == half && !value.more;
            rest > half || (rest == half && value.more) || (is_tie && kept & 1 == 1)
        }
        Rounding::Zero => false,
        Rounding::Down => inexact && value.negative,
        Rounding::Up => inexact && !value.negative,
    };
    (kept + u128::from(up), inexact)
}

impl Rounding {
    /// The inverse of `self as u8`.
    pub(super) fn of(number: u8) -> Self {
        match number & 3 {
            0 => Self::Near,
            1 => Self::Zero,
            2 => Self::Down,
            _ => Self::Up,
        }
    }
}
