//! Operations of several lanes of a warp.

use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::native;
use super::routine::Routine;
use super::translate::Translator;
use crate::exec::WarpOp;
use crate::ptx::{Modifiers, Operand, PtxError, Type};

/// Set beside the number of an operation that has no mask.
const WITHOUT_MASK: u32 = 1 << 8;

/// Splits `d|p`.
fn pair(operand: &Operand) -> (&Operand, Option<&Operand>) {
    match operand {
        Operand::Pair(first, second) => (first, Some(second)),
        single => (single, None),
    }
}

impl Translator<'_, '_> {
    /// The forms without a mask ended with architecture 7.0.
    fn expect_old(&self, modifiers: &Modifiers<'_>) -> Result<(), PtxError> {
        let header = &self.unit.tree.header;
        let digits = header.target.trim_start_matches("sm_");
        let digits = digits.trim_end_matches(|last: char| last.is_ascii_alphabetic());
        let is_new = digits.parse::<u32>().is_ok_and(|number| number >= 70);
        if is_new && header.version >= (6, 4) {
            let what = format!("needs `.sync` for {}", header.target);
            return Err(modifiers.error(&what));
        }
        Ok(())
    }

    /// Meets the other lanes. The reply has a value in its lower half and a predicate in bit 32.
    pub(super) fn together(
        &mut self,
        op: WarpOp,
        mask: Option<Value>,
        a: Option<Value>,
        b: Option<Value>,
        c: Option<Value>,
    ) -> Value {
        let number = u32::from(op as u8);
        let number = match mask {
            Some(_) => number,
            None => number | WITHOUT_MASK,
        };
        let number = self.int32(number);
        let none = self.int32(0);
        let a = match a {
            Some(a) => self.resize(a, I64, false),
            None => self.constant(I64, 0),
        };
        let line = self.line_value();
        let arguments = [
            self.context,
            number,
            mask.unwrap_or(none),
            a,
            b.unwrap_or(none),
            c.unwrap_or(none),
            line,
        ];
        let reply = self.call_routine(Routine::Warp, &arguments);
        self.reply(reply)
    }

    /// The predicate of a reply.
    fn reply_predicate(&mut self, reply: Value) -> Value {
        let upper = self.builder.ins().ushr_imm_s(reply, 32);
        self.builder.ins().ireduce(I8, upper)
    }

    /// `shfl{.sync}.mode.b32 d{|p}, a, b, c{, mask}`.
    pub(super) fn shuffle(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_sync = modifiers.flag("sync");
        let op = modifiers
            .find(|word| match word {
                "up" => Some(WarpOp::ShflUp),
                "down" => Some(WarpOp::ShflDown),
                "bfly" => Some(WarpOp::ShflBfly),
                "idx" => Some(WarpOp::ShflIdx),
                _ => None,
            })
            .ok_or_else(|| modifiers.error("names no mode"))?;
        let ty = modifiers.ty()?;
        let (target, a, b, c, mask) = match (operands, is_sync) {
            ([target, a, b, c], false) => {
                self.expect_old(modifiers)?;
                (target, a, b, c, None)
            }
            ([target, a, b, c, mask], true) => (target, a, b, c, Some(mask)),
            _ => return Err(modifiers.error("has another number of operands")),
        };
        if ty != Type::B32 {
            return Err(modifiers.error("is not supported for this type"));
        }
        let mask = mask.map(|mask| self.read(mask, Type::B32)).transpose()?;
        let a = self.read(a, ty)?;
        let (b, c) = (self.read(b, Type::U32)?, self.read(c, Type::U32)?);
        let reply = self.together(op, mask, Some(a), Some(b), Some(c));
        let (value, predicate) = pair(target);
        if let Some(predicate) = predicate {
            let found = self.reply_predicate(reply);
            self.write(predicate, Type::Pred, found)?;
        }
        let low = self.low_half(reply);
        self.write(value, ty, low)
    }

