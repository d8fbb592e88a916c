//! Keys: whole numbers that sort as the pixels do.

use warploom_core::DType;

use crate::expr::{Ex, Ty};
use crate::kernel::{Access, Buf, Builder, Target};

use super::line::{int, word};
use super::tuning::Tuning;

/// Bits of a pixel's key.
pub(super) fn bits(dtype: DType) -> u32 {
    u32::try_from(dtype.bytes() * 8).expect("small")
}

/// Pixels read as keys of one or two words.
pub(super) struct Keys {
    dtype: DType,
    target: Target,
    buf: Buf,
}

/// A key: its high word and, for double precision, its low one; and whether the pixel is a number.
pub(super) struct Key<'k> {
    pub(super) high: Ex<'k>,
    pub(super) low: Option<Ex<'k>>,
    pub(super) nan: Option<Ex<'k>>,
}

const SIGN: u32 = 1 << 31;

/// An `f32`'s bits, from those of its key and back.
fn float_key<'k>(k: &'k Builder, bits: Ex<'k>) -> Ex<'k> {
    let negative = (bits & word(k, SIGN)).is_not(0);
    negative.select(!bits, bits | word(k, SIGN))
}

fn float_bits<'k>(k: &'k Builder, key: Ex<'k>) -> Ex<'k> {
    let positive = (key & word(k, SIGN)).is_not(0);
    positive.select(key ^ word(k, SIGN), !key)
}

impl Keys {
    /// Declares the image; double precision is read word by word.
    pub(super) fn new(k: &Builder, dtype: DType, tuning: &Tuning) -> Self {
        let read = if dtype == DType::F64 {
            DType::U32
        } else {
            dtype
        };
        Self {
            dtype,
            target: tuning.target,
            buf: k.buffer("in", read, Access::Read),
        }
    }

    /// The key of a pixel.
    pub(super) fn load<'k>(&self, k: &'k Builder, at: Ex<'k>) -> Key<'k> {
        let whole = |high| Key {
            high,
            low: None,
            nan: None,
        };
        if self.dtype == DType::F64 {
            return self.load_wide(k, at);
        }
        let value = k.load(self.buf, at);
        match self.dtype {
            DType::U32 => whole(value),
            DType::I16 => whole((value + 32_768).cast(Ty::U32)),
            DType::I32 => whole(value.cast(Ty::U32) ^ word(k, SIGN)),
            DType::F32 => Key {
                high: float_key(k, k.let_(value.to_bits().cast(Ty::U32))),
                low: None,
                nan: Some(value.is_nan()),
            },
            _ => whole(value.cast(Ty::U32)),
        }
    }

    fn load_wide<'k>(&self, k: &'k Builder, at: Ex<'k>) -> Key<'k> {
        let first = k.load(self.buf, at * 2);
        let second = k.load(self.buf, at * 2 + 1);
        let exponent = 0x7f80_0000;
        if self.target == Target::Wgsl {
            // A pair of f32, the larger first.
            let rest = k.let_(first & word(k, !SIGN));
            return Key {
                high: float_key(k, first),
                low: Some(float_key(k, second)),
                nan: Some(rest.gt(word(k, exponent))),
            };
        }
        let (low, high) = (first, second);
        let negative = k.let_((high & word(k, SIGN)).is_not(0));
        let top = k.let_(high & word(k, !SIGN));
        let infinite = word(k, 0x7ff0_0000);
        Key {
            high: negative.select(!high, high | word(k, SIGN)),
            low: Some(negative.select(!low, low)),
            nan: Some(top.gt(infinite) | (top.is(infinite) & low.is_not(0))),
        }
    }
}

/// The value of a key as an `f64`; not for keys of two words.
pub(super) fn value<'k>(k: &'k Builder, dtype: DType, key: Ex<'k>) -> Ex<'k> {
    let value = match dtype {
        DType::U32 => key,
        DType::I16 => key.cast(Ty::I32) - 32_768,
        DType::I32 => (key ^ word(k, SIGN)).cast(Ty::I32),
        DType::F32 => float_bits(k, key).cast(Ty::I32).from_bits(),
        _ => key.cast(Ty::I32),
    };
    k.let_(value.cast(Ty::F64))
}

/// Writes the value of a key of two words as the words of an `f64`, at its number in a list.
pub(super) fn put_wide<'k>(
    k: &'k Builder,
    tuning: &Tuning,
    to: Buf,
    at: Ex<'k>,
    [high, low]: [Ex<'k>; 2],
) {
    let (first, second) = if tuning.target == Target::Wgsl {
        (float_bits(k, high), float_bits(k, low))
    } else {
        let positive = k.let_((high & word(k, SIGN)).is_not(0));
        let top = positive.select(high ^ word(k, SIGN), !high);
        (positive.select(low, !low), top)
    };
    k.store(to, at * 2, k.let_(first));
    k.store(to, at * 2 + int(k, 1), k.let_(second));
}
