//! Expressions of bytes, computed as bytes.
//!
//! Masks are compared, joined and chosen from, and come out as masks. In the lanes of 32 bits in which
//! other expressions are computed that takes four times the vectors; so an expression that never leaves
//! the numbers 0 to 255 is computed in lanes of 8. A truth is a byte of ones or zeros. Where machine code
//! can be made, four pixels are a word of it; elsewhere steps go through blocks of pixels one by one.

use warploom_core::DType;
use warploom_flow::expr::{Bin, Dag, Id, Node, Output, Ty, Un};
use warploom_native as native;
use warploom_native::{BinB, Element, Ins, Value};

use super::row::{RowIn, RowOut};
use super::{Read, compile};

/// Pixels that are taken through all instructions at a time: few enough for the first cache.
const BLOCK: usize = 2048;

/// Where an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// One of the rows that the tape reads.
    Row(usize),
    /// Memory of a block.
    Slot(usize),
    /// A row of the result.
    Out(usize),
}

/// What is done with bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Copy,
    Not,
    /// 1 for a truth.
    One,
    Bin(Bin),
    Select,
}

/// One act on all pixels of a block. Acts of fewer operands repeat their last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    act: Act,
    of: [Place; 3],
    to: Place,
}

/// An expression in lanes of 8 bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bytes {
    steps: Vec<Step>,
    /// Slots that hold the same number for all pixels.
    numbers: Vec<(usize, u8)>,
    slots: usize,
}

/// Memory of such an expression that runs: a block for each slot.
pub(super) type Memory = Vec<Vec<u8>>;

/// What is known of a node: the least and the largest number it can be; truths are 0 and 255.
type Range = [i64; 2];

impl Bytes {
    /// The expression, if it is one of bytes only.
    pub(super) fn new(dag: &Dag, reads: &[Read]) -> Option<Self> {
        let is_byte = |out: &Output| out.dtype == DType::U8 && dag.ty(out.id).is_int();
        if !dag.outputs().iter().all(is_byte) {
            return None;
        }
        let nodes = compile::simplified(dag);
        let mut last = vec![None; nodes.len()];
        for output in dag.outputs() {
            last[output.id as usize] = Some(nodes.len());
        }
        for at in (0..nodes.len()).rev() {
            if last[at].is_some() && !matches!(nodes[at], Node::Load { .. }) {
                for id in nodes[at].operands() {
                    last[id as usize].get_or_insert(at);
                }
            }
        }
        let mut maker = Maker {
            dag,
            reads,
            places: vec![None; nodes.len()],
            free: Vec::new(),
            made: Self {
                steps: Vec::new(),
                numbers: Vec::new(),
                slots: 0,
            },
        };
        let mut ranges: Vec<Option<Range>> = vec![None; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            if last[at].is_none() {
                continue;
            }
            let range = range(dag, node, |id| ranges[id as usize])?;
            if range[0] < 0 || range[1] > 255 {
                return None;
            }
            ranges[at] = Some(range);
            maker.node(at, node)?;
            for id in node.operands() {
                if last[id as usize] == Some(at) {
                    maker.release(id);
                }
            }
        }
        for (out, output) in dag.outputs().iter().enumerate() {
            maker.put(out, output.id)?;
        }
        Some(maker.made)
    }

    /// The same as instructions of a routine whose words are four pixels each, with its numbers; `None`
    /// where not all of so many rows are read.
    pub(super) fn routine(&self, rows: usize) -> Option<(Vec<Ins>, Vec<u32>)> {
        let element = Element::Word;
        let spread = |value: u8| u32::from_ne_bytes([value; 4]);
        let mut code: Vec<Ins> = (0..u8::try_from(rows).ok()?)
            .map(|row| Ins::Row { row, element })
            .collect();
        let (one, mut numbers) = (code.len() as Value, vec![spread(1)]);
        code.push(Ins::Number(0));
        let mut slots: Vec<Value> = vec![one; self.slots];
        for &(slot, value) in &self.numbers {
            slots[slot] = code.len() as Value;
            code.push(Ins::Number(u16::try_from(numbers.len()).ok()?));
            numbers.push(spread(value));
        }
        let mut is_read = vec![false; rows];
        for step in &self.steps {
            let [a, b, c] = step.of.map(|place| match place {
                Place::Row(row) => {
                    is_read[row] = true;
                    row as Value
                }
                Place::Slot(slot) => slots[slot],
                Place::Out(_) => unreachable!("results are not read"),
            });
            let mut add = |bin, a, b| {
                code.push(Ins::Bin(bin, a, b));
                (code.len() - 1) as Value
            };
            let made = match step.act {
                Act::Copy => a,
                Act::Not => {
                    code.push(Ins::Un(native::Un::Not, a));
                    (code.len() - 1) as Value
                }
                Act::One => add(native::Bin::And, a, one),
                Act::Bin(bin) => add(of_bytes(bin)?, a, b),
                // What is chosen by is bits of a byte, and machines choose by words.
                Act::Select => {
                    let differs = add(native::Bin::Xor, b, c);
                    let chosen = add(native::Bin::And, differs, a);
                    add(native::Bin::Xor, chosen, c)
                }
            };
            match step.to {
                Place::Slot(slot) => slots[slot] = made,
                Place::Out(out) => code.push(Ins::Put {
                    out: u8::try_from(out).ok()?,
                    element,
                    value: made,
                }),
                Place::Row(_) => unreachable!("rows that are read are not written"),
            }
        }
        is_read.into_iter().all(|is| is).then_some((code, numbers))
    }

