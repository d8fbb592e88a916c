//! Bytes of instructions.
//!
//! Vectors of 256 bits are encoded with the prefix of AVX (VEX), those of 512 bits with that of
//! AVX-512 (EVEX); most instructions have the same opcode in both.

use super::codes::Code;
use super::routine::Width;

/// A vector register.
pub(crate) type Reg = u8;

/// The register of masks that comparisons write to.
pub(crate) const MASK: Reg = 1;

/// The general registers a routine uses. `RDI` holds the table of rows, `RSI` the memory of numbers,
/// `RDX` how many pixels, `RAX` how many are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Rcx = 1,
    Rsi = 6,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
}

/// An operand that may be in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Reg(Reg),
    /// So many bytes after the beginning of the memory of numbers.
    Memory(u32),
    /// Where the loop is in a row, and so many bytes on: `base + RAX * bytes + on`.
    Row {
        base: Base,
        bytes: u8,
        on: u32,
    },
}

/// The bytes of a routine as they grow.
#[derive(Debug)]
pub(crate) struct Bytes {
    pub(crate) all: Vec<u8>,
    width: Width,
}

impl Bytes {
    pub(crate) fn new(width: Width) -> Self {
        Self {
            all: Vec::new(),
            width,
        }
    }

    /// `to = code(a, b)` with the machine's vectors; `a` is 0 where there is none.
    pub(crate) fn op(&mut self, code: Code, to: Reg, a: Reg, b: Place) {
        match self.width {
            Width::Bits256 => self.vex(code, to, a, b, true),
            Width::Bits512 => self.evex(code, to, a, b, 64),
        }
    }

    /// The same with a number that is part of the instruction.
    pub(crate) fn op_with(&mut self, code: Code, to: Reg, a: Reg, b: Place, number: u8) {
        self.op(code, to, a, b);
        self.all.push(number);
    }

    /// With the prefix of AVX; `long` is 256 bits, else 128.
    pub(crate) fn vex(&mut self, code: Code, to: Reg, a: Reg, b: Place, long: bool) {
        let (x, beyond) = Self::extensions(b);
        debug_assert!(to < 16 && a < 16 && !x, "VEX has 16 registers");
        self.all.extend([
            0xc4,
            flag(to & 8 == 0, 7) | 0x40 | flag(!beyond, 5) | code.map,
            flag(code.wide, 7) | ((!a & 15) << 3) | flag(long, 2) | code.prefix,
            code.opcode,
        ]);
        self.operand(to, b);
    }

    /// With the prefix of AVX-512, and vectors of so many bytes.
    pub(crate) fn evex(&mut self, code: Code, to: Reg, a: Reg, b: Place, bytes: u8) {
        let (x, beyond) = Self::extensions(b);
        self.all.extend([
            0x62,
            flag(to & 8 == 0, 7)
                | flag(!x, 6)
                | flag(!beyond, 5)
                | flag(to & 16 == 0, 4)
                | code.map,
            flag(code.wide, 7) | ((!a & 15) << 3) | 4 | code.prefix,
            (bytes / 32) << 5 | flag(a & 16 == 0, 3),
            code.opcode,
        ]);
        self.operand(to, b);
    }

    /// The fourth and the third bit beyond the three of an operand's number.
    fn extensions(b: Place) -> (bool, bool) {
        match b {
            Place::Reg(reg) => (reg & 16 != 0, reg & 8 != 0),
            Place::Memory(_) => (false, false),
            Place::Row { base, .. } => (false, base as u8 & 8 != 0),
        }
    }

    fn operand(&mut self, to: Reg, b: Place) {
        let to = (to & 7) << 3;
        match b {
            Place::Reg(reg) => self.all.push(0xc0 | to | (reg & 7)),
            Place::Memory(at) => {
                self.all.push(0x80 | to | Base::Rsi as u8);
                self.all.extend(at.to_le_bytes());
            }
            Place::Row { base, bytes, on } => {
                // The distance is spelled out, as some bases demand it and the short form means
                // different things with the two prefixes.
                let scale = bytes.trailing_zeros() as u8;
                self.all
                    .extend([0x84 | to, (scale << 6) | (base as u8 & 7)]);
                self.all.extend(on.to_le_bytes());
            }
        }
    }

    /// `base = table[entry]`.
    pub(crate) fn pointer(&mut self, base: Base, entry: usize) {
        let base = base as u8;
        let at = (entry * 8) as u32;
        self.all.extend([
            0x48 | flag(base & 8 != 0, 2),
            0x8b,
            0x87 | ((base & 7) << 3),
        ]);
        self.all.extend(at.to_le_bytes());
    }

    /// The first lane of `to` becomes how many pixels are done.
    pub(crate) fn done_into(&mut self, to: Reg) {
        debug_assert!(to < 16, "the instruction is one of AVX");
        // vmovd to, eax
        self.all.extend([
            0xc4,
            flag(to & 8 == 0, 7) | 0x61,
            0x79,
            0x6e,
            0xc0 | ((to & 7) << 3),
        ]);
    }

    /// `RAX = 0`.
    pub(crate) fn begin(&mut self) {
        self.all.extend([0x31, 0xc0]);
    }

    /// `lanes` more pixels are done; goes on at `start` while there are any left, then returns. What
    /// went past the caches is in memory then, where other threads see it.
    pub(crate) fn finish(&mut self, start: usize, lanes: u8, past: bool) {
        self.all.extend([0x48, 0x83, 0xc0, lanes]); // add rax, lanes
        self.all.extend([0x48, 0x39, 0xd0]); // cmp rax, rdx
        self.all.extend([0x0f, 0x82]); // jb start
        let forth = (self.all.len() + 4 - start) as u32;
        self.all.extend(forth.wrapping_neg().to_le_bytes());
        if past {
            self.all.extend([0x0f, 0xae, 0xf8]); // sfence
        }
        self.all.extend([0xc5, 0xf8, 0x77]); // vzeroupper
        self.all.push(0xc3); // ret
    }
}

const fn flag(is: bool, bit: u8) -> u8 {
    (is as u8) << bit
}
