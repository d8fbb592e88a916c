//! Functions that hardware approximates.

use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::{integer, native};
use super::reals::{Real, Style, format};
use super::routine::Routine;
use super::translate::Translator;
use crate::math::{Conversion, Format, Function, Number, Rounding};
use crate::ptx::{Modifiers, Operand, PtxError, Type};

impl Translator<'_, '_> {
    pub(super) fn function(
        &mut self,
        function: Function,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let style = Style::of(modifiers);
        let [target, source] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        let is_known = match ty {
            Type::F32 => true,
            Type::F64 => function == Function::Rsqrt,
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => {
                matches!(function, Function::Ex2 | Function::Tanh)
            }
            _ => false,
        };
        if !is_known || !style.approx {
            return Err(modifiers.error("is not supported"));
        }
        if ty == Type::F64 && style.flush {
            return self.gross(Real::Sqrt, true, target, source);
        }
        let value = self.read(source, ty)?;
        let value = self.in_halves(ty, &[value], |this, ty, values| {
            this.function_value(function, style, ty, values[0])
        });
        self.write(target, ty, value)
    }

    fn function_value(
        &mut self,
        function: Function,
        style: Style,
        ty: Type,
        value: Value,
    ) -> Value {
        let mut value = value;
        if style.flush && ty == Type::F32 {
            value = self.flushed(value);
        }
        let wide = match ty {
            Type::F32 => self.builder.ins().fpromote(F64, value),
            Type::F64 => value,
            _ => {
                let bits = self.between(ty, Type::F64, value);
                self.cast(bits, F64)
            }
        };
        let number = self.int32(u32::from(function as u8));
        let wide = self.call_routine(Routine::Approximate, &[number, wide]);
        match ty {
            Type::F32 => {
                let narrow = self.builder.ins().fdemote(F32, wide);
                let narrow = self.canonical(narrow);
                self.finished(narrow, style)
            }
            Type::F64 => wide,
            _ => self.between(Type::F64, ty, wide),
        }
    }

    /// Converts between formats with rounding to nearest.
    pub(super) fn between(&mut self, from: Type, to: Type, value: Value) -> Value {
        let float = |ty| Number::Float(format(ty).unwrap_or(Format::F64));
        let conversion = Conversion {
            to: float(to),
            from: float(from),
            rounding: Rounding::Near,
            whole: false,
            flush: false,
            saturate: false,
            relu: false,
        };
        let code = self.int32(conversion.code());
        let bits = self.as_bits(value);
        let bits = self.resize(bits, I64, false);
        let bits = self.call_routine(Routine::Convert, &[code, bits]);
        let bits = self.resize(bits, integer(to.bits()), false);
        self.cast(bits, native(to))
    }

    /// Reciprocals of doubles with 20 bits behind the point, computed from the upper halves alone.
    pub(super) fn gross(
        &mut self,
        real: Real,
        flush: bool,
        target: &Operand,
        source: &Operand,
    ) -> Result<(), PtxError> {
        debug_assert!(flush, "there is no form that keeps subnormal numbers");
        let value = self.read(source, Type::F64)?;
        let upper = self.upper_half(value);
        let upper = self.flushed_double(upper);
        let root = if real == Real::Sqrt {
            self.builder.ins().sqrt(upper)
        } else {
            upper
        };
        let one = self.builder.ins().f64const(1.0);
        let value = self.builder.ins().fdiv(one, root);
        let value = self.flushed_double(value);
        let value = self.upper_half(value);
        self.write(target, Type::F64, value)
    }

    fn upper_half(&mut self, value: Value) -> Value {
        let bits = self.cast(value, I64);
        let mask = self.constant(I64, 0xffff_ffff_0000_0000);
        let bits = self.builder.ins().band(bits, mask);
        self.cast(bits, F64)
    }

    fn flushed_double(&mut self, value: Value) -> Value {
        use cranelift_codegen::ir::condcodes::IntCC;
        let bits = self.cast(value, I64);
        let exponent = self.constant(I64, 0x7ff0_0000_0000_0000);
        let exponent = self.builder.ins().band(bits, exponent);
        let is_small = self.builder.ins().icmp_imm_s(IntCC::Equal, exponent, 0);
        let sign = self.constant(I64, 1 << 63);
        let zero = self.builder.ins().band(bits, sign);
        let bits = self.builder.ins().select(is_small, zero, bits);
        self.cast(bits, F64)
    }

    /// `copysign d, a, b`: the sign of `a`, the rest of `b`.
    pub(super) fn copy_sign(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if !matches!(ty, Type::F32 | Type::F64) {
            return Err(modifiers.error("is not supported for this type"));
        }
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let value = self.builder.ins().fcopysign(b, a);
        self.write(target, ty, value)
    }

    /// `testp`.
    pub(super) fn test_property(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        use cranelift_codegen::ir::condcodes::IntCC;
        let property = modifiers
            .find(|word| {
                let known = [
                    "finite",
                    "infinite",
                    "number",
                    "notanumber",
                    "normal",
                    "subnormal",
                ];
                known.contains(&word).then_some(word)
            })
            .ok_or_else(|| modifiers.error("names no property"))?;
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        let (bits_ty, infinity, smallest): (_, u64, u64) = match ty {
            Type::F32 => (I32, 0x7f80_0000, 0x0080_0000),
            Type::F64 => (I64, 0x7ff0_0000_0000_0000, 0x0010_0000_0000_0000),
            _ => return Err(modifiers.error("is not supported for this type")),
        };
        let value = self.read(a, ty)?;
        let bits = self.cast(value, bits_ty);
        let sign = self.constant(bits_ty, 1 << (bits_ty.bits() - 1));
        let size = self.builder.ins().band_not(bits, sign);
        let infinity = self.constant(bits_ty, infinity);
        let smallest = self.constant(bits_ty, smallest);
        let mut holds = |condition, a, b| self.builder.ins().icmp(condition, a, b);
        let found = match property {
            "finite" => holds(IntCC::UnsignedLessThan, size, infinity),
            "infinite" => holds(IntCC::Equal, size, infinity),
            "number" => holds(IntCC::UnsignedLessThanOrEqual, size, infinity),
            "notanumber" => holds(IntCC::UnsignedGreaterThan, size, infinity),
            "normal" => {
                let below = holds(IntCC::UnsignedLessThan, size, infinity);
                let above = holds(IntCC::UnsignedGreaterThanOrEqual, size, smallest);
                self.builder.ins().band(below, above)
            }
            _ => {
                let below = holds(IntCC::UnsignedLessThan, size, smallest);
                let above = self.builder.ins().icmp_imm_s(IntCC::NotEqual, size, 0);
                self.builder.ins().band(below, above)
            }
        };
        self.write(target, Type::Pred, found)
    }
}