    /// Makes room, and writes down what is the same for all pixels.
    pub(super) fn prepare(&self, memory: &mut Memory) {
        memory.resize_with(memory.len().max(self.slots), Vec::new);
        for slot in &mut memory[..self.slots] {
            slot.resize(BLOCK, 0);
        }
        for &(slot, value) in &self.numbers {
            memory[slot].fill(value);
        }
    }

    /// Computes one row of every output.
    #[inline(always)]
    pub(super) fn row(
        &self,
        memory: &mut Memory,
        rows: &[RowIn<'_>],
        outs: &mut [RowOut<'_>],
        width: usize,
    ) {
        for from in (0..width).step_by(BLOCK) {
            let count = BLOCK.min(width - from);
            for step in &self.steps {
                // What is written is taken out of the memory while it is: no step reads where it writes.
                let mut taken = Vec::new();
                let target = match step.to {
                    Place::Out(out) => &mut outs[out].bytes_from(from)[..count],
                    Place::Slot(slot) => {
                        taken = std::mem::take(&mut memory[slot]);
                        &mut taken[..count]
                    }
                    Place::Row(_) => unreachable!("rows that are read are not written"),
                };
                let source = |at: usize| match step.of[at] {
                    Place::Row(row) => &rows[row].bytes_from(from)[..count],
                    Place::Slot(slot) => &memory[slot][..count],
                    Place::Out(_) => unreachable!("results are not read"),
                };
                act(step.act, target, [source(0), source(1), source(2)]);
                if let Place::Slot(slot) = step.to {
                    memory[slot] = taken;
                }
            }
        }
    }
}

/// What is done with words of four pixels.
fn of_bytes(bin: Bin) -> Option<native::Bin> {
    let bytes = match bin {
        Bin::And => return Some(native::Bin::And),
        Bin::Or => return Some(native::Bin::Or),
        Bin::Xor => return Some(native::Bin::Xor),
        Bin::Lt => BinB::Lt,
        Bin::Le => BinB::Le,
        Bin::Eq => BinB::Eq,
        Bin::Ne => BinB::Ne,
        Bin::Min => BinB::Min,
        Bin::Max => BinB::Max,
        Bin::Add => BinB::Add,
        Bin::Sub => BinB::Sub,
        _ => return None,
    };
    Some(native::Bin::Bytes(bytes))
}

/// What a node can be, if it is a byte or a truth.
fn range(dag: &Dag, node: &Node, of: impl Fn(Id) -> Option<Range>) -> Option<Range> {
    let whole = |id: Id| dag.ty(id).is_int();
    let truth = |id: Id| dag.ty(id) == Ty::Bool;
    Some(match *node {
        Node::Const(Ty::Bool, bits) => [i64::from(bits != 0) * 255; 2],
        Node::Const(Ty::I32, bits) => [i64::from(bits as u32 as i32); 2],
        Node::Const(Ty::U32, bits) => [i64::from(bits as u32); 2],
        Node::Load { image, at, .. } => {
            dag.offset(at)?;
            (dag.inputs()[image as usize] == DType::U8).then_some([0, 255])?
        }
        Node::Un(Un::Not, a) if truth(a) => {
            let [least, most] = of(a)?;
            [255 - most, 255 - least]
        }
        Node::Cast(to, a) if to.is_int() && truth(a) => of(a)?.map(|n| n.min(1)),
        Node::Cast(to, a) if to.is_int() && whole(a) => of(a)?,
        Node::Select(cond, a, b) => {
            of(cond)?;
            let ([a, b], [c, d]) = (of(a)?, of(b)?);
            [a.min(c), b.max(d)]
        }
        Node::Bin(bin, a, b) => {
            let ([a0, a1], [b0, b1]) = (of(a)?, of(b)?);
            match bin {
                Bin::Lt | Bin::Le | Bin::Eq | Bin::Ne if whole(a) => [0, 255],
                Bin::And | Bin::Or | Bin::Xor => [0, 255],
                Bin::Min if whole(a) => [a0.min(b0), a1.min(b1)],
                Bin::Max if whole(a) => [a0.max(b0), a1.max(b1)],
                Bin::Add if whole(a) => [a0 + b0, a1 + b1],
                Bin::Sub if whole(a) => [a0 - b1, a1 - b0],
                _ => return None,
            }
        }
        _ => return None,
    })
}

struct Maker<'a> {
    dag: &'a Dag,
    reads: &'a [Read],
    /// Where each node is.
    places: Vec<Option<Place>>,
    free: Vec<usize>,
    made: Bytes,
}

impl Maker<'_> {
    fn slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.made.slots += 1;
            self.made.slots - 1
        })
    }

    /// Nobody needs this node any more.
    fn release(&mut self, id: Id) {
        // Operands may be the same node twice, and casts have their operand's place.
        let Some(Place::Slot(slot)) = self.places[id as usize].take() else {
            return;
        };
        let is_number = self.made.numbers.iter().any(|(other, _)| *other == slot);
        let is_shared = self.places.contains(&Some(Place::Slot(slot)));
        if !is_number && !is_shared {
            self.free.push(slot);
        }
    }

    fn node(&mut self, at: usize, node: &Node) -> Option<()> {
        let place = |id: Id| self.places[id as usize];
        let (act, of) = match *node {
            Node::Const(ty, bits) => {
                let value = match ty {
                    Ty::Bool => u8::from(bits != 0) * 255,
                    _ => u8::try_from(bits).ok()?,
                };
                // Slots of numbers are filled once, so no other value may ever have them.
                let slot = self.made.slots;
                self.made.slots += 1;
                self.made.numbers.push((slot, value));
                self.places[at] = Some(Place::Slot(slot));
                return Some(());
            }
            Node::Load {
                image,
                at: position,
                boundary,
            } => {
                let read = Read {
                    image: image as usize,
                    offset: self.dag.offset(position)?,
                    boundary,
                };
                let row = self.reads.iter().position(|other| *other == read)?;
                self.places[at] = Some(Place::Row(row));
                return Some(());
            }
            Node::Cast(_, a) if self.dag.ty(a) != Ty::Bool => {
                self.places[at] = place(a);
                return Some(());
            }
            Node::Cast(_, a) => (Act::One, [place(a)?; 3]),
            Node::Un(Un::Not, a) => (Act::Not, [place(a)?; 3]),
            Node::Bin(bin, a, b) => (Act::Bin(bin), [place(a)?, place(b)?, place(b)?]),
            Node::Select(cond, a, b) => (Act::Select, [place(cond)?, place(a)?, place(b)?]),
            _ => return None,
        };
        let to = Place::Slot(self.slot());
        self.made.steps.push(Step { act, of, to });
        self.places[at] = Some(to);
        Some(())
    }

    /// Has an output hold a node: what makes the node writes it there, if nobody else reads it.
    fn put(&mut self, out: usize, id: Id) -> Option<()> {
        let place = self.places[id as usize]?;
        // A cast has its operand's place, so it is places that are counted.
        let same = |other: &&Output| self.places[other.id as usize] == Some(place);
        let count = self.dag.outputs().iter().filter(same).count();
        if let Some(step) = self.made.steps.last_mut()
            && step.to == place
            && count == 1
        {
            step.to = Place::Out(out);
            return Some(());
        }
        self.made.steps.push(Step {
            act: Act::Copy,
            of: [place; 3],
            to: Place::Out(out),
        });
        Some(())
    }
}

