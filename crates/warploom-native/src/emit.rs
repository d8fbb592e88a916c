//! From instructions of a routine to those of the processor.

use super::codes::{self, Code};
use super::encode::{Bytes, MASK, Place, Reg};
use super::fused::{FMA, FMA_DOUBLE, FMS, FNMA};
use super::merge::{merged, twins};
use super::program::{Bin, Element, Ins, Un, Value};
use super::registers::{Registers, SPARE, load_bases};
use super::routine::Width;

/// Bytes of a number in memory: as wide as the widest vector.
pub(crate) const SLOT: u32 = 64;

/// Bits that instructions need, spread over slots at the beginning of the memory.
pub(crate) const CONSTANTS: [u32; 11] = [
    SIGN, MAGNITUDE, 1, ONE, ALL, 0, SIXTEEN, 0xff, 0xffff, TWO_16, TWO_31,
];
pub(crate) const SIGN: u32 = 0x8000_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;
const ONE: u32 = 0x3f80_0000;
const ALL: u32 = u32::MAX;
const SIXTEEN: u32 = 16;
const TWO_16: u32 = 0x4780_0000;
const TWO_31: u32 = 0x4f00_0000;

/// The same with 64 bits, in the slots behind.
pub(crate) const DOUBLES: [u64; 3] = [SIGN_64, MAGNITUDE_64, TWO_31_64];
pub(crate) const SIGN_64: u64 = 1 << 63;
pub(crate) const MAGNITUDE_64: u64 = SIGN_64 - 1;
pub(crate) const TWO_31_64: u64 = 0x41e0_0000_0000_0000;

/// The slot of the positions of the first pixels along the row.
pub(crate) const ALONG: usize = CONSTANTS.len() + DOUBLES.len();

/// Where a number is.
pub(crate) fn number_at(number: u16) -> u32 {
    (ALONG as u32 + 1 + u32::from(number)) * SLOT
}

pub(crate) fn constant(bits: u32) -> Place {
    let at = CONSTANTS.iter().position(|known| *known == bits);
    Place::Memory(at.expect("it is one of them") as u32 * SLOT)
}

pub(crate) fn double(bits: u64) -> Place {
    let at = DOUBLES.iter().position(|known| *known == bits);
    let at = CONSTANTS.len() + at.expect("it is one of them");
    Place::Memory(at as u32 * SLOT)
}

// Predicates of comparisons, of real numbers and of whole ones.
pub(crate) const EQ: u8 = 0;
pub(crate) const LT: u8 = 1;
pub(crate) const LE: u8 = 2;
pub(crate) const NOT_A_NUMBER: u8 = 3;
pub(crate) const NE: u8 = 4;
const GE: u8 = 13;

/// Shorter expressions wait for memory rather than for their own results.
const WORTH_TWO: usize = 24;
/// Where so many rows are read again and again, registers are for them.
const BUSY_ROWS: usize = 4;
/// Operands of an instruction, and its result.
const AT_ONCE: usize = 5;
/// Expressions with so many steps at a time that do not wait for each other keep the processor busy as they are.
const MANY_AT_ONCE: usize = 8;

/// A routine as it is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) code: &'a [Ins],
    pub(crate) width: Width,
    pub(crate) numbers: u16,
    pub(crate) rows: usize,
    pub(crate) outs: usize,
    /// Do its results go past the caches, or into them?
    pub(crate) past: bool,
}

/// The bytes of a routine, and of the memory it needs.
pub(crate) fn emit(order: Order<'_>) -> (Vec<u8>, usize) {
    let code = merged(order.code, order.width);
    let order = Order {
        code: &code,
        ..order
    };
    let twins = twins(&code);
    let two = Order {
        code: &twins,
        ..order
    };
    let lanes = order.width.lanes() as u8;
    let pointers = order.rows + order.outs;
    let is_long = waits_for_itself(&code) && !code.contains(&Ins::Along);
    // Where each step waits for the one before it, those of the next pixels are done meanwhile.
    let pair = is_long.then(|| body(two, 2)).filter(|it| !it.has_spilled());
    let one = body(order, 1);
    let mut all = Bytes::new(order.width);
    let memory = one.memory().max(pair.as_ref().map_or(0, Registers::memory));
    load_bases(&mut all, pointers);
    if let Some(pair) = pair {
        all.begin_pairs(lanes, &pair.prologue, &pair.bytes.all);
        all.rest_of_pairs(lanes, &one.prologue, &one.bytes.all);
    } else {
        all.begin(lanes, &one.prologue, &one.bytes.all);
    }
    all.finish(order.past);
    (all.all, memory as usize)
}

