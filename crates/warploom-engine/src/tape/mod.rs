//! Expressions over rows.
//!
//! A [`Tape`] is an expression as a list of simple instructions with one accumulator. It is
//! interpreted for a handful of vectors of pixels at a time, which stay in registers from one
//! instruction to the next, so that an instruction costs little more than its arithmetic; values that
//! are needed again are put down in slots, which stay in the first cache.
//!
//! Where machine code can be made of the expression, that is run instead; the interpreter is for all
//! other machines, for divisions of whole numbers, and for rows shorter than a vector. Expressions of
//! bytes only are computed as bytes on every machine, by machine code or without.

mod bytes;
mod compile;
mod ins;
mod native;
mod row;
mod run;
#[cfg(test)]
mod tests;
mod wide;

pub(crate) use row::{RowIn, RowOut};

use std::sync::{Arc, OnceLock};

use warploom_core::DType;

use super::block::Block;
use super::lanes::{Level, dispatch};
use bytes::Bytes;
use ins::Ins;
use native::Native;
pub(crate) use native::width as native_width;
use warploom_flow::Boundary;
use warploom_flow::expr::{Dag, Datum, Node, datum};

/// Numbers in a slot: as many as the widest machine works on at a time.
pub(crate) const SLOT: usize = 128;

/// A row that a tape reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Read {
    /// Which image.
    pub(crate) image: usize,
    /// How far from the pixel, in z, y, x.
    pub(crate) offset: [i32; 3],
    /// What lies outside.
    pub(crate) boundary: Boundary,
}

/// An expression that can be computed row by row: every pixel it reads is at a fixed offset.
#[derive(Clone, Debug)]
pub struct Tape {
    code: Vec<Ins>,
    reads: Vec<Read>,
    ahead: Vec<Read>,
    /// Nodes that are the same for all pixels, each with the slot it is spread into.
    uniforms: Vec<(u32, u16)>,
    dag: Dag,
    slots: usize,
    outputs: Vec<DType>,
    is_local: bool,
    /// The same in lanes of 8 bits, if it is an expression of bytes.
    bytes: Option<Bytes>,
    /// Machine code, made when the tape first runs. A tape runs on one instruction set.
    native: Arc<OnceLock<Option<Native>>>,
}

/// Memory of a tape that runs.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    memory: Block,
    tail: Block,
    native: Block,
    bytes: bytes::Memory,
    /// Of every node, its value if it is the same for all pixels.
    values: Vec<Option<Datum>>,
}

impl Tape {
    /// The tape of an expression; `None` when it reads at computed positions.
    pub fn new(dag: &Dag) -> Option<Self> {
        compile::compile(dag)
    }

    pub(crate) fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Rows that the next row reads for the first time: the lowest of every image of which other pixels than
    /// the very one are read.
    pub(crate) fn ahead(&self) -> &[Read] {
        &self.ahead
    }

    /// The row of this number among those that [`Tape::run`] is given.
    pub(crate) fn given(&self, at: usize) -> &Read {
        let ahead = || &self.ahead[at - self.reads.len()];
        self.reads.get(at).unwrap_or_else(ahead)
    }

    /// Does it read nothing beside its pixel, and not ask where that is?
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Element types of the results.
    pub fn outputs(&self) -> &[DType] {
        &self.outputs
    }

    /// Element types of the inputs, images and lists of numbers.
    pub fn inputs(&self) -> &[DType] {
        self.dag.inputs()
    }

