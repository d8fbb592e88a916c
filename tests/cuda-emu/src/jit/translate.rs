//! One function at a time.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, FuncRef, InstBuilder, MemFlagsData, Signature, StackSlot, StackSlotData,
    StackSlotKind, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as _};

use super::layout::{Frame, SharedLayout, SharedVariables};
use super::operand::native;
use super::routine::Routine;
use crate::exec::{Slots, ThreadContext};
use crate::ptx::{self, Body, Function, ModuleTree, PtxError, Statement};

/// Everything about a function that is known before its code is made.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub(super) tree: &'a ModuleTree<'a>,
    pub(super) ids: &'a [FuncId],
    pub(super) shared: &'a SharedVariables,
    pub(super) number: usize,
    pub(super) function: &'a Function<'a>,
    pub(super) body: &'a Body<'a>,
    pub(super) frame: &'a Frame,
    /// Of kernels; a function has to ask where the kernel that called it keeps its variables.
    pub(super) layout: Option<&'a SharedLayout>,
}

/// The signature of all compiled functions.
pub(super) fn signature(jit: &JITModule) -> Signature {
    let mut signature = jit.make_signature();
    signature.params.extend([AbiParam::new(I64); 3]);
    signature.returns.push(AbiParam::new(I32));
    signature
}

/// Makes the code of one function.
pub(super) fn define(
    jit: &mut JITModule,
    context: &mut FunctionBuilderContext,
    unit: &Unit<'_>,
    prototypes: &mut Vec<ptx::Signature>,
) -> Result<(), PtxError> {
    let mut code = jit.make_context();
    code.func.signature = signature(jit);
    let config = jit.isa().frontend_config();
    let builder = FunctionBuilder::new(&mut code.func, context);
    let mut translator = Translator::new(builder, jit, unit, prototypes);
    let translated = translator.translate();
    let builder = translator.builder;
    if let Err(error) = translated {
        // The builder insists on a complete function; this one is given up.
        *context = FunctionBuilderContext::new();
        return Err(error);
    }
    builder.finalize(config);
    let id = unit.ids[unit.number];
    jit.define_function(id, &mut code).map_err(|error| {
        let message = format!("`{}` could not be compiled: {error:?}", unit.function.name);
        PtxError::new(unit.function.line, message)
    })
}

pub(super) struct Translator<'a, 'b> {
    pub(super) builder: FunctionBuilder<'b>,
    jit: &'a mut JITModule,
    pub(super) unit: &'a Unit<'a>,
    pub(super) prototypes: &'a mut Vec<ptx::Signature>,
    pub(super) registers: Vec<Variable>,
    /// The carry flag of extended-precision arithmetic.
    pub(super) carry: Variable,
    pub(super) labels: Vec<Block>,
    routines: HashMap<Routine, FuncRef>,
    callees: HashMap<usize, FuncRef>,
    pub(super) context: Value,
    /// Parameters and results of this function, as addresses.
    pub(super) params: Value,
    pub(super) returns: Value,
    /// Offset of this function's frame in the local memory of the thread.
    pub(super) frame_start: Option<Value>,
    /// How much of it was in use when the function was entered.
    caller_top: Option<Value>,
    /// Outgoing parameters.
    pub(super) outgoing: Option<StackSlot>,
    /// Returns one: the thread ends.
    pub(super) abort: Block,
    /// Labels that were passed already: jumps to them are loops.
    pub(super) passed: Vec<bool>,
    /// Accesses of each sort so far, to give out slots.
    pub(super) accesses: [u32; Slots::SORTS],
    /// Line of the instruction that is being translated.
    pub(super) line: u32,
}

