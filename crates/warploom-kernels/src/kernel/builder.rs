//! Writing a kernel.

use std::cell::{Cell, RefCell};

use warploom_core::DType;

use super::def::{
    Access, ArrayDecl, Atomic, BufferDecl, KernelDef, Place, ScalarDecl, Space, Stmt, Work,
};
use crate::Boundary;
use crate::expr::{Ex, Graph, Node, Ty};

/// Bytes that processors fetch at once.
const LINE: u64 = 64;

/// A buffer or array of the kernel being written.
#[derive(Clone, Copy, Debug)]
pub struct Buf {
    place: Place,
    ty: Ty,
}

impl Buf {
    /// The type its elements are loaded in.
    pub fn ty(self) -> Ty {
        self.ty
    }
}

/// An image: a buffer, where its first pixel is, and its pitches.
#[derive(Clone, Copy, Debug)]
pub struct Img<'k> {
    /// The elements.
    pub buf: Buf,
    /// Element of the first pixel.
    pub offset: Ex<'k>,
    /// Elements from plane to plane and from row to row.
    pub pitch: [Ex<'k>; 2],
}

/// A variable of the kernel being written.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    number: u32,
    ty: Ty,
}

/// Writes a kernel, statement by statement. Every load and every look at a variable is named at
/// once, so that a value never changes after it was taken.
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    buffers: RefCell<Vec<BufferDecl>>,
    scalars: RefCell<Vec<ScalarDecl>>,
    arrays: RefCell<Vec<ArrayDecl>>,
    blocks: RefCell<Vec<Vec<Stmt>>>,
    locals: Cell<u32>,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a template that breaks a rule of types is a defect, found when it is first built"
)]
impl Builder {
    /// An empty kernel.
    pub fn new() -> Self {
        let builder = Self::default();
        builder.blocks.borrow_mut().push(Vec::new());
        builder
    }

