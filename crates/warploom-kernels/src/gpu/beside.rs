//! Two kernels made one: what both read comes from memory once.
//!
//! Launches of the same groups whose items look at the same pixels do their work one after the other
//! in each item. The second finds in the cache what the first has read.

use std::sync::Arc;

use crate::expr::{Id, Node as Term};
use crate::kernel::{Access, ArrayDecl, Atomic, KernelDef, Place, Space, Stmt};

use super::launch::{Launch, LaunchArg, Plan};

/// What both plans do: launches that fit together become one, the others follow each other.
pub(super) fn together(mut one: Plan, two: Plan) -> Plan {
    let number = |count: usize| u32::try_from(count).expect("few pieces");
    let (scratch, constants) = (number(one.scratch.len()), number(one.constants.len()));
    one.scratch.extend(two.scratch);
    one.constants.extend(two.constants);
    let alike = one.launches.len() == two.launches.len();
    let mut joined = Vec::new();
    let mut behind = Vec::new();
    for (at, mut launch) in two.launches.into_iter().enumerate() {
        for arg in &mut launch.args {
            match arg {
                LaunchArg::Scratch(number) => *number += scratch,
                LaunchArg::Constant(number) => *number += constants,
                LaunchArg::Value(_) | LaunchArg::Number(_) => {}
            }
        }
        let both = one.launches.get(at).filter(|_| alike);
        // One that comes behind must not be passed by those after it.
        let both = both.filter(|_| behind.is_empty());
        match both.and_then(|first| beside(first, &launch)) {
            Some(both) => joined.push(both),
            None => behind.push(launch),
        }
    }
    for (launch, both) in one.launches.iter_mut().zip(joined) {
        *launch = both;
    }
    one.launches.extend(behind);
    one
}

/// Two launches as one; `None` when their groups differ, or what one writes the other touches.
fn beside(one: &Launch, two: &Launch) -> Option<Launch> {
    let written = one.def.written.is_some() || two.def.written.is_some();
    if written || one.groups != two.groups || one.def.group != two.def.group {
        return None;
    }
    let mut def = KernelDef::clone(&one.def);
    let (first, numbers) = one.args.split_at(def.buffers.len());
    let mut buffers = first.to_vec();
    let mut shift = Shift::of(&def);
    for (decl, arg) in two.def.buffers.iter().zip(&two.args) {
        let there = buffers.iter().position(|other| other == arg);
        let at = if let Some(at) = there {
            let other = &def.buffers[at];
            let reads = other.access == Access::Read && decl.access == Access::Read;
            if !reads || other.atomic || decl.atomic || other.dtype != decl.dtype {
                return None;
            }
            at
        } else {
            buffers.push(*arg);
            def.buffers.push(decl.clone());
            buffers.len() - 1
        };
        shift.buffers.push(u32::try_from(at).ok()?);
    }
    // An item has done the first work when it begins the second.
    let mut free: Vec<bool> = def.arrays.iter().map(is_own).collect();
    for array in &two.def.arrays {
        let mut old = free.iter().zip(&def.arrays);
        let at = if let Some(at) = old.position(|(free, other)| *free && other == array) {
            free[at] = false;
            at
        } else {
            def.arrays.push(array.clone());
            free.push(false);
            def.arrays.len() - 1
        };
        shift.arrays.push(u32::try_from(at).ok()?);
    }
    def.scalars.extend(two.def.scalars.iter().cloned());
    let nodes = two.def.nodes.iter();
    let nodes = nodes.map(|(node, ty)| (shift.node(*node), *ty));
    let nodes: Vec<_> = nodes.collect();
    def.nodes.extend(nodes);
    def.body.extend(shift.block(&two.def.body));
    let all = two.args[two.def.buffers.len()..].iter();
    buffers.extend(numbers.iter().chain(all));
    Some(Launch {
        nodes: Vec::new(),
        def: Arc::new(def),
        groups: one.groups,
        args: buffers,
    })
}

