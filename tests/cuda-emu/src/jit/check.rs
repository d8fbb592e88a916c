//! Checks before every access.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::operand::integer;
use super::routine::Routine;
use super::translate::{Translator, plain};
use crate::engine::{Access, Space};
use crate::exec::checks::Kind;
use crate::exec::{Slot, Slots, ThreadContext};

impl Translator<'_, '_> {
    fn is_aligned(&mut self, address: Value, bytes: u32) -> Value {
        let low = self.builder.ins().band_imm_s(address, i64::from(bytes) - 1);
        self.builder.ins().icmp_imm_s(IntCC::Equal, low, 0)
    }

    fn refuse(&mut self, address: Value, kind: Kind) -> Value {
        let code = self.int32(kind.code());
        let line = self.line_value();
        self.call_routine(Routine::Refuse, &[self.context, address, code, line])
    }

    /// Checks a host address against the region that its slot remembers.
    pub(super) fn check_device(&mut self, address: Value, kind: Kind) {
        let sort = Slots::sort(kind.access, kind.space);
        let accesses = &mut self.accesses[sort as usize];
        let slot = sort * Slots::OF_EACH_SORT + *accesses % Slots::OF_EACH_SORT;
        *accesses += 1;
        let slots = self.fixed_field(I64, offset_of!(ThreadContext, slots));
        let at = slot as usize * size_of::<Slot>();
        let at = |field: usize| i32::try_from(at + field).expect("there are few slots");
        let base_at = at(offset_of!(Slot, base));
        let end_at = at(offset_of!(Slot, end));
        let base = self.builder.ins().load(I64, plain(), slots, base_at);
        let end = self.builder.ins().load(I64, plain(), slots, end_at);
        let last = self.builder.ins().iadd_imm_s(end, -i64::from(kind.bytes));
        let above = IntCC::UnsignedGreaterThanOrEqual;
        let is_above = self.builder.ins().icmp(above, address, base);
        let below = IntCC::UnsignedLessThanOrEqual;
        let is_below = self.builder.ins().icmp(below, address, last);
        let mut fine = self.builder.ins().band(is_above, is_below);
        if kind.bytes > 1 {
            let is_aligned = self.is_aligned(address, kind.bytes);
            fine = self.builder.ins().band(fine, is_aligned);
        }
        self.guard(fine, |this| {
            let code = this.int32(kind.code());
            let slot = this.int32(slot);
            let line = this.line_value();
            this.call_routine(Routine::Resolve, &[this.context, address, code, slot, line])
        });
    }

    /// Checks an offset into memory of which `length` bytes are in use.
    fn check_window(&mut self, offset: Value, length: Value, kind: Kind) {
        let end = self.builder.ins().iadd_imm_s(offset, i64::from(kind.bytes));
        let starts = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThan, offset, length);
        let ends = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThanOrEqual, end, length);
        let mut fine = self.builder.ins().band(starts, ends);
        if kind.bytes > 1 {
            let is_aligned = self.is_aligned(offset, kind.bytes);
            fine = self.builder.ins().band(fine, is_aligned);
        }
        self.guard(fine, |this| this.refuse(offset, kind));
    }

    /// Checks an offset into shared memory; gives the host address.
    pub(super) fn check_shared(&mut self, offset: Value, bytes: u32, access: Access) -> Value {
        let kind = Kind {
            bytes,
            access,
            space: Space::Shared,
        };
        let length = self.fixed_field(I64, offset_of!(ThreadContext, shared_size));
        self.check_window(offset, length, kind);
        let shadow = self.fixed_field(I64, offset_of!(ThreadContext, shadow_base));
        let shadow = self.builder.ins().iadd(shadow, offset);
        let width = bytes.min(8);
        let ty = integer(width * 8);
        let written = self.constant(ty, 0x0101_0101_0101_0101);
        let places = (0..bytes.cast_signed()).step_by(width as usize);
        if access != Access::Write {
            for at in places.clone() {
                let found = self.builder.ins().load(ty, plain(), shadow, at);
                let fine = self.builder.ins().icmp(IntCC::Equal, found, written);
                self.guard(fine, |this| this.refuse(offset, kind));
            }
        }
        if access != Access::Read {
            for at in places {
                self.builder.ins().store(plain(), written, shadow, at);
            }
        }
        let base = self.fixed_field(I64, offset_of!(ThreadContext, shared_base));
        self.builder.ins().iadd(base, offset)
    }

    /// Checks an offset into the local memory of the thread; gives the host address.
    pub(super) fn check_local(&mut self, offset: Value, bytes: u32, access: Access) -> Value {
        let kind = Kind {
            bytes,
            access,
            space: Space::Local,
        };
        let length = self.context_field(I64, offset_of!(ThreadContext, local_top));
        self.check_window(offset, length, kind);
        let base = self.fixed_field(I64, offset_of!(ThreadContext, local_base));
        self.builder.ins().iadd(base, offset)
    }

    /// Checks an offset into the parameters of the kernel; gives the host address.
    pub(super) fn check_param(&mut self, offset: Value, bytes: u32) -> Value {
        let kind = Kind {
            bytes,
            access: Access::Read,
            space: Space::Param,
        };
        let length = crate::ptx::Signature::bytes(&self.unit.function.signature.params);
        let length = self.constant(I64, u64::from(length));
        self.check_window(offset, length, kind);
        self.builder.ins().iadd(self.params, offset)
    }
}
