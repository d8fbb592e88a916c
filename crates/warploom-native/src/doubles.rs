//! Real numbers of 64 bits, half a vector of pixels at a time.

use super::codes::{self, Code};
use super::emit::{
    self, EQ, LE, LT, MAGNITUDE_64, Maker, NE, NOT_A_NUMBER, SIGN, SIGN_64, TWO_31_64,
};
use super::encode::{MASK, Place, Reg};
use super::program::{BinD, Half, Kind, UnD, Value};

impl Maker<'_> {
    /// The half of a vector, whole, with lanes of 32 bits: itself, or the upper half in `spare`.
    fn half(&mut self, from: Reg, half: Half, spare: Reg) -> Reg {
        if half == Half::Low {
            return from;
        }
        let code = if self.is_512() {
            codes::VEXTRACTI64X4
        } else {
            codes::VEXTRACTI128
        };
        self.at.bytes.op_with(code, from, 0, Place::Reg(spare), 1);
        spare
    }

    pub(crate) fn widen(&mut self, at: u32, from: Kind, half: Half, value: Value) {
        let whole = self.at.in_register(value);
        let spare = self.at.spare(0);
        let mut part = self.half(whole, half, spare);
        if from == Kind::Unsigned {
            // As if it were 2^31 less, which makes it an `i32`.
            self.op(codes::VPXOR, spare, part, emit::constant(SIGN));
            part = spare;
        }
        self.at.read(at);
        let to = self.at.result(at);
        let code = match from {
            Kind::Float => codes::VCVTPS2PD,
            Kind::Int | Kind::Unsigned => codes::VCVTDQ2PD,
            Kind::Truth => codes::VPMOVSXDQ,
        };
        self.op(code, to, 0, Place::Reg(part));
        if from == Kind::Unsigned {
            self.op(codes::VADDPD, to, to, emit::double(TWO_31_64));
        }
    }

    pub(crate) fn narrow(&mut self, at: u32, to: Kind, low: Value, high: Value) {
        let halves = [low, high].map(|value| self.at.in_register(value));
        let spares = [0, 1].map(|which| self.at.spare(which));
        if to == Kind::Truth && !self.is_512() {
            self.at.read(at);
            let to = self.at.result(at);
            let [low, high] = halves;
            // Of every truth one half; then the quarters into their order.
            let bytes = &mut self.at.bytes;
            bytes.op_with(codes::VSHUFPS, spares[0], low, Place::Reg(high), 0x88);
            bytes.op_with(codes::VPERMQ, to, 0, Place::Reg(spares[0]), 0xd8);
            return;
        }
        for (half, spare) in halves.into_iter().zip(spares) {
            match to {
                Kind::Float => self.op(codes::VCVTPD2PS, spare, 0, Place::Reg(half)),
                Kind::Int => self.op(codes::VCVTTPD2DQ, spare, 0, Place::Reg(half)),
                Kind::Truth => self.op(codes::VPMOVQD, half, 0, Place::Reg(spare)),
                Kind::Unsigned => {
                    // Without what is behind the point, so that 2^31 less is as exact.
                    let bytes = &mut self.at.bytes;
                    bytes.op_with(codes::VROUNDPD, spare, 0, Place::Reg(half), 9);
                    bytes.op(codes::VSUBPD, spare, spare, emit::double(TWO_31_64));
                    bytes.op(codes::VCVTTPD2DQ, spare, 0, Place::Reg(spare));
                }
            }
        }
        self.at.read(at);
        let result = self.at.result(at);
        let join = if self.is_512() {
            codes::VINSERTI64X4
        } else {
            codes::VINSERTI128
        };
        let [low, high] = spares;
        self.at
            .bytes
            .op_with(join, result, low, Place::Reg(high), 1);
        if to == Kind::Unsigned {
            self.op(codes::VPXOR, result, result, emit::constant(SIGN));
        }
    }

    pub(crate) fn unary_double(&mut self, at: u32, op: UnD, a: Value) {
        match op {
            UnD::Neg => self.with_constant(at, codes::VPXOR, a, emit::double(SIGN_64)),
            UnD::Abs => self.with_constant(at, codes::VPAND, a, emit::double(MAGNITUDE_64)),
            UnD::Sqrt => self.simple(at, codes::VSQRTPD, a, None),
            // Eight: whether the result is exact is of no interest.
            UnD::Round => self.simple(at, codes::VROUNDPD, a, Some(8)),
            UnD::Floor => self.simple(at, codes::VROUNDPD, a, Some(9)),
            UnD::Ceil => self.simple(at, codes::VROUNDPD, a, Some(10)),
            UnD::IsNan => {
                let from = self.at.in_register(a);
                self.compare_doubles(at, from, Place::Reg(from), NOT_A_NUMBER);
            }
        }
    }

    pub(crate) fn binary_double(&mut self, at: u32, op: BinD, a: Value, b: Value) {
        let code: Code = match op {
            BinD::Add => codes::VADDPD,
            BinD::Sub => codes::VSUBPD,
            BinD::Mul => codes::VMULPD,
            BinD::Div => codes::VDIVPD,
            // The processor's minimum is its second operand unless the first is less.
            BinD::Min => return self.plain(at, codes::VMINPD, b, a),
            BinD::Max => return self.plain(at, codes::VMAXPD, b, a),
            BinD::Lt | BinD::Le | BinD::Eq | BinD::Ne => {
                let how = match op {
                    BinD::Lt => LT,
                    BinD::Le => LE,
                    BinD::Eq => EQ,
                    _ => NE,
                };
                let left = self.at.in_register(a);
                let right = self.at.anywhere(b);
                return self.compare_doubles(at, left, right, how);
            }
        };
        self.plain(at, code, a, b);
    }

    fn compare_doubles(&mut self, at: u32, left: Reg, right: Place, how: u8) {
        self.at.read(at);
        let to = self.at.result(at);
        if self.is_512() {
            self.at.bytes.op_with(codes::VCMPPD, MASK, left, right, how);
            self.op(codes::VPMOVM2Q, to, 0, Place::Reg(MASK));
        } else {
            self.at.bytes.op_with(codes::VCMPPD, to, left, right, how);
        }
    }
}