/// Is it an item's own, so that nobody else may still look at it?
fn is_own(array: &ArrayDecl) -> bool {
    array.space == Space::Private && !array.atomic
}

/// What the second kernel's numbers become behind the first's.
struct Shift {
    nodes: Id,
    locals: u32,
    scalars: u32,
    buffers: Vec<u32>,
    arrays: Vec<u32>,
}

impl Shift {
    fn of(def: &KernelDef) -> Self {
        let locals = def.nodes.iter().filter_map(|(node, _)| match node {
            Term::Local(number, _) => Some(number + 1),
            _ => None,
        });
        Self {
            nodes: Id::try_from(def.nodes.len()).expect("a kernel has under 2^32 terms"),
            locals: locals.max().unwrap_or(0),
            scalars: u32::try_from(def.scalars.len()).expect("few numbers"),
            buffers: Vec::new(),
            arrays: Vec::new(),
        }
    }

    fn node(&self, node: Term) -> Term {
        match node {
            Term::Local(number, ty) => Term::Local(number + self.locals, ty),
            Term::Param { index, ty } => Term::Param {
                index: index + self.scalars,
                ty,
            },
            node => node.with_operands(|id| self.id(id)),
        }
    }

    fn id(&self, id: Id) -> Id {
        id + self.nodes
    }

    fn local(&self, number: u32) -> u32 {
        number + self.locals
    }

    fn place(&self, place: Place) -> Place {
        match place {
            Place::Buffer(at) => Place::Buffer(self.buffers[at as usize]),
            Place::Array(at) => Place::Array(self.arrays[at as usize]),
        }
    }

    fn block(&self, block: &[Stmt]) -> Vec<Stmt> {
        block.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Let(number, id) => Stmt::Let(self.local(*number), self.id(*id)),
            Stmt::Load(number, place, index) => {
                Stmt::Load(self.local(*number), self.place(*place), self.id(*index))
            }
            Stmt::Work(number, work) => Stmt::Work(self.local(*number), *work),
            Stmt::Var(number, id) => Stmt::Var(self.local(*number), self.id(*id)),
            Stmt::Get(number, var) => Stmt::Get(self.local(*number), self.local(*var)),
            Stmt::Set(var, id) => Stmt::Set(self.local(*var), self.id(*id)),
            Stmt::Store(place, index, value) => {
                Stmt::Store(self.place(*place), self.id(*index), self.id(*value))
            }
            Stmt::Copy(from, first, count, to, at) => Stmt::Copy(
                self.place(*from),
                self.id(*first),
                *count,
                self.place(*to),
                *at,
            ),
            Stmt::Deal(from, to) => Stmt::Deal(self.place(*from), self.place(*to)),
            Stmt::Riffle(from, to) => Stmt::Riffle(self.place(*from), self.place(*to)),
            Stmt::Soon(place, index, access) => {
                Stmt::Soon(self.place(*place), self.id(*index), *access)
            }
            Stmt::Atomic(number, op, place, index, value) => {
                let op = match op {
                    Atomic::CompareExchange(old) => Atomic::CompareExchange(self.id(*old)),
                    op => *op,
                };
                Stmt::Atomic(
                    self.local(*number),
                    op,
                    self.place(*place),
                    self.id(*index),
                    self.id(*value),
                )
            }
            Stmt::If(cond, yes, no) => Stmt::If(self.id(*cond), self.block(yes), self.block(no)),
            Stmt::For(number, from, to, step, block) => Stmt::For(
                self.local(*number),
                self.id(*from),
                self.id(*to),
                self.id(*step),
                self.block(block),
            ),
            Stmt::While(head, cond, block) => {
                Stmt::While(self.block(head), self.id(*cond), self.block(block))
            }
            Stmt::Barrier => Stmt::Barrier,
            Stmt::Break => Stmt::Break,
        }
    }
}
