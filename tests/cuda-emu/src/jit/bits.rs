//! Operations on bits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::{integer, native};
use super::routine::Routine;
use super::translate::Translator;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

#[derive(Debug, Clone, Copy)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
}

/// Which way bits move, and what follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    Left,
    Right,
    RightSigned,
}

/// Refuses types other than plain bits.
fn expect_bits(modifiers: &Modifiers<'_>, ty: Type) -> Result<(), PtxError> {
    match ty {
        Type::B16 | Type::B32 | Type::B64 => Ok(()),
        _ => Err(modifiers.error(&format!("is not supported for `.{}`", ty.name()))),
    }
}

impl Translator<'_, '_> {
    fn apply_logic(&mut self, logic: Logic, a: Value, b: Value) -> Value {
        match logic {
            Logic::And => self.builder.ins().band(a, b),
            Logic::Or => self.builder.ins().bor(a, b),
            Logic::Xor => self.builder.ins().bxor(a, b),
        }
    }

    pub(super) fn logic(
        &mut self,
        logic: Logic,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if ty != Type::Pred {
            expect_bits(modifiers, ty)?;
        }
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let value = self.apply_logic(logic, a, b);
        self.write(target, ty, value)
    }

    pub(super) fn invert(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        let a = self.read(a, ty)?;
        let value = if ty == Type::Pred {
            self.builder.ins().bxor_imm_s(a, 1)
        } else {
            expect_bits(modifiers, ty)?;
            self.builder.ins().bnot(a)
        };
        self.write(target, ty, value)
    }