    /// Where its expressions are built.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn say(&self, stmt: Stmt) {
        let mut blocks = self.blocks.borrow_mut();
        blocks
            .last_mut()
            .expect("the body is open until the end")
            .push(stmt);
    }

    fn local(&self, ty: Ty) -> (u32, Ex<'_>) {
        let number = self.locals.get();
        self.locals.set(number + 1);
        (number, self.graph.add(Node::Local(number, ty)))
    }

    fn block(&self, body: impl FnOnce()) -> Vec<Stmt> {
        self.blocks.borrow_mut().push(Vec::new());
        body();
        self.blocks.borrow_mut().pop().expect("pushed above")
    }

    /// A buffer.
    ///
    /// # Panics
    /// When no operation takes the element type.
    pub fn buffer(&self, name: &str, dtype: DType, access: Access) -> Buf {
        let ty = Ty::of(dtype).expect("an element type that operations take");
        let mut buffers = self.buffers.borrow_mut();
        buffers.push(BufferDecl {
            name: name.to_owned(),
            dtype,
            access,
            atomic: false,
        });
        let place = Place::Buffer(u32::try_from(buffers.len() - 1).expect("few buffers"));
        Buf { place, ty }
    }

    /// A number given at launch.
    pub fn scalar(&self, name: &str, ty: Ty) -> Ex<'_> {
        let mut scalars = self.scalars.borrow_mut();
        let index = u32::try_from(scalars.len()).expect("few numbers");
        scalars.push(ScalarDecl {
            name: name.to_owned(),
            ty,
        });
        self.graph.add(Node::Param { index, ty })
    }

    /// An image: a buffer and three numbers, `<name>_at`, `<name>_pz`, `<name>_py`.
    pub fn image(&self, name: &str, dtype: DType, access: Access) -> Img<'_> {
        let buf = self.buffer(name, dtype, access);
        let [offset, pz, py] =
            ["at", "pz", "py"].map(|what| self.scalar(&format!("{name}_{what}"), Ty::I32));
        Img {
            buf,
            offset,
            pitch: [pz, py],
        }
    }

    /// An array for each work item, or for each group.
    pub fn array(&self, ty: Ty, length: u32, space: Space) -> Buf {
        self.declare(ty, None, length, space)
    }

    /// An array of pixels for each work item. What is stored must be in the range of the type.
    ///
    /// # Panics
    /// When no operation takes the element type.
    pub fn line(&self, dtype: DType, length: u32) -> Buf {
        let ty = Ty::of(dtype).expect("an element type that operations take");
        let narrow = matches!(dtype, DType::U8 | DType::U16 | DType::I16).then_some(dtype);
        self.declare(ty, narrow, length, Space::Private)
    }

    fn declare(&self, ty: Ty, narrow: Option<DType>, length: u32, space: Space) -> Buf {
        let mut arrays = self.arrays.borrow_mut();
        arrays.push(ArrayDecl {
            ty,
            narrow,
            length,
            space,
            atomic: false,
            dealt: false,
        });
        let place = Place::Array(u32::try_from(arrays.len() - 1).expect("few arrays"));
        Buf { place, ty }
    }

    /// A place in the launch, an `i32`.
    pub fn work(&self, work: Work) -> Ex<'_> {
        let (number, ex) = self.local(Ty::I32);
        self.say(Stmt::Work(number, work));
        ex
    }

    /// Names a value, so that it is computed once, here.
    pub fn let_<'k>(&'k self, value: Ex<'k>) -> Ex<'k> {
        let (number, ex) = self.local(value.ty());
        self.say(Stmt::Let(number, value.id()));
        ex
    }

    /// An element, now.
    pub fn load<'k>(&'k self, from: Buf, index: Ex<'k>) -> Ex<'k> {
        let (number, ex) = self.local(from.ty);
        self.say(Stmt::Load(number, from.place, index.id()));
        ex
    }

    /// Writes an element. A value of a wider type than the element's must be in its range.
    pub fn store<'k>(&'k self, to: Buf, index: Ex<'k>, value: Ex<'k>) {
        assert_eq!(to.ty, value.ty(), "a store's value has the place's type");
        self.say(Stmt::Store(to.place, index.id(), value.id()));
    }

    /// Copies elements of a buffer that lie side by side, `count` of them from `first` on, into an item's array of the
    /// same elements, from `at` on. Whole vectors of 16 are copied. Where they are few a compiler need not keep
    /// the array in memory, as it does of what a loop writes.
    pub fn copy<'k>(&'k self, from: Buf, (first, count): (Ex<'k>, u32), to: Buf, at: u32) {
        let (Place::Buffer(_), Place::Array(number)) = (from.place, to.place) else {
            panic!("a buffer is copied into an array")
        };
        {
            let array = &mut self.arrays.borrow_mut()[number as usize];
            array.dealt = true;
            assert!(
                array.ty == from.ty && at + count <= array.length,
                "it has room"
            );
            assert!(at.is_multiple_of(16) && count.is_multiple_of(16), "vectors");
        }
        self.say(Stmt::Copy(from.place, first.id(), count, to.place, at));
    }

    /// Deals an item's array out onto the halves of another: elements of even numbers, then those of odd
    /// ones. Both have the same type and length, a multiple of 32. Loops that read every second element
    /// become single loads; this becomes shuffles of vectors where a language has them.
    pub fn deal(&self, from: Buf, to: Buf) {
        self.shuffled(from, to);
        self.say(Stmt::Deal(from.place, to.place));
    }

    /// Puts the halves of an item's array together on another, element by element: what [`deal`](Self::deal)
    /// undoes.
    pub fn riffle(&self, from: Buf, to: Buf) {
        self.shuffled(from, to);
        self.say(Stmt::Riffle(from.place, to.place));
    }

    /// Says that elements of an image from `index` on, `count` of them, will be read soon, or written: processors fetch them
    /// meanwhile. Elements that are not there do no harm.
    pub fn soon<'k>(&'k self, img: Img<'k>, index: Ex<'k>, count: u32, access: Access) {
        let Place::Buffer(number) = img.buf.place else {
            unreachable!("an image is a buffer")
        };
        let element = self.buffers.borrow()[number as usize].dtype.bytes();
        let line = usize::try_from(LINE / element).expect("short");
        for at in (0..count.cast_signed()).step_by(line) {
            self.say(Stmt::Soon(img.buf.place, (index + at).id(), access));
        }
    }

    /// Has whole vectors of two arrays moved.
    fn shuffled(&self, from: Buf, to: Buf) {
        let mut arrays = self.arrays.borrow_mut();
        let numbers = [from, to].map(|buf| match buf.place {
            Place::Array(number) => number as usize,
            Place::Buffer(_) => panic!("arrays are dealt out"),
        });
        let shapes = numbers.map(|number| {
            let array = &mut arrays[number];
            array.dealt = true;
            assert_eq!(array.space, Space::Private, "an item's own are dealt out");
            assert!(array.length.is_multiple_of(32), "whole vectors are dealt");
            (array.ty, array.narrow, array.length)
        });
        assert_eq!(shapes[0], shapes[1], "both have the same elements");
        assert_ne!(numbers[0], numbers[1], "an array is dealt out onto another");
    }

    /// Element number of a pixel.
    pub fn index<'k>(&'k self, img: Img<'k>, [z, y, x]: [Ex<'k>; 3]) -> Ex<'k> {
        img.offset + z * img.pitch[0] + y * img.pitch[1] + x
    }

    /// A pixel inside the image.
    pub fn pixel<'k>(&'k self, img: Img<'k>, at: [Ex<'k>; 3]) -> Ex<'k> {
        self.load(img.buf, self.index(img, at))
    }

    /// Writes a pixel inside the image.
    pub fn put<'k>(&'k self, img: Img<'k>, at: [Ex<'k>; 3], value: Ex<'k>) {
        self.store(img.buf, self.index(img, at), value);
    }

    /// Where a position is read along an axis of `length` pixels, and whether a pixel is there
    /// (`None`: always). Any distance outside is right.
    pub fn source<'k>(
        &'k self,
        at: Ex<'k>,
        length: Ex<'k>,
        boundary: Boundary,
    ) -> (Ex<'k>, Option<Ex<'k>>) {
        let last = length - 1;
        match boundary {
            Boundary::Clamp => (at.max(0).min(last), None),
            Boundary::Zero => {
                let inside = at.ge(0) & at.lt(length);
                (at.max(0).min(last), Some(inside))
            }
            Boundary::Wrap => {
                let rest = self.let_(at % length);
                (rest.lt(0).select(rest + length, rest), None)
            }
            Boundary::Reflect => {
                let period = length + length;
                let rest = self.let_(at % period);
                let turn = self.let_(rest.lt(0).select(rest + period, rest));
                (turn.min(period - 1 - turn), None)
            }
        }
    }

    /// A pixel at any position, by the boundary rule; `dims` are the image's.
    pub fn near<'k>(
        &'k self,
        img: Img<'k>,
        at: [Ex<'k>; 3],
        dims: [Ex<'k>; 3],
        boundary: Boundary,
    ) -> Ex<'k> {
        self.near_within(img, at, dims.map(Some), boundary)
    }

    /// The same, with the rule applied only along axes whose extent is given; along the others
    /// the position is inside.
    pub fn near_within<'k>(
        &'k self,
        img: Img<'k>,
        at: [Ex<'k>; 3],
        dims: [Option<Ex<'k>>; 3],
        boundary: Boundary,
    ) -> Ex<'k> {
        let mut inside: Option<Ex<'k>> = None;
        let mut place = at;
        for axis in 0..3 {
            let Some(length) = dims[axis] else { continue };
            let (source, there) = self.source(at[axis], length, boundary);
            place[axis] = source;
            inside = match (inside, there) {
                (Some(a), Some(b)) => Some(a & b),
                (a, b) => a.or(b),
            };
        }
        let value = self.pixel(img, place);
        match inside {
            None => value,
            Some(inside) => {
                let zero = self.graph.number(value.ty(), 0.0);
                self.let_(inside.select(value, zero))
            }
        }
    }

    /// A variable.
    pub fn var<'k>(&'k self, start: Ex<'k>) -> Var {
        let (number, _) = self.local(start.ty());
        self.say(Stmt::Var(number, start.id()));
        Var {
            number,
            ty: start.ty(),
        }
    }

    /// A variable's value now.
    pub fn get(&self, var: Var) -> Ex<'_> {
        let (number, ex) = self.local(var.ty);
        self.say(Stmt::Get(number, var.number));
        ex
    }

    /// Changes a variable.
    pub fn set<'k>(&'k self, var: Var, value: Ex<'k>) {
        assert_eq!(var.ty, value.ty(), "a variable keeps its type");
        self.say(Stmt::Set(var.number, value.id()));
    }

    fn atomic<'k>(&'k self, op: Atomic, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        assert!(
            at.ty.is_int() && at.ty == value.ty(),
            "atomics are of whole numbers"
        );
        match at.place {
            Place::Buffer(number) => self.buffers.borrow_mut()[number as usize].atomic = true,
            Place::Array(number) => self.arrays.borrow_mut()[number as usize].atomic = true,
        }
        let (number, ex) = self.local(at.ty);
        self.say(Stmt::Atomic(number, op, at.place, index.id(), value.id()));
        ex
    }

    /// Adds to an element as one step; gives what it was.
    pub fn atomic_add<'k>(&'k self, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::Add, at, index, value)
    }

    /// Keeps the smaller as one step; gives what it was.
    pub fn atomic_min<'k>(&'k self, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::Min, at, index, value)
    }

    /// Keeps the larger as one step; gives what it was.
    pub fn atomic_max<'k>(&'k self, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::Max, at, index, value)
    }

    /// Sets bits as one step; gives what it was.
    pub fn atomic_or<'k>(&'k self, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::Or, at, index, value)
    }

    /// Stores as one step; gives what it was.
    pub fn atomic_exchange<'k>(&'k self, at: Buf, index: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::Exchange, at, index, value)
    }

    /// Stores `value` if the element equals `old`, as one step; gives what it was.
    pub fn atomic_swap<'k>(&'k self, at: Buf, index: Ex<'k>, old: Ex<'k>, value: Ex<'k>) -> Ex<'k> {
        self.atomic(Atomic::CompareExchange(old.id()), at, index, value)
    }

    /// Runs `body` where the condition holds.
    pub fn if_<'k>(&'k self, cond: Ex<'k>, body: impl FnOnce()) {
        let yes = self.block(body);
        self.say(Stmt::If(cond.id(), yes, Vec::new()));
    }

    /// Runs one of two bodies.
    pub fn if_else<'k>(&'k self, cond: Ex<'k>, yes: impl FnOnce(), no: impl FnOnce()) {
        let (yes, no) = (self.block(yes), self.block(no));
        self.say(Stmt::If(cond.id(), yes, no));
    }

    /// Runs `body` for every whole number from `from` up to, not including, `to`.
    pub fn for_<'k>(&'k self, from: Ex<'k>, to: Ex<'k>, body: impl FnOnce(Ex<'k>)) {
        self.for_by(from, to, self.graph.int(1), body);
    }

    /// The same in steps.
    pub fn for_by<'k>(&'k self, from: Ex<'k>, to: Ex<'k>, step: Ex<'k>, body: impl FnOnce(Ex<'k>)) {
        let (number, index) = self.local(Ty::I32);
        let block = self.block(|| body(index));
        self.say(Stmt::For(number, from.id(), to.id(), step.id(), block));
    }

    /// Runs `body` as long as `cond`, which is computed before every round, holds.
    pub fn while_<'k>(&'k self, cond: impl FnOnce() -> Ex<'k>, body: impl FnOnce()) {
        self.blocks.borrow_mut().push(Vec::new());
        let holds = cond();
        let head = self.blocks.borrow_mut().pop().expect("pushed above");
        let block = self.block(body);
        self.say(Stmt::While(head, holds.id(), block));
    }

    /// Waits for all items of the group. Never where items of a group may differ.
    pub fn barrier(&self) {
        self.say(Stmt::Barrier);
    }

    /// Leaves the innermost loop.
    pub fn break_(&self) {
        self.say(Stmt::Break);
    }

    /// The finished kernel.
    pub fn finish(self, name: &str, group: [u32; 3]) -> KernelDef {
        let body = self.blocks.into_inner().pop().expect("the body");
        KernelDef {
            name: name.to_owned(),
            buffers: self.buffers.into_inner(),
            scalars: self.scalars.into_inner(),
            arrays: self.arrays.into_inner(),
            group,
            nodes: self.graph.nodes(),
            body,
            written: None,
        }
    }
}
