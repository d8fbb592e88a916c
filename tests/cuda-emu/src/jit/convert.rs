//! `cvt`.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::{integer, native};
use super::reals::{format, rounding};
use super::routine::Routine;
use super::translate::Translator;
use crate::math::{Conversion, Number, Rounding};
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// Modifiers of a conversion.
#[derive(Debug, Clone, Copy)]
struct Style {
    rounding: Option<Rounding>,
    /// Rounding to a whole number.
    whole: Option<Rounding>,
    flush: bool,
    saturate: bool,
    relu: bool,
}

fn number(ty: Type) -> Option<Number> {
    if let Some(format) = format(ty) {
        return Some(Number::Float(format));
    }
    ty.is_integer().then_some(Number::Integer {
        bits: ty.bits(),
        signed: ty.is_signed(),
    })
}

/// Whether integers of one type have values that another one has not.
fn can_exceed(to: Type, from: Type) -> bool {
    match (to.is_signed(), from.is_signed()) {
        (false, true) => true,
        (true, false) => from.bits() >= to.bits(),
        _ => from.bits() > to.bits(),
    }
}

/// Refuses what is no conversion between numbers.
fn expect_convertible(
    modifiers: &Modifiers<'_>,
    style: Style,
    to: Type,
    from: Type,
) -> Result<(), PtxError> {
    let is_number = |ty: Type| (ty.is_integer() && !ty.is_untyped()) || ty.is_float();
    if !is_number(to) || !is_number(from) {
        return Err(modifiers.error("is not supported for these types"));
    }
    if style.saturate && to.is_integer() && from.is_integer() && !can_exceed(to, from) {
        return Err(modifiers.error("saturates although every value fits"));
    }
    let is_to_integer = to.is_integer() && from.is_float();
    if is_to_integer && style.whole.is_none() {
        return Err(modifiers.error("needs a rounding to whole numbers"));
    }
    Ok(())
}

impl Translator<'_, '_> {
    pub(super) fn convert(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let whole = modifiers.find(|word| match word {
            "rni" => Some(Rounding::Near),
            "rzi" => Some(Rounding::Zero),
            "rmi" => Some(Rounding::Down),
            "rpi" => Some(Rounding::Up),
            _ => None,
        });
        let style = Style {
            rounding: rounding(modifiers),
            whole,
            flush: modifiers.flag("ftz"),
            saturate: modifiers.flag("sat"),
            relu: modifiers.flag("relu"),
        };
        let (to, from) = (modifiers.ty()?, modifiers.ty()?);
        match (operands, to) {
            ([target, upper, lower], Type::F16x2 | Type::Bf16x2) => {
                self.convert_pair(modifiers, style, to, from, target, [lower, upper])
            }
            ([target, source], _) => {
                expect_convertible(modifiers, style, to, from)?;
                let value = self.read_narrowed(source, from)?;
                let value = self.converted(style, to, from, value);
                self.write_extended(target, to, value)
            }
            _ => Err(modifiers.error("has another number of operands")),
        }
    }

    fn converted(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        match (to.is_float(), from.is_float()) {
            (false, false) => self.integer_to_integer(style, to, from, value),
            (true, false) => self.integer_to_float(style, to, from, value),
            (false, true) => self.float_to_integer(style, to, from, value),
            (true, true) => self.float_to_float(style, to, from, value),
        }
    }

    fn integer_to_integer(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        if !style.saturate {
            return self.resize(value, native(to), from.is_signed());
        }
        self.soft_conversion(style, to, from, value)
    }

    fn integer_to_float(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        let is_near = style.rounding.unwrap_or(Rounding::Near) == Rounding::Near;
        if !is_near || !matches!(to, Type::F32 | Type::F64) {
            return self.soft_conversion(style, to, from, value);
        }
        let wide = if from.bits() == 64 { I64 } else { I32 };
        let value = self.resize(value, wide, from.is_signed());
        let value = if from.is_signed() {
            self.builder.ins().fcvt_from_sint(native(to), value)
        } else {
            self.builder.ins().fcvt_from_uint(native(to), value)
        };
        if style.saturate {
            self.saturated(value)
        } else {
            value
        }
    }