impl<'a, 'b> Translator<'a, 'b> {
    fn new(
        mut builder: FunctionBuilder<'b>,
        jit: &'a mut JITModule,
        unit: &'a Unit<'a>,
        prototypes: &'a mut Vec<ptx::Signature>,
    ) -> Self {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let [context, params, returns] = *builder.block_params(entry) else {
            unreachable!("compiled functions have three parameters")
        };
        let registers = unit.body.registers.iter();
        let registers = registers
            .map(|ty| builder.declare_var(native(*ty)))
            .collect();
        let carry = builder.declare_var(I8);
        let labels = (0..unit.body.labels).map(|_| builder.create_block());
        let labels = labels.collect();
        let abort = builder.create_block();
        builder.set_cold_block(abort);
        let outgoing = (unit.frame.param_bytes > 0).then(|| {
            let slot = StackSlotKind::ExplicitSlot;
            builder.create_sized_stack_slot(StackSlotData::new(slot, unit.frame.param_bytes, 4))
        });
        Self {
            builder,
            jit,
            unit,
            prototypes,
            registers,
            carry,
            labels,
            routines: HashMap::new(),
            callees: HashMap::new(),
            context,
            params,
            returns,
            frame_start: None,
            caller_top: None,
            outgoing,
            abort,
            passed: vec![false; unit.body.labels],
            accesses: [0; Slots::SORTS],
            line: unit.function.line,
        }
    }

    fn translate(&mut self) -> Result<(), PtxError> {
        self.prologue();
        // Whether the current block still needs an end.
        let mut is_open = true;
        for statement in &self.unit.body.statements {
            match statement {
                Statement::Label(label) => {
                    let block = self.labels[*label];
                    if is_open {
                        self.builder.ins().jump(block, &[]);
                    }
                    self.builder.switch_to_block(block);
                    self.passed[*label] = true;
                    is_open = true;
                }
                Statement::Instruction(instruction) => {
                    if !is_open {
                        let unreachable = self.builder.create_block();
                        self.builder.switch_to_block(unreachable);
                    }
                    self.line = instruction.line;
                    is_open = self.statement(instruction)?;
                }
            }
        }
        if is_open {
            self.leave();
        }
        let abort = self.abort;
        self.builder.switch_to_block(abort);
        let one = self.builder.ins().iconst(I32, 1);
        self.builder.ins().return_(&[one]);
        self.builder.seal_all_blocks();
        Ok(())
    }

    /// Room for local variables; for functions, also whether the stack suffices.
    fn prologue(&mut self) {
        /// What a call costs of the thread's stack besides local variables.
        const CALL_BYTES: i64 = 32;
        let is_entry = self.unit.function.is_entry;
        let bytes = self.unit.frame.local_bytes;
        if is_entry && bytes == 0 {
            return;
        }
        let top = self.context_field(I64, offset_of!(ThreadContext, local_top));
        let mut start = top;
        if !is_entry {
            self.spend_fuel();
            self.check_host_stack();
            // Frames begin at multiples of 16 and end with the last variable, so that an access
            // behind it is noticed.
            let aligned = self.builder.ins().iadd_imm_s(top, CALL_BYTES + 15);
            start = self.builder.ins().band_imm_s(aligned, -16);
        }
        self.caller_top = Some(top);
        self.frame_start = Some(start);
        let bytes = self.builder.ins().iconst(I32, i64::from(bytes));
        let line = self.line_value();
        let status = self.call_routine(Routine::Enter, &[self.context, start, bytes, line]);
        self.abort_if(status);
    }

    fn check_host_stack(&mut self) {
        let pointer = self.builder.ins().get_stack_pointer(I64);
        let limit = self.context_field(I64, offset_of!(ThreadContext, stack_limit));
        let above = IntCC::UnsignedGreaterThan;
        let fits = self.builder.ins().icmp(above, pointer, limit);
        self.guard(fits, |this| {
            let line = this.line_value();
            this.call_routine(Routine::Overflow, &[this.context, line])
        });
    }

    /// Returns from the function.
    pub(super) fn leave(&mut self) {
        if let Some(top) = self.caller_top {
            self.set_context_field(top, offset_of!(ThreadContext, local_top));
        }
        let zero = self.builder.ins().iconst(I32, 0);
        self.builder.ins().return_(&[zero]);
    }