    /// `vote{.sync}.mode d, a{, mask}`.
    pub(super) fn vote(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_sync = modifiers.flag("sync");
        let (op, wanted) = modifiers
            .find(|word| match word {
                "all" => Some((WarpOp::VoteAll, Type::Pred)),
                "any" => Some((WarpOp::VoteAny, Type::Pred)),
                "uni" => Some((WarpOp::VoteUni, Type::Pred)),
                "ballot" => Some((WarpOp::VoteBallot, Type::B32)),
                _ => None,
            })
            .ok_or_else(|| modifiers.error("names no mode"))?;
        if modifiers.ty()? != wanted {
            return Err(modifiers.error("is not supported for this type"));
        }
        let (target, a, mask) = match (operands, is_sync) {
            ([target, a], false) => {
                self.expect_old(modifiers)?;
                (target, a, None)
            }
            ([target, a, mask], true) => (target, a, Some(mask)),
            _ => return Err(modifiers.error("has another number of operands")),
        };
        let mask = mask.map(|mask| self.read(mask, Type::B32)).transpose()?;
        let a = self.read_predicate(a)?;
        let reply = self.together(op, mask, Some(a), None, None);
        let value = self.resize(reply, native(wanted), false);
        self.write(target, wanted, value)
    }

    /// `match.any.sync` and `match.all.sync`.
    pub(super) fn match_lanes(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_all = modifiers.flag("all");
        if !is_all && !modifiers.flag("any") || !modifiers.flag("sync") {
            return Err(modifiers.error("is not supported"));
        }
        let ty = modifiers.ty()?;
        let [target, a, mask] = operands else {
            return Err(modifiers.error("has three operands"));
        };
        if !matches!(ty, Type::B32 | Type::B64) {
            return Err(modifiers.error("is not supported for this type"));
        }
        let a = self.read(a, ty)?;
        let mask = self.read(mask, Type::B32)?;
        let op = if is_all {
            WarpOp::MatchAll
        } else {
            WarpOp::MatchAny
        };
        let reply = self.together(op, Some(mask), Some(a), None, None);
        let (value, predicate) = pair(target);
        if let Some(predicate) = predicate {
            if !is_all {
                return Err(modifiers.error("has no predicate"));
            }
            let found = self.reply_predicate(reply);
            self.write(predicate, Type::Pred, found)?;
        }
        let low = self.low_half(reply);
        self.write(value, Type::B32, low)
    }

    pub(super) fn active_mask(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [target] = operands else {
            return Err(modifiers.error("has one operand"));
        };
        let reply = self.together(WarpOp::Active, None, None, None, None);
        let value = self.low_half(reply);
        self.write(target, ty, value)
    }

    /// `redux.sync.op.type d, a, mask`.
    pub(super) fn reduce_lanes(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let is_sync = modifiers.flag("sync");
        let operation = modifiers.find(|word| {
            let known = ["add", "min", "max", "and", "or", "xor"];
            known.contains(&word).then_some(word)
        });
        let ty = modifiers.ty()?;
        let op = match (operation, ty) {
            (Some("add"), Type::U32 | Type::S32) => WarpOp::ReduxAdd,
            (Some("min"), Type::U32) => WarpOp::ReduxMinU,
            (Some("min"), Type::S32) => WarpOp::ReduxMinS,
            (Some("max"), Type::U32) => WarpOp::ReduxMaxU,
            (Some("max"), Type::S32) => WarpOp::ReduxMaxS,
            (Some("and"), Type::B32) => WarpOp::ReduxAnd,
            (Some("or"), Type::B32) => WarpOp::ReduxOr,
            (Some("xor"), Type::B32) => WarpOp::ReduxXor,
            _ => return Err(modifiers.error("is not supported")),
        };
        let ([target, a, mask], true) = (operands, is_sync) else {
            return Err(modifiers.error("has three operands"));
        };
        let (a, mask) = (self.read(a, ty)?, self.read(mask, Type::B32)?);
        let reply = self.together(op, Some(mask), Some(a), None, None);
        let value = self.low_half(reply);
        debug_assert_eq!(self.type_of(value), I32);
        self.write(target, ty, value)
    }

    /// `elect.sync d|p, mask`.
    pub(super) fn elect(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ([target, mask], true) = (operands, modifiers.flag("sync")) else {
            return Err(modifiers.error("has two operands"));
        };
        let mask = self.read(mask, Type::B32)?;
        let reply = self.together(WarpOp::Elect, Some(mask), None, None, None);
        let (leader, predicate) = pair(target);
        if let Some(predicate) = predicate {
            let found = self.reply_predicate(reply);
            self.write(predicate, Type::Pred, found)?;
        }
        let value = self.low_half(reply);
        self.write(leader, Type::B32, value)
    }
}
