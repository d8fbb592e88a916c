//! From an expression to a tape.

use std::sync::Arc;

use warploom_core::DType;

use super::bytes::Bytes;
use super::ins::{Ins, One, Op, Src, Wide};
use super::{Read, Tape};
use warploom_flow::expr::{Bin, Dag, Id, Node, Ty, Un};

/// Terms nested deeper than this are put down on the way, so that no recursion is deeper.
const DEPTH: u32 = 200;

pub(super) fn compile(dag: &Dag) -> Option<Tape> {
    let mut maker = Maker::new(dag)?;
    let asks_where = maker.nodes.iter().zip(&maker.uses).any(|(node, &uses)| {
        let place = matches!(
            node,
            Node::Coord(_) | Node::Extent(_) | Node::InputExtent { .. }
        );
        place && uses > 0
    });
    for id in 0..maker.nodes.len() as Id {
        let at = id as usize;
        if maker.uses[at] > 0 && !maker.uniform[at] && maker.depth[at] % DEPTH == DEPTH - 1 {
            maker.settle(id);
        }
    }
    for (out, output) in (0..).zip(dag.outputs()) {
        if maker.ty(output.id) == Ty::F64 {
            let slot = maker.wide(output.id);
            maker.code.push(Ins::PutWide { out, slot });
        } else {
            maker.compute(output.id);
            maker.code.push(Ins::Put(out));
        }
        maker.spend(output.id);
    }
    let beside = maker.reads.iter().any(|read| read.offset != [0; 3]);
    Some(Tape {
        is_local: !asks_where && !beside,
        bytes: Bytes::new(dag, &maker.reads),
        code: maker.code,
        ahead: ahead(&maker.reads, dag.inputs()),
        reads: maker.reads,
        uniforms: maker.uniforms,
        dag: dag.clone(),
        slots: maker.slots,
        outputs: dag.outputs().iter().map(|output| output.dtype).collect(),
        native: Arc::default(),
    })
}

/// Of every image of words of which other pixels than the very one are read, the row below the lowest that is, in each
/// plane.
fn ahead(reads: &[Read], inputs: &[DType]) -> Vec<Read> {
    let mut ahead: Vec<Read> = Vec::new();
    let is_beside = |read: &&Read| read.offset != [0; 3] && inputs[read.image].bytes() == 4;
    for read in reads.iter().filter(is_beside) {
        let of = |other: &Read| (other.image, other.offset[0]) == (read.image, read.offset[0]);
        if ahead.iter().any(of) {
            continue;
        }
        let lowest = reads
            .iter()
            .filter(|other| of(other))
            .map(|it| it.offset[1]);
        let next = lowest.max().unwrap_or(0) + 1;
        ahead.push(Read {
            offset: [read.offset[0], next, 0],
            ..*read
        });
    }
    ahead
}

/// The nodes of an expression, without what makes no difference on this machine.
pub(super) fn simplified(dag: &Dag) -> Vec<Node> {
    let mut nodes: Vec<Node> = dag.nodes().iter().map(|(node, _)| *node).collect();
    // max(0, x) is 0 for what is not a number: it need not be made 0 before.
    for at in 0..nodes.len() {
        if let Node::Bin(Bin::Max, low, choice) = nodes[at]
            && nodes[low as usize] == Node::Const(Ty::F32, 0)
            && let Node::Select(cond, zero, x) = nodes[choice as usize]
            && nodes[cond as usize] == Node::Un(Un::IsNan, x)
            && zero == low
        {
            nodes[at] = Node::Bin(Bin::Max, low, x);
        }
    }
    nodes
}

struct Maker<'a> {
    dag: &'a Dag,
    nodes: Vec<Node>,
    /// How often each is still needed.
    uses: Vec<u32>,
    uniform: Vec<bool>,
    depth: Vec<u32>,
    /// Where each was put down.
    kept: Vec<Option<u16>>,
    /// Which is in the accumulator.
    here: Option<Id>,
    /// Slots that are free, of one unit and of two.
    free: [Vec<u16>; 2],
    slots: usize,
    code: Vec<Ins>,
    reads: Vec<Read>,
    uniforms: Vec<(Id, u16)>,
}

