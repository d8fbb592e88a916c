//! Sums, products, quotients and roots in any format and rounding mode.

use super::float::{Exact, Format, Rounding, Value};

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Operation {
    Add = 0,
    Sub = 1,
    Mul = 2,
    /// `a * b + c`, rounded once.
    Fma = 3,
    Div = 4,
    Sqrt = 5,
    /// One divided by `a`.
    Rcp = 6,
    Min = 7,
    Max = 8,
}

/// An operation with all its modifiers.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a modifier of its own"
)]
pub(crate) struct Arithmetic {
    pub(crate) format: Format,
    pub(crate) operation: Operation,
    pub(crate) rounding: Rounding,
    /// Subnormal operands and results count as zero.
    pub(crate) flush: bool,
    /// The result is kept between zero and one; what is no number becomes zero.
    pub(crate) saturate: bool,
    /// A negative result becomes zero.
    pub(crate) relu: bool,
    /// `min` and `max` give no number when one of the operands is none.
    pub(crate) nan: bool,
}

impl Arithmetic {
    /// As a number that fits an argument of a native function.
    pub(crate) fn code(self) -> u32 {
        let flag = |value: bool, place: u32| u32::from(value) << place;
        u32::from(self.format as u8)
            | u32::from(self.operation as u8) << 4
            | u32::from(self.rounding as u8) << 8
            | flag(self.flush, 12)
            | flag(self.saturate, 13)
            | flag(self.relu, 14)
            | flag(self.nan, 15)
    }

    /// The inverse of [`code`](Self::code).
    pub(crate) fn from_code(code: u32) -> Self {
        let bytes = code.to_le_bytes();
        let operation = match bytes[0] >> 4 {
            0 => Operation::Add,
            1 => Operation::Sub,
            2 => Operation::Mul,
            3 => Operation::Fma,
            4 => Operation::Div,
            5 => Operation::Sqrt,
            6 => Operation::Rcp,
            7 => Operation::Min,
            _ => Operation::Max,
        };
        Self {
            format: Format::of(bytes[0]),
            operation,
            rounding: Rounding::of(bytes[1]),
            flush: code >> 12 & 1 == 1,
            saturate: code >> 13 & 1 == 1,
            relu: code >> 14 & 1 == 1,
            nan: code >> 15 & 1 == 1,
        }
    }

    /// Computes on bits of the format.
    pub(crate) fn run(self, a: u64, b: u64, c: u64) -> u64 {
        let format = self.format;
        let input = |bits| {
            if self.flush {
                format.flushed(bits)
            } else {
                bits
            }
        };
        let (a, b, c) = (input(a), input(b), input(c));
        let unpack = |bits| format.unpack(bits);
        let negated = |bits| unpack(bits ^ format.sign_bit());
        let mode = self.rounding;
        let result = match self.operation {
            Operation::Add => sum(unpack(a), unpack(b), mode),
            Operation::Sub => sum(unpack(a), negated(b), mode),
            Operation::Mul => product(unpack(a), unpack(b)),
            Operation::Fma => sum(product(unpack(a), unpack(b)), unpack(c), mode),
            Operation::Div => quotient(unpack(a), unpack(b)),
            Operation::Sqrt => root(unpack(a)),
            Operation::Rcp => quotient(unpack(format.one()), unpack(a)),
            Operation::Min | Operation::Max => return self.finish(self.extreme(a, b)),
        };
        self.finish(match result {
            Value::Nan => format.nan(),
            Value::Infinite { negative } => format.infinity(negative),
            Value::Finite(exact) => format.pack(exact, mode),
        })
    }

    /// The smaller or the larger of two; minus zero is smaller than zero.
    fn extreme(self, a: u64, b: u64) -> u64 {
        let format = self.format;
        match (format.is_nan(a), format.is_nan(b)) {
            (false, false) => {}
            (true, true) => return format.nan(),
            _ if self.nan => return format.nan(),
            (true, false) => return b,
            (false, true) => return a,
        }
        // Flipping all bits of negative numbers orders bit patterns as the numbers are ordered.
        let key = |bits: u64| {
            if bits & format.sign_bit() == 0 {
                bits | format.sign_bit()
            } else {
                !bits & (format.sign_bit() | (format.sign_bit() - 1))
            }
        };
        let a_is_less = key(a) < key(b);
        if a_is_less == (self.operation == Operation::Min) {
            a
        } else {
            b
        }
    }

    fn finish(self, bits: u64) -> u64 {
        let format = self.format;
        let negative = bits & format.sign_bit() != 0;
        let is_nan = format.is_nan(bits);
        if self.saturate {
            return match bits {
                _ if is_nan || negative => format.zero(false),
                _ if bits > format.one() => format.one(),
                _ => self.flush_result(bits),
            };
        }
        if self.relu && negative && !is_nan {
            return format.zero(false);
        }
        self.flush_result(bits)
    }

