//! Several small integers at once.

use super::routine::Routine;
use super::translate::Translator;
use crate::math::Lanes;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// Operation and lane width of an opcode such as `vadd4`.
fn lanes(opcode: &str) -> Option<(Lanes, u32)> {
    let bits = match opcode.chars().last()? {
        '4' => 8,
        '2' => 16,
        _ => return None,
    };
    let operation = match &opcode[..opcode.len() - 1] {
        "vadd" => Lanes::Add,
        "vsub" => Lanes::Sub,
        "vabsdiff" => Lanes::AbsDiff,
        "vmin" => Lanes::Min,
        "vmax" => Lanes::Max,
        "vavrg" => Lanes::Average,
        _ => return None,
    };
    Some((operation, bits))
}

pub(super) fn is_video(opcode: &str) -> bool {
    lanes(opcode).is_some()
}

impl Translator<'_, '_> {
    /// `vadd4.dtype.atype.btype{.sat}{.add} d, a, b, c`, on all lanes in their order.
    pub(super) fn video(
        &mut self,
        opcode: &str,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let Some((operation, bits)) = lanes(opcode) else {
            return Err(modifiers.error("is not supported"));
        };
        let types = [modifiers.ty()?, modifiers.ty()?, modifiers.ty()?];
        if types.iter().any(|ty| !matches!(ty, Type::U32 | Type::S32)) {
            return Err(modifiers.error("is not supported for these types"));
        }
        let saturate = modifiers.flag("sat");
        let accumulate = modifiers.flag("add");
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        let code = operation.code(bits, types.map(Type::is_signed), saturate, accumulate);
        let code = self.int32(code);
        let (a, b) = (self.read(a, Type::B32)?, self.read(b, Type::B32)?);
        let c = self.read(c, Type::B32)?;
        let value = self.call_routine(Routine::Lanes, &[code, a, b, c]);
        self.write(target, Type::B32, value)
    }

    /// `dp4a` and `dp2a`.
    pub(super) fn dot_product(
        &mut self,
        is_two: bool,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_high = is_two && modifiers.flag("hi");
        if is_two && !is_high && !modifiers.flag("lo") {
            return Err(modifiers.error("needs `.lo` or `.hi`"));
        }
        let types = [modifiers.ty()?, modifiers.ty()?];
        if types.iter().any(|ty| !matches!(ty, Type::U32 | Type::S32)) {
            return Err(modifiers.error("is not supported for these types"));
        }
        let [target, a, b, c] = operands else {
            return Err(modifiers.error("has four operands"));
        };
        let [a_signed, b_signed] = types.map(|ty| u32::from(ty.is_signed()));
        let code = a_signed | b_signed << 1 | u32::from(is_two) << 2 | u32::from(is_high) << 3;
        let code = self.int32(code);
        let (a, b) = (self.read(a, Type::B32)?, self.read(b, Type::B32)?);
        let c = self.read(c, Type::B32)?;
        let value = self.call_routine(Routine::Dot, &[code, a, b, c]);
        self.write(target, Type::B32, value)
    }
}
