//! Which value is in which register.

use super::codes::{VMOVUPS, VMOVUPS_STORE};
use super::encode::{Base, Bytes, Place, Reg};
use super::program::{Element, Half, Ins, Value};
use super::routine::Width;

/// Registers that hold no value for longer than an instruction.
pub(crate) const SPARE: usize = 2;

/// What holds the beginnings of the first rows.
const BASES: [Base; 4] = [Base::R8, Base::R9, Base::R10, Base::R11];

/// Loads the beginnings of the first rows, for the whole routine.
pub(crate) fn load_bases(bytes: &mut Bytes, entries: usize) {
    for (entry, base) in (0..entries).zip(BASES) {
        bytes.pointer(base, entry);
    }
}

/// Values in registers and in memory, and the bytes that move them there.
///
/// Instructions are looked at in order. A value whose register is needed for another is written to
/// memory, the one first that is needed last.
#[derive(Debug)]
pub(crate) struct Registers<'a> {
    pub(crate) bytes: Bytes,
    /// Numbers that stay are loaded by these.
    pub(crate) prologue: Vec<u8>,
    code: &'a [Ins],
    width: Width,
    /// Of how many vectors the instructions are, in turns.
    vectors: usize,
    /// The value in each register.
    holds: Vec<Option<Value>>,
    register: Vec<Option<Reg>>,
    /// Where a value was put in memory.
    spilled: Vec<Option<u32>>,
    /// Instructions that still need each value, the next one last.
    uses: Vec<Vec<u32>>,
    /// Registers of operands of the instruction at hand.
    pinned: u32,
    /// Places in memory that no value needs any more, and those that none needs after this instruction.
    free: Vec<u32>,
    leaving: Vec<u32>,
    /// Bytes of the memory of numbers that are in use.
    memory: u32,
    /// Registers that hold the beginning of a row for the whole loop.
    bases: Vec<(usize, Base)>,
    inputs: usize,
    /// Numbers that are in a register for the whole loop; the first has the one behind the others.
    resident: Vec<u16>,
    /// Does what is read from memory several times stay in a register while that is free?
    keeps: bool,
    /// The most registers that held values at the same time.
    busiest: usize,
    has_spilled: bool,
}

