//! Values of operands, and what becomes of results.

use std::mem::offset_of;

use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64, I128};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Value};

use super::image;
use super::routine::Routine;
use super::translate::{Translator, plain};
use crate::exec::ThreadContext;
use crate::ptx::{Operand, PtxError, Reg, Special, StateSpace, Symbol, Type};

/// The type of the code generator that holds a value. Halves are bits.
pub(super) fn native(ty: Type) -> ir::Type {
    match ty {
        Type::F32 => F32,
        Type::F64 => F64,
        other => integer(other.bits()),
    }
}

pub(super) fn integer(bits: u32) -> ir::Type {
    match bits {
        8 => I8,
        16 => I16,
        32 => I32,
        64 => I64,
        _ => I128,
    }
}

impl Translator<'_, '_> {
    // --- constants ---

    /// An integer of any width; bits that do not fit are dropped.
    pub(super) fn constant(&mut self, ty: ir::Type, value: u64) -> Value {
        if ty == I128 {
            let low = self.builder.ins().iconst(I64, value.cast_signed());
            return self.builder.ins().uextend(I128, low);
        }
        let mask = u64::MAX >> (64 - ty.bits());
        self.builder.ins().iconst(ty, (value & mask).cast_signed())
    }

    pub(super) fn int32(&mut self, value: u32) -> Value {
        self.constant(I32, u64::from(value))
    }

    /// A constant of any type, given by its bits.
    pub(super) fn bits(&mut self, ty: Type, bits: u64) -> Value {
        let value = self.constant(integer(ty.bits()), bits);
        self.cast(value, native(ty))
    }

    // --- changes of type ---

    pub(super) fn type_of(&self, value: Value) -> ir::Type {
        self.builder.func.dfg.value_type(value)
    }

    /// The same bits as another type of the same size.
    pub(super) fn cast(&mut self, value: Value, to: ir::Type) -> Value {
        if self.type_of(value) == to {
            return value;
        }
        self.builder.ins().bitcast(to, MemFlagsData::new(), value)
    }

    /// An integer made wider or narrower.
    pub(super) fn resize(&mut self, value: Value, to: ir::Type, signed: bool) -> Value {
        let from = self.type_of(value);
        if from == to {
            value
        } else if from.bits() > to.bits() {
            self.builder.ins().ireduce(to, value)
        } else if signed {
            self.builder.ins().sextend(to, value)
        } else {
            self.builder.ins().uextend(to, value)
        }
    }

    // --- reading ---

    pub(super) fn register_type(&self, register: Reg) -> Type {
        self.unit.body.registers[register.0]
    }

    fn register(&mut self, register: Reg) -> Value {
        let variable = self.registers[register.0];
        self.builder.use_var(variable)
    }

    /// An operand of exactly this size.
    pub(super) fn read(&mut self, operand: &Operand, ty: Type) -> Result<Value, PtxError> {
        if let Operand::Reg(register) = operand {
            let declared = self.register_type(*register);
            if declared.bits() != ty.bits() || (declared == Type::Pred) != (ty == Type::Pred) {
                return Err(self.mismatch(declared, ty));
            }
        }
        self.read_narrowed(operand, ty)
    }