impl<'a> Maker<'a> {
    fn new(dag: &'a Dag) -> Option<Self> {
        let nodes = simplified(dag);
        let count = nodes.len();
        let mut uses = vec![0; count];
        for output in dag.outputs() {
            uses[output.id as usize] += 1;
        }
        for at in (0..count).rev() {
            if uses[at] > 0 && !matches!(nodes[at], Node::Load { .. }) {
                nodes[at].operands().for_each(|id| uses[id as usize] += 1);
            }
        }
        let mut uniform = Vec::with_capacity(count);
        let mut depth = Vec::with_capacity(count);
        for (at, node) in nodes.iter().enumerate() {
            let (mut same, mut deep) = (true, 0);
            match node {
                Node::Load { at: place, .. } => {
                    same = false;
                    if uses[at] > 0 {
                        dag.offset(*place)?;
                    }
                }
                Node::Coord(_) => same = false,
                Node::Local(..) => return None,
                _ => {
                    for id in node.operands() {
                        same &= uniform[id as usize];
                        deep = deep.max(depth[id as usize] + 1);
                    }
                }
            }
            uniform.push(same);
            depth.push(deep);
        }
        Some(Self {
            dag,
            nodes,
            uses,
            uniform,
            depth,
            kept: vec![None; count],
            here: None,
            free: [Vec::new(), Vec::new()],
            slots: 0,
            code: Vec::new(),
            reads: Vec::new(),
            uniforms: Vec::new(),
        })
    }

    fn ty(&self, id: Id) -> Ty {
        self.dag.ty(id)
    }

    fn slot(&mut self, ty: Ty) -> u16 {
        let free = &mut self.free[usize::from(ty == Ty::F64)];
        free.pop().unwrap_or_else(|| self.new_slot(ty))
    }

    fn new_slot(&mut self, ty: Ty) -> u16 {
        let slot = u16::try_from(self.slots).expect("an expression keeps few values at a time");
        self.slots += 1 + usize::from(ty == Ty::F64);
        slot
    }

    /// One use of a value is over.
    fn spend(&mut self, id: Id) {
        let at = id as usize;
        self.uses[at] -= 1;
        if self.uses[at] == 0
            && !self.uniform[at]
            && let Some(slot) = self.kept[at].take()
        {
            let units = usize::from(self.ty(id) == Ty::F64);
            self.free[units].push(slot);
        }
    }

    /// The row an image is read from at an offset.
    fn row(&mut self, id: Id) -> u16 {
        let Node::Load {
            image,
            at,
            boundary,
        } = self.nodes[id as usize]
        else {
            unreachable!("only loads have rows")
        };
        let read = Read {
            image: image as usize,
            offset: self.dag.offset(at).expect("it was looked at before"),
            boundary,
        };
        let known = self.reads.iter().position(|other| *other == read);
        let place = known.unwrap_or_else(|| {
            self.reads.push(read);
            self.reads.len() - 1
        });
        u16::try_from(place).expect("an expression reads few rows")
    }

    /// Element type of the image a load reads.
    fn loaded(&self, id: Id) -> Option<DType> {
        match self.nodes[id as usize] {
            Node::Load { image, .. } => Some(self.dag.inputs()[image as usize]),
            _ => None,
        }
    }

    /// Where a value can be had without computing it.
    fn source(&mut self, id: Id) -> Option<Src> {
        if let Some(slot) = self.kept[id as usize] {
            return Some(Src::Slot(slot));
        }
        if self.uniform[id as usize] {
            // It is written once, before all pixels: nothing else may ever use its slot.
            let slot = self.new_slot(self.ty(id));
            self.kept[id as usize] = Some(slot);
            self.uniforms.push((id, slot));
            return Some(Src::Slot(slot));
        }
        let words = matches!(self.loaded(id)?, DType::I32 | DType::U32 | DType::F32);
        words.then(|| Src::Row(self.row(id)))
    }

    /// Puts the accumulator down under the name of `id`.
    fn keep(&mut self, id: Id) -> u16 {
        if let Some(slot) = self.kept[id as usize] {
            return slot;
        }
        let slot = self.slot(self.ty(id));
        self.code.push(Ins::Keep(slot));
        self.kept[id as usize] = Some(slot);
        slot
    }

    /// Somewhere outside the accumulator.
    fn ready(&mut self, id: Id) -> Src {
        self.source(id).unwrap_or_else(|| {
            self.compute(id);
            Src::Slot(self.keep(id))
        })
    }

