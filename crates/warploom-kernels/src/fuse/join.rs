//! Two expressions made one.

use std::collections::HashMap;

use crate::Boundary;
use crate::expr::{Dag, Ex, Graph, Node as Term};
use crate::flow::{Node, Number, Prim, ValueId};

/// The parts of a map node.
pub(super) struct Map<'a> {
    pub(super) dag: &'a Dag,
    pub(super) numbers: &'a [Number],
    pub(super) node: &'a Node,
}

impl<'a> Map<'a> {
    /// A node as a map, if it is one.
    pub(super) fn of(node: &'a Node) -> Option<Self> {
        match &node.prim {
            Prim::Map { dag, numbers } => Some(Self { dag, numbers, node }),
            _ => None,
        }
    }

    /// Where the loads of some values are, when all are at fixed offsets.
    pub(super) fn offsets(&self, values: &[ValueId]) -> Option<Vec<([i32; 3], Boundary)>> {
        let mut offsets = Vec::new();
        for (term, _) in self.dag.nodes() {
            if let Term::Load {
                image,
                at,
                boundary,
            } = term
                && values.contains(&self.node.inputs[*image as usize])
            {
                offsets.push((self.dag.offset(*at)?, *boundary));
            }
        }
        Some(offsets)
    }

    /// Does it look at nothing but pixels and numbers: no coordinates, no extents?
    pub(super) fn is_placeless(&self) -> bool {
        let loads_only =
            |(term, _): &(Term, _)| !matches!(term, Term::Extent(_) | Term::InputExtent { .. });
        self.dag.is_pointwise() && self.dag.nodes().iter().all(loads_only) && !self.uses_coords()
    }

    /// Are coordinates used for anything but loads?
    fn uses_coords(&self) -> bool {
        let is_coord = |id| matches!(self.dag.node(id), Term::Coord(_));
        let used =
            self.dag.nodes().iter().any(|(term, _)| {
                !matches!(term, Term::Load { .. }) && term.operands().any(is_coord)
            });
        used || self.dag.outputs().iter().any(|output| is_coord(output.id))
    }
}

/// The new node's inputs and numbers, as they are found.
#[derive(Default)]
struct Ports {
    inputs: Vec<ValueId>,
    numbers: Vec<Number>,
}

/// One node that computes what `first` and then `second`, which may read it, compute. `first` keeps
/// only its outputs in `keep`.
pub(super) fn join(first: &Map<'_>, second: &Map<'_>, keep: &[ValueId]) -> Node {
    let graph = Graph::with_room(first.dag.nodes().len() + second.dag.nodes().len() + 8);
    let mut ports = Ports::default();
    let mut images: HashMap<ValueId, u32> = HashMap::new();
    // Numbers of all inputs first, so that they are known wherever a term is copied.
    for map in [first, second] {
        for (id, dtype) in map.node.inputs.iter().zip(map.dag.inputs()) {
            let made = first.node.outputs.contains(id);
            if !made && !images.contains_key(id) {
                images.insert(*id, graph.input(*dtype));
                ports.inputs.push(*id);
            }
        }
    }
    let mut params = HashMap::new();
    for (map, which) in [(first, 0), (second, 1)] {
        for (index, number) in (0_u32..).zip(map.numbers) {
            params.insert((which, index), graph.param(number.ty()));
            ports.numbers.push(*number);
        }
    }
    let copier = Copier {
        graph: &graph,
        images: &images,
        params: &params,
    };
    let here = copier.first(first, [0; 3], Boundary::Clamp);
    let results = graph.inline(second.dag, |term| match term {
        Term::Load {
            image,
            at,
            boundary,
        } => {
            let value = second.node.inputs[image as usize];
            let Some(made) = first.node.outputs.iter().position(|o| *o == value) else {
                let at = at.map(|id| graph.ex(id));
                return Some(graph.load(images[&value], at, boundary));
            };
            let offset = copier.offset(at);
            if offset == [0; 3] {
                return Some(here[made]);
            }
            Some(copier.first(first, offset, boundary)[made])
        }
        Term::Scalar { list, index } => {
            Some(graph.scalar(images[&second.node.inputs[list as usize]], index))
        }
        Term::InputExtent { image, axis } => {
            let value = second.node.inputs[image as usize];
            Some(match images.get(&value) {
                Some(image) => graph.input_extent(*image, axis),
                None => graph.extent(axis),
            })
        }
        Term::Param { index, .. } => Some(params[&(1, index)]),
        _ => None,
    });
    let mut outputs = Vec::new();
    let mut values = Vec::new();
    for (at, value) in first.node.outputs.iter().enumerate() {
        if keep.contains(value) {
            outputs.push((here[at], first.dag.outputs()[at].dtype));
            values.push(*value);
        }
    }
    for (at, value) in second.node.outputs.iter().enumerate() {
        outputs.push((results[at], second.dag.outputs()[at].dtype));
        values.push(*value);
    }
    let dag = Dag::new(&graph, &outputs);
    Node {
        prim: Prim::Map {
            dag,
            numbers: ports.numbers.clone(),
        },
        inputs: ports.inputs,
        outputs: values,
    }
}

struct Copier<'a, 'g> {
    graph: &'g Graph,
    images: &'a HashMap<ValueId, u32>,
    params: &'a HashMap<(u8, u32), Ex<'g>>,
}

impl<'g> Copier<'_, 'g> {
    /// The first map's results at an offset from the pixel. Away from the pixel it must be
    /// placeless, and the rule that its reader applies to it is applied to what it reads.
    fn first(&self, first: &Map<'_>, offset: [i32; 3], boundary: Boundary) -> Vec<Ex<'g>> {
        self.graph.inline(first.dag, |term| match term {
            Term::Load {
                image,
                at,
                boundary: own,
            } => {
                let image = self.images[&first.node.inputs[image as usize]];
                if offset == [0; 3] {
                    let at = at.map(|id| self.graph.ex(id));
                    return Some(self.graph.load(image, at, own));
                }
                Some(self.graph.near(image, offset, boundary))
            }
            Term::Scalar { list, index } => {
                let list = self.images[&first.node.inputs[list as usize]];
                Some(self.graph.scalar(list, index))
            }
            Term::InputExtent { image, axis } => {
                let image = self.images[&first.node.inputs[image as usize]];
                Some(self.graph.input_extent(image, axis))
            }
            Term::Param { index, .. } => Some(self.params[&(0, index)]),
            _ => None,
        })
    }

    /// The fixed offset of a place that was copied into the graph.
    fn offset(&self, at: [crate::expr::Id; 3]) -> [i32; 3] {
        let coords = self.graph.coords();
        [0, 1, 2].map(|axis| {
            if at[axis] == coords[axis].id() {
                return 0;
            }
            self.graph
                .shift_of(at[axis], coords[axis].id())
                .expect("joined only where offsets are fixed")
        })
    }
}
