//! Arithmetic in several words, joined by a carry.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::arithmetic::Part;
use super::operand::native;
use super::translate::Translator;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// Refuses types that have no carry.
fn expect_word(modifiers: &Modifiers<'_>, ty: Type) -> Result<(), PtxError> {
    match ty {
        Type::U32 | Type::S32 | Type::U64 | Type::S64 => Ok(()),
        _ => Err(modifiers.error("is not supported for this type")),
    }
}

impl Translator<'_, '_> {
    /// The carry as a number of the type.
    fn carry_in(&mut self, ty: Type) -> Value {
        let carry = self.carry;
        let carry = self.builder.use_var(carry);
        self.resize(carry, native(ty), false)
    }

    /// A sum; the carry flag is set.
    pub(super) fn sum_with_carry(&mut self, a: Value, b: Value, carry_in: Option<Value>) -> Value {
        let less = IntCC::UnsignedLessThan;
        let mut sum = self.builder.ins().iadd(a, b);
        let mut carry = self.builder.ins().icmp(less, sum, a);
        if let Some(carry_in) = carry_in {
            let first = sum;
            sum = self.builder.ins().iadd(first, carry_in);
            let second = self.builder.ins().icmp(less, sum, first);
            carry = self.builder.ins().bor(carry, second);
        }
        let variable = self.carry;
        self.builder.def_var(variable, carry);
        sum
    }

    /// A difference; the carry flag says whether one was borrowed.
    fn difference_with_borrow(&mut self, a: Value, b: Value, borrow_in: Option<Value>) -> Value {
        let less = IntCC::UnsignedLessThan;
        let mut difference = self.builder.ins().isub(a, b);
        let mut borrow = self.builder.ins().icmp(less, a, b);
        if let Some(borrow_in) = borrow_in {
            let first = difference;
            difference = self.builder.ins().isub(first, borrow_in);
            let second = self.builder.ins().icmp(less, first, borrow_in);
            borrow = self.builder.ins().bor(borrow, second);
        }
        let variable = self.carry;
        self.builder.def_var(variable, borrow);
        difference
    }

    /// `add.cc` and `sub.cc`.
    pub(super) fn add_and_set_carry(
        &mut self,
        is_sub: bool,
        modifiers: &Modifiers<'_>,
        ty: Type,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        expect_word(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let value = if is_sub {
            self.difference_with_borrow(a, b, None)
        } else {
            self.sum_with_carry(a, b, None)
        };
        self.write(target, ty, value)
    }

    /// Runs `compute`, which sets the carry, and keeps the old carry if it is not to be set.
    fn perhaps_keeping_carry(
        &mut self,
        sets_carry: bool,
        compute: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let variable = self.carry;
        let before = self.builder.use_var(variable);
        let value = compute(self);
        if !sets_carry {
            self.builder.def_var(variable, before);
        }
        value
    }

    /// `addc` and `subc`, each with or without `.cc`.
    pub(super) fn add_with_carry(
        &mut self,
        is_sub: bool,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let sets_carry = modifiers.flag("cc");
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        expect_word(modifiers, ty)?;
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let carry = self.carry_in(ty);
        let value = self.perhaps_keeping_carry(sets_carry, |this| {
            if is_sub {
                this.difference_with_borrow(a, b, Some(carry))
            } else {
                this.sum_with_carry(a, b, Some(carry))
            }
        });
        self.write(target, ty, value)
    }

    /// `madc`, with or without `.cc`.
    pub(super) fn multiply_add_with_carry(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let sets_carry = modifiers.flag("cc");
        let part = Part::of(modifiers)?;
        let ty = modifiers.ty()?;
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        expect_word(modifiers, ty)?;
        if part == Part::Wide {
            return Err(modifiers.error("is not supported"));
        }
        let (a, b, c) = (self.read(a, ty)?, self.read(b, ty)?, self.read(c, ty)?);
        let (product, _) = self.product(part, ty, a, b)?;
        let carry = self.carry_in(ty);
        let value = self.perhaps_keeping_carry(sets_carry, |this| {
            this.sum_with_carry(product, c, Some(carry))
        });
        self.write(target, ty, value)
    }
}
