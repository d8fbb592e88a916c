//! Arithmetic on floating point numbers.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::{integer, native};
use super::routine::Routine;
use super::translate::Translator;
use crate::math::{Arithmetic, Format, Operation, Rounding};
use crate::ptx::{Modifiers, Operand, PtxError, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Real {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
    Rcp,
    Min,
    Max,
}

impl Real {
    fn operation(self) -> Operation {
        match self {
            Self::Add => Operation::Add,
            Self::Sub => Operation::Sub,
            Self::Mul => Operation::Mul,
            Self::Fma => Operation::Fma,
            Self::Div => Operation::Div,
            Self::Sqrt => Operation::Sqrt,
            Self::Rcp => Operation::Rcp,
            Self::Min => Operation::Min,
            Self::Max => Operation::Max,
        }
    }
}

/// Modifiers of floating point instructions.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a modifier of its own"
)]
pub(super) struct Style {
    pub(super) rounding: Option<Rounding>,
    pub(super) flush: bool,
    saturate: bool,
    relu: bool,
    nan: bool,
    /// `.approx`; results are the exact ones, except where the manual names others.
    pub(super) approx: bool,
}

impl Style {
    pub(super) fn of(modifiers: &Modifiers<'_>) -> Self {
        Self {
            rounding: rounding(modifiers),
            flush: modifiers.flag("ftz"),
            saturate: modifiers.flag("sat"),
            relu: modifiers.flag("relu"),
            nan: modifiers.flag("NaN"),
            approx: modifiers.flag("approx"),
        }
    }
}

pub(super) fn rounding(modifiers: &Modifiers<'_>) -> Option<Rounding> {
    modifiers.find(|word| match word {
        "rn" => Some(Rounding::Near),
        "rz" => Some(Rounding::Zero),
        "rm" => Some(Rounding::Down),
        "rp" => Some(Rounding::Up),
        _ => None,
    })
}

/// The format of one number, or of each of the two in a pair.
pub(super) fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        Type::F16 | Type::F16x2 => Format::F16,
        Type::Bf16 | Type::Bf16x2 => Format::Bf16,
        Type::F32 => Format::F32,
        Type::F64 => Format::F64,
        _ => return None,
    })
}

impl Translator<'_, '_> {
    pub(super) fn real(
        &mut self,
        real: Real,
        modifiers: &Modifiers<'_>,
        ty: Type,
        target: &Operand,
        sources: &[&Operand],
    ) -> Result<(), PtxError> {
        let style = Style::of(modifiers);
        if real == Real::Div {
            // Full range, two units in the last place: a bound that the exact quotient keeps.
            modifiers.ignore(&["full"]);
        }
        let is_double = ty == Type::F64;
        let is_brain = matches!(ty, Type::Bf16 | Type::Bf16x2);
        if format(ty).is_none()
            || (style.flush && (is_double || is_brain))
            || (style.saturate && (is_double || is_brain))
        {
            return Err(modifiers.error("is not supported for this type"));
        }
        let values = sources
            .iter()
            .map(|source| self.read(source, ty))
            .collect::<Result<Vec<_>, _>>()?;
        let value = self.in_halves(ty, &values, |this, ty, values| {
            this.real_value(real, style, ty, values)
        });
        self.write(target, ty, value)
    }

    /// Applies `compute` to the number, or to each of the two.
    pub(super) fn in_halves(
        &mut self,
        ty: Type,
        values: &[Value],
        compute: impl Fn(&mut Self, Type, &[Value]) -> Value,
    ) -> Value {
        let Some(half) = ty.half() else {
            return compute(self, ty, values);
        };
        let mut parts = [0, 16].map(|place| {
            let halves: Vec<Value> = values
                .iter()
                .map(|value| {
                    let moved = self.builder.ins().ushr_imm_s(*value, place);
                    self.builder.ins().ireduce(I16, moved)
                })
                .collect();
            let part = compute(self, half, &halves);
            self.builder.ins().uextend(I32, part)
        });
        parts[1] = self.builder.ins().ishl_imm_s(parts[1], 16);
        self.builder.ins().bor(parts[0], parts[1])
    }

    fn real_value(&mut self, real: Real, style: Style, ty: Type, values: &[Value]) -> Value {
        if let [a, b, c] = values
            && matches!(real, Real::Min | Real::Max)
        {
            let first = self.real_value(real, style, ty, &[*a, *b]);
            return self.real_value(real, style, ty, &[first, *c]);
        }
        let rounding = style.rounding.unwrap_or(Rounding::Near);
        let is_native = matches!(ty, Type::F32 | Type::F64) && rounding == Rounding::Near;
        if !is_native {
            return self.soft(real, style, ty, values);
        }
        let mut inputs = values.to_vec();
        if style.flush {
            for input in &mut inputs {
                *input = self.flushed(*input);
            }
        }
        let value = self.native_real(real, style, ty, &inputs);
        let value = if ty == Type::F32 {
            self.canonical(value)
        } else {
            value
        };
        self.finished(value, style)
    }