/// A byte of ones where it holds.
#[inline(always)]
fn truth(holds: bool) -> u8 {
    u8::from(holds).wrapping_neg()
}

#[inline(always)]
fn act(act: Act, to: &mut [u8], [a, b, c]: [&[u8]; 3]) {
    match act {
        Act::Copy => to.copy_from_slice(a),
        Act::Not => one(to, a, |a| !a),
        Act::One => one(to, a, |a| a & 1),
        Act::Select => {
            for (((to, cond), a), b) in to.iter_mut().zip(a).zip(b).zip(c) {
                *to = (a & cond) | (b & !cond);
            }
        }
        Act::Bin(Bin::Lt) => two(to, a, b, |a, b| truth(a < b)),
        Act::Bin(Bin::Le) => two(to, a, b, |a, b| truth(a <= b)),
        Act::Bin(Bin::Eq) => two(to, a, b, |a, b| truth(a == b)),
        Act::Bin(Bin::Ne) => two(to, a, b, |a, b| truth(a != b)),
        Act::Bin(Bin::And) => two(to, a, b, |a, b| a & b),
        Act::Bin(Bin::Or) => two(to, a, b, |a, b| a | b),
        Act::Bin(Bin::Xor) => two(to, a, b, |a, b| a ^ b),
        Act::Bin(Bin::Min) => two(to, a, b, u8::min),
        Act::Bin(Bin::Max) => two(to, a, b, u8::max),
        Act::Bin(Bin::Add) => two(to, a, b, u8::wrapping_add),
        Act::Bin(Bin::Sub) => two(to, a, b, u8::wrapping_sub),
        Act::Bin(_) => unreachable!("`range` knows what bytes can do"),
    }
}

#[inline(always)]
fn one(to: &mut [u8], a: &[u8], act: impl Fn(u8) -> u8) {
    for (to, a) in to.iter_mut().zip(a) {
        *to = act(*a);
    }
}

#[inline(always)]
fn two(to: &mut [u8], a: &[u8], b: &[u8], act: impl Fn(u8, u8) -> u8) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = act(*a, *b);
    }
}
