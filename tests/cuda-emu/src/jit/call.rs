//! Calls: by name, through pointers, and of functions that CUDA provides.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value};

use super::operand::integer;
use super::routine::Routine;
use super::translate::{Translator, plain};
use crate::exec::ThreadContext;
use crate::ptx::{Modifiers, Name, Operand, Param, PtxError, Signature, Symbol};

impl Translator<'_, '_> {
    /// `call (results), function, (arguments), prototype`.
    pub(super) fn call(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        modifiers.ignore(&["uni"]);
        let (results, rest) = match operands {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let (target, rest) = rest
            .split_first()
            .ok_or_else(|| modifiers.error("names no function"))?;
        let (arguments, rest) = match rest {
            [Operand::List(arguments), rest @ ..] => (arguments.as_slice(), rest),
            rest => (&[][..], rest),
        };
        match (target, rest) {
            (Operand::Symbol(Symbol::Function(number), 0), []) => {
                self.call_by_name(*number, arguments, results)
            }
            (Operand::Reg(_), [Operand::Name(place)]) => {
                let Name::Prototype(signature) = self.unit.body.names[*place].clone() else {
                    return Err(modifiers.error("needs a prototype"));
                };
                self.call_by_pointer(target, &signature, arguments, results)
            }
            _ => Err(modifiers.error("has operands that are not understood")),
        }
    }

    fn call_by_name(
        &mut self,
        number: usize,
        arguments: &[Operand],
        results: &[Operand],
    ) -> Result<(), PtxError> {
        let function = &self.unit.tree.functions[number];
        let signature = function.signature.clone();
        let callee = if function.body.is_some() && !function.is_entry {
            self.callee(number)
        } else {
            let sizes = |params: &[Param]| params.iter().map(|p| p.size).collect::<Vec<_>>();
            let found = Routine::system(function.name)
                .filter(|(_, params, returns)| {
                    sizes(&signature.params) == *params && sizes(&signature.returns) == *returns
                })
                .ok_or_else(|| {
                    self.error(format!("`{}` is called but not defined", function.name))
                })?;
            let line = self.line_value();
            self.set_context_field(line, offset_of!(ThreadContext, line));
            self.routine(found.0)
        };
        let (params, returns) = self.pass(&signature, arguments, results)?;
        let call = self
            .builder
            .ins()
            .call(callee, &[self.context, params, returns]);
        let status = self.builder.inst_results(call)[0];
        self.abort_if(status);
        self.fetch(&signature, results, returns)
    }

    fn call_by_pointer(
        &mut self,
        pointer: &Operand,
        signature: &Signature,
        arguments: &[Operand],
        results: &[Operand],
    ) -> Result<(), PtxError> {
        let pointer = self.read(pointer, crate::ptx::Type::U64)?;
        let number = u32::try_from(self.prototypes.len())
            .map_err(|_| self.error("the module has too many prototypes"))?;
        self.prototypes.push(signature.clone());
        let number = self.int32(number);
        let line = self.line_value();
        let arguments_of_lookup = [self.context, pointer, number, line];
        let code = self.call_routine(Routine::Function, &arguments_of_lookup);
        let missing = self.builder.ins().icmp_imm_s(IntCC::Equal, code, 0);
        self.abort_if(missing);
        let (params, returns) = self.pass(signature, arguments, results)?;
        let native = self.native_signature();
        let native = self.builder.import_signature(native);
        let context = self.context;
        let call = self
            .builder
            .ins()
            .call_indirect(native, code, &[context, params, returns]);
        let status = self.builder.inst_results(call)[0];
        self.abort_if(status);
        self.fetch(signature, results, returns)
    }

    /// Lays out the arguments, and makes room for the results.
    fn pass(
        &mut self,
        signature: &Signature,
        arguments: &[Operand],
        results: &[Operand],
    ) -> Result<(Value, Value), PtxError> {
        if arguments.len() != signature.params.len() || results.len() != signature.returns.len() {
            return Err(self.error(format!(
                "a call with {} arguments and {} results of a function with {} and {}",
                arguments.len(),
                results.len(),
                signature.params.len(),
                signature.returns.len()
            )));
        }
        let params = self.room(Signature::bytes(&signature.params));
        let returns = self.room(Signature::bytes(&signature.returns));
        for (argument, param) in arguments.iter().zip(&signature.params) {
            let at = param.offset.cast_signed();
            if let Some(from) = self.outgoing_place(argument, param.size)? {
                self.copy(from, (params, at), param.size);
            } else {
                let value = self.read(argument, param.ty)?;
                self.builder.ins().store(plain(), value, params, at);
            }
        }
        Ok((params, returns))
    }

    /// Puts results where the caller wants them.
    fn fetch(
        &mut self,
        signature: &Signature,
        results: &[Operand],
        returns: Value,
    ) -> Result<(), PtxError> {
        for (result, param) in results.iter().zip(&signature.returns) {
            let at = param.offset.cast_signed();
            if let Some(to) = self.outgoing_place(result, param.size)? {
                self.copy((returns, at), to, param.size);
            } else {
                let ty = super::operand::native(param.ty);
                let value = self.builder.ins().load(ty, plain(), returns, at);
                self.write(result, param.ty, value)?;
            }
        }
        Ok(())
    }

    /// Where an argument that is a `.param` variable lies.
    fn outgoing_place(
        &mut self,
        operand: &Operand,
        size: u32,
    ) -> Result<Option<(Value, i32)>, PtxError> {
        let Operand::Symbol(Symbol::Variable(number), 0) = operand else {
            return Ok(None);
        };
        let variable = &self.unit.body.variables[*number];
        if variable.space != crate::ptx::StateSpace::Param {
            return Ok(None);
        }
        if variable.size != u64::from(size) {
            return Err(self.error(format!(
                "`{}` has {} bytes, the function expects {size}",
                variable.name, variable.size
            )));
        }
        let body = self.unit.body;
        if body.params.contains(number) || body.returns.contains(number) {
            return Err(self.error(format!(
                "`{}`, a formal parameter, as an argument",
                variable.name
            )));
        }
        let slot = self.outgoing;
        let slot = slot.expect("a function with outgoing parameters has room for them");
        let start = self.unit.frame.offsets[*number].cast_signed();
        Ok(Some((self.builder.ins().stack_addr(I64, slot, start), 0)))
    }

    /// Space on the host stack for one call.
    fn room(&mut self, bytes: u32) -> Value {
        let kind = StackSlotKind::ExplicitSlot;
        let data = StackSlotData::new(kind, bytes.max(8), 4);
        let slot = self.builder.create_sized_stack_slot(data);
        self.builder.ins().stack_addr(I64, slot, 0)
    }

    /// Copies between places that do not overlap.
    fn copy(&mut self, from: (Value, i32), to: (Value, i32), bytes: u32) {
        let mut at = 0;
        while at < bytes {
            let width = [8, 4, 2, 1].into_iter().find(|width| at + width <= bytes);
            let width = width.unwrap_or(1);
            let ty = integer(width * 8);
            let step = at.cast_signed();
            let value = self.builder.ins().load(ty, plain(), from.0, from.1 + step);
            self.builder.ins().store(plain(), value, to.0, to.1 + step);
            at += width;
        }
    }
}
