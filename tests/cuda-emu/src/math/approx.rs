//! Functions that hardware approximates, computed in double precision.
//!
//! Each result is the double rounded to single precision, which is far inside the error bounds that
//! the PTX manual states.

/// An elementary function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Function {
    Sin = 0,
    Cos = 1,
    Lg2 = 2,
    Ex2 = 3,
    Tanh = 4,
    Rsqrt = 5,
}

impl Function {
    fn of(number: u32) -> Self {
        match number {
            0 => Self::Sin,
            1 => Self::Cos,
            2 => Self::Lg2,
            3 => Self::Ex2,
            4 => Self::Tanh,
            _ => Self::Rsqrt,
        }
    }

    fn apply(self, x: f64) -> f64 {
        match self {
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Lg2 => x.log2(),
            Self::Ex2 => x.exp2(),
            Self::Tanh => x.tanh(),
            Self::Rsqrt => 1.0 / x.sqrt(),
        }
    }
}

/// The function with number `function`, as [`Function`] numbers them.
pub(crate) fn approximate(function: u32, x: f64) -> f64 {
    Function::of(function).apply(x)
}