    // --- the context ---

    /// Reads a field that may change.
    pub(super) fn context_field(&mut self, ty: cranelift_codegen::ir::Type, at: usize) -> Value {
        let at = i32::try_from(at).expect("the context is small");
        self.builder.ins().load(ty, plain(), self.context, at)
    }

    /// Reads a field that stays the same while the thread runs.
    pub(super) fn fixed_field(&mut self, ty: cranelift_codegen::ir::Type, at: usize) -> Value {
        let at = i32::try_from(at).expect("the context is small");
        let mut flags = plain();
        flags.set_readonly();
        self.builder.ins().load(ty, flags, self.context, at)
    }

    pub(super) fn set_context_field(&mut self, value: Value, at: usize) {
        let at = i32::try_from(at).expect("the context is small");
        self.builder.ins().store(plain(), value, self.context, at);
    }

    // --- calls into this crate ---

    pub(super) fn line_value(&mut self) -> Value {
        self.builder.ins().iconst(I32, i64::from(self.line))
    }

    pub(super) fn routine(&mut self, routine: Routine) -> FuncRef {
        if let Some(known) = self.routines.get(&routine) {
            return *known;
        }
        let spec = routine.spec();
        let mut signature = self.jit.make_signature();
        let params = spec.params.iter().map(|ty| AbiParam::new(*ty));
        signature.params.extend(params);
        signature.returns.push(AbiParam::new(spec.result));
        let id = self
            .jit
            .declare_function(spec.name, Linkage::Import, &signature)
            .expect("every routine is always declared in the same way");
        let reference = self.jit.declare_func_in_func(id, self.builder.func);
        self.routines.insert(routine, reference);
        reference
    }

    pub(super) fn call_routine(&mut self, routine: Routine, arguments: &[Value]) -> Value {
        let function = self.routine(routine);
        let call = self.builder.ins().call(function, arguments);
        self.builder.inst_results(call)[0]
    }

    /// A function of the same module.
    pub(super) fn callee(&mut self, number: usize) -> FuncRef {
        if let Some(known) = self.callees.get(&number) {
            return *known;
        }
        let id = self.unit.ids[number];
        let reference = self.jit.declare_func_in_func(id, self.builder.func);
        self.callees.insert(number, reference);
        reference
    }

    pub(super) fn native_signature(&self) -> Signature {
        signature(self.jit)
    }

    // --- ending early ---

    /// Ends the thread if the status is not zero.
    pub(super) fn abort_if(&mut self, status: Value) {
        let next = self.builder.create_block();
        let abort = self.abort;
        self.builder.ins().brif(status, abort, &[], next, &[]);
        self.builder.switch_to_block(next);
    }

    /// Goes on if `fine` holds; else calls what `otherwise` makes, and goes on if that says zero.
    pub(super) fn guard(&mut self, fine: Value, otherwise: impl FnOnce(&mut Self) -> Value) {
        let (next, cold) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(cold);
        self.builder.ins().brif(fine, next, &[], cold, &[]);
        self.builder.switch_to_block(cold);
        let status = otherwise(self);
        let abort = self.abort;
        self.builder.ins().brif(status, abort, &[], next, &[]);
        self.builder.switch_to_block(next);
    }

    /// Counts a loop iteration or a call.
    pub(super) fn spend_fuel(&mut self) {
        let at = offset_of!(ThreadContext, fuel);
        let fuel = self.context_field(I64, at);
        let fuel = self.builder.ins().iadd_imm_s(fuel, -1);
        self.set_context_field(fuel, at);
        let enough = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThan, fuel, 0);
        self.guard(enough, |this| {
            let line = this.line_value();
            this.call_routine(Routine::Refuel, &[this.context, line])
        });
    }

    // --- complaints ---

    pub(super) fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError::new(self.line, message)
    }
}

/// Memory that is there: the access does not fault.
pub(super) fn plain() -> MemFlagsData {
    let mut flags = MemFlagsData::new();
    flags.set_notrap();
    flags
}
