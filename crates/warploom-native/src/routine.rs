//! Code in memory that may be executed.

use super::emit::{self, ALONG, CONSTANTS, DOUBLES, Order, SLOT};
use super::program::{Element, Ins};

/// How wide the vectors are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// AVX2 with fused multiply-add.
    Bits256,
    /// AVX-512 (F, BW, DQ, VL).
    Bits512,
}

impl Width {
    /// The widest this machine has.
    pub fn best() -> Option<Self> {
        [Self::Bits512, Self::Bits256]
            .into_iter()
            .find(|width| width.is_there())
    }

    /// Does this machine have it?
    #[cfg(target_arch = "x86_64")]
    pub fn is_there(self) -> bool {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match self {
            Self::Bits256 => avx2,
            Self::Bits512 => avx2 && avx512,
        }
    }

    /// Does this machine have it?
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_there(self) -> bool {
        false
    }

    /// Pixels in a vector.
    pub const fn lanes(self) -> usize {
        match self {
            Self::Bits256 => 8,
            Self::Bits512 => 16,
        }
    }

    pub(crate) const fn registers(self) -> usize {
        match self {
            Self::Bits256 => 16,
            Self::Bits512 => 32,
        }
    }
}

/// Rows and outputs of a routine together.
const MOST_ROWS: usize = 160;
/// Longer ones take longer to make than they save.
const MOST_INSTRUCTIONS: usize = 20_000;

/// An expression as machine code.
#[derive(Debug)]
pub struct Routine {
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "no other processor ever has a routine")
    )]
    code: memmap2::Mmap,
    /// Where the code begins whose results go past the caches.
    past: usize,
    width: Width,
    memory: usize,
    rows: Vec<Element>,
    /// How many pixels of each row are read beyond those that are made.
    beyond: Vec<usize>,
    outs: Vec<Element>,
    numbers: u16,
    is_along: bool,
}

impl Routine {
    /// Makes a routine of instructions.
    ///
    /// `None` when the machine has no such vectors, when rows are too many, when a row or an output
    /// is named with two types of elements or [`Element::Double`] is not taken by halves, or when the
    /// system does not let programs make code.
    ///
    /// # Panics
    /// When an instruction takes the result of one that does not come before it.
    pub fn new(code: &[Ins], width: Width) -> Option<Self> {
        let masked = code.iter().any(|ins| matches!(ins, Ins::SelectIf(..)));
        let masks = width == Width::Bits512 || !masked;
        if !width.is_there() || code.len() > MOST_INSTRUCTIONS || !masks {
            return None;
        }
        let (mut rows, mut outs, mut numbers) = (Vec::new(), Vec::new(), 0);
        for (at, ins) in code.iter().enumerate() {
            for value in ins.operands() {
                let before = (value as usize) < at;
                assert!(
                    before && !code[value as usize].is_put(),
                    "instruction {at} takes {value}, which is no result before it"
                );
            }
            match *ins {
                Ins::Row { element, .. } | Ins::Soon { element, .. } | Ins::Put { element, .. }
                    if element == Element::Double =>
                {
                    return None;
                }
                Ins::Row { row, element } | Ins::Soon { row, element } => {
                    name(&mut rows, row, element)?;
                }
                Ins::Beside { row, .. } => name(&mut rows, row, Element::Word)?,
                Ins::Put { out, element, .. } => name(&mut outs, out, element)?,
                Ins::Doubles { row, .. } => name(&mut rows, row, Element::Double)?,
                Ins::PutDoubles { out, .. } => name(&mut outs, out, Element::Double)?,
                Ins::Number(number) => numbers = numbers.max(number.checked_add(1)?),
                _ => {}
            }
        }
        let rows: Vec<Element> = rows.into_iter().collect::<Option<_>>()?;
        let outs: Vec<Element> = outs.into_iter().collect::<Option<_>>()?;
        let mut beyond = vec![0; rows.len()];
        for ins in code {
            if let Ins::Beside { row, by } = *ins {
                let most = &mut beyond[usize::from(row)];
                *most = usize::from(by).max(*most);
            }
        }
        if rows.len() + outs.len() > MOST_ROWS {
            return None;
        }
        let [(mut bytes, memory), (past, more)] = [false, true].map(|past| {
            emit::emit(Order {
                code,
                width,
                numbers,
                rows: rows.len(),
                outs: outs.len(),
                past,
            })
        });
        let start = bytes.len();
        bytes.extend(past);
        let mut map = memmap2::MmapMut::map_anon(bytes.len()).ok()?;
        map[..bytes.len()].copy_from_slice(&bytes);
        Some(Self {
            code: map.make_exec().ok()?,
            past: start,
            width,
            memory: memory.max(more).div_ceil(4),
            rows,
            beyond,
            outs,
            numbers,
            is_along: code.contains(&Ins::Along),
        })
    }

    /// Pixels it computes at a time.
    pub fn lanes(&self) -> usize {
        self.width.lanes()
    }

    /// How many words of memory it needs; the caller keeps them from row to row, one for each thread.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// How many numbers it takes.
    pub fn numbers(&self) -> u16 {
        self.numbers
    }

