//! Conversions between all kinds of numbers.

use super::float::{Exact, Format, Rounding, Value, round};

/// A kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Float(Format),
    /// Bits, and whether one of them is a sign.
    Integer {
        bits: u32,
        signed: bool,
    },
}

/// A conversion with all its modifiers.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a modifier of its own"
)]
pub(crate) struct Conversion {
    pub(crate) to: Number,
    pub(crate) from: Number,
    pub(crate) rounding: Rounding,
    /// A float is first rounded to a whole number.
    pub(crate) whole: bool,
    pub(crate) flush: bool,
    /// Floats are kept between zero and one. Integers always saturate when they come from floats.
    pub(crate) saturate: bool,
    pub(crate) relu: bool,
}

impl Number {
    fn code(self) -> u32 {
        match self {
            Self::Float(format) => u32::from(format as u8),
            Self::Integer { bits, signed } => 8 | bits.trailing_zeros() | u32::from(signed) << 4,
        }
    }

    fn from_code(code: u32) -> Self {
        if code & 8 == 0 {
            return Self::Float(Format::of(code.to_le_bytes()[0]));
        }
        // The logarithms are 3 to 6, so that the bit of `8` is never part of them.
        Self::Integer {
            bits: 1 << (code & 7),
            signed: code >> 4 & 1 == 1,
        }
    }
}

impl Conversion {
    /// As a number that fits an argument of a native function.
    pub(crate) fn code(self) -> u32 {
        let flag = |value: bool, place: u32| u32::from(value) << place;
        self.to.code()
            | self.from.code() << 8
            | u32::from(self.rounding as u8) << 16
            | flag(self.whole, 20)
            | flag(self.flush, 21)
            | flag(self.saturate, 22)
            | flag(self.relu, 23)
    }

    pub(crate) fn from_code(code: u32) -> Self {
        Self {
            to: Number::from_code(code & 0x1f),
            from: Number::from_code(code >> 8 & 0x1f),
            rounding: Rounding::of((code >> 16).to_le_bytes()[0]),
            whole: code >> 20 & 1 == 1,
            flush: code >> 21 & 1 == 1,
            saturate: code >> 22 & 1 == 1,
            relu: code >> 23 & 1 == 1,
        }
    }
}

/// Converts bits; those above the width of the kind are ignored and come out as zero.
pub(crate) fn convert(conversion: Conversion, bits: u64) -> u64 {
    let value = match conversion.from {
        Number::Float(format) => {
            let bits = bits & (u64::MAX >> (64 - format.bits()));
            let is_flushed = conversion.flush && format == Format::F32;
            format.unpack(if is_flushed {
                format.flushed(bits)
            } else {
                bits
            })
        }
        Number::Integer {
            bits: width,
            signed,
        } => {
            let unused = 64 - width;
            let is_negative = signed && bits << unused >> 63 == 1;
            let magnitude = if is_negative {
                ((bits << unused).cast_signed() >> unused).unsigned_abs()
            } else {
                bits << unused >> unused
            };
            Value::Finite(Exact::new(is_negative, u128::from(magnitude), 0))
        }
    };
    match conversion.to {
        Number::Float(format) => to_float(conversion, value, format),
        Number::Integer { bits, signed } => to_integer(conversion, value, bits, signed),
    }
}

fn to_float(conversion: Conversion, value: Value, format: Format) -> u64 {
    let bits = match value {
        Value::Nan => format.nan(),
        Value::Infinite { negative } => format.infinity(negative),
        Value::Finite(exact) if conversion.whole && exact.exponent < 0 => {
            let (whole, _) = round(exact, 0, conversion.rounding);
            format.pack(Exact::new(exact.negative, whole, 0), Rounding::Near)
        }
        Value::Finite(exact) => format.pack(exact, conversion.rounding),
    };
    let is_negative = bits & format.sign_bit() != 0;
    if conversion.saturate {
        return match bits {
            _ if format.is_nan(bits) || is_negative => 0,
            _ if bits > format.one() => format.one(),
            _ => bits,
        };
    }
    if conversion.relu && is_negative && !format.is_nan(bits) {
        return 0;
    }
    if conversion.flush && format == Format::F32 {
        return format.flushed(bits);
    }
    bits
}

fn to_integer(conversion: Conversion, value: Value, bits: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let (largest, smallest) = if signed {
        (u128::from(mask >> 1), u128::from(mask >> 1) + 1)
    } else {
        (u128::from(mask), 0)
    };
    let (negative, magnitude) = match value {
        // Where one of the two is 64 bits wide, hardware converts in another unit.
        Value::Nan => {
            let is_wide = bits == 64 || conversion.from == Number::Float(Format::F64);
            return if is_wide { 1 << (bits - 1) } else { 0 };
        }
        Value::Infinite { negative } => (negative, u128::MAX),
        Value::Finite(exact) if exact.exponent >= 0 => {
            let is_large = exact.length() + exact.exponent > 100;
            let magnitude = if exact.significand == 0 {
                0
            } else if is_large {
                u128::MAX
            } else {
                exact.significand << exact.exponent
            };
            (exact.negative, magnitude)
        }
        Value::Finite(exact) => (exact.negative, round(exact, 0, conversion.rounding).0),
    };
    let is_from_integer = matches!(conversion.from, Number::Integer { .. });
    let limit = if negative { smallest } else { largest };
    let kept = if is_from_integer && !conversion.saturate {
        magnitude
    } else {
        magnitude.min(limit)
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an integer that does not saturate loses its upper bits"
    )]
    let kept = kept as u64;
    let value = if negative { kept.wrapping_neg() } else { kept };
    value & mask
}
