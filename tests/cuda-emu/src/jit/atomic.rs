//! Atomic operations.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value};

use super::operand::{integer, native};
use super::routine::Routine;
use super::translate::{Translator, plain};
use crate::engine::Access;
use crate::exec::atomics::Update;
use crate::ptx::{Modifiers, Operand, PtxError, StateSpace, Type};

/// Scopes and orders: every atomic operation here is sequentially consistent, which is stronger.
const ORDER_WORDS: &[&str] = &[
    "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz",
];

/// How an update is carried out.
enum Way {
    Host(AtomicRmwOp),
    Soft(Update),
    CompareAndSwap,
}

impl Translator<'_, '_> {
    /// `atom d, [a], b{, c}`.
    pub(super) fn atomic(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let [target, rest @ ..] = operands else {
            return Err(modifiers.error("has at least three operands"));
        };
        let (ty, old) = self.update(modifiers, rest)?;
        self.write(target, ty, old)
    }

    /// `red [a], b`.
    pub(super) fn reduction(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        self.update(modifiers, operands).map(|_| ())
    }

    fn update(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(Type, Value), PtxError> {
        modifiers.ignore(ORDER_WORDS);
        let space = modifiers.space();
        let operation = modifiers
            .find(|word| {
                let known = [
                    "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas",
                ];
                known.contains(&word).then_some(word)
            })
            .ok_or_else(|| modifiers.error("names no operation"))?;
        let ty = modifiers.ty()?;
        let way = way(operation, ty, space)
            .ok_or_else(|| modifiers.error("is not supported for this type"))?;
        let Some((Operand::Address(address), sources)) = operands.split_first() else {
            return Err(modifiers.error("has an address as operand"));
        };
        if !matches!(
            space,
            StateSpace::Global | StateSpace::Shared | StateSpace::Generic
        ) {
            return Err(modifiers.error("is not supported in this state space"));
        }
        let values = sources
            .iter()
            .map(|source| self.read(source, ty))
            .collect::<Result<Vec<_>, _>>()?;
        let (place, _) = self.place(space, address, ty.bytes(), Access::Atomic)?;
        let bits = integer(ty.bits());
        let old = match (way, values.as_slice()) {
            (Way::Host(operation), [value]) => {
                let value = self.cast(*value, bits);
                self.builder
                    .ins()
                    .atomic_rmw(bits, plain(), operation, place, value)
            }
            (Way::CompareAndSwap, [expected, value]) => {
                let expected = self.cast(*expected, bits);
                let value = self.cast(*value, bits);
                self.builder
                    .ins()
                    .atomic_cas(plain(), place, expected, value)
            }
            (Way::Soft(update), [value]) => {
                let value = self.as_bits(*value);
                let value = self.resize(value, I64, false);
                let update = self.int32(u32::from(update as u8));
                let old = self.call_routine(Routine::Update, &[place, update, value]);
                self.resize(old, bits, false)
            }
            _ => return Err(modifiers.error("has another number of operands")),
        };
        Ok((ty, self.cast(old, native(ty))))
    }
}

fn way(operation: &str, ty: Type, space: StateSpace) -> Option<Way> {
    use AtomicRmwOp as Op;
    let is_word = matches!(ty.bits(), 32 | 64);
    let is_number = is_word && (ty.is_signed() || ty.is_unsigned());
    let is_bits = is_word && ty.is_untyped();
    Some(match operation {
        "add" => match ty {
            Type::F16 => Way::Soft(Update::AddF16),
            Type::F16x2 => Way::Soft(Update::AddF16x2),
            Type::Bf16 => Way::Soft(Update::AddBf16),
            Type::Bf16x2 => Way::Soft(Update::AddBf16x2),
            // The units beside global memory flush subnormal numbers.
            Type::F32 if space == StateSpace::Global => Way::Soft(Update::AddF32Flushed),
            Type::F32 => Way::Soft(Update::AddF32),
            Type::F64 => Way::Soft(Update::AddF64),
            _ if is_number => Way::Host(Op::Add),
            _ => return None,
        },
        "min" if is_number && ty.is_signed() => Way::Host(Op::Smin),
        "min" if is_number => Way::Host(Op::Umin),
        "max" if is_number && ty.is_signed() => Way::Host(Op::Smax),
        "max" if is_number => Way::Host(Op::Umax),
        "inc" if ty == Type::U32 => Way::Soft(Update::Inc),
        "dec" if ty == Type::U32 => Way::Soft(Update::Dec),
        "and" if is_bits => Way::Host(Op::And),
        "or" if is_bits => Way::Host(Op::Or),
        "xor" if is_bits => Way::Host(Op::Xor),
        "exch" if is_bits => Way::Host(Op::Xchg),
        "exch" if ty == Type::B16 => Way::Soft(Update::Exch16),
        "cas" if is_bits || ty == Type::B16 => Way::CompareAndSwap,
        _ => return None,
    })
}
