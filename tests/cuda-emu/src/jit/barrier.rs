//! Barriers and fences.

use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::routine::Routine;
use super::translate::Translator;
use crate::exec::control::BarrierUse;
use crate::exec::{Reduce, WarpOp};
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// What a barrier computes, and the type of that.
fn reduction_type(modifiers: &Modifiers<'_>, used: &mut BarrierUse) -> Result<Type, PtxError> {
    let reduce = modifiers.find(|word| match word {
        "popc" => Some((Reduce::Popc, Type::U32)),
        "and" => Some((Reduce::And, Type::Pred)),
        "or" => Some((Reduce::Or, Type::Pred)),
        _ => None,
    });
    let (reduce, wanted) = reduce.ok_or_else(|| modifiers.error("is not supported"))?;
    if modifiers.ty()? != wanted {
        return Err(modifiers.error("is not supported for this type"));
    }
    used.reduce = reduce;
    Ok(wanted)
}

impl Translator<'_, '_> {
    /// `bar` and `barrier`, in all their forms.
    pub(super) fn barrier(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        if modifiers.flag("warp") {
            return self.warp_barrier(modifiers, operands);
        }
        modifiers.ignore(&["cta"]);
        // `bar` is the aligned form of `barrier`, and does not say so.
        let is_aligned = modifiers.flag("aligned") || modifiers.name().starts_with("bar.");
        let kind = modifiers
            .find(|word| ["sync", "arrive", "red"].contains(&word).then_some(word))
            .ok_or_else(|| modifiers.error("is not supported"))?;
        let mut used = BarrierUse {
            reduce: Reduce::None,
            aligned: is_aligned,
            arrive: kind == "arrive",
        };
        match (kind, operands) {
            ("sync", [id]) => self.meet(used, id, None, None).map(|_| ()),
            ("sync" | "arrive", [id, count]) => self.meet(used, id, Some(count), None).map(|_| ()),
            ("red", [target, id, rest @ ..]) => {
                let (count, value) = match rest {
                    [value] => (None, value),
                    [count, value] => (Some(count), value),
                    _ => return Err(modifiers.error("has another number of operands")),
                };
                let ty = reduction_type(modifiers, &mut used)?;
                let value = self.read_predicate(value)?;
                let reply = self.meet(used, id, count, Some(value))?;
                let reply = self.low_half(reply);
                let reply = self.resize(reply, super::operand::native(ty), false);
                self.write(target, ty, reply)
            }
            _ => Err(modifiers.error("has another number of operands")),
        }
    }

    fn meet(
        &mut self,
        used: BarrierUse,
        id: &Operand,
        count: Option<&Operand>,
        value: Option<Value>,
    ) -> Result<Value, PtxError> {
        let id = self.read(id, Type::U32)?;
        let count = match count {
            Some(count) => self.read(count, Type::U32)?,
            None => self.int32(0),
        };
        let value = match value {
            Some(value) => self.resize(value, I32, false),
            None => self.int32(0),
        };
        let code = self.int32(used.code());
        let line = self.line_value();
        let arguments = [self.context, code, id, count, value, line];
        let reply = self.call_routine(Routine::Barrier, &arguments);
        Ok(self.reply(reply))
    }

    /// `bar.warp.sync mask`.
    fn warp_barrier(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let [mask] = operands else {
            return Err(modifiers.error("has one operand"));
        };
        if !modifiers.flag("sync") {
            return Err(modifiers.error("is not supported"));
        }
        let mask = self.read(mask, Type::B32)?;
        self.together(WarpOp::Sync, Some(mask), None, None, None);
        Ok(())
    }

    /// `membar` and `fence`.
    pub(super) fn fence(&mut self, modifiers: &Modifiers<'_>) {
        modifiers.ignore(&[
            "cta", "cluster", "gl", "gpu", "sys", "sc", "acq_rel", "acquire", "release",
        ]);
        self.builder.ins().fence();
    }
}
