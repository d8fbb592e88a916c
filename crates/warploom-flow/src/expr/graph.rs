//! Where expressions are built.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use warploom_core::DType;

use super::dag::Dag;
use super::node::{Bin, Id, Node, Ty, Un};
use crate::Boundary;

/// Terms are looked up hundreds of thousands of times when a large pipeline is compiled, and nobody can
/// choose them so that they collide and gain by it: a few multiplications do.
#[derive(Clone, Copy, Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The table looks at the upper bits and at the lower; the product mixes into the upper.
        self.0 ^ (self.0 >> 32)
    }
}

#[derive(Debug, Default)]
struct Arena {
    nodes: Vec<(Node, Ty)>,
    known: HashMap<Node, Id, BuildHasherDefault<Mix>>,
    inputs: Vec<DType>,
    params: u32,
}

/// Where expressions are built: equal terms become one node, constants are folded.
#[derive(Debug, Default)]
pub struct Graph {
    arena: RefCell<Arena>,
}

/// A handle to an expression.
#[derive(Clone, Copy, Debug)]
pub struct Ex<'g> {
    graph: &'g Graph,
    id: Id,
    ty: Ty,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty graph with room for so many terms.
    pub fn with_room(terms: usize) -> Self {
        let graph = Self::default();
        {
            let mut arena = graph.arena.borrow_mut();
            arena.nodes.reserve(terms);
            arena.known.reserve(terms);
        }
        graph
    }

    /// Adds a node, or finds it, or finds a simpler one that means the same.
    ///
    /// # Panics
    /// When the operands' types do not fit: expressions are built by code, so it is a defect there.
    pub fn add(&self, node: Node) -> Ex<'_> {
        let ty = self.type_of(&node);
        let node = match self.fold(node, ty) {
            super::fold::Folded::Node(node) => node,
            super::fold::Folded::Same(id) => return self.ex(id),
        };
        let mut arena = self.arena.borrow_mut();
        let next = Id::try_from(arena.nodes.len()).expect("an expression has under 2^32 nodes");
        let id = *arena.known.entry(node).or_insert(next);
        if id == next {
            arena.nodes.push((node, ty));
        }
        drop(arena);
        Ex {
            graph: self,
            id,
            ty,
        }
    }

    /// The handle of a node.
    pub fn ex(&self, id: Id) -> Ex<'_> {
        let ty = self.ty(id);
        Ex {
            graph: self,
            id,
            ty,
        }
    }

    pub(super) fn node(&self, id: Id) -> Node {
        self.arena.borrow().nodes[id as usize].0
    }

    pub(super) fn ty(&self, id: Id) -> Ty {
        self.arena.borrow().nodes[id as usize].1
    }

    /// All nodes with their types.
    pub fn nodes(&self) -> Vec<(Node, Ty)> {
        self.arena.borrow().nodes.clone()
    }

    pub(super) fn inputs(&self) -> Vec<DType> {
        self.arena.borrow().inputs.clone()
    }

    /// Announces an input image, or a list of numbers (as `f64`), and gives its number.
    ///
    /// # Panics
    /// When there are 2^32 of them.
    pub fn input(&self, dtype: DType) -> u32 {
        let mut arena = self.arena.borrow_mut();
        arena.inputs.push(dtype);
        u32::try_from(arena.inputs.len() - 1).expect("few inputs")
    }

    /// A number given at run time; numbered in order of the calls.
    pub fn param(&self, ty: Ty) -> Ex<'_> {
        let index = self.arena.borrow().params;
        self.arena.borrow_mut().params += 1;
        self.add(Node::Param { index, ty })
    }

    /// A constant. For whole numbers the value must be one.
    pub fn number(&self, ty: Ty, value: f64) -> Ex<'_> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded once, or whole by contract"
        )]
        let bits = match ty {
            Ty::Bool => u64::from(value != 0.0),
            Ty::I32 => u64::from(value as i32 as u32),
            Ty::U32 => u64::from(value as u32),
            Ty::F32 => u64::from((value as f32).to_bits()),
            Ty::F64 => value.to_bits(),
        };
        self.add(Node::Const(ty, bits))
    }

    /// An `i32` constant.
    pub fn int(&self, value: i32) -> Ex<'_> {
        self.number(Ty::I32, f64::from(value))
    }

    /// An `f32` constant.
    pub fn float(&self, value: f32) -> Ex<'_> {
        self.add(Node::Const(Ty::F32, u64::from(value.to_bits())))
    }

    /// The position of the pixel that is computed: z, y, x.
    pub fn coords(&self) -> [Ex<'_>; 3] {
        [0, 1, 2].map(|axis| self.add(Node::Coord(axis)))
    }

    /// The extent of the image that is computed, along z, y or x.
    pub fn extent(&self, axis: u8) -> Ex<'_> {
        self.add(Node::Extent(axis))
    }

    /// The extent of an input, along z, y or x.
    pub fn input_extent(&self, image: u32, axis: u8) -> Ex<'_> {
        self.add(Node::InputExtent { image, axis })
    }

    /// The same pixel of an input.
    pub fn pixel(&self, image: u32) -> Ex<'_> {
        self.near(image, [0; 3], Boundary::Clamp)
    }

    /// The pixel of an input at an offset in z, y, x.
    pub fn near(&self, image: u32, offset: [i32; 3], boundary: Boundary) -> Ex<'_> {
        let coords = self.coords();
        let at = [0, 1, 2].map(|axis| {
            if offset[axis] == 0 {
                coords[axis]
            } else {
                coords[axis] + self.int(offset[axis])
            }
        });
        self.load(image, at, boundary)
    }

    /// The pixel of an input at a computed position in z, y, x.
    pub fn load<'g>(&'g self, image: u32, at: [Ex<'g>; 3], boundary: Boundary) -> Ex<'g> {
        let at = at.map(|ex| ex.id);
        self.add(Node::Load {
            image,
            at,
            boundary,
        })
    }

    /// A number computed earlier.
    pub fn scalar(&self, list: u32, index: u32) -> Ex<'_> {
        self.add(Node::Scalar { list, index })
    }

    /// Copies `dag` into this graph; `leaf` says what its loads, numbers and coordinates become.
    /// Gives the results, in the outputs' own types.
    ///
    /// `leaf` gets the node with its operands already copied, and `None` from it keeps the node.
    pub fn inline<'g>(
        &'g self,
        dag: &Dag,
        mut leaf: impl FnMut(Node) -> Option<Ex<'g>>,
    ) -> Vec<Ex<'g>> {
        let mut copies: Vec<Ex<'g>> = Vec::with_capacity(dag.nodes().len());
        for (node, _) in dag.nodes() {
            let node = node.with_operands(|id| copies[id as usize].id);
            let copy = leaf(node).unwrap_or_else(|| self.add(node));
            copies.push(copy);
        }
        let outputs = dag.outputs().iter();
        outputs.map(|output| copies[output.id as usize]).collect()
    }

    /// By how much `id` is `base` plus a constant, if it is that.
    pub fn shift_of(&self, id: Id, base: Id) -> Option<i32> {
        let Node::Bin(Bin::Add, a, b) = self.node(id) else {
            return None;
        };
        match self.node(b) {
            #[expect(clippy::cast_possible_truncation, reason = "an i32 is kept in 64 bits")]
            Node::Const(Ty::I32, bits) if a == base => Some(bits as i32),
            _ => None,
        }
    }

    fn type_of(&self, node: &Node) -> Ty {
        let same = |a: Id, b: Id| {
            let (left, right) = (self.ty(a), self.ty(b));
            assert_eq!(left, right, "operands of {node:?}: {left} and {right}");
            left
        };
        match *node {
            Node::Const(ty, _)
            | Node::Param { ty, .. }
            | Node::Local(_, ty)
            | Node::Cast(ty, _) => ty,
            Node::Coord(_) | Node::Extent(_) | Node::InputExtent { .. } => Ty::I32,
            Node::Load { image, at, .. } => {
                for id in at {
                    assert_eq!(self.ty(id), Ty::I32, "positions are whole numbers");
                }
                let dtype = self.arena.borrow().inputs[image as usize];
                Ty::of(dtype).expect("an element type that operations take")
            }
            Node::Scalar { .. } => Ty::F64,
            Node::Un(op, a) => {
                let ty = self.ty(a);
                match op {
                    Un::Neg | Un::Abs => assert_ne!(ty, Ty::Bool, "{op:?} of a truth"),
                    Un::Not => assert!(!ty.is_float(), "bits of a {ty}"),
                    Un::Sqrt | Un::Floor | Un::Ceil | Un::Round | Un::IsNan => {
                        assert!(ty.is_float(), "{op:?} of {ty}");
                    }
                    Un::ToBits => assert_eq!(ty, Ty::F32, "bits are of f32"),
                    Un::FromBits => assert_eq!(ty, Ty::I32, "bits are i32"),
                }
                match op {
                    Un::IsNan => Ty::Bool,
                    Un::ToBits => Ty::I32,
                    Un::FromBits => Ty::F32,
                    _ => ty,
                }
            }
            Node::Bin(op, a, b) => {
                let ty = same(a, b);
                match op {
                    Bin::And | Bin::Or | Bin::Xor => assert!(!ty.is_float(), "bits of a {ty}"),
                    Bin::Shl | Bin::Shr | Bin::Rem => assert!(ty.is_int(), "{op:?} of {ty}"),
                    Bin::Eq | Bin::Ne => {}
                    _ => assert_ne!(ty, Ty::Bool, "{op:?} of truths"),
                }
                if op.compares() { Ty::Bool } else { ty }
            }
            Node::Fma(a, b, c) => {
                assert!(same(a, b).is_float(), "fma is of floats");
                same(a, c)
            }
            Node::Select(cond, a, b) => {
                assert_eq!(self.ty(cond), Ty::Bool, "a choice needs a truth");
                same(a, b)
            }
        }
    }
}

impl<'g> Ex<'g> {
    /// Where it was built.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Its number there.
    pub fn id(self) -> Id {
        self.id
    }

    /// Its type.
    pub fn ty(self) -> Ty {
        self.ty
    }
}
