//! Building a flow.

use std::sync::Arc;

use warploom_core::DType;

use super::number::Number;
use super::prim::{Combine, Prim, real};
use super::taps::{Taps, Weights};
use super::value::{Node, NodeId, Value, ValueId, ValueKind};
use crate::Boundary;
use crate::expr::{Dag, Ex, Graph, Node as Term, Ty};
use crate::image::{Dims, ImageType};

/// Primitives and the values between them. Nodes follow the nodes they depend on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Flow {
    values: Vec<Value>,
    nodes: Vec<Node>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    /// Who touches each value: asked so often that looking through the nodes took most of the time
    /// it takes to compile a large flow.
    links: Vec<Links>,
}

/// Who touches a value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Links {
    writer: Option<NodeId>,
    /// Each once, in order.
    readers: Vec<NodeId>,
    output: bool,
}

impl Flow {
    /// An empty flow.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its values.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// What a value is.
    pub fn kind(&self, id: ValueId) -> ValueKind {
        self.values[id as usize].kind
    }

    /// The image a value is.
    ///
    /// # Panics
    /// When it is none.
    pub fn image(&self, id: ValueId) -> ImageType {
        self.kind(id).image().expect("an image is wanted here")
    }

    /// Its nodes, in an order in which they can run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What is given to it.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// What it gives.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// The same values with other nodes, put into an order in which they can run.
    ///
    /// # Panics
    /// When the nodes depend on each other in a circle.
    #[must_use]
    pub fn with_nodes(&self, nodes: Vec<Node>) -> Self {
        let mut waiting: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        let mut ready: Vec<bool> = vec![true; self.values.len()];
        for id in waiting.iter().flatten().flat_map(|node| &node.outputs) {
            ready[*id as usize] = false;
        }
        let mut sorted = Vec::with_capacity(waiting.len());
        while sorted.len() < waiting.len() {
            let before = sorted.len();
            for slot in &mut waiting {
                let runs = |node: &Node| node.inputs.iter().all(|id| ready[*id as usize]);
                if let Some(node) = slot.take_if(|node| runs(node)) {
                    for id in &node.outputs {
                        ready[*id as usize] = true;
                    }
                    sorted.push(node);
                }
            }
            assert!(
                sorted.len() > before,
                "nodes depend on each other in a circle"
            );
        }
        let mut flow = Self {
            values: self.values.clone(),
            nodes: Vec::with_capacity(sorted.len()),
            inputs: self.inputs.clone(),
            outputs: Vec::with_capacity(self.outputs.len()),
            links: vec![Links::default(); self.values.len()],
        };
        for node in sorted {
            flow.push(node);
        }
        for id in &self.outputs {
            flow.output(*id);
        }
        flow
    }

    /// Adds a node behind those it depends on.
    fn push(&mut self, node: Node) {
        let at = NodeId::try_from(self.nodes.len()).expect("few nodes");
        for id in &node.inputs {
            let readers = &mut self.links[*id as usize].readers;
            if readers.last() != Some(&at) {
                readers.push(at);
            }
        }
        for id in &node.outputs {
            self.links[*id as usize].writer = Some(at);
        }
        self.nodes.push(node);
    }

    /// The same nodes over images of other extents: what a tile of the images takes.
    #[must_use]
    pub fn with_extents(&self, dims: Dims) -> Self {
        let mut flow = self.clone();
        for value in &mut flow.values {
            if let ValueKind::Image(image) = &mut value.kind {
                image.dims = dims;
            }
        }
        flow
    }

    /// The nodes that read a value, in order.
    pub fn readers(&self, id: ValueId) -> impl Iterator<Item = usize> {
        let readers = &self.links[id as usize].readers;
        readers.iter().map(|at| *at as usize)
    }

    /// The node that writes a value, if one does.
    pub fn writer(&self, id: ValueId) -> Option<NodeId> {
        self.links[id as usize].writer
    }

    /// Is a value an output?
    pub fn is_output(&self, id: ValueId) -> bool {
        self.links[id as usize].output
    }

    /// May a node write `to` where `from` lies? It does when it is an expression that reads of `from`
    /// nothing but the very pixel it makes, and both are images of the same extents and elements.
    pub fn in_place(&self, node: &Node, from: ValueId, to: ValueId) -> bool {
        let Prim::Map { dag, .. } = &node.prim else {
            return false;
        };
        let (is, becomes) = (self.kind(from).image(), self.kind(to).image());
        let alike = is
            .zip(becomes)
            .is_some_and(|(is, becomes)| (is.dims, is.dtype) == (becomes.dims, becomes.dtype));
        let mut loads = dag.nodes().iter().filter_map(|(term, _)| match term {
            Term::Load { image, at, .. } if node.inputs[*image as usize] == from => Some(*at),
            _ => None,
        });
        alike
            && node.inputs.contains(&from)
            && node.outputs.contains(&to)
            && loads.all(|at| dag.offset(at) == Some([0; 3]))
    }

