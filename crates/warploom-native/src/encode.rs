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
        self.evex_where(code, to, a, b, bytes, 0);
    }

    /// The same where a register of masks says so; that of number 0 says so everywhere.
    pub(crate) fn evex_where(
        &mut self,
        code: Code,
        to: Reg,
        a: Reg,
        b: Place,
        bytes: u8,
        mask: Reg,
    ) {
        let (x, beyond) = Self::extensions(b);
        self.all.extend([
            0x62,
            flag(to & 8 == 0, 7)
                | flag(!x, 6)
                | flag(!beyond, 5)
                | flag(to & 16 == 0, 4)
                | code.map,
            flag(code.wide, 7) | ((!a & 15) << 3) | 4 | code.prefix,
            (bytes / 32) << 5 | flag(a & 16 == 0, 3) | mask,
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

    /// Has the line of a place in a row fetched into the second cache; the first has the rows at hand.
    pub(crate) fn fetch(&mut self, from: Place) {
        let (_, beyond) = Self::extensions(from);
        // prefetcht1
        self.all.extend([0x40 | flag(beyond, 0), 0x0f, 0x18]);
        self.operand(2, from);
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

    /// The loop of a routine: `prologue`, then `body` for `lanes` pixels after `lanes` pixels, of which
    /// there are some.
    pub(crate) fn begin(&mut self, lanes: u8, prologue: &[u8], body: &[u8]) {
        self.all.extend([0x31, 0xc0]); // xor eax, eax
        self.all.extend(prologue);
        self.repeated(lanes, body);
    }

    /// The same for twice `lanes` pixels at a time, as long as there are as many.
    pub(crate) fn begin_pairs(&mut self, lanes: u8, prologue: &[u8], body: &[u8]) {
        self.all.extend([0x31, 0xc0]); // xor eax, eax
        self.all.extend([0x48, 0x83, 0xea, lanes]); // sub rdx, lanes
        let mut pairs = Self::new(self.width);
        pairs.all.extend(prologue);
        pairs.repeated(2 * lanes, body);
        self.all.extend([0x48, 0x39, 0xd0]); // cmp rax, rdx
        self.unless_below(&pairs.all);
    }

    /// What [`Bytes::begin_pairs`] left, `lanes` pixels or none.
    pub(crate) fn rest_of_pairs(&mut self, lanes: u8, prologue: &[u8], body: &[u8]) {
        self.all.extend([0x48, 0x83, 0xc2, lanes]); // add rdx, lanes
        self.all.extend([0x48, 0x39, 0xd0]); // cmp rax, rdx
        self.unless_below(&[prologue, body].concat());
    }

    /// Jumps over `bytes` when the comparison before did not say "below".
    fn unless_below(&mut self, bytes: &[u8]) {
        self.all.extend([0x0f, 0x83]); // jae
        self.all.extend((bytes.len() as u32).to_le_bytes());
        self.all.extend(bytes);
    }

    /// `body`, again and again: each time so many more pixels are done, until all are.
    fn repeated(&mut self, pixels: u8, body: &[u8]) {
        let start = self.all.len();
        self.all.extend(body);
        self.all.extend([0x48, 0x83, 0xc0, pixels]); // add rax, pixels
        self.all.extend([0x48, 0x39, 0xd0]); // cmp rax, rdx
        self.all.extend([0x0f, 0x82]); // jb start
        let forth = (self.all.len() + 4 - start) as u32;
        self.all.extend(forth.wrapping_neg().to_le_bytes());
    }

    /// Returns. What went past the caches is in memory then, where other threads see it.
    pub(crate) fn finish(&mut self, past: bool) {
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
