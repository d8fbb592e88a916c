//! Comparisons and selections.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I16, I32};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::native;
use super::translate::Translator;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// How the outcome is combined with another predicate.
#[derive(Debug, Clone, Copy)]
enum Combine {
    And,
    Or,
    Xor,
}

/// A comparison, by its name; signs and types come later.
fn comparison<'a>(modifiers: &Modifiers<'a>) -> Result<&'a str, PtxError> {
    let known = [
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
        "gtu", "geu", "num", "nan",
    ];
    modifiers
        .find(|word| known.contains(&word).then_some(word))
        .ok_or_else(|| modifiers.error("names no comparison"))
}

fn combination(modifiers: &Modifiers<'_>) -> Option<Combine> {
    modifiers.find(|word| match word {
        "and" => Some(Combine::And),
        "or" => Some(Combine::Or),
        "xor" => Some(Combine::Xor),
        _ => None,
    })
}

fn integer_condition(name: &str, signed: bool) -> Option<IntCC> {
    Some(match (name, signed) {
        ("eq", _) => IntCC::Equal,
        ("ne", _) => IntCC::NotEqual,
        ("lt", true) => IntCC::SignedLessThan,
        ("le", true) => IntCC::SignedLessThanOrEqual,
        ("gt", true) => IntCC::SignedGreaterThan,
        ("ge", true) => IntCC::SignedGreaterThanOrEqual,
        ("lt" | "lo", false) => IntCC::UnsignedLessThan,
        ("le" | "ls", false) => IntCC::UnsignedLessThanOrEqual,
        ("gt" | "hi", false) => IntCC::UnsignedGreaterThan,
        ("ge" | "hs", false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

fn float_condition(name: &str) -> Option<FloatCC> {
    Some(match name {
        "eq" => FloatCC::Equal,
        "ne" => FloatCC::OrderedNotEqual,
        "lt" => FloatCC::LessThan,
        "le" => FloatCC::LessThanOrEqual,
        "gt" => FloatCC::GreaterThan,
        "ge" => FloatCC::GreaterThanOrEqual,
        "equ" => FloatCC::UnorderedOrEqual,
        "neu" => FloatCC::NotEqual,
        "ltu" => FloatCC::UnorderedOrLessThan,
        "leu" => FloatCC::UnorderedOrLessThanOrEqual,
        "gtu" => FloatCC::UnorderedOrGreaterThan,
        "geu" => FloatCC::UnorderedOrGreaterThanOrEqual,
        "num" => FloatCC::Ordered,
        "nan" => FloatCC::Unordered,
        _ => return None,
    })
}

impl Translator<'_, '_> {
    /// Zero or one. Integers, and single numbers of any format.
    fn compared(
        &mut self,
        modifiers: &Modifiers<'_>,
        name: &str,
        flush: bool,
        ty: Type,
        values: [Value; 2],
    ) -> Result<Value, PtxError> {
        let unknown = || modifiers.error("is not supported for this type");
        if ty.is_integer() {
            let is_equality = matches!(name, "eq" | "ne");
            if flush || (ty.is_untyped() && !is_equality) {
                return Err(unknown());
            }
            let condition = integer_condition(name, ty.is_signed()).ok_or_else(unknown)?;
            let [a, b] = values;
            return Ok(self.builder.ins().icmp(condition, a, b));
        }
        let condition = float_condition(name).ok_or_else(unknown)?;
        let [a, b] = match ty {
            Type::F32 if flush => values.map(|value| self.flushed(value)),
            Type::F16 if flush => return Err(unknown()),
            Type::F32 | Type::F64 => values,
            Type::F16 => values.map(|value| self.between(Type::F16, Type::F32, value)),
            Type::Bf16 => values.map(|value| {
                let wide = self.builder.ins().uextend(I32, value);
                let wide = self.builder.ins().ishl_imm_s(wide, 16);
                self.cast(wide, F32)
            }),
            _ => return Err(unknown()),
        };
        Ok(self.builder.ins().fcmp(condition, a, b))
    }

    fn combined(&mut self, combine: Option<(Combine, Value)>, value: Value) -> Value {
        match combine {
            None => value,
            Some((Combine::And, other)) => self.builder.ins().band(value, other),
            Some((Combine::Or, other)) => self.builder.ins().bor(value, other),
            Some((Combine::Xor, other)) => self.builder.ins().bxor(value, other),
        }
    }

    /// `setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, c}`.
    pub(super) fn set_predicate(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let name = comparison(modifiers)?;
        let combine = combination(modifiers);
        let flush = modifiers.flag("ftz");
        let ty = modifiers.ty()?;
        let (target, a, b, other) = match (operands, combine) {
            ([target, a, b], None) => (target, a, b, None),
            ([target, a, b, c], Some(combine)) => {
                let other = self.read_predicate(c)?;
                (target, a, b, Some((combine, other)))
            }
            _ => return Err(modifiers.error("has another number of operands")),
        };
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let (first, second) = match target {
            Operand::Pair(first, second) => (&**first, Some(&**second)),
            single => (single, None),
        };
        if let Some(half) = ty.half() {
            let Some(second) = second else {
                return Err(modifiers.error("compares two pairs and needs two results"));
            };
            for (place, target) in [(0, first), (16, second)] {
                let found = self.halves_compared(modifiers, name, flush, half, [a, b], place)?;
                let found = self.combined(other, found);
                self.write(target, Type::Pred, found)?;
            }
            return Ok(());
        }
        let found = self.compared(modifiers, name, flush, ty, [a, b])?;
        let value = self.combined(other, found);
        if let Some(second) = second {
            let opposite = self.builder.ins().bxor_imm_s(found, 1);
            let opposite = self.combined(other, opposite);
            self.write(second, Type::Pred, opposite)?;
        }
        self.write(first, Type::Pred, value)
    }

    /// `set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, c}`: all ones or one for true.
    pub(super) fn set(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let name = comparison(modifiers)?;
        let combine = combination(modifiers);
        let flush = modifiers.flag("ftz");
        let (target_ty, ty) = (modifiers.ty()?, modifiers.ty()?);
        let (target, a, b, other) = match (operands, combine) {
            ([target, a, b], None) => (target, a, b, None),
            ([target, a, b, c], Some(combine)) => {
                let other = self.read_predicate(c)?;
                (target, a, b, Some((combine, other)))
            }
            _ => return Err(modifiers.error("has another number of operands")),
        };
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let truth = match (target_ty, ty.half()) {
            (Type::U32 | Type::S32, _) => 0xffff_ffff,
            (Type::U16 | Type::S16, None) => 0xffff,
            (Type::F32, None) => 0x3f80_0000,
            (Type::F16, None) => 0x3c00,
            (Type::Bf16, None) => 0x3f80,
            (Type::F16x2, Some(_)) => 0x3c00_3c00,
            (Type::Bf16x2, Some(_)) => 0x3f80_3f80,
            _ => return Err(modifiers.error("is not supported for this type")),
        };
        let truth = self.bits(target_ty, truth);
        let value = if let Some(half) = ty.half() {
            let low = self.halves_compared(modifiers, name, flush, half, [a, b], 0)?;
            let high = self.halves_compared(modifiers, name, flush, half, [a, b], 16)?;
            let (low, high) = (self.combined(other, low), self.combined(other, high));
            self.masked_halves(truth, low, high)
        } else {
            let found = self.compared(modifiers, name, flush, ty, [a, b])?;
            let found = self.combined(other, found);
            let zero = self.bits(target_ty, 0);
            self.builder.ins().select(found, truth, zero)
        };
        self.write(target, target_ty, value)
    }

    /// Compares the halves at a place of two pairs.
    fn halves_compared(
        &mut self,
        modifiers: &Modifiers<'_>,
        name: &str,
        flush: bool,
        half: Type,
        pairs: [Value; 2],
        place: i64,
    ) -> Result<Value, PtxError> {
        let halves = pairs.map(|pair| {
            let moved = self.builder.ins().ushr_imm_s(pair, place);
            self.builder.ins().ireduce(I16, moved)
        });
        self.compared(modifiers, name, flush, half, halves)
    }

    /// The halves of `word` for which the conditions hold; zeros for the others.
    fn masked_halves(&mut self, word: Value, low: Value, high: Value) -> Value {
        let zero = self.int32(0);
        let (low_mask, high_mask) = (self.int32(0xffff), self.int32(0xffff_0000));
        let low = self.builder.ins().select(low, low_mask, zero);
        let high = self.builder.ins().select(high, high_mask, zero);
        let mask = self.builder.ins().bor(low, high);
        self.builder.ins().band(word, mask)
    }

    /// `selp`.
    pub(super) fn select(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, a, b, condition] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let condition = self.read_predicate(condition)?;
        let value = self.builder.ins().select(condition, a, b);
        self.write(target, ty, value)
    }

    /// `slct.dtype.ctype d, a, b, c`: `a` if `c` is not negative.
    pub(super) fn select_by_sign(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let flush = modifiers.flag("ftz");
        let (ty, sign_ty) = (modifiers.ty()?, modifiers.ty()?);
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        let (a, b) = (self.read(a, ty)?, self.read(b, ty)?);
        let mut c = self.read(c, sign_ty)?;
        let condition = match sign_ty {
            Type::S32 => self
                .builder
                .ins()
                .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, c, 0),
            Type::F32 => {
                if flush {
                    c = self.flushed(c);
                }
                let zero = self.builder.ins().f32const(0.0);
                self.builder
                    .ins()
                    .fcmp(FloatCC::GreaterThanOrEqual, c, zero)
            }
            _ => return Err(modifiers.error("is not supported for this type")),
        };
        debug_assert_eq!(self.type_of(a), native(ty));
        let value = self.builder.ins().select(condition, a, b);
        self.write(target, ty, value)
    }
}
