//! Operations on each byte of a word.
//!
//! Masks are bytes, and four of them to a lane are four times as many at once as one to a lane.

use super::codes::{self, Code};
use super::emit::{EQ, LE, LT, Maker, NE};
use super::encode::{MASK, Place};
use super::program::{BinB, Value};

impl Maker<'_> {
    pub(crate) fn bytewise(&mut self, at: u32, op: BinB, a: Value, b: Value) {
        match op {
            BinB::Add => self.plain(at, codes::VPADDB, a, b),
            BinB::Sub => self.plain(at, codes::VPSUBB, a, b),
            BinB::Min => self.plain(at, codes::VPMINUB, a, b),
            BinB::Max => self.plain(at, codes::VPMAXUB, a, b),
            BinB::Eq if self.is_512() => self.compare_bytes(at, EQ, a, b),
            BinB::Ne if self.is_512() => self.compare_bytes(at, NE, a, b),
            BinB::Lt if self.is_512() => self.compare_bytes(at, LT, a, b),
            BinB::Le if self.is_512() => self.compare_bytes(at, LE, a, b),
            // There is "equal"; the rest is made of it.
            BinB::Eq => self.plain(at, codes::VPCMPEQB, a, b),
            BinB::Ne => {
                self.plain(at, codes::VPCMPEQB, a, b);
                self.turn(at);
            }
            BinB::Le => self.is_left(at, codes::VPMINUB, a, b),
            BinB::Lt => {
                self.is_left(at, codes::VPMAXUB, a, b);
                self.turn(at);
            }
        }
    }

    fn compare_bytes(&mut self, at: u32, how: u8, a: Value, b: Value) {
        let left = self.at.in_register(a);
        let right = self.at.anywhere(b);
        self.at.read(at);
        let to = self.at.result(at);
        let bytes = &mut self.at.bytes;
        bytes.op_with(codes::VPCMPUB, MASK, left, right, how);
        bytes.op(codes::VPMOVM2B, to, 0, Place::Reg(MASK));
    }

    /// Is the left one what `code` makes of both?
    fn is_left(&mut self, at: u32, code: Code, a: Value, b: Value) {
        let first = self.at.spare(0);
        let left = self.at.in_register(a);
        let right = self.at.anywhere(b);
        self.op(code, first, left, right);
        self.at.read(at);
        let to = self.at.result(at);
        self.op(codes::VPCMPEQB, to, first, Place::Reg(left));
    }
}
