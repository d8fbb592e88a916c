//! Expressions inside other templates.
//!
//! Images of the same extents have each pixel under the same number. So what a template reads can be
//! computed where it is read, from that pixel of other images, and what it writes can go through an
//! expression on its way: every load of the one buffer, or every store, is replaced in the finished
//! kernel. No template has to know.

use std::collections::HashMap;
use std::sync::Arc;

use crate::expr::{Bin, Dag, Id, Node as Term, Ty};
use crate::flow::{Flow, Node, Number, Prim, ValueId};
use crate::kernel::{Access, BufferDecl, KernelDef, Place, ScalarDecl, Stmt, Target};

use super::launch::{Launch, LaunchArg, Plan};
use super::line::halves;

/// Which hole of a template is filled.
#[derive(Clone, Copy, PartialEq)]
enum Hole {
    /// What is read is computed.
    Reads,
    /// What is written goes on; it may be wanted itself.
    Writes { kept: bool },
}

/// Computes `value` by `map` wherever the launches read it; `None` where they cannot.
pub(super) fn feed(
    plan: &Plan,
    flow: &Flow,
    (map, value): (&Node, ValueId),
    target: Target,
) -> Option<Plan> {
    fill(plan, flow, (map, value), Hole::Reads, target)
}

/// Puts what the launches write as `value` through `map`; `None` where they cannot. It is written
/// itself only if it is kept.
pub(super) fn drain(
    plan: &Plan,
    flow: &Flow,
    (map, value, kept): (&Node, ValueId, bool),
    target: Target,
) -> Option<Plan> {
    fill(plan, flow, (map, value), Hole::Writes { kept }, target)
}

fn fill(
    plan: &Plan,
    flow: &Flow,
    (map, value): (&Node, ValueId),
    hole: Hole,
    target: Target,
) -> Option<Plan> {
    let Prim::Map { dag, numbers } = &map.prim else {
        return None;
    };
    let mut filled = plan.clone();
    for launch in &mut filled.launches {
        let found = launch.args.iter();
        let found = found
            .enumerate()
            .filter(|(_, arg)| **arg == LaunchArg::Value(value));
        let places: Vec<usize> = found.map(|(at, _)| at).collect();
        match places[..] {
            [] => {}
            [at] => {
                let mut kernel = Rewrite::new(launch, u32::try_from(at).ok()?, hole);
                kernel.is_possible(flow.kind(value).dtype())?;
                kernel.declare(flow, map, value, (dag, numbers), target)?;
                kernel.body();
                *launch = kernel.finish(launch);
            }
            _ => return None,
        }
    }
    Some(filled)
}

/// Where an expression's pixels come from.
#[derive(Clone, Copy)]
enum Source {
    Buffer(u32),
    /// What the template writes.
    Given,
}

/// A kernel whose hole is being filled.
struct Rewrite<'a> {
    def: KernelDef,
    buffers: Vec<LaunchArg>,
    numbers: Vec<LaunchArg>,
    /// The buffer that is read or written.
    at: u32,
    hole: Hole,
    dag: Option<&'a Dag>,
    images: Vec<Source>,
    params: Vec<Id>,
    scalars: HashMap<(u32, u32), Id>,
    outputs: Vec<u32>,
    /// What is loaded once, at the start.
    head: Vec<Stmt>,
    locals: u32,
}

impl<'a> Rewrite<'a> {
    fn new(launch: &Launch, at: u32, hole: Hole) -> Self {
        let def = KernelDef::clone(&launch.def);
        let (buffers, numbers) = launch.args.split_at(def.buffers.len());
        let locals = def.nodes.iter().filter_map(|(node, _)| match node {
            Term::Local(number, _) => Some(number + 1),
            _ => None,
        });
        Self {
            locals: locals.max().unwrap_or(0),
            buffers: buffers.to_vec(),
            numbers: numbers.to_vec(),
            def,
            at,
            hole,
            dag: None,
            images: Vec::new(),
            params: Vec::new(),
            scalars: HashMap::new(),
            outputs: Vec::new(),
            head: Vec::new(),
        }
    }

    fn place(&self) -> Place {
        Place::Buffer(self.at)
    }

    /// Is the buffer only read, or only written, pixel by pixel?
    fn is_possible(&self, dtype: warploom_core::DType) -> Option<()> {
        let decl = &self.def.buffers[self.at as usize];
        let whole = self.def.written.is_none() && !decl.atomic && decl.dtype == dtype;
        let (mut loads, mut stores) = (false, false);
        touches(&self.def.body, self.place(), &mut loads, &mut stores);
        let one_way = match self.hole {
            Hole::Reads => !stores && decl.access == Access::Read,
            Hole::Writes { .. } => !loads,
        };
        (whole && one_way).then_some(())
    }