    /// In a slot.
    fn settle(&mut self, id: Id) -> u16 {
        if self.ty(id) == Ty::F64 {
            return self.wide(id);
        }
        if let Some(Src::Slot(slot)) = self.source(id) {
            return slot;
        }
        self.compute(id);
        self.keep(id)
    }

    /// The accumulator is now `id`; it is put down when more than one needs it.
    fn done(&mut self, id: Id) {
        self.here = Some(id);
        if self.uses[id as usize] > 1 && self.source(id).is_none() {
            self.keep(id);
        }
    }

    /// Into the accumulator.
    fn compute(&mut self, id: Id) {
        if self.here == Some(id) {
            return;
        }
        if let Some(source) = self.source(id) {
            self.code.push(Ins::Take(source));
            self.here = Some(id);
            return;
        }
        match self.nodes[id as usize] {
            Node::Load { .. } => {
                let row = self.row(id);
                self.code.push(Ins::Widen { row, float: false });
            }
            Node::Coord(axis) => self.code.push(Ins::Coord(axis)),
            Node::Un(op, a) => self.unary(op, a, id),
            Node::Bin(op, a, b) => self.binary(op, a, b, id),
            Node::Fma(a, b, c) => {
                let last = self.gather([a, b, c]);
                let [a_at, b_at, c_at] = last.1;
                self.code.push(match last.0 {
                    0 => Ins::MulAdd(b_at, c_at),
                    1 => Ins::MulAdd(a_at, c_at),
                    _ => Ins::AddMul(a_at, b_at),
                });
                for id in [a, b, c] {
                    self.spend(id);
                }
            }
            Node::Select(cond, a, b) => {
                let (last, [cond_at, a_at, b_at]) = self.gather([cond, a, b]);
                self.code.push(match last {
                    0 => Ins::Choose(a_at, b_at),
                    1 => Ins::ChooseThis(cond_at, b_at),
                    _ => Ins::ChooseThat(cond_at, a_at),
                });
                for id in [cond, a, b] {
                    self.spend(id);
                }
            }
            Node::Cast(to, a) => self.cast(to, a, id),
            Node::Const(..)
            | Node::Param { .. }
            | Node::Extent(_)
            | Node::InputExtent { .. }
            | Node::Scalar { .. }
            | Node::Local(..) => unreachable!("it is the same for all pixels"),
        }
        self.done(id);
    }

    /// Two of three operands outside the accumulator and one, whose place is told, inside.
    fn gather(&mut self, ids: [Id; 3]) -> (usize, [Src; 3]) {
        let missing = |maker: &mut Self, id: Id| maker.source(id).is_none();
        // What is in the accumulator already stays there when all others can be had.
        let mut last = self
            .here
            .and_then(|id| ids.iter().position(|&other| other == id));
        for (place, &id) in ids.iter().enumerate() {
            if missing(self, id) && self.here != Some(id) {
                last = Some(place);
            }
        }
        let last = last.unwrap_or(0);
        let twice = (0..3).any(|place| place != last && ids[place] == ids[last]);
        for (place, &id) in ids.iter().enumerate() {
            if place != last && id != ids[last] {
                self.ready(id);
            }
        }
        self.compute(ids[last]);
        if twice {
            self.ready(ids[last]);
        }
        let sources = [0, 1, 2].map(|place| {
            if place == last {
                Src::Slot(0)
            } else {
                self.source(ids[place]).expect("it was put down")
            }
        });
        (last, sources)
    }

    fn unary(&mut self, op: Un, a: Id, id: Id) {
        if self.ty(a) == Ty::F64 {
            let (a_at, to) = (self.wide(a), self.slot(self.ty(id)));
            let op = Wide::IsNan(a_at);
            self.code.push(Ins::Wide { op, to });
            self.spend(a);
            self.arrive(id, to);
            return;
        }
        self.compute(a);
        if !matches!(op, Un::ToBits | Un::FromBits) {
            let one = One::of(op, self.ty(a));
            // Nothing else is defined for these types; the magnitude of a u32 is itself.
            self.code.extend(one.map(Ins::Un));
        }
        self.spend(a);
    }