    fn float_to_integer(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        if !matches!(from, Type::F32 | Type::F64) || to.bits() < 32 {
            return self.soft_conversion(style, to, from, value);
        }
        // Rounding to whole numbers takes subnormal ones to zero or to one; flushed they are zero.
        let value = if style.flush && from == Type::F32 {
            self.flushed(value)
        } else {
            value
        };
        let whole = self.rounded(style.whole.unwrap_or(Rounding::Zero), value);
        let ty = native(to);
        let converted = if to.is_signed() {
            self.builder.ins().fcvt_to_sint_sat(ty, whole)
        } else {
            self.builder.ins().fcvt_to_uint_sat(ty, whole)
        };
        if to.bits() == 32 && from == Type::F32 {
            return converted;
        }
        // The host gives zero for what is no number; GPUs convert 64 bits in another unit.
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let odd = self.constant(ty, 1 << (to.bits() - 1));
        self.builder.ins().select(is_nan, odd, converted)
    }

    fn rounded(&mut self, rounding: Rounding, value: Value) -> Value {
        match rounding {
            Rounding::Near => self.builder.ins().nearest(value),
            Rounding::Zero => self.builder.ins().trunc(value),
            Rounding::Down => self.builder.ins().floor(value),
            Rounding::Up => self.builder.ins().ceil(value),
        }
    }

    fn float_to_float(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        let is_near = style.rounding.unwrap_or(Rounding::Near) == Rounding::Near;
        let is_native = |ty| matches!(ty, Type::F32 | Type::F64);
        if !is_native(to) || !is_native(from) || !is_near || style.relu {
            return self.soft_conversion(style, to, from, value);
        }
        let mut value = value;
        if style.flush && from == Type::F32 {
            value = self.flushed(value);
        }
        if let Some(rounding) = style.whole {
            value = self.rounded(rounding, value);
        }
        value = match (to, from) {
            (Type::F32, Type::F64) => self.builder.ins().fdemote(F32, value),
            (Type::F64, Type::F32) => self.builder.ins().fpromote(F64, value),
            _ => value,
        };
        if to == Type::F32 {
            value = self.canonical(value);
        }
        if style.saturate {
            value = self.saturated(value);
        }
        if style.flush && to == Type::F32 {
            value = self.flushed(value);
        }
        value
    }

    /// `cvt.rn.f16x2.f32 d, a, b`: `a` becomes the upper half.
    fn convert_pair(
        &mut self,
        modifiers: &Modifiers<'_>,
        style: Style,
        to: Type,
        from: Type,
        target: &Operand,
        sources: [&Operand; 2],
    ) -> Result<(), PtxError> {
        if from != Type::F32 {
            return Err(modifiers.error("is not supported for these types"));
        }
        let half = if to == Type::F16x2 {
            Type::F16
        } else {
            Type::Bf16
        };
        let mut halves = Vec::new();
        for source in sources {
            let value = self.read(source, from)?;
            let value = self.soft_conversion(style, half, from, value);
            halves.push(self.builder.ins().uextend(I32, value));
        }
        let upper = self.builder.ins().ishl_imm_s(halves[1], 16);
        let value = self.builder.ins().bor(upper, halves[0]);
        self.write(target, to, value)
    }

    /// Conversions that are not worth compiling.
    fn soft_conversion(&mut self, style: Style, to: Type, from: Type, value: Value) -> Value {
        let kind = |ty| number(ty).expect("the types of a conversion were checked");
        let conversion = Conversion {
            to: kind(to),
            from: kind(from),
            rounding: style.whole.or(style.rounding).unwrap_or(Rounding::Near),
            whole: style.whole.is_some(),
            flush: style.flush,
            saturate: style.saturate,
            relu: style.relu,
        };
        let code = self.int32(conversion.code());
        let bits = self.as_bits(value);
        let bits = self.resize(bits, I64, false);
        let bits = self.call_routine(Routine::Convert, &[code, bits]);
        let bits = self.resize(bits, integer(to.bits()), false);
        self.cast(bits, native(to))
    }
}
