//! From statements to text, the same way for every language.

use std::fmt::Write as _;

use super::def::{Atomic, KernelDef, Place, Stmt, Work};
use crate::expr::{Bin, Id, Node, Ty, Un};

/// How a language says things.
pub(super) trait Dialect {
    /// A constant.
    fn constant(&self, ty: Ty, bits: u64) -> String;
    /// A number given at launch.
    fn param(&self, index: u32) -> String;
    /// An operation of one operand; `ty` is the operand's.
    fn un(&self, op: Un, ty: Ty, a: &str) -> String;
    /// An operation of two operands; `ty` is the operands'.
    fn bin(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String;
    /// `a * b + c`, rounded once.
    fn fma(&self, ty: Ty, a: &str, b: &str, c: &str) -> String;
    /// A choice.
    fn select(&self, cond: &str, a: &str, b: &str) -> String;
    /// A change of type.
    fn cast(&self, from: Ty, to: Ty, a: &str) -> String;
    /// A place in the launch.
    fn work(&self, work: Work) -> String;
    /// A named value, the whole statement.
    fn let_(&self, ty: Ty, name: &str, value: &str) -> String;
    /// A variable, the whole statement.
    fn var(&self, ty: Ty, name: &str, value: &str) -> String;
    /// An element of memory.
    fn load(&self, place: Place, index: &str) -> String;
    /// Writes an element, the whole statement.
    fn store(&self, place: Place, index: &str, value: &str) -> String;
    /// Changes an element as one step: an expression of what it was.
    fn atomic(&self, op: Atomic, place: Place, index: &str, value: &str, old: &str) -> String;
    /// The head of a counting loop.
    fn for_(&self, name: &str, from: &str, to: &str, step: &str) -> String;
    /// The head of an endless loop.
    fn endless(&self) -> &'static str;
    /// Waits for the group.
    fn barrier(&self) -> &'static str;
}

/// Writes a body.
pub(super) struct Walk<'a, D> {
    def: &'a KernelDef,
    dialect: D,
    text: String,
    depth: usize,
    temps: u32,
}

/// Without parentheses around all of it: compilers warn of two pairs.
fn bare(text: &str) -> &str {
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let mut depth = 0_i32;
    let closes_early = |inner: &str| {
        inner.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth < 0
        })
    };
    match inner {
        Some(inner) if !{ closes_early }(inner) => inner,
        _ => text,
    }
}

/// Longer expressions get a name, which keeps lines readable and compilers quick.
const LONG: usize = 120;

impl<'a, D: Dialect> Walk<'a, D> {
    pub(super) fn new(def: &'a KernelDef, dialect: D) -> Self {
        Self {
            def,
            dialect,
            text: String::new(),
            depth: 1,
            temps: 0,
        }
    }

    pub(super) fn body(mut self) -> String {
        self.block(&self.def.body);
        self.text
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * self.depth);
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn inner(&mut self, block: &[Stmt]) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn ty(&self, id: Id) -> Ty {
        self.def.nodes[id as usize].1
    }

    fn one(&mut self, id: Id) -> String {
        let [text] = self.values([id]);
        text
    }

    /// The text of some expressions; shared parts are named first.
    fn values<const N: usize>(&mut self, roots: [Id; N]) -> [String; N] {
        let top = roots.iter().copied().max().unwrap_or(0) as usize;
        let mut uses = vec![0_u32; top + 1];
        for root in roots {
            uses[root as usize] += 1;
        }
        for id in (0..=top).rev() {
            if uses[id] == 0 {
                continue;
            }
            let (node, _) = self.def.nodes[id];
            // These write an operand twice.
            let twice = matches!(
                node,
                Node::Bin(Bin::Min | Bin::Max, ..) | Node::Un(Un::Abs | Un::IsNan, _)
            );
            for operand in node.operands() {
                uses[operand as usize] += if twice { 2 } else { 1 };
            }
        }
        let mut texts: Vec<String> = vec![String::new(); top + 1];
        for id in 0..=top {
            if uses[id] == 0 {
                continue;
            }
            let (node, ty) = self.def.nodes[id];
            let text = self.node(node, &texts);
            let leaf = node.operands().next().is_none();
            texts[id] = if leaf || (uses[id] == 1 && text.len() < LONG) {
                text
            } else {
                let name = format!("t{}", self.temps);
                self.temps += 1;
                let line = self.dialect.let_(ty, &name, &text);
                self.line(&line);
                name
            };
        }
        roots.map(|root| texts[root as usize].clone())
    }