    fn node(&mut self, node: Term, ty: Ty) -> Id {
        self.def.nodes.push((node, ty));
        Id::try_from(self.def.nodes.len() - 1).expect("a kernel has under 2^32 terms")
    }

    fn local(&mut self, ty: Ty) -> (u32, Id) {
        let number = self.locals;
        self.locals += 1;
        (number, self.node(Term::Local(number, ty), ty))
    }

    fn scalar(&mut self, name: String, number: Number) -> Id {
        let (ty, index) = (number.ty(), self.def.scalars.len());
        self.def.scalars.push(ScalarDecl { name, ty });
        self.numbers.push(LaunchArg::Number(number));
        let index = u32::try_from(index).expect("few numbers");
        self.node(Term::Param { index, ty }, ty)
    }

    /// A buffer for a value: in place of the one that nobody needs any more, or a new one.
    fn buffer(&mut self, flow: &Flow, id: ValueId, access: Access, free: &mut bool) -> u32 {
        let (arg, dtype) = (LaunchArg::Value(id), flow.kind(id).dtype());
        let name = format!("hole{}", self.buffers.len());
        let decl = BufferDecl {
            name,
            dtype,
            access,
            atomic: false,
        };
        if std::mem::take(free) {
            self.buffers[self.at as usize] = arg;
            self.def.buffers[self.at as usize] = decl;
            return self.at;
        }
        self.buffers.push(arg);
        self.def.buffers.push(decl);
        u32::try_from(self.buffers.len() - 1).expect("few buffers")
    }

    /// Declares what the expression reads and writes, and loads numbers that were computed earlier.
    fn declare(
        &mut self,
        flow: &Flow,
        map: &Node,
        value: ValueId,
        (dag, numbers): (&'a Dag, &[Number]),
        target: Target,
    ) -> Option<()> {
        self.dag = Some(dag);
        let mut free = match self.hole {
            Hole::Reads => true,
            Hole::Writes { kept } => !kept,
        };
        if self.hole != Hole::Reads {
            for id in &map.outputs {
                let at = self.buffer(flow, *id, Access::Write, &mut free);
                self.outputs.push(at);
            }
        }
        // Images first: a list would not be indexed by pixels.
        let mut known: HashMap<ValueId, Source> = HashMap::new();
        let is_image = |id: &ValueId| flow.kind(*id).image().is_some();
        let (images, lists): (Vec<_>, Vec<_>) =
            map.inputs.iter().copied().partition(|id| is_image(id));
        for id in images.into_iter().chain(lists) {
            if known.contains_key(&id) {
                continue;
            }
            if id == value {
                known.insert(id, Source::Given);
                continue;
            }
            // No launch gets one slice twice.
            let there = self
                .buffers
                .iter()
                .position(|arg| *arg == LaunchArg::Value(id));
            let at = match there {
                Some(at) => {
                    let decl = &self.def.buffers[at];
                    let same = decl.dtype == flow.kind(id).dtype() && decl.access == Access::Read;
                    if !same || decl.atomic {
                        return None;
                    }
                    u32::try_from(at).ok()?
                }
                None => self.buffer(flow, id, Access::Read, &mut free),
            };
            known.insert(id, Source::Buffer(at));
        }
        // The buffer would be bound to nothing.
        if free {
            return None;
        }
        self.images = map.inputs.iter().map(|id| known[id]).collect();
        for (at, number) in numbers.iter().enumerate() {
            let param = self.param(at, *number, target);
            self.params.push(param);
        }
        for (node, _) in dag.nodes() {
            if let Term::Scalar { list, index } = *node
                && let Source::Buffer(at) = self.images[list as usize]
            {
                let bits = u64::from(index);
                let place = self.node(Term::Const(Ty::I32, bits), Ty::I32);
                let (number, id) = self.local(Ty::F64);
                self.head.push(Stmt::Load(number, Place::Buffer(at), place));
                self.scalars.insert((list, index), id);
            }
        }
        Some(())
    }

    fn param(&mut self, at: usize, number: Number, target: Target) -> Id {
        match number {
            Number::F64(value) if target == Target::Wgsl => {
                let [high, low] = halves(value).map(|half| {
                    let id = self.scalar(format!("hole_n{at}"), Number::F32(half));
                    self.node(Term::Cast(Ty::F64, id), Ty::F64)
                });
                let sum = self.node(Term::Bin(Bin::Add, high, low), Ty::F64);
                let (number, id) = self.local(Ty::F64);
                self.head.push(Stmt::Let(number, sum));
                id
            }
            number => self.scalar(format!("hole_n{at}"), number),
        }
    }

    /// The expression's results for the pixel of a number.
    fn results(&mut self, index: Id, given: Option<Id>, out: &mut Vec<Stmt>) -> Vec<Id> {
        let dag = self.dag.expect("declared before anything is written");
        let mut copies: Vec<Id> = Vec::with_capacity(dag.nodes().len());
        for (node, ty) in dag.nodes() {
            let copy = match *node {
                // Places are all the same one, which has a number here.
                Term::Coord(_) => index,
                Term::Load { image, .. } => match (self.images[image as usize], given) {
                    (Source::Buffer(at), _) => {
                        let (number, id) = self.local(*ty);
                        out.push(Stmt::Load(number, Place::Buffer(at), index));
                        id
                    }
                    (Source::Given, Some(given)) => given,
                    (Source::Given, None) => unreachable!("nothing computes itself"),
                },
                Term::Scalar { list, index } => self.scalars[&(list, index)],
                Term::Param { index, .. } => self.params[index as usize],
                node => {
                    let node = node.with_operands(|id| copies[id as usize]);
                    self.node(node, *ty)
                }
            };
            copies.push(copy);
        }
        let outputs = dag.outputs().iter();
        outputs.map(|output| copies[output.id as usize]).collect()
    }

    fn body(&mut self) {
        let body = std::mem::take(&mut self.def.body);
        let body = self.block(body);
        self.def.body = std::mem::take(&mut self.head);
        self.def.body.extend(body);
    }

    fn block(&mut self, block: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            match stmt {
                Stmt::Load(number, place, index)
                    if place == self.place() && self.hole == Hole::Reads =>
                {
                    let value = self.results(index, None, &mut out)[0];
                    out.push(Stmt::Let(number, value));
                }
                Stmt::Copy(place, first, count, to, at)
                    if place == self.place() && self.hole == Hole::Reads =>
                {
                    out.push(self.copy(first, count, (to, at)));
                }
                Stmt::Store(place, index, value) if place == self.place() => {
                    self.store(index, value, &mut out);
                }
                Stmt::If(cond, yes, no) => {
                    let (yes, no) = (self.block(yes), self.block(no));
                    out.push(Stmt::If(cond, yes, no));
                }
                Stmt::For(number, from, to, step, inner) => {
                    let inner = self.block(inner);
                    out.push(Stmt::For(number, from, to, step, inner));
                }
                Stmt::While(head, cond, inner) => {
                    let (head, inner) = (self.block(head), self.block(inner));
                    out.push(Stmt::While(head, cond, inner));
                }
                stmt => out.push(stmt),
            }
        }
        out
    }