    fn native_real(&mut self, real: Real, style: Style, ty: Type, inputs: &[Value]) -> Value {
        match (real, inputs) {
            (Real::Add, [a, b]) => self.builder.ins().fadd(*a, *b),
            (Real::Sub, [a, b]) => self.builder.ins().fsub(*a, *b),
            (Real::Mul, [a, b]) => self.builder.ins().fmul(*a, *b),
            (Real::Fma, [a, b, c]) => self.builder.ins().fma(*a, *b, *c),
            (Real::Div, [a, b]) => {
                let quotient = self.builder.ins().fdiv(*a, *b);
                if style.approx && ty == Type::F32 {
                    return self.approximate_quotient(*a, *b, quotient);
                }
                quotient
            }
            (Real::Sqrt, [a]) => self.builder.ins().sqrt(*a),
            (Real::Rcp, [a]) => {
                let one = match ty {
                    Type::F32 => self.builder.ins().f32const(1.0),
                    _ => self.builder.ins().f64const(1.0),
                };
                self.builder.ins().fdiv(one, *a)
            }
            (Real::Min | Real::Max, [a, b]) => self.native_extreme(real, style, *a, *b),
            _ => unreachable!("the number of operands was counted when they were read"),
        }
    }

    /// Divisors above 2^126 give zero, or no number for an infinite dividend: the quotient is a
    /// product with a reciprocal that is subnormal.
    fn approximate_quotient(&mut self, a: Value, b: Value, quotient: Value) -> Value {
        let size = self.builder.ins().fabs(b);
        let limit = self.builder.ins().f32const(f32::from_bits(0x7e80_0000));
        let infinity = self.builder.ins().f32const(f32::INFINITY);
        let is_large = self.builder.ins().fcmp(FloatCC::GreaterThan, size, limit);
        let is_finite = self.builder.ins().fcmp(FloatCC::LessThan, size, infinity);
        let applies = self.builder.ins().band(is_large, is_finite);
        let zero = self.builder.ins().f32const(0.0);
        // Infinity times zero is no number, and everything else times zero is zero.
        let product = self.builder.ins().fmul(a, zero);
        let product = self.builder.ins().fcopysign(product, quotient);
        self.builder.ins().select(applies, product, quotient)
    }

    fn native_extreme(&mut self, real: Real, style: Style, a: Value, b: Value) -> Value {
        let ordered = if real == Real::Min {
            self.builder.ins().fmin(a, b)
        } else {
            self.builder.ins().fmax(a, b)
        };
        if style.nan {
            return ordered;
        }
        let a_is_nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
        let b_is_nan = self.builder.ins().fcmp(FloatCC::Unordered, b, b);
        let value = self.builder.ins().select(b_is_nan, a, ordered);
        self.builder.ins().select(a_is_nan, b, value)
    }

    /// Saturates and flushes a result.
    pub(super) fn finished(&mut self, value: Value, style: Style) -> Value {
        let mut value = value;
        if style.saturate {
            value = self.saturated(value);
        }
        if style.flush && self.type_of(value) == F32 {
            value = self.flushed(value);
        }
        value
    }

    /// Arithmetic that the host does not have.
    fn soft(&mut self, real: Real, style: Style, ty: Type, values: &[Value]) -> Value {
        let operation = Arithmetic {
            format: format(ty).unwrap_or(Format::F64),
            operation: real.operation(),
            rounding: style.rounding.unwrap_or(Rounding::Near),
            flush: style.flush,
            saturate: style.saturate,
            relu: style.relu,
            nan: style.nan,
        };
        let zero = self.constant(I64, 0);
        let mut arguments = [self.int32(operation.code()), zero, zero, zero];
        for (argument, value) in arguments[1..].iter_mut().zip(values) {
            let bits = self.as_bits(*value);
            *argument = self.resize(bits, I64, false);
        }
        let result = self.call_routine(Routine::Arithmetic, &arguments);
        let result = self.resize(result, integer(ty.bits()), false);
        self.cast(result, native(ty))
    }

    pub(super) fn fused(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        self.real(Real::Fma, modifiers, ty, target, &[a, b, c])
    }

    pub(super) fn square_root(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        self.real(Real::Sqrt, modifiers, ty, target, &[a])
    }

    pub(super) fn reciprocal(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        if ty == Type::F64 && modifiers.flag("approx") {
            let flush = modifiers.flag("ftz");
            return self.gross(Real::Rcp, flush, target, a);
        }
        self.real(Real::Rcp, modifiers, ty, target, &[a])
    }

    /// `neg` and `abs`, which change the sign and nothing else.
    pub(super) fn sign_change(
        &mut self,
        is_negation: bool,
        modifiers: &Modifiers<'_>,
        ty: Type,
        target: &Operand,
        source: &Operand,
    ) -> Result<(), PtxError> {
        let flush = modifiers.flag("ftz");
        let signs = match ty {
            Type::F16 | Type::Bf16 => 0x8000,
            Type::F16x2 | Type::Bf16x2 => 0x8000_8000,
            Type::F32 => 0x8000_0000,
            Type::F64 => 1 << 63,
            _ => return Err(modifiers.error("is not supported for this type")),
        };
        let mut value = self.read(source, ty)?;
        if flush {
            if ty != Type::F32 {
                return Err(modifiers.error("flushes `.f32` only"));
            }
            value = self.flushed(value);
        }
        let bits = self.as_bits(value);
        let bits_ty = self.type_of(bits);
        let signs = self.constant(bits_ty, signs);
        let bits = if is_negation {
            self.builder.ins().bxor(bits, signs)
        } else {
            self.builder.ins().band_not(bits, signs)
        };
        let value = self.cast(bits, native(ty));
        self.write(target, ty, value)
    }
}