    /// An operand of this size, or the lower part of a larger register.
    pub(super) fn read_narrowed(&mut self, operand: &Operand, ty: Type) -> Result<Value, PtxError> {
        if ty == Type::Pred {
            return self.read_predicate(operand);
        }
        let bits = integer(ty.bits());
        let value = match operand {
            Operand::Reg(register) => {
                let declared = self.register_type(*register);
                if declared == Type::Pred || declared.bits() < ty.bits() {
                    return Err(self.mismatch(declared, ty));
                }
                let value = self.register(*register);
                if native(declared) == native(ty) {
                    return Ok(value);
                }
                let value = self.cast(value, integer(declared.bits()));
                self.resize(value, bits, false)
            }
            Operand::Special(special) => {
                if special.bits() != ty.bits() {
                    return Err(self.error(format!("a special register as `.{}`", ty.name())));
                }
                self.special(*special)
            }
            Operand::Integer(value) if !ty.is_float() || ty.bits() == 16 => {
                self.constant(bits, *value)
            }
            Operand::Single(value) if ty.bits() == 32 => self.constant(I32, u64::from(*value)),
            Operand::Double(value) if ty.bits() == 64 => self.constant(I64, *value),
            Operand::Double(value) if ty == Type::F32 => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "decimal constants are rounded to the type they are used with"
                )]
                let single = f64::from_bits(*value) as f32;
                self.constant(I32, u64::from(single.to_bits()))
            }
            Operand::Symbol(symbol, addend) => {
                if ty.is_float() || !matches!(ty.bits(), 32 | 64) {
                    return Err(self.error(format!("an address as `.{}`", ty.name())));
                }
                let address = self.symbol_address(*symbol, *addend)?;
                self.resize(address, bits, false)
            }
            _ => return Err(self.error(format!("an operand does not fit `.{}`", ty.name()))),
        };
        Ok(self.cast(value, native(ty)))
    }

    fn mismatch(&self, declared: Type, wanted: Type) -> PtxError {
        self.error(format!(
            "a register of type `.{}` as `.{}`",
            declared.name(),
            wanted.name()
        ))
    }

    /// A predicate as zero or one.
    pub(super) fn read_predicate(&mut self, operand: &Operand) -> Result<Value, PtxError> {
        match operand {
            Operand::Reg(register) if self.register_type(*register) == Type::Pred => {
                Ok(self.register(*register))
            }
            Operand::Not(register) if self.register_type(*register) == Type::Pred => {
                let value = self.register(*register);
                Ok(self.builder.ins().bxor_imm_s(value, 1))
            }
            Operand::Integer(value) => Ok(self.constant(I8, u64::from(*value != 0))),
            _ => Err(self.error("a predicate is expected")),
        }
    }

    pub(super) fn guard_value(&mut self, register: Reg) -> Result<Value, PtxError> {
        self.read_predicate(&Operand::Reg(register))
    }

    // --- addresses of things with names ---

    /// The address of a variable, relative to its state space, in 64 bits.
    pub(super) fn symbol_address(
        &mut self,
        symbol: Symbol,
        addend: i64,
    ) -> Result<Value, PtxError> {
        let base = match symbol {
            Symbol::Global(number) => {
                let table = self.fixed_field(I64, offset_of!(ThreadContext, globals));
                let at = i32::try_from(number * 8)
                    .map_err(|_| self.error("the module has too many variables"))?;
                let mut flags = plain();
                flags.set_readonly();
                self.builder.ins().load(I64, flags, table, at)
            }
            Symbol::ModuleShared(number) => self.shared_address(number)?,
            Symbol::Function(number) => self.constant(I64, image::handle(number)),
            Symbol::Variable(number) => self.variable_address(number)?,
        };
        if addend == 0 {
            return Ok(base);
        }
        Ok(self.builder.ins().iadd_imm_s(base, addend))
    }

    fn variable_address(&mut self, number: usize) -> Result<Value, PtxError> {
        let body = self.unit.body;
        let variable = &body.variables[number];
        match variable.space {
            StateSpace::Shared => {
                let number = self.unit.shared.of_function(self.unit.number, number);
                self.shared_address(number)
            }
            StateSpace::Local => {
                let start = self.frame_start;
                let start = start.expect("a function with local variables has a frame");
                let offset = i64::from(self.unit.frame.offsets[number]);
                Ok(self.builder.ins().iadd_imm_s(start, offset))
            }
            StateSpace::Param if self.unit.function.is_entry => {
                let place = body.params.iter().position(|param| *param == number);
                let place = place.ok_or_else(|| self.error("the address of an argument"))?;
                let param = self.unit.function.signature.params[place];
                Ok(self.constant(I64, u64::from(param.offset)))
            }
            _ => Err(self.error(format!(
                "the address of `{}`, a parameter of a function",
                variable.name
            ))),
        }
    }

    /// Offset of a shared variable in the shared memory of the kernel that is running.
    fn shared_address(&mut self, number: usize) -> Result<Value, PtxError> {
        if let Some(layout) = self.unit.layout {
            return Ok(self.constant(I64, u64::from(layout.offsets[number])));
        }
        let table = self.fixed_field(I64, offset_of!(ThreadContext, shared_offsets));
        let at = i32::try_from(number * 4).map_err(|_| self.error("too many shared variables"))?;
        let mut flags = plain();
        flags.set_readonly();
        let offset = self.builder.ins().load(I32, flags, table, at);
        Ok(self.builder.ins().uextend(I64, offset))
    }

    // --- special registers ---

    fn special(&mut self, special: Special) -> Value {
        let axis_of = |base: usize, axis: crate::ptx::Axis| base + 4 * axis.index();
        let at = match special {
            Special::Tid(axis) => axis_of(offset_of!(ThreadContext, tid), axis),
            Special::Ntid(axis) => axis_of(offset_of!(ThreadContext, ntid), axis),
            Special::Ctaid(axis) => axis_of(offset_of!(ThreadContext, ctaid), axis),
            Special::Nctaid(axis) => axis_of(offset_of!(ThreadContext, nctaid), axis),
            Special::Laneid => offset_of!(ThreadContext, lane),
            Special::Warpid => offset_of!(ThreadContext, warp),
            Special::Nwarpid => offset_of!(ThreadContext, warps),
            Special::Smid => offset_of!(ThreadContext, processor),
            Special::Nsmid => offset_of!(ThreadContext, processors),
            Special::TotalSmem => offset_of!(ThreadContext, total_shared),
            Special::DynamicSmem => offset_of!(ThreadContext, dynamic_shared),
            Special::WarpSize => return self.int32(32),
            Special::Gridid => return self.constant(I64, 1),
            Special::LanemaskEq
            | Special::LanemaskLe
            | Special::LanemaskLt
            | Special::LanemaskGe
            | Special::LanemaskGt => return self.lane_mask(special),
            Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::Globaltimer
            | Special::GlobaltimerLo
            | Special::GlobaltimerHi => return self.clock(special),
        };
        self.fixed_field(I32, at)
    }

    fn lane_mask(&mut self, special: Special) -> Value {
        let lane = self.fixed_field(I32, offset_of!(ThreadContext, lane));
        let one = self.int32(1);
        let own = self.builder.ins().ishl(one, lane);
        let below = self.builder.ins().iadd_imm_s(own, -1);
        match special {
            Special::LanemaskEq => own,
            Special::LanemaskLt => below,
            Special::LanemaskLe => self.builder.ins().bor(own, below),
            Special::LanemaskGe => self.builder.ins().bnot(below),
            _ => {
                let not_above = self.builder.ins().bor(own, below);
                self.builder.ins().bnot(not_above)
            }
        }
    }

    fn clock(&mut self, special: Special) -> Value {
        let is_global = matches!(
            special,
            Special::Globaltimer | Special::GlobaltimerLo | Special::GlobaltimerHi
        );
        let which = self.int32(u32::from(is_global));
        let time = self.call_routine(Routine::Clock, &[self.context, which]);
        match special {
            Special::Clock64 | Special::Globaltimer => time,
            Special::Clock | Special::GlobaltimerLo => self.builder.ins().ireduce(I32, time),
            _ => {
                let high = self.builder.ins().ushr_imm_s(time, 32);
                self.builder.ins().ireduce(I32, high)
            }
        }
    }

    // --- writing ---

    /// Stores a result in a register of exactly this size.
    pub(super) fn write(
        &mut self,
        operand: &Operand,
        ty: Type,
        value: Value,
    ) -> Result<(), PtxError> {
        if let Operand::Reg(register) = operand {
            let declared = self.register_type(*register);
            if declared.bits() != ty.bits() || (declared == Type::Pred) != (ty == Type::Pred) {
                return Err(self.mismatch(declared, ty));
            }
        }
        self.write_extended(operand, ty, value)
    }

    /// Stores a result in a register that may be larger, according to the sign of the type.
    pub(super) fn write_extended(
        &mut self,
        operand: &Operand,
        ty: Type,
        value: Value,
    ) -> Result<(), PtxError> {
        let register = match operand {
            Operand::Reg(register) => *register,
            Operand::Sink => return Ok(()),
            _ => return Err(self.error("the result has to go to a register")),
        };
        let declared = self.register_type(register);
        if declared.bits() < ty.bits() || (declared == Type::Pred) != (ty == Type::Pred) {
            return Err(self.mismatch(declared, ty));
        }
        let value = self.cast(value, integer(ty.bits()));
        let value = self.resize(value, integer(declared.bits()), ty.is_signed());
        let value = self.cast(value, native(declared));
        let variable = self.registers[register.0];
        self.builder.def_var(variable, value);
        Ok(())
    }
}
