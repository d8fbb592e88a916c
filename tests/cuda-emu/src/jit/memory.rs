//! Loads, stores, and addresses.

use std::mem::offset_of;

use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::{integer, native};
use super::routine::Routine;
use super::translate::{Translator, plain};
use crate::engine::{Access, Space};
use crate::exec::ThreadContext;
use crate::exec::checks::Kind;
use crate::ptx::{Address, Base, Modifiers, Operand, PtxError, Reg, StateSpace, Symbol, Type};

/// Words about caches and visibility. Blocks see each other's stores as soon as they are made, and
/// threads of a block run one after the other, so all of them hold anyway.
const CACHE_WORDS: &[&str] = &[
    "weak",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "nc",
    "unified",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::evict_last",
    "L2::64B",
    "L2::128B",
    "L2::256B",
];

/// Another thread may change the value at any time.
const WATCHED_WORDS: &[&str] = &["volatile", "relaxed", "acquire", "release", "mmio"];

/// Where an access goes: a host address, and a distance from it.
pub(super) type Place = (Value, i32);

impl Translator<'_, '_> {
    pub(super) fn load(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        modifiers.ignore(CACHE_WORDS);
        let is_watched = watched(modifiers);
        let space = modifiers.space();
        let lanes = lanes(modifiers);
        let ty = modifiers.ty()?;
        let [target, Operand::Address(address)] = operands else {
            return Err(modifiers.error("has a register and an address as operands"));
        };
        let targets = self.vector(target, lanes)?;
        let bytes = vector_bytes(modifiers, space, ty, lanes)?;
        let (base, offset) = self.place(space, address, bytes, Access::Read)?;
        let mut at = offset;
        for target in targets {
            let value = self.load_one((base, at), ty, is_watched);
            self.write_extended(target, ty, value)?;
            at += ty.bytes().cast_signed();
        }
        Ok(())
    }

    fn load_one(&mut self, (base, at): Place, ty: Type, is_watched: bool) -> Value {
        if !is_watched || ty.bits() > 64 {
            return self.builder.ins().load(native(ty), plain(), base, at);
        }
        // The code generator may merge two plain loads, but not two atomic ones.
        let address = self.builder.ins().iadd_imm_s(base, i64::from(at));
        let bits = integer(ty.bits());
        let value = self.builder.ins().atomic_load(bits, plain(), address);
        self.cast(value, native(ty))
    }

    pub(super) fn store(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        modifiers.ignore(CACHE_WORDS);
        let is_watched = watched(modifiers);
        let space = modifiers.space();
        let lanes = lanes(modifiers);
        let ty = modifiers.ty()?;
        let [Operand::Address(address), source] = operands else {
            return Err(modifiers.error("has an address and a register as operands"));
        };
        let sources = self.vector(source, lanes)?;
        let values = sources
            .into_iter()
            .map(|source| self.read_narrowed(source, ty))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes = vector_bytes(modifiers, space, ty, lanes)?;
        let (base, offset) = self.place(space, address, bytes, Access::Write)?;
        let mut at = offset;
        for value in values {
            if is_watched && ty.bits() <= 64 {
                let address = self.builder.ins().iadd_imm_s(base, i64::from(at));
                let bits = self.cast(value, integer(ty.bits()));
                self.builder.ins().atomic_store(plain(), bits, address);
            } else {
                self.builder.ins().store(plain(), value, base, at);
            }
            at += ty.bytes().cast_signed();
        }
        Ok(())
    }