    /// What is copied is computed instead, one after the other.
    fn copy(&mut self, first: Id, count: u32, (to, at): (Place, u32)) -> Stmt {
        let (number, turn) = self.local(Ty::I32);
        let mut int = |value: u32| self.node(Term::Const(Ty::I32, u64::from(value)), Ty::I32);
        let [zero, one, count, at] = [0, 1, count, at].map(&mut int);
        let mut add = |a: Id, b: Id| self.node(Term::Bin(Bin::Add, a, b), Ty::I32);
        let (from, to_number) = (add(first, turn), add(at, turn));
        let mut inner = Vec::new();
        let value = self.results(from, None, &mut inner)[0];
        inner.push(Stmt::Store(to, to_number, value));
        Stmt::For(number, zero, count, one, inner)
    }

    fn store(&mut self, index: Id, value: Id, out: &mut Vec<Stmt>) {
        let (number, given) = self.local(self.def.nodes[value as usize].1);
        out.push(Stmt::Let(number, value));
        if self.hole == (Hole::Writes { kept: true }) {
            out.push(Stmt::Store(self.place(), index, given));
        }
        let results = self.results(index, Some(given), out);
        for (to, result) in self.outputs.clone().into_iter().zip(results) {
            out.push(Stmt::Store(Place::Buffer(to), index, result));
        }
    }

    fn finish(mut self, launch: &Launch) -> Launch {
        self.buffers.append(&mut self.numbers);
        Launch {
            nodes: Vec::new(),
            def: Arc::new(self.def),
            groups: launch.groups,
            args: self.buffers,
        }
    }
}

/// Looks for what is done with a buffer; what is done as one step is a load and a store.
fn touches(block: &[Stmt], place: Place, loads: &mut bool, stores: &mut bool) {
    for stmt in block {
        match stmt {
            Stmt::Load(_, from, _) | Stmt::Copy(from, ..) => *loads |= *from == place,
            Stmt::Store(to, ..) => *stores |= *to == place,
            Stmt::Atomic(_, _, at, ..) => {
                *loads |= *at == place;
                *stores |= *at == place;
            }
            Stmt::If(_, one, two) | Stmt::While(one, _, two) => {
                touches(one, place, loads, stores);
                touches(two, place, loads, stores);
            }
            Stmt::For(.., inner) => touches(inner, place, loads, stores),
            _ => {}
        }
    }
}
