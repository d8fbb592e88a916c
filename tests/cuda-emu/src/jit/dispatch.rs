//! Which opcode is translated where.

use super::arithmetic::Integer;
use super::bits::Logic;
use super::memory::prefetch;
use super::reals::Real;
use super::translate::Translator;
use super::video::is_video;
use crate::math::Function;
use crate::ptx::{Modifiers, Operand, PtxError};

impl Translator<'_, '_> {
    pub(super) fn dispatch(
        &mut self,
        opcode: &str,
        modifiers: &Modifiers<'_>,
        operands: &[Operand],
    ) -> Result<(), PtxError> {
        match opcode {
            "mov" => self.mov(modifiers, operands),
            "ld" | "ldu" => self.load(modifiers, operands),
            "st" => self.store(modifiers, operands),
            "cvta" => self.convert_address(modifiers, operands),
            "isspacep" => self.is_in_space(modifiers, operands),
            "prefetch" | "prefetchu" => {
                prefetch(modifiers);
                Ok(())
            }
            "atom" => self.atomic(modifiers, operands),
            "red" => self.reduction(modifiers, operands),
            "call" => self.call(modifiers, operands),

            "add" => self.add(modifiers, operands, Real::Add, Integer::Add),
            "sub" => self.add(modifiers, operands, Real::Sub, Integer::Sub),
            "addc" | "subc" => self.add_with_carry(opcode == "subc", modifiers, operands),
            "mul" => self.multiply(modifiers, operands),
            "mad" => self.multiply_add(modifiers, operands),
            "madc" => self.multiply_add_with_carry(modifiers, operands),
            "mul24" | "mad24" => self.multiply_24(opcode == "mad24", modifiers, operands),
            "fma" => self.fused(modifiers, operands),
            "div" => self.divide(modifiers, operands),
            "rem" => self.remainder(modifiers, operands),
            "min" => self.extreme(modifiers, operands, true),
            "max" => self.extreme(modifiers, operands, false),
            "abs" => self.absolute(modifiers, operands),
            "neg" => self.negate(modifiers, operands),
            "sad" => self.sum_of_differences(modifiers, operands),
            "dp4a" | "dp2a" => self.dot_product(opcode == "dp2a", modifiers, operands),

            "rcp" => self.reciprocal(modifiers, operands),
            "sqrt" => self.square_root(modifiers, operands),
            "rsqrt" => self.function(Function::Rsqrt, modifiers, operands),
            "sin" => self.function(Function::Sin, modifiers, operands),
            "cos" => self.function(Function::Cos, modifiers, operands),
            "lg2" => self.function(Function::Lg2, modifiers, operands),
            "ex2" => self.function(Function::Ex2, modifiers, operands),
            "tanh" => self.function(Function::Tanh, modifiers, operands),
            "copysign" => self.copy_sign(modifiers, operands),
            "testp" => self.test_property(modifiers, operands),

            "and" => self.logic(Logic::And, modifiers, operands),
            "or" => self.logic(Logic::Or, modifiers, operands),
            "xor" => self.logic(Logic::Xor, modifiers, operands),
            "not" => self.invert(modifiers, operands),
            "cnot" => self.logical_not(modifiers, operands),
            "shl" | "shr" => self.shift(opcode == "shl", modifiers, operands),
            "shf" => self.funnel_shift(modifiers, operands),
            "bfe" => self.extract_field(modifiers, operands),
            "bfi" => self.insert_field(modifiers, operands),
            "bfind" => self.find_top(modifiers, operands),
            "brev" => self.reverse(modifiers, operands),
            "popc" | "clz" => self.count(opcode == "popc", modifiers, operands),
            "prmt" => self.permute(modifiers, operands),
            "lop3" => self.lookup(modifiers, operands),
            "fns" => self.find_set(modifiers, operands),

            "setp" => self.set_predicate(modifiers, operands),
            "set" => self.set(modifiers, operands),
            "selp" => self.select(modifiers, operands),
            "slct" => self.select_by_sign(modifiers, operands),
            "cvt" => self.convert(modifiers, operands),

            "bar" | "barrier" => self.barrier(modifiers, operands),
            "membar" | "fence" => {
                self.fence(modifiers);
                Ok(())
            }
            "shfl" => self.shuffle(modifiers, operands),
            "vote" => self.vote(modifiers, operands),
            "match" => self.match_lanes(modifiers, operands),
            "activemask" => self.active_mask(modifiers, operands),
            "redux" => self.reduce_lanes(modifiers, operands),
            "elect" => self.elect(modifiers, operands),
            "nanosleep" => self.sleep(modifiers, operands),
            // Counts an event of a profiler that is not there.
            "pmevent" => {
                modifiers.ignore(&["mask"]);
                Ok(())
            }
            _ if is_video(opcode) => self.video(opcode, modifiers, operands),
            _ => Err(modifiers.error("is not supported")),
        }
    }
}