    /// The registers of a vector operand, or the one register of a scalar.
    fn vector<'o>(&self, operand: &'o Operand, lanes: u32) -> Result<Vec<&'o Operand>, PtxError> {
        match operand {
            Operand::Vector(parts) if parts.len() == lanes as usize => Ok(parts.iter().collect()),
            Operand::Vector(_) => Err(self.error(format!("a vector of {lanes} is expected"))),
            other if lanes == 1 => Ok(vec![other]),
            _ => Err(self.error(format!("a vector of {lanes} is expected"))),
        }
    }

    /// Checks an access; gives the host address.
    pub(super) fn place(
        &mut self,
        space: StateSpace,
        address: &Address,
        bytes: u32,
        access: Access,
    ) -> Result<Place, PtxError> {
        if space == StateSpace::Param
            && let Base::Symbol(Symbol::Variable(number)) = address.base
        {
            return self.param_place(number, address.offset, bytes, access);
        }
        let offset = self.effective(space, address)?;
        let host = match space {
            StateSpace::Shared => self.check_shared(offset, bytes, access),
            StateSpace::Local => self.check_local(offset, bytes, access),
            StateSpace::Param if self.unit.function.is_entry && access == Access::Read => {
                self.check_param(offset, bytes)
            }
            StateSpace::Param => return Err(self.error("a parameter through a register")),
            StateSpace::Global | StateSpace::Const | StateSpace::Generic => {
                let space = match space {
                    StateSpace::Global => Space::Global,
                    StateSpace::Const => Space::Const,
                    _ => Space::Generic,
                };
                if space == Space::Const && access != Access::Read {
                    return Err(self.error("constant memory cannot be written"));
                }
                let kind = Kind {
                    bytes,
                    access,
                    space,
                };
                self.check_device(offset, kind);
                offset
            }
        };
        Ok((host, 0))
    }

    /// An address in 64 bits, relative to its state space.
    fn effective(&mut self, space: StateSpace, address: &Address) -> Result<Value, PtxError> {
        match address.base {
            Base::Reg(register) => self.effective_register(space, register, address.offset),
            Base::Symbol(symbol) => {
                self.expect_space(symbol, space)?;
                self.symbol_address(symbol, address.offset)
            }
            Base::Absolute => Ok(self.constant(I64, address.offset.cast_unsigned())),
        }
    }

    fn effective_register(
        &mut self,
        space: StateSpace,
        register: Reg,
        offset: i64,
    ) -> Result<Value, PtxError> {
        let declared = self.register_type(register);
        let is_small_space = matches!(
            space,
            StateSpace::Shared | StateSpace::Local | StateSpace::Const | StateSpace::Param
        );
        let operand = Operand::Reg(register);
        match declared.bits() {
            64 if declared != Type::F64 => {
                let base = self.read(&operand, Type::U64)?;
                Ok(self.builder.ins().iadd_imm_s(base, offset))
            }
            32 if is_small_space && declared != Type::F32 => {
                let base = self.read(&operand, Type::U32)?;
                let sum = self.builder.ins().iadd_imm_s(base, offset);
                Ok(self.builder.ins().uextend(I64, sum))
            }
            _ => Err(self.error(format!("an address of type `.{}`", declared.name()))),
        }
    }

    /// A variable has to be accessed through its own state space.
    fn expect_space(&self, symbol: Symbol, space: StateSpace) -> Result<(), PtxError> {
        let home = match symbol {
            Symbol::Global(number) => self.unit.tree.globals[number].variable.space,
            Symbol::ModuleShared(_) => StateSpace::Shared,
            Symbol::Variable(number) => self.unit.body.variables[number].space,
            Symbol::Function(_) => return Err(self.error("a function as memory")),
        };
        let is_generic =
            space == StateSpace::Generic && matches!(home, StateSpace::Global | StateSpace::Const);
        if home == space || is_generic {
            return Ok(());
        }
        Err(self.error("a variable through another state space than its own"))
    }

    /// A parameter by name: everything is known now.
    fn param_place(
        &mut self,
        number: usize,
        offset: i64,
        bytes: u32,
        access: Access,
    ) -> Result<Place, PtxError> {
        let body = self.unit.body;
        let variable = &body.variables[number];
        if variable.space != StateSpace::Param {
            return Err(self.error(format!("`{}` is no parameter", variable.name)));
        }
        let end = offset.checked_add(i64::from(bytes));
        let is_inside = offset >= 0
            && end.is_some_and(|end| end.cast_unsigned() <= variable.size)
            && offset % i64::from(bytes) == 0;
        if !is_inside {
            return Err(self.error(format!(
                "{bytes} bytes at {offset} of `{}`, which has {} bytes",
                variable.name, variable.size
            )));
        }
        let signature = &self.unit.function.signature;
        let formal = |list: &[usize]| list.iter().position(|formal| *formal == number);
        let offset = i32::try_from(offset).map_err(|_| self.error("a parameter of 2 GiB"))?;
        if let Some(place) = formal(&body.params) {
            if access != Access::Read {
                return Err(self.error("a parameter that was received cannot be written"));
            }
            return Ok((
                self.params,
                signature.params[place].offset.cast_signed() + offset,
            ));
        }
        if let Some(place) = formal(&body.returns) {
            return Ok((
                self.returns,
                signature.returns[place].offset.cast_signed() + offset,
            ));
        }
        let slot = self.outgoing;
        let slot = slot.expect("a function with outgoing parameters has room for them");
        let start = self.unit.frame.offsets[number].cast_signed();
        let base = self.builder.ins().stack_addr(I64, slot, start);
        Ok((base, offset))
    }

    /// `cvta` and `cvta.to`.
    pub(super) fn convert_address(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let to_space = modifiers.flag("to");
        let space = modifiers.space();
        let ty = modifiers.ty()?;
        let [target, source] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        if ty != Type::U64 {
            return Err(modifiers.error("is not supported: addresses have 64 bits"));
        }
        if let Operand::Symbol(symbol, _) = source {
            self.expect_space(*symbol, space)?;
        }
        let source = self.read(source, ty)?;
        let base = match space {
            StateSpace::Global | StateSpace::Const => None,
            StateSpace::Shared => Some(offset_of!(ThreadContext, shared_base)),
            StateSpace::Local => Some(offset_of!(ThreadContext, local_base)),
            StateSpace::Param if self.unit.function.is_entry => {
                Some(offset_of!(ThreadContext, params_base))
            }
            StateSpace::Param | StateSpace::Generic => {
                return Err(modifiers.error("is not supported"));
            }
        };
        let value = match base {
            None => source,
            Some(at) => {
                let base = self.fixed_field(I64, at);
                if to_space {
                    self.builder.ins().isub(source, base)
                } else {
                    self.builder.ins().iadd(source, base)
                }
            }
        };
        self.write(target, ty, value)
    }

    /// `isspacep`.
    pub(super) fn is_in_space(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let space = match modifiers.space() {
            StateSpace::Global => Space::Global,
            StateSpace::Shared => Space::Shared,
            StateSpace::Local => Space::Local,
            StateSpace::Const => Space::Const,
            StateSpace::Param => Space::Param,
            StateSpace::Generic => return Err(modifiers.error("is not supported")),
        };
        let [target, address] = operands else {
            return Err(modifiers.error("has two operands"));
        };
        let address = self.read(address, Type::U64)?;
        let space = self.int32(u32::from(space as u8));
        let found = self.call_routine(Routine::IsInSpace, &[self.context, address, space]);
        let found = self.resize(found, I8, false);
        self.write(target, Type::Pred, found)
    }

    /// `nanosleep`.
    pub(super) fn sleep(
        &mut self,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        let ty = modifiers.ty()?;
        let [time] = operands else {
            return Err(modifiers.error("has one operand"));
        };
        self.read(time, ty)?;
        let line = self.line_value();
        let status = self.call_routine(Routine::Pause, &[self.context, line]);
        debug_assert_eq!(self.type_of(status), I32);
        self.abort_if(status);
        Ok(())
    }
}

fn watched(modifiers: &Modifiers<'_>) -> bool {
    let words = WATCHED_WORDS.iter();
    words.filter(|word| modifiers.flag(word)).count() > 0
}

fn lanes(modifiers: &Modifiers<'_>) -> u32 {
    let known = |word: &str| match word {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    };
    modifiers.find(known).unwrap_or(1)
}

/// The length of a vector access: up to 16 bytes, and 32 in global memory.
fn vector_bytes(
    modifiers: &Modifiers<'_>,
    space: StateSpace,
    ty: Type,
    lanes: u32,
) -> Result<u32, PtxError> {
    let bytes = ty.bytes() * lanes;
    let most = if space == StateSpace::Global { 32 } else { 16 };
    if bytes <= most {
        return Ok(bytes);
    }
    Err(modifiers.error(&format!("moves {bytes} bytes, at most {most} are possible")))
}

/// `prefetch` and `prefetchu`: advice.
pub(super) fn prefetch(modifiers: &Modifiers<'_>) {
    modifiers.ignore(&["global", "local", "L1", "L2"]);
    modifiers.ignore(CACHE_WORDS);
}