    fn node(&self, node: Node, texts: &[String]) -> String {
        let of = |id: Id| texts[id as usize].as_str();
        let d = &self.dialect;
        match node {
            Node::Const(ty, bits) => d.constant(ty, bits),
            Node::Param { index, .. } => d.param(index),
            Node::Local(number, _) => format!("v{number}"),
            Node::Un(op, a) => d.un(op, self.ty(a), of(a)),
            Node::Bin(op, a, b) => d.bin(op, self.ty(a), of(a), of(b)),
            Node::Fma(a, b, c) => d.fma(self.ty(a), of(a), of(b), of(c)),
            Node::Select(cond, a, b) => d.select(of(cond), of(a), of(b)),
            Node::Cast(to, a) => d.cast(self.ty(a), to, of(a)),
            Node::Coord(_)
            | Node::Extent(_)
            | Node::InputExtent { .. }
            | Node::Load { .. }
            | Node::Scalar { .. } => {
                unreachable!("templates replace what only a pixel's expression can say: {node:?}")
            }
        }
    }

    fn let_(&mut self, ty: Ty, number: u32, value: &str) {
        let line = self.dialect.let_(ty, &format!("v{number}"), value);
        self.line(&line);
    }

    fn place_ty(&self, place: Place) -> Ty {
        match place {
            Place::Buffer(number) => {
                let dtype = self.def.buffers[number as usize].dtype;
                Ty::of(dtype).expect("checked when it was declared")
            }
            Place::Array(number) => self.def.arrays[number as usize].ty,
        }
    }

    fn local_ty(&self, number: u32) -> Ty {
        let mut nodes = self.def.nodes.iter();
        let found = nodes.find_map(|(node, ty)| match node {
            Node::Local(local, _) if *local == number => Some(*ty),
            _ => None,
        });
        found.expect("every local variable has a node")
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(number, id) => {
                let value = self.one(*id);
                self.let_(self.ty(*id), *number, &value);
            }
            Stmt::Load(number, place, index) => {
                let index = self.one(*index);
                let value = self.dialect.load(*place, &index);
                self.let_(self.place_ty(*place), *number, &value);
            }
            Stmt::Work(number, work) => {
                let value = self.dialect.work(*work);
                self.let_(Ty::I32, *number, &value);
            }
            Stmt::Var(number, id) => {
                let value = self.one(*id);
                let line = self
                    .dialect
                    .var(self.ty(*id), &format!("v{number}"), &value);
                self.line(&line);
            }
            Stmt::Get(number, var) => {
                self.let_(self.local_ty(*number), *number, &format!("v{var}"));
            }
            Stmt::Set(var, id) => {
                let value = self.one(*id);
                self.line(&format!("v{var} = {value};"));
            }
            Stmt::Store(place, index, value) => {
                let [index, value] = self.values([*index, *value]);
                let line = self.dialect.store(*place, &index, &value);
                self.line(&line);
            }
            Stmt::Atomic(number, op, place, index, value) => {
                let old = match op {
                    Atomic::CompareExchange(old) => *old,
                    _ => *value,
                };
                let [index, value, old] = self.values([*index, *value, old]);
                let was = self.dialect.atomic(*op, *place, &index, &value, &old);
                self.let_(self.place_ty(*place), *number, &was);
            }
            Stmt::If(cond, yes, no) => {
                let cond = self.one(*cond);
                self.line(&format!("if ({}) {{", bare(&cond)));
                self.inner(yes);
                if !no.is_empty() {
                    self.line("} else {");
                    self.inner(no);
                }
                self.line("}");
            }
            Stmt::For(number, from, to, step, block) => {
                let [from, to, step] = self.values([*from, *to, *step]);
                let head = self.dialect.for_(&format!("v{number}"), &from, &to, &step);
                self.line(&head);
                self.inner(block);
                self.line("}");
            }
            Stmt::While(head, cond, block) => {
                self.line(self.dialect.endless());
                self.inner(head);
                self.depth += 1;
                let cond = self.one(*cond);
                self.line(&format!("if (!({cond})) {{ break; }}"));
                self.depth -= 1;
                self.inner(block);
                self.line("}");
            }
            Stmt::Barrier => self.line(self.dialect.barrier()),
            Stmt::Break => self.line("break;"),
        }
    }
}
