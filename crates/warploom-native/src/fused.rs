//! Steps of three operands and more.

use super::codes::{self, Code};
use super::emit::{EQ, LE, LT, Maker, NE};
use super::encode::{MASK, Place};
use super::program::{Bin, Value};

/// Products and sums rounded once: the sum takes the place of the summand, or of a factor.
pub(crate) const FMA: [Code; 2] = [codes::VFMADD231PS, codes::VFMADD213PS];
pub(crate) const FMS: [Code; 2] = [codes::VFMSUB231PS, codes::VFMSUB213PS];
pub(crate) const FNMA: [Code; 2] = [codes::VFNMADD231PS, codes::VFNMADD213PS];
pub(crate) const FMA_DOUBLE: [Code; 2] = [codes::VFMADD231PD, codes::VFMADD213PD];

/// The table of `(mask & yes) | (!mask & no)`.
const EITHER: u8 = 0xca;

/// What makes the opposite of a comparison's predicate.
const OPPOSITE: u8 = 4;

impl Maker<'_> {
    pub(crate) fn fused(&mut self, at: u32, [a, b, c]: [Value; 3], [summand, product]: [Code; 2]) {
        // The sum takes the place of an operand that is not needed afterwards.
        if let Some(sum) = self.at.dying(c, at) {
            let (a, b) = if self.at.is_near(b) { (b, a) } else { (a, b) };
            let left = self.at.in_register(a);
            let right = self.at.anywhere(b);
            if self.at.dying(c, at) == Some(sum) {
                self.at.read(at);
                self.at.result_in(at, sum);
                self.op(summand, sum, left, right);
                return;
            }
        }
        let (a, b) = if self.at.dying(b, at).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        let factor = self.at.in_register(a);
        let other = self.at.in_register(b);
        let rest = self.at.anywhere(c);
        if self.at.dying(a, at) == Some(factor) {
            self.at.read(at);
            self.at.result_in(at, factor);
            self.op(product, factor, other, rest);
        } else {
            // Nothing may have the result's register before it is read.
            let to = self.at.result(at);
            self.op(codes::VMOVUPS, to, 0, Place::Reg(factor));
            self.op(product, to, other, rest);
            self.at.read(at);
        }
    }

    pub(crate) fn select(&mut self, at: u32, cond: Value, yes: Value, no: Value) {
        let mask = self.at.in_register(cond);
        if !self.is_512() {
            let other = self.at.in_register(no);
            let chosen = self.at.anywhere(yes);
            self.at.read(at);
            let to = self.at.result(at);
            self.at
                .bytes
                .op_with(codes::VBLENDVPS, to, other, chosen, mask << 4);
            return;
        }
        let chosen = self.at.in_register(yes);
        let other = self.at.anywhere(no);
        if self.at.dying(cond, at) == Some(mask) && cond != yes && cond != no {
            self.at.read(at);
            self.at.result_in(at, mask);
            self.at
                .bytes
                .op_with(codes::VPTERNLOGD, mask, chosen, other, EITHER);
        } else {
            let to = self.at.result(at);
            self.op(codes::VMOVUPS, to, 0, Place::Reg(mask));
            self.at
                .bytes
                .op_with(codes::VPTERNLOGD, to, chosen, other, EITHER);
            self.at.read(at);
        }
    }

    /// With AVX-512 only, whose comparisons tell in a register of masks what is to be chosen.
    pub(crate) fn select_if(
        &mut self,
        at: u32,
        how: Bin,
        [a, b]: [Value; 2],
        [yes, no]: [Value; 2],
    ) {
        let (code, how) = match how {
            Bin::LtF => (codes::VCMPPS, LT),
            Bin::LeF => (codes::VCMPPS, LE),
            Bin::EqF => (codes::VCMPPS, EQ),
            Bin::NeF => (codes::VCMPPS, NE),
            Bin::LtI => (codes::VPCMPD, LT),
            Bin::LeI => (codes::VPCMPD, LE),
            Bin::LtU => (codes::VPCMPUD, LT),
            Bin::LeU => (codes::VPCMPUD, LE),
            Bin::EqI => (codes::VPCMPD, EQ),
            Bin::NeI => (codes::VPCMPD, NE),
            _ => unreachable!("only comparisons tell what is to be chosen"),
        };
        let left = self.at.in_register(a);
        let right = self.at.anywhere(b);
        // The one that is not chosen by the mask must be in a register.
        let turned = self.at.is_near(yes) && !self.at.is_near(no);
        let (how, yes, no) = if turned {
            (how ^ OPPOSITE, no, yes)
        } else {
            (how, yes, no)
        };
        let bytes = &mut self.at.bytes;
        bytes.op_with(code, MASK, left, right, how);
        let other = self.at.in_register(no);
        let chosen = self.at.anywhere(yes);
        self.at.read(at);
        let to = self.at.result(at);
        self.at
            .bytes
            .evex_where(codes::VBLENDMPS, to, other, chosen, 64, MASK);
    }
}
