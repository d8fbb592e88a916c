//! Arithmetic on integers, and the opcodes that integers share with floating point numbers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, InstBuilder, Value};

use super::operand::{integer, native};
use super::reals::Real;
use super::translate::Translator;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integer {
    Add,
    Sub,
}

/// Which part of a product is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Low,
    High,
    Wide,
}

impl Part {
    pub(super) fn of(modifiers: &Modifiers<'_>) -> Result<Self, PtxError> {
        let known = |word: &str| match word {
            "lo" => Some(Self::Low),
            "hi" => Some(Self::High),
            "wide" => Some(Self::Wide),
            _ => None,
        };
        modifiers
            .find(known)
            .ok_or_else(|| modifiers.error("needs `.lo`, `.hi` or `.wide`"))
    }
}

/// Refuses types that integer arithmetic does not take.
fn expect_integer(modifiers: &Modifiers<'_>, ty: Type) -> Result<(), PtxError> {
    if (ty.is_signed() || ty.is_unsigned()) && ty.bits() >= 16 {
        return Ok(());
    }
    Err(modifiers.error(&format!("is not supported for `.{}`", ty.name())))
}

impl Translator<'_, '_> {
    pub(super) fn add(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
        real: Real,
        op: Integer,
    ) -> Result<(), PtxError> {
        let has_carry = modifiers.flag("cc");
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if matches!(ty, Type::U16x2 | Type::S16x2) && op == Integer::Add {
            let values = [self.read(a, ty)?, self.read(b, ty)?];
            let value = self.in_halves(ty, &values, |this, _, values| {
                this.builder.ins().iadd(values[0], values[1])
            });
            return self.write(target, ty, value);
        }
        if !ty.is_integer() {
            return self.real(real, modifiers, ty, target, &[a, b]);
        }
        if has_carry {
            return self.add_and_set_carry(op == Integer::Sub, modifiers, ty, operands);
        }
        expect_integer(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let value = if modifiers.flag("sat") {
            if ty != Type::S32 {
                return Err(modifiers.error("saturates `.s32` only"));
            }
            self.add_saturated(a, b, op)
        } else {
            match op {
                Integer::Add => self.builder.ins().iadd(a, b),
                Integer::Sub => self.builder.ins().isub(a, b),
            }
        };
        self.write(target, ty, value)
    }

    fn add_saturated(&mut self, a: Value, b: Value, op: Integer) -> Value {
        let (a, b) = (self.resize(a, I64, true), self.resize(b, I64, true));
        let sum = match op {
            Integer::Add => self.builder.ins().iadd(a, b),
            Integer::Sub => self.builder.ins().isub(a, b),
        };
        let low = self.builder.ins().iconst(I64, i64::from(i32::MIN));
        let high = self.builder.ins().iconst(I64, i64::from(i32::MAX));
        let sum = self.builder.ins().smax(sum, low);
        let sum = self.builder.ins().smin(sum, high);
        self.builder.ins().ireduce(I32, sum)
    }

    pub(super) fn multiply(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if !ty.is_integer() {
            return self.real(Real::Mul, modifiers, ty, target, &[a, b]);
        }
        let part = Part::of(modifiers)?;
        expect_integer(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let (value, ty) = self.product(part, ty, a, b)?;
        self.write(target, ty, value)
    }

    /// A product, and the type it has.
    pub(super) fn product(
        &mut self,
        part: Part,
        ty: Type,
        a: Value,
        b: Value,
    ) -> Result<(Value, Type), PtxError> {
        if part == Part::Low {
            return Ok((self.builder.ins().imul(a, b), ty));
        }
        let is_signed = ty.is_signed();
        if ty.bits() == 64 {
            if part == Part::Wide {
                return Err(self.error("a product of 128 bits"));
            }
            let high = if is_signed {
                self.builder.ins().smulhi(a, b)
            } else {
                self.builder.ins().umulhi(a, b)
            };
            return Ok((high, ty));
        }
        let wide = integer(ty.bits() * 2);
        let (a, b) = (
            self.resize(a, wide, is_signed),
            self.resize(b, wide, is_signed),
        );
        let product = self.builder.ins().imul(a, b);
        if part == Part::High {
            let high = self.builder.ins().ushr_imm_s(product, i64::from(ty.bits()));
            return Ok((self.resize(high, native(ty), false), ty));
        }
        let ty = match (ty.bits(), is_signed) {
            (16, false) => Type::U32,
            (16, true) => Type::S32,
            (_, false) => Type::U64,
            (_, true) => Type::S64,
        };
        Ok((product, ty))
    }

    pub(super) fn multiply_add(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let has_carry = modifiers.flag("cc");
        let ty = modifiers.ty()?;
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        if !ty.is_integer() {
            return self.real(Real::Fma, modifiers, ty, target, &[a, b, c]);
        }
        let part = Part::of(modifiers)?;
        expect_integer(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let (product, sum_ty) = self.product(part, ty, a, b)?;
        let c = self.read(c, sum_ty)?;
        let value = if has_carry {
            self.sum_with_carry(product, c, None)
        } else if modifiers.flag("sat") {
            if (ty, part) != (Type::S32, Part::High) {
                return Err(modifiers.error("saturates `.hi.s32` only"));
            }
            self.add_saturated(product, c, Integer::Add)
        } else {
            self.builder.ins().iadd(product, c)
        };
        self.write(target, sum_ty, value)
    }

    /// Products of the lower 24 bits.
    pub(super) fn multiply_24(
        &mut self,
        has_sum: bool,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let part = Part::of(modifiers)?;
        let ty = modifiers.ty()?;
        let (Type::U32 | Type::S32, Part::Low | Part::High) = (ty, part) else {
            return Err(modifiers.error("is not supported"));
        };
        let (target, a, b, c) = match (operands, has_sum) {
            ([target, a, b], false) => (target, a, b, None),
            ([target, a, b, c], true) => (target, a, b, Some(c)),
            _ => return Err(modifiers.error("has another number of operands")),
        };
        let factor = |this: &mut Self, operand: &Operand| {
            let value = this.read(operand, ty)?;
            let value = this.resize(value, I64, false);
            let value = this.builder.ins().ishl_imm_s(value, 40);
            Ok(match ty {
                Type::S32 => this.builder.ins().sshr_imm_s(value, 40),
                _ => this.builder.ins().ushr_imm_s(value, 40),
            })
        };
        let (a, b) = (factor(self, a)?, factor(self, b)?);
        let mut product = self.builder.ins().imul(a, b);
        if part == Part::High {
            product = self.builder.ins().ushr_imm_s(product, 16);
        }
        let mut value = self.resize(product, I32, false);
        if let Some(c) = c {
            let c = self.read(c, ty)?;
            value = if modifiers.flag("sat") {
                self.add_saturated(value, c, Integer::Add)
            } else {
                self.builder.ins().iadd(value, c)
            };
        }
        self.write(target, ty, value)
    }

    pub(super) fn divide(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if !ty.is_integer() {
            return self.real(Real::Div, modifiers, ty, target, &[a, b]);
        }
        expect_integer(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        // The manual leaves division by zero open; hardware answers with all ones.
        let ones = self.constant(native(ty), u64::MAX);
        let value = self.safely_divided(ty, a, b, ones, |this, a, b| {
            if ty.is_signed() {
                this.builder.ins().sdiv(a, b)
            } else {
                this.builder.ins().udiv(a, b)
            }
        });
        let value = if ty.is_signed() {
            // The division that overflows was made one by one; its result is the dividend.
            let negated = self.builder.ins().ineg(a);
            let by_minus_one = self.equals(b, ty, u64::MAX);
            self.builder.ins().select(by_minus_one, negated, value)
        } else {
            value
        };
        self.write(target, ty, value)
    }

    pub(super) fn remainder(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        expect_integer(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let value = self.safely_divided(ty, a, b, a, |this, a, b| {
            if ty.is_signed() {
                this.builder.ins().srem(a, b)
            } else {
                this.builder.ins().urem(a, b)
            }
        });
        self.write(target, ty, value)
    }

    fn equals(&mut self, value: Value, ty: Type, constant: u64) -> Value {
        let constant = self.constant(native(ty), constant);
        self.builder.ins().icmp(IntCC::Equal, value, constant)
    }

    /// Divides by one where the host would trap; by zero gives `by_zero`.
    fn safely_divided(
        &mut self,
        ty: Type,
        a: Value,
        b: Value,
        by_zero: Value,
        divide: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let is_zero = self.equals(b, ty, 0);
        let one = self.constant(native(ty), 1);
        let mut divisor = self.builder.ins().select(is_zero, one, b);
        if ty.is_signed() {
            let is_minus_one = self.equals(b, ty, u64::MAX);
            divisor = self.builder.ins().select(is_minus_one, one, divisor);
        }
        let value = divide(self, a, divisor);
        self.builder.ins().select(is_zero, by_zero, value)
    }

    pub(super) fn extreme(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
        is_min: bool,
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let Some((target, sources @ [_, _, ..])) = operands.split_first() else {
            return Err(modifiers.error("has at least three operands"));
        };
        let is_pair = matches!(ty, Type::U16x2 | Type::S16x2);
        if !ty.is_integer() && !is_pair {
            let real = if is_min { Real::Min } else { Real::Max };
            let sources: Vec<&Operand> = sources.iter().collect();
            return self.real(real, modifiers, ty, target, &sources);
        }
        if !is_pair {
            expect_integer(modifiers, ty)?;
        }
        let [a, b] = sources else {
            return Err(modifiers.error("has three operands"));
        };
        let values = [self.read(a, ty)?, self.read(b, ty)?];
        let is_signed = matches!(ty, Type::S16 | Type::S32 | Type::S64 | Type::S16x2);
        let relu = is_signed && modifiers.flag("relu");
        let value = self.in_halves(ty, &values, |this, _, values| {
            this.integer_extreme(is_min, is_signed, relu, values[0], values[1])
        });
        self.write(target, ty, value)
    }

    fn integer_extreme(
        &mut self,
        is_min: bool,
        is_signed: bool,
        relu: bool,
        a: Value,
        b: Value,
    ) -> Value {
        let value = match (is_min, is_signed) {
            (true, true) => self.builder.ins().smin(a, b),
            (true, false) => self.builder.ins().umin(a, b),
            (false, true) => self.builder.ins().smax(a, b),
            (false, false) => self.builder.ins().umax(a, b),
        };
        if !relu {
            return value;
        }
        let ty = self.type_of(value);
        let zero = self.constant(ty, 0);
        self.builder.ins().smax(value, zero)
    }

    pub(super) fn absolute(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        if !ty.is_integer() {
            return self.sign_change(false, modifiers, ty, target, a);
        }
        expect_integer(modifiers, ty)?;
        let a = self.read(a, ty)?;
        let value = self.builder.ins().iabs(a);
        self.write(target, ty, value)
    }

    pub(super) fn negate(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        if !ty.is_integer() {
            return self.sign_change(true, modifiers, ty, target, a);
        }
        expect_integer(modifiers, ty)?;
        let a = self.read(a, ty)?;
        let value = self.builder.ins().ineg(a);
        self.write(target, ty, value)
    }

    /// `c + |a - b|`.
    pub(super) fn sum_of_differences(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        expect_integer(modifiers, ty)?;
        let (a, b, c) = (self.read(a, ty)?, self.read(b, ty)?, self.read(c, ty)?);
        let less = if ty.is_signed() {
            IntCC::SignedLessThan
        } else {
            IntCC::UnsignedLessThan
        };
        let is_less = self.builder.ins().icmp(less, a, b);
        let forward = self.builder.ins().isub(a, b);
        let backward = self.builder.ins().isub(b, a);
        let distance = self.builder.ins().select(is_less, backward, forward);
        let value = self.builder.ins().iadd(c, distance);
        self.write(target, ty, value)
    }

    /// The number of bits of a type, in the type of the code generator.
    pub(super) fn width(&mut self, ty: ir::Type, as_type: ir::Type) -> Value {
        self.constant(as_type, u64::from(ty.bits()))
    }
}