    /// A value was written to a slot: it is taken from there.
    fn arrive(&mut self, id: Id, slot: u16) {
        self.kept[id as usize] = Some(slot);
        self.code.push(Ins::Take(Src::Slot(slot)));
    }

    fn binary(&mut self, op: Bin, a: Id, b: Id, id: Id) {
        let ty = self.ty(a);
        if ty == Ty::F64 {
            let (a_at, b_at) = (self.wide(a), self.wide(b));
            let to = self.slot(self.ty(id));
            let op = Wide::Compare(op, a_at, b_at);
            self.code.push(Ins::Wide { op, to });
            self.spend(a);
            self.spend(b);
            self.arrive(id, to);
            return;
        }
        if let Some(shift) = Op::shift(op, ty) {
            self.ready(b);
            self.compute(a);
            let by = self.source(b).expect("it was put down");
            self.code.push(Ins::Bin(shift, by));
        } else if let Some([left, right]) = Op::of(op, ty) {
            let (a_there, b_there) = (self.source(a).is_some(), self.source(b).is_some());
            let a_first = if a_there && b_there {
                self.here != Some(b)
            } else {
                b_there
            };
            if a_first {
                self.compute(a);
                let source = self.source(b).expect("it was there");
                self.code.push(Ins::Bin(left, source));
            } else {
                let source = self.ready(a);
                self.compute(b);
                self.code.push(Ins::Bin(right, source));
            }
        } else {
            let (a_at, b_at) = (self.settle(a), self.settle(b));
            let to = self.slot(ty);
            let signed = ty == Ty::I32;
            self.code.push(Ins::Slow {
                op,
                signed,
                a: a_at,
                b: b_at,
                to,
            });
            self.spend(a);
            self.spend(b);
            self.arrive(id, to);
            return;
        }
        self.spend(a);
        self.spend(b);
    }

    fn cast(&mut self, to: Ty, a: Id, id: Id) {
        let from = self.ty(a);
        if from == Ty::F64 {
            let (a_at, slot) = (self.wide(a), self.slot(to));
            self.code.push(Ins::Wide {
                op: Wide::To(to, a_at),
                to: slot,
            });
            self.spend(a);
            self.arrive(id, slot);
            return;
        }
        let small = matches!(self.loaded(a), Some(DType::U8 | DType::U16 | DType::I16));
        if to == Ty::F32 && small && self.kept[a as usize].is_none() && self.here != Some(a) {
            let row = self.row(a);
            self.code.push(Ins::Widen { row, float: true });
        } else {
            self.compute(a);
            self.code.extend(One::cast(from, to).map(Ins::Un));
        }
        self.spend(a);
    }

    /// A value of 64 bits, in a slot.
    fn wide(&mut self, id: Id) -> u16 {
        if let Some(Src::Slot(slot)) = self.source(id) {
            return slot;
        }
        // Nothing of 64 bits is ever in the accumulator.
        let (op, operands) = match self.nodes[id as usize] {
            Node::Load { .. } => (Wide::Load(self.row(id)), [None; 3]),
            Node::Un(op, a) => (Wide::Un(op, self.wide(a)), [Some(a), None, None]),
            Node::Bin(op, a, b) => {
                let (a_at, b_at) = (self.wide(a), self.wide(b));
                (Wide::Bin(op, a_at, b_at), [Some(a), Some(b), None])
            }
            Node::Fma(a, b, c) => {
                let at = [a, b, c].map(|id| self.wide(id));
                (Wide::Fma(at[0], at[1], at[2]), [Some(a), Some(b), Some(c)])
            }
            Node::Select(cond, a, b) => {
                let cond_at = self.settle(cond);
                let (a_at, b_at) = (self.wide(a), self.wide(b));
                (
                    Wide::Select(cond_at, a_at, b_at),
                    [Some(cond), Some(a), Some(b)],
                )
            }
            Node::Cast(_, a) => (
                Wide::From(self.ty(a), self.settle(a)),
                [Some(a), None, None],
            ),
            _ => unreachable!("no other node has 64 bits and differs from pixel to pixel"),
        };
        let to = self.slot(Ty::F64);
        self.code.push(Ins::Wide { op, to });
        operands.into_iter().flatten().for_each(|id| self.spend(id));
        self.kept[id as usize] = Some(to);
        to
    }
}
