//! Jumps, and instructions that depend on a predicate.

use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{BlockCall, InstBuilder, JumpTableData, Value};

use super::routine::Routine;
use super::translate::Translator;
use crate::ptx::{Instruction, Modifiers, Name, Operand, PtxError};

impl Translator<'_, '_> {
    /// Translates one instruction. False when nothing that follows can be reached from it.
    pub(super) fn statement(&mut self, instruction: &Instruction<'_>) -> Result<bool, PtxError> {
        let Some((register, negated)) = instruction.guard else {
            return self.unguarded(instruction);
        };
        let condition = self.guard_value(register)?;
        let (then, next) = (self.builder.create_block(), self.builder.create_block());
        if negated {
            self.builder.ins().brif(condition, next, &[], then, &[]);
        } else {
            self.builder.ins().brif(condition, then, &[], next, &[]);
        }
        self.builder.switch_to_block(then);
        if self.unguarded(instruction)? {
            self.builder.ins().jump(next, &[]);
        }
        self.builder.switch_to_block(next);
        Ok(true)
    }

    fn unguarded(&mut self, instruction: &Instruction<'_>) -> Result<bool, PtxError> {
        let modifiers = Modifiers::new(instruction);
        let operands = instruction.operands.as_slice();
        let goes_on = match instruction.opcode {
            "bra" => {
                modifiers.ignore(&["uni"]);
                self.branch(operands)?;
                false
            }
            "brx" => {
                if !modifiers.flag("idx") {
                    return Err(modifiers.error("is not supported"));
                }
                modifiers.ignore(&["uni"]);
                self.branch_by_index(operands)?;
                false
            }
            "ret" => {
                modifiers.ignore(&["uni"]);
                self.leave();
                false
            }
            "exit" => {
                let abort = self.abort;
                self.builder.ins().jump(abort, &[]);
                false
            }
            "trap" | "brkpt" => {
                let line = self.line_value();
                self.call_routine(Routine::Trap, &[self.context, line]);
                let abort = self.abort;
                self.builder.ins().jump(abort, &[]);
                false
            }
            _ => {
                self.dispatch(instruction.opcode, &modifiers, operands)?;
                true
            }
        };
        modifiers.finish()?;
        Ok(goes_on)
    }

    fn name(&self, operand: &Operand) -> Result<&Name, PtxError> {
        match operand {
            Operand::Name(place) => Ok(&self.unit.body.names[*place]),
            _ => Err(self.error("a label is expected")),
        }
    }

    fn branch(&mut self, operands: &[Operand]) -> Result<(), PtxError> {
        let [target] = operands else {
            return Err(self.error("`bra` has one operand"));
        };
        let Name::Label(label) = *self.name(target)? else {
            return Err(self.error("`bra` jumps to a label"));
        };
        if self.passed[label] {
            self.spend_fuel();
        }
        let block = self.labels[label];
        self.builder.ins().jump(block, &[]);
        Ok(())
    }

    /// `brx.idx index, targets`.
    fn branch_by_index(&mut self, operands: &[Operand]) -> Result<(), PtxError> {
        let [index, targets] = operands else {
            return Err(self.error("`brx.idx` has two operands"));
        };
        let Name::Targets(labels) = self.name(targets)?.clone() else {
            return Err(self.error("`brx.idx` takes a list of branch targets"));
        };
        let index = self.read(index, crate::ptx::Type::U32)?;
        if labels.iter().any(|label| self.passed[*label]) {
            self.spend_fuel();
        }
        let outside = self.builder.create_block();
        self.builder.set_cold_block(outside);
        let pool = &mut self.builder.func.dfg.value_lists;
        let default = BlockCall::new(outside, std::iter::empty(), pool);
        let table: Vec<BlockCall> = labels
            .iter()
            .map(|label| BlockCall::new(self.labels[*label], std::iter::empty(), pool))
            .collect();
        let table = self
            .builder
            .create_jump_table(JumpTableData::new(default, &table));
        self.builder.ins().br_table(index, table);
        self.builder.switch_to_block(outside);
        let line = self.line_value();
        self.call_routine(Routine::BadTarget, &[self.context, index, line]);
        let abort = self.abort;
        self.builder.ins().jump(abort, &[]);
        Ok(())
    }

    /// The value of a call whose sign says that the thread has to end.
    pub(super) fn reply(&mut self, reply: Value) -> Value {
        use cranelift_codegen::ir::condcodes::IntCC;
        let is_over = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::SignedLessThan, reply, 0);
        self.abort_if(is_over);
        reply
    }

    /// The lower half of a reply.
    pub(super) fn low_half(&mut self, reply: Value) -> Value {
        self.builder.ins().ireduce(I32, reply)
    }
}