    /// Adds a value that nothing writes yet.
    ///
    /// # Panics
    /// When there are 2^32 of them.
    pub fn value(&mut self, kind: ValueKind) -> ValueId {
        self.values.push(Value {
            kind,
            constant: None,
        });
        self.links.push(Links::default());
        ValueId::try_from(self.values.len() - 1).expect("few values")
    }

    /// Adds an input.
    pub fn input(&mut self, kind: ValueKind) -> ValueId {
        let id = self.value(kind);
        self.inputs.push(id);
        id
    }

    /// Makes a value an output.
    pub fn output(&mut self, id: ValueId) {
        self.links[id as usize].output = true;
        self.outputs.push(id);
    }

    /// Adds a list of numbers known now.
    pub fn constant<T: warploom_core::Element>(&mut self, elements: &[T]) -> ValueId {
        let id = self.value(ValueKind::List {
            dtype: T::DTYPE,
            length: elements.len() as u64,
        });
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        self.values[id as usize].constant = Some(Arc::from(bytes));
        id
    }

    /// Adds a primitive that writes one new value.
    pub fn add(&mut self, prim: Prim, inputs: &[ValueId], gives: ValueKind) -> ValueId {
        let output = self.value(gives);
        self.push(Node {
            prim,
            inputs: inputs.to_vec(),
            outputs: vec![output],
        });
        output
    }

    /// Adds a primitive that writes one new image.
    pub fn add_image(&mut self, prim: Prim, inputs: &[ValueId], gives: ImageType) -> ValueId {
        self.add(prim, inputs, ValueKind::Image(gives))
    }

    /// Adds an expression over pixels: `formula` gets the inputs' numbers in order of `inputs`.
    /// The image it gives has the extents of `like` and elements `dtype`.
    pub fn map(
        &mut self,
        inputs: &[ValueId],
        like: ValueId,
        dtype: DType,
        numbers: &[Number],
        formula: impl for<'g> FnOnce(&'g Graph, &[u32], &[Ex<'g>]) -> Ex<'g>,
    ) -> ValueId {
        let graph = Graph::new();
        let images: Vec<u32> = inputs
            .iter()
            .map(|id| graph.input(self.kind(*id).dtype()))
            .collect();
        let params: Vec<Ex<'_>> = numbers.iter().map(|n| graph.param(n.ty())).collect();
        let result = formula(&graph, &images, &params);
        let dag = Dag::new(&graph, &[(result, dtype)]);
        let gives = self.image(like).with_dtype(dtype);
        let numbers = numbers.to_vec();
        self.add_image(Prim::Map { dag, numbers }, inputs, gives)
    }

    /// A weighted sum along one axis.
    pub fn taps(
        &mut self,
        image: ValueId,
        axis: u8,
        weights: Weights,
        boundary: Boundary,
    ) -> ValueId {
        let gives = self.image(image);
        let gives = gives.with_dtype(real(gives.dtype));
        let taps = Taps {
            axis,
            weights,
            boundary,
        };
        self.add_image(Prim::Taps(taps), &[image], gives)
    }

    /// Windows along one axis. Sums give `sum`, the rest the image's own type.
    pub fn window(
        &mut self,
        image: ValueId,
        axis: u8,
        radius: u32,
        combine: Combine,
        boundary: Boundary,
        sum: DType,
    ) -> ValueId {
        let gives = self.image(image);
        let gives = match combine {
            Combine::Sum => gives.with_dtype(sum),
            Combine::Min | Combine::Max => gives,
        };
        let prim = Prim::Window {
            axis,
            radius,
            combine,
            boundary,
        };
        self.add_image(prim, &[image], gives)
    }

    /// The type real-valued results of an image are computed in.
    pub fn real(&self, image: ValueId) -> (DType, Ty) {
        let dtype = real(self.kind(image).dtype());
        (
            dtype,
            if dtype == DType::F64 {
                Ty::F64
            } else {
                Ty::F32
            },
        )
    }

    /// Axes along which an image extends, slowest first: those a filter goes over.
    pub fn axes(&self, image: ValueId) -> Vec<u8> {
        let dims = self.image(image).dims;
        (0..3_u8)
            .filter(|axis| dims[usize::from(*axis)] > 1)
            .collect()
    }
}
