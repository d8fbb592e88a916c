//! From statements to text, the same way for every language.

use std::fmt::Write as _;

use super::def::{Access, Atomic, KernelDef, Place, Stmt, Work};
use crate::expr::{Bin, Datum, Id, Node, Ty, Un};

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
    /// The same where the result is known to be in range and, of a quotient, the divisor is known
    /// not to be 0 or -1.
    fn bounded(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String;
    /// A part of an element's number, for sums and products that make the whole of it.
    fn number(&self, a: &str) -> String {
        a.to_owned()
    }
    /// A named part of an element's number, the whole statement.
    fn let_number(&self, name: &str, value: &str) -> String {
        self.let_(Ty::I32, name, value)
    }
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
    /// Copies `count` elements of a buffer into an array from its element `at` on, the whole statements.
    fn copy(&self, from: Place, first: &str, count: u32, to: Place, at: u32) -> Vec<String> {
        self.copied(from, first, count, to, at)
    }
    /// The same, element by element.
    fn copied(&self, from: Place, first: &str, count: u32, to: Place, at: u32) -> Vec<String> {
        let value = self.load(from, &format!("{first} + copy"));
        vec![
            self.for_("copy", "0", &count.to_string(), "1"),
            format!("  {}", self.store(to, &format!("{at} + copy"), &value)),
            "}".into(),
        ]
    }
    /// Deals `length` elements of an array out onto the halves of another, the whole statements.
    fn deal(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        self.dealt(from, to, length)
    }
    /// The same, element by element.
    fn dealt(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        let half = length / 2;
        let (even, odd) = (self.load(from, "deal * 2"), self.load(from, "deal * 2 + 1"));
        vec![
            self.for_("deal", "0", &half.to_string(), "1"),
            format!("  {}", self.store(to, "deal", &even)),
            format!("  {}", self.store(to, &format!("deal + {half}"), &odd)),
            "}".into(),
        ]
    }
    /// Puts the halves of `length` elements together on another array, the whole statements.
    fn riffle(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        self.riffled(from, to, length)
    }
    /// The same, element by element.
    fn riffled(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        let half = length / 2;
        let first = self.load(from, "deal");
        let second = self.load(from, &format!("deal + {half}"));
        vec![
            self.for_("deal", "0", &half.to_string(), "1"),
            format!("  {}", self.store(to, "deal * 2", &first)),
            format!("  {}", self.store(to, "deal * 2 + 1", &second)),
            "}".into(),
        ]
    }
    /// A hint that an element will be used soon, the whole statement; nothing where that is of no use.
    fn soon(&self, _place: Place, _index: &str, _access: Access) -> Option<String> {
        None
    }
    /// Changes an element as one step: an expression of what it was.
    fn atomic(&self, op: Atomic, place: Place, index: &str, value: &str, old: &str) -> String;
    /// The head of a counting loop.
    fn for_(&self, name: &str, from: &str, to: &str, step: &str) -> String;
    /// The head of an endless loop.
    fn endless(&self) -> &'static str;
    /// Waits for the group.
    fn barrier(&self) -> &'static str;
}

/// An expression to be written, and what is known of its result.
#[derive(Clone, Copy)]
enum Root {
    /// Nothing.
    Any(Id),
    /// It is the end of a loop, so sums and products that it is made of stay in range. A compiler that knows
    /// this turns loops over elements into vector code.
    Bounded(Id),
    /// It is an element's number, of which that holds too.
    Number(Id),
}

impl Root {
    fn id(self) -> Id {
        match self {
            Self::Any(id) | Self::Bounded(id) | Self::Number(id) => id,
        }
    }
}

/// Writes a body.
pub(super) struct Walk<'a, D> {
    def: &'a KernelDef,
    dialect: D,
    text: String,
    depth: usize,
    temps: u32,
    /// For every node, what is known of it in the statement being written.
    parts: Vec<Part>,
    /// The types of local variables.
    locals: Vec<Ty>,
}

/// A node in a statement.
#[derive(Clone, Default)]
struct Part {
    seen: bool,
    uses: u32,
    /// May the result be out of range?
    any: bool,
    /// Is the text a sum or product that makes an element's number?
    number: bool,
    text: String,
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
        let mut locals = Vec::new();
        for (node, ty) in &def.nodes {
            if let Node::Local(number, _) = node {
                let number = *number as usize;
                locals.resize(locals.len().max(number + 1), Ty::I32);
                locals[number] = *ty;
            }
        }
        Self {
            def,
            dialect,
            text: String::new(),
            depth: 1,
            temps: 0,
            parts: vec![Part::default(); def.nodes.len()],
            locals,
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
        let [text] = self.values([Root::Any(id)]);
        text
    }

    /// Everything some expressions are made of, operands first. Kernels have thousands of nodes
    /// and statements, so a statement looks at its own nodes only.
    fn parts(&mut self, roots: impl Iterator<Item = Id>) -> Vec<Id> {
        let mut parts: Vec<Id> = Vec::new();
        let mut todo: Vec<Id> = roots.collect();
        while let Some(id) = todo.pop() {
            if !std::mem::replace(&mut self.parts[id as usize].seen, true) {
                parts.push(id);
                todo.extend(self.def.nodes[id as usize].0.operands());
            }
        }
        parts.sort_unstable();
        parts
    }