    /// Computes what is the same for all pixels and spreads it.
    ///
    /// `lists` holds the inputs that are lists of numbers, under the inputs' numbers; `extents` the
    /// extents of the images.
    pub(crate) fn prepare(
        &self,
        level: Level,
        slots: &mut Slots,
        numbers: &[Datum],
        lists: &dyn Fn(u32, u32) -> f64,
        extents: [i32; 3],
    ) {
        if let Some(bytes) = &self.bytes {
            if let Some(native) = self.native(level, extents[2] as usize) {
                native.prepare(slots.native.reserve::<f32>(native.memory()), &[]);
            } else {
                bytes.prepare(&mut slots.bytes);
            }
            return;
        }
        let values = &mut slots.values;
        values.clear();
        values.resize(self.dag.nodes().len(), None);
        for (id, (node, _)) in self.dag.nodes().iter().enumerate() {
            let of = |id: u32| values[id as usize];
            values[id] = uniform(*node, of, numbers, lists, extents);
        }
        if let Some(native) = self.native(level, extents[2] as usize) {
            native.prepare(slots.native.reserve::<f32>(native.memory()), values);
            return;
        }
        let memory = slots.memory.reserve::<f32>(self.slots * SLOT);
        for &(node, slot) in &self.uniforms {
            let at = usize::from(slot) * SLOT;
            let value = values[node as usize].expect("it is the same for all pixels");
            let narrow = |memory: &mut [f32], bits: u32| {
                memory[at..at + SLOT].fill(f32::from_bits(bits));
            };
            match value {
                Datum::Bool(v) => narrow(memory, if v { u32::MAX } else { 0 }),
                Datum::I32(v) => narrow(memory, v.cast_unsigned()),
                Datum::U32(v) => narrow(memory, v),
                Datum::F32(v) => narrow(memory, v.to_bits()),
                Datum::F64(v) => {
                    let both: &mut [f64] = bytemuck::cast_slice_mut(&mut memory[at..at + 2 * SLOT]);
                    both.fill(v);
                }
            }
        }
    }

    /// The machine code for rows of this width, if there is any.
    fn native(&self, level: Level, width: usize) -> Option<&Native> {
        let made = || match &self.bytes {
            Some(bytes) => Native::of_bytes(bytes, self.reads.len(), level),
            None => Native::new(&self.dag, &self.reads, &self.ahead, level),
        };
        let native = self.native.get_or_init(made).as_ref()?;
        native.fits(width).then_some(native)
    }

    /// Computes one row of every output. `rows` are those of [`Tape::reads`], in order, then those of
    /// [`Tape::ahead`], of which the pixels do not matter; `at` is where the row is. Results that nobody reads soon may go `past` the caches.
    pub(crate) fn run(
        &self,
        level: Level,
        slots: &mut Slots,
        rows: &[RowIn<'_>],
        outs: &mut [RowOut<'_>],
        at: [i32; 2],
        width: usize,
        past: bool,
    ) {
        if let Some(native) = self.native(level, width) {
            let memory = slots.native.as_mut_slice::<f32>();
            native.row(memory, rows, outs, at, width, past);
            return;
        }
        if let Some(bytes) = &self.bytes {
            let memory = &mut slots.bytes;
            dispatch!(level, _ => bytes.row(memory, rows, outs, width));
            return;
        }
        let Slots { memory, tail, .. } = slots;
        let memory = memory.as_mut_slice::<f32>();
        dispatch!(level, simd => run::row(simd, &self.code, memory, tail, rows, outs, at, width));
    }
}

/// A node's value when it is the same for all pixels and its operands are known.
fn uniform(
    node: Node,
    of: impl Fn(u32) -> Option<Datum>,
    numbers: &[Datum],
    lists: &dyn Fn(u32, u32) -> f64,
    extents: [i32; 3],
) -> Option<Datum> {
    match node {
        Node::Const(ty, bits) => Some(Datum::of(ty, bits)),
        Node::Param { index, .. } => Some(numbers[index as usize]),
        Node::Scalar { list, index } => Some(Datum::F64(lists(list, index))),
        // Images that are read pixel by pixel have one extent.
        Node::Extent(axis) | Node::InputExtent { axis, .. } => {
            Some(Datum::I32(extents[usize::from(axis)]))
        }
        Node::Un(op, a) => datum::unary(op, of(a)?),
        Node::Bin(op, a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            // What divides by zero in whole numbers has no result; zero will do.
            Some(datum::binary(op, a, b).unwrap_or(match a {
                Datum::U32(_) => Datum::U32(0),
                _ => Datum::I32(0),
            }))
        }
        Node::Fma(a, b, c) => datum::fused(of(a)?, of(b)?, of(c)?),
        Node::Select(cond, a, b) => match of(cond)? {
            Datum::Bool(true) => of(a),
            _ => of(b),
        },
        Node::Cast(to, a) => datum::cast(to, of(a)?),
        Node::Coord(_) | Node::Load { .. } | Node::Local(..) => None,
    }
}
