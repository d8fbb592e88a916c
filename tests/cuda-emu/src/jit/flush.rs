//! Numbers that are replaced by others: subnormal ones, those that are none, and those out of range.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I32};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::translate::Translator;

impl Translator<'_, '_> {
    /// A single; subnormal ones become zeros of the same sign.
    pub(super) fn flushed(&mut self, value: Value) -> Value {
        let bits = self.cast(value, I32);
        let exponent = self.int32(0x7f80_0000);
        let exponent = self.builder.ins().band(bits, exponent);
        let is_small = self.builder.ins().icmp_imm_s(IntCC::Equal, exponent, 0);
        let sign = self.int32(0x8000_0000);
        let zero = self.builder.ins().band(bits, sign);
        let bits = self.builder.ins().select(is_small, zero, bits);
        self.cast(bits, F32)
    }

    /// A single; what is no number gets the bits that hardware gives it.
    pub(super) fn canonical(&mut self, value: Value) -> Value {
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let nan = self.int32(0x7fff_ffff);
        let nan = self.cast(nan, F32);
        self.builder.ins().select(is_nan, nan, value)
    }

    /// Kept between zero and one; what is no number becomes zero.
    pub(super) fn saturated(&mut self, value: Value) -> Value {
        let (zero, one) = if self.type_of(value) == F32 {
            (
                self.builder.ins().f32const(0.0),
                self.builder.ins().f32const(1.0),
            )
        } else {
            (
                self.builder.ins().f64const(0.0),
                self.builder.ins().f64const(1.0),
            )
        };
        let is_positive = self.builder.ins().fcmp(FloatCC::GreaterThan, value, zero);
        let value = self.builder.ins().select(is_positive, value, zero);
        let is_large = self.builder.ins().fcmp(FloatCC::GreaterThan, value, one);
        self.builder.ins().select(is_large, one, value)
    }
}
