//! `mov`: copies, and taking registers apart.

use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::integer;
use super::translate::Translator;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

impl Translator<'_, '_> {
    pub(super) fn mov(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target, source] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        match (target, source) {
            (Operand::Vector(_), Operand::Vector(_)) => {
                Err(modifiers.error("moves a vector to a vector, which is not supported"))
            }
            (Operand::Vector(parts), source) => self.unpack(parts, source, ty),
            (target, Operand::Vector(parts)) => {
                let value = self.pack(parts, ty)?;
                self.write(target, ty, value)
            }
            (target, source) => {
                let value = self.read(source, ty)?;
                self.write(target, ty, value)
            }
        }
    }

    fn part(&self, parts: &[Operand], ty: Type) -> Result<Type, PtxError> {
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        match ty.bits() / count.max(1) {
            8 => Ok(Type::B8),
            16 => Ok(Type::B16),
            32 => Ok(Type::B32),
            64 => Ok(Type::B64),
            _ => Err(self.error(format!("{count} parts of `.{}`", ty.name()))),
        }
    }

    /// The first part is the lowest one.
    fn pack(&mut self, parts: &[Operand], ty: Type) -> Result<Value, PtxError> {
        let part = self.part(parts, ty)?;
        let whole = integer(ty.bits());
        let mut value = self.constant(whole, 0);
        for (place, operand) in (0i64..).zip(parts) {
            let bits = self.read_narrowed(operand, part)?;
            let bits = self.resize(bits, whole, false);
            let bits = self
                .builder
                .ins()
                .ishl_imm_s(bits, place * i64::from(part.bits()));
            value = self.builder.ins().bor(value, bits);
        }
        Ok(value)
    }

    fn unpack(&mut self, parts: &[Operand], source: &Operand, ty: Type) -> Result<(), PtxError> {
        let part = self.part(parts, ty)?;
        let value = self.read(source, ty)?;
        let value = self.cast(value, integer(ty.bits()));
        for (place, operand) in (0i64..).zip(parts) {
            let bits = self
                .builder
                .ins()
                .ushr_imm_s(value, place * i64::from(part.bits()));
            let bits = self.resize(bits, integer(part.bits()), false);
            self.write_extended(operand, part, bits)?;
        }
        Ok(())
    }
}