    fn flush_result(self, bits: u64) -> u64 {
        if self.flush {
            self.format.flushed(bits)
        } else {
            bits
        }
    }
}

fn product(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(Exact::new(
            a.negative != b.negative,
            a.significand * b.significand,
            a.exponent + b.exponent,
        )),
        (Value::Infinite { negative: a }, Value::Infinite { negative: b }) => {
            Value::Infinite { negative: a != b }
        }
        (Value::Infinite { negative }, Value::Finite(finite))
        | (Value::Finite(finite), Value::Infinite { negative }) => {
            if finite.is_zero() {
                Value::Nan
            } else {
                Value::Infinite {
                    negative: negative != finite.negative,
                }
            }
        }
    }
}

fn sum(a: Value, b: Value, rounding: Rounding) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: a }, Value::Infinite { negative: b }) if a != b => Value::Nan,
        (Value::Infinite { negative }, _) | (_, Value::Infinite { negative }) => {
            Value::Infinite { negative }
        }
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(exact_sum(a, b, rounding)),
    }
}

/// Exact but for a remainder far below the bits that any format keeps.
fn exact_sum(a: Exact, b: Exact, rounding: Rounding) -> Exact {
    let zero = Exact::new(rounding == Rounding::Down, 0, 0);
    match (a.is_zero(), b.is_zero()) {
        (true, true) if a.negative == b.negative => return a,
        (true, true) => return zero,
        (true, false) => return b,
        (false, true) => return a,
        (false, false) => {}
    }
    // One bit is left free for the carry.
    let (a, b) = (a.with_top(126), b.with_top(126));
    let (large, small) = if a.exponent >= b.exponent {
        (a, b)
    } else {
        (b, a)
    };
    let distance = large.exponent.abs_diff(small.exponent);
    let moved = small.significand.checked_shr(distance).unwrap_or(0);
    let lost = distance >= 128 || moved << distance != small.significand;
    // Bits that fall off are remembered in the last place, far below what is kept: operands whose
    // difference needs that place are so close that nothing falls off.
    let moved = moved | u128::from(lost);
    if large.negative == small.negative {
        let significand = large.significand + moved;
        return Exact {
            significand,
            ..large
        };
    }
    match large.significand.cmp(&moved) {
        std::cmp::Ordering::Equal => zero,
        std::cmp::Ordering::Greater => Exact {
            significand: large.significand - moved,
            ..large
        },
        std::cmp::Ordering::Less => Exact {
            negative: small.negative,
            significand: moved - large.significand,
            ..large
        },
    }
}

fn quotient(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite { .. }, Value::Infinite { .. }) => {
            Value::Nan
        }
        (Value::Infinite { negative }, Value::Finite(b)) => Value::Infinite {
            negative: negative != b.negative,
        },
        (Value::Finite(a), Value::Infinite { negative }) => {
            Value::Finite(Exact::new(a.negative != negative, 0, 0))
        }
        (Value::Finite(a), Value::Finite(b)) => {
            let negative = a.negative != b.negative;
            match (a.is_zero(), b.is_zero()) {
                (true, true) => Value::Nan,
                (true, false) => Value::Finite(Exact::new(negative, 0, 0)),
                (false, true) => Value::Infinite { negative },
                (false, false) => Value::Finite(exact_quotient(a, b)),
            }
        }
    }
}

/// At least 70 bits, and whether there is a remainder.
fn exact_quotient(a: Exact, b: Exact) -> Exact {
    let a = a.with_top(126);
    let b = b.with_top(55);
    Exact {
        negative: a.negative != b.negative,
        significand: a.significand / b.significand,
        exponent: a.exponent - b.exponent,
        more: !a.significand.is_multiple_of(b.significand),
    }
}

fn root(value: Value) -> Value {
    match value {
        Value::Nan | Value::Infinite { negative: true } => Value::Nan,
        Value::Infinite { negative: false } => value,
        Value::Finite(exact) if exact.is_zero() => value,
        Value::Finite(exact) if exact.negative => Value::Nan,
        Value::Finite(exact) => {
            let wide = exact.with_top(126);
            // The exponent has to be even; a shift by one place makes it so.
            let odd = wide.exponent & 1;
            let significand = wide.significand << odd;
            let root = significand.isqrt();
            Value::Finite(Exact {
                negative: false,
                significand: root,
                exponent: (wide.exponent - odd) / 2,
                more: root * root != significand,
            })
        }
    }
}