    /// Puts into the memory what every run needs; before the first.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn start(&self, memory: &mut [f32]) {
        for (slot, bits) in CONSTANTS.into_iter().enumerate() {
            spread(memory, slot, |_| bits);
        }
        for (slot, bits) in (CONSTANTS.len()..).zip(DOUBLES) {
            spread_wide(memory, slot, bits);
        }
    }

    /// How many rows it takes.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Sets a number that is the same for all pixels, by its bits.
    ///
    /// # Panics
    /// When there is no such number, or the memory is too small.
    pub fn set_number(&self, memory: &mut [f32], number: u16, bits: u32) {
        assert!(number < self.numbers, "number {number} of {}", self.numbers);
        spread(memory, ALONG + 1 + usize::from(number), |_| bits);
    }

    /// Sets a number of 64 bits that is the same for all pixels, by its bits.
    ///
    /// # Panics
    /// When there is no such number, or the memory is too small.
    pub fn set_wide_number(&self, memory: &mut [f32], number: u16, bits: u64) {
        assert!(number < self.numbers, "number {number} of {}", self.numbers);
        spread_wide(memory, ALONG + 1 + usize::from(number), bits);
    }

    /// Computes `count` pixels of every output, from the first on. `along` is the position of the
    /// first.
    ///
    /// # Panics
    /// When `count` is not a multiple of [`Routine::lanes`], or rows, outputs or memory are missing
    /// or too short.
    pub fn run(
        &self,
        memory: &mut [f32],
        rows: &[&[u8]],
        outs: &mut [&mut [u8]],
        along: i32,
        count: usize,
    ) {
        self.go(memory, rows, outs, along, count, false);
    }

    /// The same, with results that go to memory past the caches where they lie so that they can: for
    /// those that nobody reads soon. A cache fetches what it is about to write, so that writing into
    /// it moves twice the bytes.
    ///
    /// # Panics
    /// As [`Routine::run`].
    pub fn run_past(
        &self,
        memory: &mut [f32],
        rows: &[&[u8]],
        outs: &mut [&mut [u8]],
        along: i32,
        count: usize,
    ) {
        let fits = |out: &[u8], element: &Element| {
            // A double is two halves of a vector's lanes each.
            let bytes = (self.lanes() * element.bytes()).min(self.lanes() * 4);
            out.as_ptr().addr().is_multiple_of(bytes)
        };
        let past = outs
            .iter()
            .zip(&self.outs)
            .all(|(out, element)| fits(out, element));
        self.go(memory, rows, outs, along, count, past);
    }

    fn go(
        &self,
        memory: &mut [f32],
        rows: &[&[u8]],
        outs: &mut [&mut [u8]],
        along: i32,
        count: usize,
        past: bool,
    ) {
        if count == 0 {
            return;
        }
        assert!(
            count.is_multiple_of(self.lanes()),
            "{count} pixels, {} at a time",
            self.lanes()
        );
        assert!(memory.len() >= self.memory, "memory");
        assert!(rows.len() == self.rows.len() && outs.len() == self.outs.len());
        let mut table = [std::ptr::null::<u8>(); MOST_ROWS];
        let mut entries = table.iter_mut();
        let asked = self.rows.iter().zip(&self.beyond);
        for ((row, (element, beyond)), entry) in rows.iter().zip(asked).zip(&mut entries) {
            let pixels = row.len() / element.bytes();
            assert!(
                pixels.checked_sub(*beyond) >= Some(count),
                "a row is too short"
            );
            *entry = row.as_ptr();
        }
        for ((out, element), entry) in outs.iter_mut().zip(&self.outs).zip(&mut entries) {
            assert!(out.len() / element.bytes() >= count, "an output is short");
            *entry = out.as_mut_ptr();
        }
        if self.is_along {
            spread(memory, ALONG, |lane| (along + lane).cast_unsigned());
        }
        let start = if past { self.past } else { 0 };
        self.call(start, &table, memory, count);
    }

    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "code that was made is called")]
    fn call(&self, start: usize, table: &[*const u8; MOST_ROWS], memory: &mut [f32], count: usize) {
        type Entry = unsafe extern "sysv64" fn(*const *const u8, *mut f32, usize);
        // SAFETY: the map holds whole functions of this signature from its first byte and from `past`
        // on, which `start` is one of. They were written by `emit`, may be executed, and live as long
        // as `self`.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(self.code[start..].as_ptr()) };
        // SAFETY: it reads `count` pixels of every row, and as many more as its code looks aside, and writes
        // `count` of every output; `go` has checked their lengths against the element types the code was made
        // for; outputs are borrowed alone. `past` is chosen only where they are aligned as its writes demand. Of
        // the memory it touches the first `self.memory` words, checked too. The
        // instructions it is made of are there, as `new` has checked. It keeps the stack as it is and
        // uses no register that belongs to the caller.
        unsafe { entry(table.as_ptr(), memory.as_mut_ptr(), count) };
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn call(&self, _: usize, _: &[*const u8; MOST_ROWS], _: &mut [f32], _: usize) {
        unreachable!("no width is there")
    }
}

/// Notes what a row's elements are; `None` when they were something else before.
fn name(elements: &mut Vec<Option<Element>>, at: u8, element: Element) -> Option<()> {
    let at = usize::from(at);
    if elements.len() <= at {
        elements.resize(at + 1, None);
    }
    match elements[at].replace(element) {
        Some(before) if before != element => None,
        _ => Some(()),
    }
}

fn spread_wide(memory: &mut [f32], slot: usize, bits: u64) {
    // The first word has the low bits, as the processor has it.
    spread(memory, slot, |word| (bits >> (32 * (word & 1))) as u32);
}

fn spread(memory: &mut [f32], slot: usize, bits: impl Fn(i32) -> u32) {
    let lanes = SLOT as usize / 4;
    let slot = &mut memory[slot * lanes..][..lanes];
    for (lane, word) in (0..).zip(slot) {
        *word = f32::from_bits(bits(lane));
    }
}