    /// The text of some expressions; shared parts are named first.
    fn values<const N: usize>(&mut self, roots: [Root; N]) -> [String; N] {
        let parts = self.parts(roots.iter().map(|root| root.id()));
        for root in roots {
            let part = &mut self.parts[root.id() as usize];
            part.uses += 1;
            part.any |= matches!(root, Root::Any(_));
        }
        for id in parts.iter().rev() {
            let (node, ty) = self.def.nodes[*id as usize];
            // These write an operand twice.
            let twice = match node {
                Node::Bin(Bin::Div | Bin::Rem, ..) => ty.is_int(),
                Node::Bin(Bin::Min | Bin::Max, ..) | Node::Un(Un::Abs | Un::IsNan, _) => true,
                _ => false,
            };
            let linear = matches!(node, Node::Bin(Bin::Add | Bin::Sub | Bin::Mul, ..));
            let any = self.parts[*id as usize].any || !linear;
            for operand in node.operands() {
                let part = &mut self.parts[operand as usize];
                part.uses += if twice { 2 } else { 1 };
                part.any |= any;
            }
        }
        let numbers = roots.iter().any(|root| matches!(root, Root::Number(_)));
        for id in &parts {
            let (node, ty) = self.def.nodes[*id as usize];
            let any = self.parts[*id as usize].any;
            let linear = matches!(node, Node::Bin(Bin::Add | Bin::Sub | Bin::Mul, ..));
            let number = numbers && linear && !any && ty == Ty::I32;
            let text = self.node(node, any, number);
            let leaf = node.operands().next().is_none();
            let single = self.parts[*id as usize].uses == 1;
            self.parts[*id as usize].number = number;
            self.parts[*id as usize].text = if leaf || (single && text.len() < LONG) {
                text
            } else {
                let name = format!("t{}", self.temps);
                self.temps += 1;
                let line = if number {
                    self.dialect.let_number(&name, &text)
                } else {
                    self.dialect.let_(ty, &name, &text)
                };
                self.line(&line);
                name
            };
        }
        let texts = roots.map(|root| self.parts[root.id() as usize].text.clone());
        for id in parts {
            self.parts[id as usize] = Part::default();
        }
        texts
    }

    /// Is it a divisor that neither is 0 nor makes a quotient too large?
    fn divides_well(&self, id: Id) -> bool {
        match self.def.nodes[id as usize].0 {
            Node::Const(Ty::I32, bits) => {
                bits != 0 && !matches!(Datum::of(Ty::I32, bits), Datum::I32(-1))
            }
            Node::Const(Ty::U32, bits) => bits != 0,
            _ => false,
        }
    }

    /// An operand of what makes an element's number.
    fn part(&self, id: Id) -> String {
        let Part { number, text, .. } = &self.parts[id as usize];
        if *number || matches!(self.def.nodes[id as usize].0, Node::Const(..)) {
            return text.clone();
        }
        self.dialect.number(text)
    }

    fn node(&self, node: Node, any: bool, number: bool) -> String {
        let of = |id: Id| self.parts[id as usize].text.as_str();
        let d = &self.dialect;
        match node {
            Node::Bin(op, a, b) if number => d.bounded(op, Ty::I32, &self.part(a), &self.part(b)),
            Node::Const(ty, bits) => d.constant(ty, bits),
            Node::Param { index, .. } => d.param(index),
            Node::Local(number, _) => format!("v{number}"),
            Node::Un(op, a) => d.un(op, self.ty(a), of(a)),
            Node::Bin(op @ (Bin::Div | Bin::Rem), a, b) if self.divides_well(b) => {
                d.bounded(op, self.ty(a), of(a), of(b))
            }
            Node::Bin(op @ (Bin::Add | Bin::Sub | Bin::Mul), a, b) if !any => {
                d.bounded(op, self.ty(a), of(a), of(b))
            }
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
        self.locals[number as usize]
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(number, id) => {
                let value = self.one(*id);
                self.let_(self.ty(*id), *number, &value);
            }
            Stmt::Load(number, place, index) => {
                let [index] = self.values([Root::Number(*index)]);
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
                let [index, value] = self.values([Root::Number(*index), Root::Any(*value)]);
                let line = self.dialect.store(*place, &index, &value);
                self.line(&line);
            }
            Stmt::Copy(from, first, count, to, at) => {
                let [first] = self.values([Root::Bounded(*first)]);
                for line in self.dialect.copy(*from, &first, *count, *to, *at) {
                    self.line(&line);
                }
            }
            Stmt::Deal(from, to) | Stmt::Riffle(from, to) => {
                let length = match *from {
                    Place::Array(number) => self.def.arrays[number as usize].length,
                    Place::Buffer(_) => unreachable!("arrays are dealt out"),
                };
                let lines = if matches!(stmt, Stmt::Deal(..)) {
                    self.dialect.deal(*from, *to, length)
                } else {
                    self.dialect.riffle(*from, *to, length)
                };
                for line in lines {
                    self.line(&line);
                }
            }
            Stmt::Soon(place, index, access) => {
                let [index] = self.values([Root::Number(*index)]);
                if let Some(line) = self.dialect.soon(*place, &index, *access) {
                    self.line(&line);
                }
            }
            Stmt::Atomic(number, op, place, index, value) => {
                let old = match op {
                    Atomic::CompareExchange(old) => *old,
                    _ => *value,
                };
                let roots = [Root::Number(*index), Root::Any(*value), Root::Any(old)];
                let [index, value, old] = self.values(roots);
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
                let [from, to, step] = self.values([*from, *to, *step].map(Root::Bounded));
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