impl<'a> Registers<'a> {
    /// `resident` numbers have registers of their own.
    pub(crate) fn new(
        code: &'a [Ins],
        width: Width,
        vectors: usize,
        memory: u32,
        inputs: usize,
        resident: Vec<u16>,
        keeps: bool,
    ) -> Self {
        let mut uses = vec![Vec::new(); code.len()];
        for (at, ins) in (0..code.len() as u32).zip(code).rev() {
            if uses[at as usize].is_empty() && !ins.is_put() {
                continue;
            }
            for value in ins.operands() {
                let list: &mut Vec<u32> = &mut uses[value as usize];
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        let free = width.registers() - SPARE - resident.len();
        let mut prologue = Bytes::new(width);
        for (reg, number) in (free as Reg..).zip(&resident) {
            let place = Place::Memory(super::emit::number_at(*number));
            prologue.op(VMOVUPS, reg, 0, place);
        }
        Self {
            bytes: Bytes::new(width),
            prologue: prologue.all,
            code,
            width,
            vectors,
            holds: vec![None; free],
            register: vec![None; code.len()],
            spilled: vec![None; code.len()],
            uses,
            pinned: 0,
            free: Vec::new(),
            leaving: Vec::new(),
            memory,
            bases: Vec::new(),
            inputs,
            resident,
            keeps,
            busiest: 0,
            has_spilled: false,
        }
    }

    /// Registers that were never needed.
    pub(crate) fn idle(&self) -> usize {
        self.holds.len() - self.busiest
    }

    /// Does anything need the result of the instruction `at`, or is it written?
    pub(crate) fn is_needed(&self, at: u32) -> bool {
        self.code[at as usize].is_put() || !self.uses[at as usize].is_empty()
    }

    /// Had values to be put into memory?
    pub(crate) fn has_spilled(&self) -> bool {
        self.has_spilled
    }

    /// The register of a number that stays.
    fn resident(&self, value: Value) -> Option<Reg> {
        let Ins::Number(number) = self.code[value as usize] else {
            return None;
        };
        let at = self.resident.iter().position(|other| *other == number);
        at.map(|at| (self.holds.len() + at) as Reg)
    }

    /// A register for use within one instruction.
    pub(crate) fn spare(&self, which: usize) -> Reg {
        (self.holds.len() + self.resident.len() + which) as Reg
    }

    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }

    /// The beginnings of the first rows are in the registers that [`load_bases`] loads.
    pub(crate) fn know_bases(&mut self, entries: usize) {
        self.bases.extend((0..entries).zip(BASES));
    }

    /// Where the loop is in a row: inputs first, then outputs.
    fn row(&mut self, entry: usize, element: Element, of: Value) -> Place {
        let known = self.bases.iter().find(|(of, _)| *of == entry);
        let base = if let Some((_, base)) = known {
            *base
        } else {
            self.bytes.pointer(Base::Rcx, entry);
            Base::Rcx
        };
        let which = of as usize % self.vectors;
        Place::Row {
            base,
            bytes: element.bytes() as u8,
            on: (which * self.width.lanes() * element.bytes()) as u32,
        }
    }

    /// Where the loop is in half of a row of numbers of 64 bits.
    fn half_row(&mut self, entry: usize, half: Half, of: Value) -> Place {
        match (self.row(entry, Element::Double, of), half) {
            (Place::Row { base, bytes, on }, Half::High) => Place::Row {
                base,
                bytes,
                on: on + self.vector(),
            },
            (place, _) => place,
        }
    }

    /// Where the instruction `at` writes.
    pub(crate) fn half_output(&mut self, out: u8, half: Half, at: Value) -> Place {
        self.half_row(self.inputs + usize::from(out), half, at)
    }

    /// Where the instruction `at` reads.
    pub(crate) fn input(&mut self, row: u8, element: Element, at: Value) -> Place {
        self.row(usize::from(row), element, at)
    }

    /// Where the instruction `at` writes.
    pub(crate) fn output(&mut self, out: u8, element: Element, at: Value) -> Place {
        self.row(self.inputs + usize::from(out), element, at)
    }

    /// Bytes of one vector.
    fn vector(&self) -> u32 {
        4 * self.width.lanes() as u32
    }

    /// Is it in memory, whatever register has it too?
    fn is_in_memory(&self, value: usize) -> bool {
        self.code[value].rests_in_memory() || self.spilled[value].is_some()
    }

    /// A register with nothing in it, whose holder is put down if need be.
    fn vacant(&mut self) -> Reg {
        let taken = self.holds.iter().flatten().count();
        self.busiest = self.busiest.max((taken + 1).min(self.holds.len()));
        if let Some(reg) = self.holds.iter().position(Option::is_none) {
            return reg as Reg;
        }
        let (mut best, mut latest) = (None, (false, 0));
        for (reg, value) in self.holds.iter().enumerate() {
            let value = value.expect("all are taken") as usize;
            let next = self.uses[value].last().copied().unwrap_or(u32::MAX);
            // What was kept need not be put into memory.
            let worth = (self.keeps && self.is_in_memory(value), next);
            if self.pinned & (1 << reg) == 0 && (best.is_none() || worth > latest) {
                (best, latest) = (Some(reg), worth);
            }
        }
        let reg = best.expect("an instruction pins few registers");
        let value = self.holds[reg].take().expect("all are taken") as usize;
        self.register[value] = None;
        if !self.is_in_memory(value) && !self.uses[value].is_empty() {
            let place = self.free.pop().unwrap_or_else(|| {
                self.memory += self.vector();
                self.memory - self.vector()
            });
            self.spilled[value] = Some(place);
            self.has_spilled = true;
            self.bytes
                .op(VMOVUPS_STORE, reg as Reg, 0, Place::Memory(place));
        }
        reg as Reg
    }

    /// Where a value is, in memory if it is there.
    pub(crate) fn anywhere(&mut self, value: Value) -> Place {
        if let Some(reg) = self.resident(value) {
            return Place::Reg(reg);
        }
        let at = value as usize;
        if let Some(reg) = self.register[at] {
            self.pinned |= 1 << reg;
            return Place::Reg(reg);
        }
        // What is read several times is read from memory once, if that costs nobody a register.
        if self.keeps
            && self.spilled[at].is_none()
            && self.uses[at].len() > 1
            && let Some(reg) = self.holds.iter().position(Option::is_none)
        {
            let from = self.in_memory(value);
            let reg = reg as Reg;
            self.pinned |= 1 << reg;
            self.bytes.op(VMOVUPS, reg, 0, from);
            self.holds[usize::from(reg)] = Some(value);
            self.register[at] = Some(reg);
            return Place::Reg(reg);
        }
        self.in_memory(value)
    }

    /// Where a value is that is in no register.
    fn in_memory(&mut self, value: Value) -> Place {
        if let Some(place) = self.spilled[value as usize] {
            return Place::Memory(place);
        }
        match self.code[value as usize] {
            Ins::Number(number) => Place::Memory(super::emit::number_at(number)),
            Ins::Row { row, element } => self.input(row, element, value),
            Ins::Beside { row, by } => match self.input(row, Element::Word, value) {
                Place::Row { base, bytes, on } => Place::Row {
                    base,
                    bytes,
                    on: on + u32::from(by) * u32::from(bytes),
                },
                place => place,
            },
            Ins::Doubles { row, half } => self.half_row(usize::from(row), half, value),
            _ => unreachable!("a value is in a register or in memory"),
        }
    }

    /// A value in a register.
    pub(crate) fn in_register(&mut self, value: Value) -> Reg {
        if let Some(reg) = self.resident(value) {
            return reg;
        }
        if let Some(reg) = self.register[value as usize] {
            self.pinned |= 1 << reg;
            return reg;
        }
        let reg = self.vacant();
        self.pinned |= 1 << reg;
        let from = self.in_memory(value);
        self.bytes.op(VMOVUPS, reg, 0, from);
        self.holds[usize::from(reg)] = Some(value);
        self.register[value as usize] = Some(reg);
        reg
    }

    /// The register of a value that nothing after the instruction `at` needs.
    pub(crate) fn dying(&self, value: Value, at: u32) -> Option<Reg> {
        let last = self.uses[value as usize].first() == Some(&at);
        self.register[value as usize].filter(|_| last)
    }

    /// Is it in a register?
    pub(crate) fn is_near(&self, value: Value) -> bool {
        self.register[value as usize].is_some() || self.resident(value).is_some()
    }

    /// The instruction `at` has read its operands: those that nothing needs any more make room.
    pub(crate) fn read(&mut self, at: u32) {
        for value in self.code[at as usize].operands() {
            let uses = &mut self.uses[value as usize];
            if uses.last() == Some(&at) {
                uses.pop();
            }
            if !uses.is_empty() {
                continue;
            }
            if let Some(reg) = self.register[value as usize].take() {
                self.holds[usize::from(reg)] = None;
            }
            if let Some(place) = self.spilled[value as usize].take() {
                self.leaving.push(place);
            }
        }
    }

    /// A register for the result of the instruction `at`. It may be that of an operand which
    /// [`Registers::read`] let go.
    pub(crate) fn result(&mut self, at: u32) -> Reg {
        let reg = self.vacant();
        self.result_in(at, reg);
        reg
    }

    /// The result of the instruction `at` is in this register, that of an operand which was let go.
    pub(crate) fn result_in(&mut self, at: u32, reg: Reg) {
        self.holds[usize::from(reg)] = Some(at);
        self.register[at as usize] = Some(reg);
    }

    /// The instruction `at` is over. A result that nobody needs is forgotten.
    pub(crate) fn end(&mut self, at: u32) {
        self.pinned = 0;
        self.free.append(&mut self.leaving);
        if self.uses[at as usize].is_empty()
            && let Some(reg) = self.register[at as usize].take()
        {
            self.holds[usize::from(reg)] = None;
        }
    }
}