/// Are its steps many, most of which wait for one before them?
fn waits_for_itself(code: &[Ins]) -> bool {
    let mut depths: Vec<usize> = Vec::with_capacity(code.len());
    let (mut steps, mut deepest) = (0, 0);
    for ins in code {
        let step = usize::from(!ins.rests_in_memory() && !matches!(ins, Ins::Soon { .. }));
        let before = ins.operands().map(|value| depths[value as usize]).max();
        depths.push(before.unwrap_or(0) + step);
        deepest = deepest.max(before.unwrap_or(0) + step);
        steps += step;
    }
    steps >= WORTH_TWO && steps < MANY_AT_ONCE * deepest
}

/// The steps for one pixel of each lane, or for `vectors` of them; numbers that need not be read again
/// and again are in registers.
fn body(order: Order<'_>, vectors: usize) -> Registers<'_> {
    // Once to see how many registers are left, and again with something in them.
    let alone = write(order, vectors, Vec::new(), false);
    let mut uses = vec![0_u32; order.code.len()];
    for value in order.code.iter().flat_map(|ins| ins.operands()) {
        uses[value as usize] += 1;
    }
    let mut numbers = vec![(0_u32, 0_u16); usize::from(order.numbers)];
    let mut busy_rows = 0;
    for (ins, uses) in order.code.iter().zip(uses) {
        match *ins {
            Ins::Number(number) => {
                numbers[usize::from(number)] = (numbers[usize::from(number)].0 + uses, number);
            }
            Ins::Row { .. } | Ins::Beside { .. } => busy_rows += usize::from(uses > 2),
            _ => {}
        }
    }
    let has_busy_rows = busy_rows >= BUSY_ROWS * vectors;
    numbers.retain(|(count, _)| *count > 0);
    numbers.sort_unstable_by_key(|&(count, number)| (std::cmp::Reverse(count), number));
    let mut room = alone.idle();
    if has_busy_rows {
        // Operands that stay want a register each, which is not seen yet.
        room = room.min(order.width.registers() - SPARE - AT_ONCE);
        if numbers.len() > room {
            // Each number's turn comes once; rows are needed again soon.
            numbers.clear();
        }
    }
    numbers.truncate(room);
    let resident: Vec<u16> = numbers.into_iter().map(|(_, number)| number).collect();
    if resident.is_empty() && !has_busy_rows {
        return alone;
    }
    write(order, vectors, resident, has_busy_rows)
}

/// With `resident` numbers in registers for the whole loop, and if it `holds` what is read several times, that as long
/// as nothing else wants its register.
fn write(order: Order<'_>, vectors: usize, resident: Vec<u16>, holds: bool) -> Registers<'_> {
    let Order { code, width, .. } = order;
    let memory = number_at(order.numbers);
    let mut maker = Maker {
        at: Registers::new(code, width, vectors, memory, order.rows, resident, holds),
        width,
        past: order.past,
    };
    maker.at.know_bases(order.rows + order.outs);
    for (at, ins) in (0..).zip(code) {
        if !ins.rests_in_memory() && maker.at.is_needed(at) {
            maker.instruction(at, *ins);
            maker.at.end(at);
        }
    }
    maker.at
}

pub(crate) struct Maker<'a> {
    pub(crate) at: Registers<'a>,
    width: Width,
    past: bool,
}

impl Maker<'_> {
    pub(crate) fn is_512(&self) -> bool {
        self.width == Width::Bits512
    }

    /// How a whole vector is written.
    fn store(&self) -> Code {
        if self.past {
            codes::VMOVNTPS
        } else {
            codes::VMOVUPS_STORE
        }
    }

    pub(crate) fn op(&mut self, code: Code, to: Reg, a: Reg, b: Place) {
        self.at.bytes.op(code, to, a, b);
    }

    fn instruction(&mut self, at: u32, ins: Ins) {
        match ins {
            Ins::Number(_) | Ins::Beside { .. } => unreachable!("it rests in memory"),
            Ins::Row { row, element } => {
                let to = self.at.result(at);
                let from = self.at.input(row, element, at);
                let code = match element {
                    Element::U8 => codes::VPMOVZXBD,
                    Element::U16 => codes::VPMOVZXWD,
                    Element::I16 => codes::VPMOVSXWD,
                    Element::Word => codes::VMOVUPS,
                    Element::Double => unreachable!("it is read by halves"),
                };
                self.op(code, to, 0, from);
            }
            Ins::Soon { row, element } => {
                let from = self.at.input(row, element, at);
                self.at.bytes.fetch(from);
            }
            Ins::Along => {
                let to = self.at.result(at);
                if self.is_512() {
                    self.op(codes::VPBROADCASTD_GENERAL, to, 0, Place::Reg(0));
                } else {
                    self.at.bytes.done_into(to);
                    self.op(codes::VPBROADCASTD, to, 0, Place::Reg(to));
                }
                self.op(codes::VPADDD, to, to, Place::Memory(ALONG as u32 * SLOT));
            }
            Ins::Un(op, a) => self.unary(at, op, a),
            Ins::Bin(op, a, b) => self.binary(at, op, a, b),
            Ins::Fma(a, b, c) => self.fused(at, [a, b, c], FMA),
            Ins::Fms(a, b, c) => self.fused(at, [a, b, c], FMS),
            Ins::Fnma(a, b, c) => self.fused(at, [a, b, c], FNMA),
            Ins::FmaD(a, b, c) => self.fused(at, [a, b, c], FMA_DOUBLE),
            Ins::SelectIf(how, [a, b], [yes, no]) => self.select_if(at, how, [a, b], [yes, no]),
            Ins::Select(cond, yes, no) => self.select(at, cond, yes, no),
            Ins::Put {
                out,
                element,
                value,
            } => self.put(at, out, element, value),
            Ins::Doubles { .. } => unreachable!("rows of doubles rest in memory"),
            Ins::Widen { from, half, value } => self.widen(at, from, half, value),
            Ins::Narrow { to, low, high } => self.narrow(at, to, low, high),
            Ins::UnD(op, a) => self.unary_double(at, op, a),
            Ins::BinD(op, a, b) => self.binary_double(at, op, a, b),
            Ins::PutDoubles { out, half, value } => {
                let from = self.at.in_register(value);
                let to = self.at.half_output(out, half, at);
                self.op(self.store(), from, 0, to);
                self.at.read(at);
            }
        }
    }

    /// `to = code(a)`, where `a` may be in memory.
    pub(crate) fn simple(&mut self, at: u32, code: Code, a: Value, number: Option<u8>) {
        let from = self.at.anywhere(a);
        self.at.read(at);
        let to = self.at.result(at);
        self.op(code, to, 0, from);
        self.at.bytes.all.extend(number);
    }

    /// `to = code(a, constant)`.
    pub(crate) fn with_constant(&mut self, at: u32, code: Code, a: Value, constant: Place) {
        let from = self.at.in_register(a);
        self.at.read(at);
        let to = self.at.result(at);
        self.op(code, to, from, constant);
    }

    fn unary(&mut self, at: u32, op: Un, a: Value) {
        let [first, second] = [0, 1].map(|which| self.at.spare(which));
        match op {
            Un::NegF => self.with_constant(at, codes::VPXOR, a, constant(SIGN)),
            Un::AbsF => self.with_constant(at, codes::VPAND, a, constant(MAGNITUDE)),
            Un::Not => self.with_constant(at, codes::VPXOR, a, constant(ALL)),
            Un::TruthToInt => self.with_constant(at, codes::VPAND, a, constant(1)),
            Un::TruthToFloat => self.with_constant(at, codes::VPAND, a, constant(ONE)),
            Un::Sqrt => self.simple(at, codes::VSQRTPS, a, None),
            // Eight: whether the result is exact is of no interest.
            Un::Round => self.simple(at, codes::VROUNDPS, a, Some(8)),
            Un::Floor => self.simple(at, codes::VROUNDPS, a, Some(9)),
            Un::Ceil => self.simple(at, codes::VROUNDPS, a, Some(10)),
            Un::AbsI => self.simple(at, codes::VPABSD, a, None),
            Un::IntToFloat => self.simple(at, codes::VCVTDQ2PS, a, None),
            Un::FloatToInt => self.simple(at, codes::VCVTTPS2DQ, a, None),
            Un::IsNan => {
                let from = self.at.in_register(a);
                self.compare_reals(at, from, Place::Reg(from), NOT_A_NUMBER);
            }
            Un::NegI => {
                let from = self.at.anywhere(a);
                self.at.read(at);
                let to = self.at.result(at);
                self.op(codes::VPXOR, first, first, Place::Reg(first));
                self.op(codes::VPSUBD, to, first, from);
            }
            Un::UnsignedToFloat if self.is_512() => self.simple(at, codes::VCVTUDQ2PS, a, None),
            Un::UnsignedToFloat => {
                // Both halves are exact, so that the sum is rounded once.
                let from = self.at.in_register(a);
                self.op(codes::VPAND, first, from, constant(0xffff));
                self.op(codes::VPSRLVD, second, from, constant(SIXTEEN));
                self.op(codes::VCVTDQ2PS, first, 0, Place::Reg(first));
                self.op(codes::VCVTDQ2PS, second, 0, Place::Reg(second));
                self.op(codes::VFMADD231PS, first, second, constant(TWO_16));
                self.at.read(at);
                let to = self.at.result(at);
                self.op(codes::VMOVUPS, to, 0, Place::Reg(first));
            }
            Un::FloatToUnsigned => {
                let from = self.at.in_register(a);
                self.op(codes::VMAXPS, first, from, constant(0));
                self.at.read(at);
                let to = self.at.result(at);
                if self.is_512() {
                    self.op(codes::VCVTTPS2UDQ, to, 0, Place::Reg(first));
                    return;
                }
                // What has the highest bit is converted without it.
                let bytes = &mut self.at.bytes;
                bytes.op_with(codes::VCMPPS, second, first, constant(TWO_31), GE);
                bytes.op(codes::VPAND, to, second, constant(TWO_31));
                bytes.op(codes::VSUBPS, to, first, Place::Reg(to));
                bytes.op_with(codes::VCMPPS, first, to, constant(TWO_31), GE);
                bytes.op(codes::VPAND, second, second, constant(SIGN));
                bytes.op(codes::VCVTTPS2DQ, to, 0, Place::Reg(to));
                bytes.op(codes::VPXOR, to, to, Place::Reg(second));
                bytes.op(codes::VPOR, to, to, Place::Reg(first));
            }
        }
    }

    fn binary(&mut self, at: u32, op: Bin, a: Value, b: Value) {
        // The left one must be in a register.
        let (a, b) = if op.commutes() && self.at.is_near(b) && !self.at.is_near(a) {
            (b, a)
        } else {
            (a, b)
        };
        let code = match op {
            Bin::AddF => codes::VADDPS,
            Bin::SubF => codes::VSUBPS,
            Bin::MulF => codes::VMULPS,
            Bin::DivF => codes::VDIVPS,
            Bin::AddI => codes::VPADDD,
            Bin::SubI => codes::VPSUBD,
            Bin::MulI => codes::VPMULLD,
            Bin::MinI => codes::VPMINSD,
            Bin::MaxI => codes::VPMAXSD,
            Bin::MinU => codes::VPMINUD,
            Bin::MaxU => codes::VPMAXUD,
            Bin::And => codes::VPAND,
            Bin::Or => codes::VPOR,
            Bin::Xor => codes::VPXOR,
            Bin::Shl => codes::VPSLLVD,
            Bin::ShrI => codes::VPSRAVD,
            Bin::ShrU => codes::VPSRLVD,
            Bin::Bytes(op) => return self.bytewise(at, op, a, b),
            // The processor's minimum is its second operand unless the first is less.
            Bin::MinF => return self.plain(at, codes::VMINPS, b, a),
            Bin::MaxF => return self.plain(at, codes::VMAXPS, b, a),
            Bin::LtF | Bin::LeF | Bin::EqF | Bin::NeF => {
                let how = match op {
                    Bin::LtF => LT,
                    Bin::LeF => LE,
                    Bin::EqF => EQ,
                    _ => NE,
                };
                let left = self.at.in_register(a);
                let right = self.at.anywhere(b);
                return self.compare_reals(at, left, right, how);
            }
            Bin::LtI | Bin::LeI | Bin::LtU | Bin::LeU | Bin::EqI | Bin::NeI => {
                return self.compare_whole(at, op, a, b);
            }
        };
        self.plain(at, code, a, b);
    }

    /// `to = code(a, b)`, where `b` may be in memory.
    pub(crate) fn plain(&mut self, at: u32, code: Code, a: Value, b: Value) {
        let left = self.at.in_register(a);
        let right = self.at.anywhere(b);
        self.at.read(at);
        let to = self.at.result(at);
        self.op(code, to, left, right);
    }

    /// The truth that AVX-512 has as bits in a register of masks.
    fn spread_mask(&mut self, to: Reg) {
        self.op(codes::VPMOVM2D, to, 0, Place::Reg(MASK));
    }

    fn compare_reals(&mut self, at: u32, left: Reg, right: Place, how: u8) {
        self.at.read(at);
        let to = self.at.result(at);
        if self.is_512() {
            self.at.bytes.op_with(codes::VCMPPS, MASK, left, right, how);
            self.spread_mask(to);
        } else {
            self.at.bytes.op_with(codes::VCMPPS, to, left, right, how);
        }
    }

    fn compare_whole(&mut self, at: u32, op: Bin, a: Value, b: Value) {
        if self.is_512() {
            let (code, how) = match op {
                Bin::LtI => (codes::VPCMPD, LT),
                Bin::LeI => (codes::VPCMPD, LE),
                Bin::LtU => (codes::VPCMPUD, LT),
                Bin::LeU => (codes::VPCMPUD, LE),
                Bin::EqI => (codes::VPCMPD, EQ),
                _ => (codes::VPCMPD, NE),
            };
            let left = self.at.in_register(a);
            let right = self.at.anywhere(b);
            self.at.read(at);
            let to = self.at.result(at);
            self.at.bytes.op_with(code, MASK, left, right, how);
            self.spread_mask(to);
            return;
        }
        // There are "equal" and "greater, with sign"; the rest is made of them.
        let first = self.at.spare(0);
        match op {
            Bin::EqI | Bin::NeI => self.plain(at, codes::VPCMPEQD, a, b),
            Bin::LtI => self.plain(at, codes::VPCMPGTD, b, a),
            Bin::LeI => self.plain(at, codes::VPCMPGTD, a, b),
            _ => {
                let (left, right) = (self.at.in_register(a), self.at.in_register(b));
                self.op(codes::VPMINUD, first, left, Place::Reg(right));
                self.at.read(at);
                let to = self.at.result(at);
                let lesser = if op == Bin::LeU { left } else { right };
                self.op(codes::VPCMPEQD, to, first, Place::Reg(lesser));
            }
        }
        if matches!(op, Bin::NeI | Bin::LeI | Bin::LtU) {
            self.turn(at);
        }
    }

    /// Turns every bit of the result of the instruction `at`.
    pub(crate) fn turn(&mut self, at: u32) {
        let Place::Reg(to) = self.at.anywhere(at) else {
            unreachable!("a result is in a register")
        };
        self.op(codes::VPXOR, to, to, constant(ALL));
    }

    fn put(&mut self, at: u32, out: u8, element: Element, value: Value) {
        let from = self.at.in_register(value);
        let to = self.at.output(out, element, at);
        let [first, second] = [0, 1].map(|which| self.at.spare(which));
        match element {
            Element::Word => self.op(self.store(), from, 0, to),
            _ if self.is_512() && self.past => {
                let (code, length) = match element {
                    Element::U8 => (codes::VPMOVDB, 16),
                    _ => (codes::VPMOVDW, 32),
                };
                self.op(code, from, 0, Place::Reg(first));
                self.at.bytes.evex(codes::VMOVNTDQ, first, 0, to, length);
            }
            Element::U8 if self.is_512() => self.op(codes::VPMOVDB, from, 0, to),
            _ if self.is_512() => self.op(codes::VPMOVDW, from, 0, to),
            _ => {
                let all = if element == Element::U8 { 0xff } else { 0xffff };
                self.op(codes::VPAND, first, from, constant(all));
                let bytes = &mut self.at.bytes;
                bytes.vex(codes::VEXTRACTI128, first, 0, Place::Reg(second), true);
                bytes.all.push(1);
                bytes.vex(codes::VPACKUSDW, first, first, Place::Reg(second), false);
                if element == Element::U8 {
                    bytes.vex(codes::VPACKUSWB, first, first, Place::Reg(first), false);
                    bytes.vex(codes::VMOVQ_STORE, first, 0, to, false);
                } else if self.past {
                    bytes.vex(codes::VMOVNTDQ, first, 0, to, false);
                } else {
                    bytes.vex(codes::VMOVUPS_STORE, first, 0, to, false);
                }
            }
        }
        self.at.read(at);
    }
}