    /// `cnot`: one for zero, zero for everything else.
    pub(super) fn logical_not(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        expect_bits(modifiers, ty)?;
        let a = self.read(a, ty)?;
        let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, a, 0);
        let value = self.resize(is_zero, native(ty), false);
        self.write(target, ty, value)
    }

    /// Shifts by any amount: from the width of the type on, nothing is left but the sign.
    fn shifted(&mut self, shift: Shift, value: Value, amount: Value) -> Value {
        let ty = self.type_of(value);
        let amount_ty = self.type_of(amount);
        let width = self.width(ty, amount_ty);
        let too_far = IntCC::UnsignedGreaterThanOrEqual;
        let is_too_far = self.builder.ins().icmp(too_far, amount, width);
        let zero = self.constant(ty, 0);
        match shift {
            Shift::Left => {
                let moved = self.builder.ins().ishl(value, amount);
                self.builder.ins().select(is_too_far, zero, moved)
            }
            Shift::Right => {
                let moved = self.builder.ins().ushr(value, amount);
                self.builder.ins().select(is_too_far, zero, moved)
            }
            Shift::RightSigned => {
                let most = self.constant(amount_ty, u64::from(ty.bits()) - 1);
                let amount = self.builder.ins().select(is_too_far, most, amount);
                self.builder.ins().sshr(value, amount)
            }
        }
    }

    pub(super) fn shift(
        &mut self,
        is_left: bool,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, amount] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        let shift = match (is_left, ty.is_signed()) {
            (true, _) => Shift::Left,
            (false, true) => Shift::RightSigned,
            (false, false) => Shift::Right,
        };
        if !ty.is_integer() || ty.bits() == 8 || (is_left && !ty.is_untyped()) {
            return Err(modifiers.error("is not supported"));
        }
        let a = self.read(a, ty)?;
        let amount = self.read(amount, Type::U32)?;
        let value = self.shifted(shift, a, amount);
        self.write(target, ty, value)
    }

    /// `shf`: 32 of the 64 bits of `b` and `a`.
    pub(super) fn funnel_shift(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_left = modifiers.flag("l");
        let is_right = modifiers.flag("r");
        let is_clamped = modifiers.flag("clamp");
        let is_wrapped = modifiers.flag("wrap");
        let ty = modifiers.ty()?;
        let [target, a, b, amount] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        if ty != Type::B32 || is_left == is_right || is_clamped == is_wrapped {
            return Err(modifiers.error("is not supported"));
        }
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let amount = self.read(amount, Type::U32)?;
        let limit = self.int32(if is_clamped { 32 } else { 31 });
        let amount = if is_clamped {
            self.builder.ins().umin(amount, limit)
        } else {
            self.builder.ins().band(amount, limit)
        };
        let (low, high) = (self.resize(a, I64, false), self.resize(b, I64, false));
        let high = self.builder.ins().ishl_imm_s(high, 32);
        let both = self.builder.ins().bor(high, low);
        let moved = if is_left {
            let moved = self.builder.ins().ishl(both, amount);
            self.builder.ins().ushr_imm_s(moved, 32)
        } else {
            self.builder.ins().ushr(both, amount)
        };
        let value = self.builder.ins().ireduce(I32, moved);
        self.write(target, ty, value)
    }

    /// Place or length of a field: the lowest eight bits count.
    fn field_operand(&mut self, operand: &Operand) -> Result<Value, PtxError> {
        let value = self.read(operand, Type::U32)?;
        Ok(self.builder.ins().band_imm_s(value, 0xff))
    }

    /// `bfe`.
    pub(super) fn extract_field(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, place, length] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        if !matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64) {
            return Err(modifiers.error("is not supported"));
        }
        let a = self.read(a, ty)?;
        let (place, length) = (self.field_operand(place)?, self.field_operand(length)?);
        let value = if ty.is_signed() {
            // The field is moved to the top, and back with its sign.
            let width = self.width(native(ty), I32);
            let end = self.builder.ins().iadd(place, length);
            let end = self.builder.ins().umin(end, width);
            let up = self.builder.ins().isub(width, end);
            let down = self.builder.ins().iadd(up, place);
            let top = self.shifted(Shift::Left, a, up);
            let value = self.shifted(Shift::RightSigned, top, down);
            let is_empty = self.builder.ins().icmp_imm_s(IntCC::Equal, length, 0);
            let zero = self.constant(native(ty), 0);
            self.builder.ins().select(is_empty, zero, value)
        } else {
            let moved = self.shifted(Shift::Right, a, place);
            let mask = self.field_mask(ty, length);
            self.builder.ins().band(moved, mask)
        };
        self.write(target, ty, value)
    }

    /// That many ones at the bottom.
    fn field_mask(&mut self, ty: Type, length: Value) -> Value {
        let one = self.constant(native(ty), 1);
        let above = self.shifted(Shift::Left, one, length);
        self.builder.ins().iadd_imm_s(above, -1)
    }

    /// `bfi`.
    pub(super) fn insert_field(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b, place, length] = operands else {
            return Err(modifiers.error("has five operands"));
        };
        if !matches!(ty, Type::B32 | Type::B64) {
            return Err(modifiers.error("is not supported"));
        }
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let (place, length) = (self.field_operand(place)?, self.field_operand(length)?);
        let mask = self.field_mask(ty, length);
        let mask = self.shifted(Shift::Left, mask, place);
        let moved = self.shifted(Shift::Left, a, place);
        let inserted = self.builder.ins().band(moved, mask);
        let kept = self.builder.ins().band_not(b, mask);
        let value = self.builder.ins().bor(inserted, kept);
        self.write(target, ty, value)
    }

    /// `bfind`: the highest bit that is not a copy of the sign.
    pub(super) fn find_top(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let as_shift = modifiers.flag("shiftamt");
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        if !matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64) {
            return Err(modifiers.error("is not supported"));
        }
        let mut a = self.read(a, ty)?;
        if ty.is_signed() {
            let sign = self.builder.ins().sshr_imm_s(a, i64::from(ty.bits()) - 1);
            a = self.builder.ins().bxor(a, sign);
        }
        let zeros = self.builder.ins().clz(a);
        let zeros = self.resize(zeros, I32, false);
        let found = if as_shift {
            zeros
        } else {
            let top = self.int32(ty.bits() - 1);
            self.builder.ins().isub(top, zeros)
        };
        let is_empty = self.builder.ins().icmp_imm_s(IntCC::Equal, a, 0);
        let nothing = self.int32(u32::MAX);
        let value = self.builder.ins().select(is_empty, nothing, found);
        self.write(target, Type::U32, value)
    }

    pub(super) fn reverse(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        expect_bits(modifiers, ty)?;
        let a = self.read(a, ty)?;
        let value = self.builder.ins().bitrev(a);
        self.write(target, ty, value)
    }

    /// `popc` and `clz`.
    pub(super) fn count(
        &mut self,
        is_ones: bool,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        expect_bits(modifiers, ty)?;
        let a = self.read(a, ty)?;
        let value = if is_ones {
            self.builder.ins().popcnt(a)
        } else {
            self.builder.ins().clz(a)
        };
        let value = self.resize(value, I32, false);
        self.write(target, Type::U32, value)
    }

    pub(super) fn permute(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let mode = modifiers.find(|word| match word {
            "f4e" => Some(1),
            "b4e" => Some(2),
            "rc8" => Some(3),
            "ecl" => Some(4),
            "ecr" => Some(5),
            "rc16" => Some(6),
            _ => None,
        });
        let ty = modifiers.ty()?;
        let [target, a, b, selector] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        if ty != Type::B32 {
            return Err(modifiers.error("is not supported"));
        }
        // Newer versions of the assembler write the mode behind the type.
        let mode = self.int32(mode.unwrap_or(0));
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let selector = self.read(selector, ty)?;
        let value = self.call_routine(Routine::Permute, &[mode, a, b, selector]);
        self.write(target, ty, value)
    }

    /// `lop3`: any function of three bits, by its table.
    pub(super) fn lookup(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b, c, Operand::Integer(table)] = operands else {
            return Err(modifiers.error("has five operands, the last of them a number"));
        };
        if ty != Type::B32 {
            return Err(modifiers.error("is not supported"));
        }
        let values = [self.read(a, ty)?, self.read(b, ty)?, self.read(c, ty)?];
        let inverse = values.map(|value| self.builder.ins().bnot(value));
        let mut result = self.int32(0);
        for row in (0..8usize).filter(|row| table >> row & 1 == 1) {
            let pick = |place: usize| match row >> (2 - place) & 1 {
                0 => inverse[place],
                _ => values[place],
            };
            let both = self.builder.ins().band(pick(0), pick(1));
            let all = self.builder.ins().band(both, pick(2));
            result = self.builder.ins().bor(result, all);
        }
        self.write(target, ty, result)
    }

    /// `fns`: the n-th bit that is set.
    pub(super) fn find_set(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, mask, base, offset] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        if ty != Type::B32 {
            return Err(modifiers.error("is not supported"));
        }
        let (mask, base) = (self.read(mask, ty)?, self.read(base, ty)?);
        let offset = self.read(offset, ty)?;
        let value = self.call_routine(Routine::FindSet, &[mask, base, offset]);
        self.write(target, ty, value)
    }

    /// Integers of another width, with the bits of this one.
    pub(super) fn as_bits(&mut self, value: Value) -> Value {
        let bits = self.type_of(value).bits();
        self.cast(value, integer(bits))
    }
}
