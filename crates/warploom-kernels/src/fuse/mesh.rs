//! A flow whose nodes are being joined, pair by pair.
//!
//! A new flow for every pair would be right and far too slow: the nodes of a thousand steps would be
//! copied a thousand times. Here nodes stay where they are, and what touches a value is known.

use crate::flow::{Flow, Node, NodeId, ValueId};

/// Nodes in an order in which they can run. A node is known by its number here, which it keeps.
pub(super) struct Mesh<'f> {
    /// What values are; its nodes are those before the first join.
    pub(super) flow: &'f Flow,
    /// `None` for those that became part of another.
    nodes: Vec<Option<Node>>,
    order: Vec<NodeId>,
    /// Where in the order each node is.
    place: Vec<usize>,
    writer: Vec<Option<NodeId>>,
    readers: Vec<Vec<NodeId>>,
    /// What a search has reached bears the number of the search.
    marks: Marks,
}

/// Values that a search has reached.
struct Marks {
    search: u32,
    values: Vec<u32>,
}

impl Marks {
    fn begin(&mut self, values: &[ValueId]) {
        self.search += 1;
        self.add(values);
    }

    fn add(&mut self, values: &[ValueId]) {
        for id in values {
            self.values[*id as usize] = self.search;
        }
    }

    fn has(&self, id: ValueId) -> bool {
        self.values[id as usize] == self.search
    }

    fn any(&self, values: &[ValueId]) -> bool {
        values.iter().any(|id| self.has(*id))
    }
}

impl<'f> Mesh<'f> {
    /// The nodes of a flow, none joined.
    pub(super) fn new(flow: &'f Flow) -> Self {
        let ids = 0..flow.values().len();
        let ids = ids.map(|id| ValueId::try_from(id).expect("values have such numbers"));
        let (mut writer, mut readers) = (Vec::new(), Vec::new());
        for id in ids {
            writer.push(flow.writer(id));
            readers.push(flow.readers(id).map(number).collect());
        }
        Self {
            flow,
            nodes: flow.nodes().iter().cloned().map(Some).collect(),
            order: (0..flow.nodes().len()).map(number).collect(),
            place: (0..flow.nodes().len()).collect(),
            writer,
            readers,
            marks: Marks {
                search: 0,
                values: vec![0; flow.values().len()],
            },
        }
    }

    /// The node at a place in the order.
    pub(super) fn at(&self, place: usize) -> Option<NodeId> {
        self.order.get(place).copied()
    }

    /// Where in the order a node is.
    pub(super) fn place(&self, node: NodeId) -> usize {
        self.place[node as usize]
    }

    /// A node that is in the order.
    pub(super) fn node(&self, node: NodeId) -> &Node {
        let node = self.nodes[node as usize].as_ref();
        node.expect("what was joined is asked for no more")
    }

    /// The node that writes a value.
    pub(super) fn writer(&self, id: ValueId) -> Option<NodeId> {
        self.writer[id as usize]
    }

    /// The nodes that read a value.
    pub(super) fn readers(&self, id: ValueId) -> &[NodeId] {
        &self.readers[id as usize]
    }

    /// Does `to` need `from` through some third node? Then one node cannot be both.
    pub(super) fn depends_otherwise(&mut self, from: NodeId, to: NodeId) -> bool {
        let third = self.place(from) + 1..self.place(to);
        self.marks.search += 1;
        let outputs = &self.node(from).outputs.clone();
        for at in third {
            let node = self.nodes[self.order[at] as usize].as_ref();
            let node = node.expect("what is in the order is there");
            let direct = node.inputs.iter().any(|id| outputs.contains(id));
            if direct || self.marks.any(&node.inputs) {
                self.marks.add(&node.outputs);
            }
        }
        self.marks.any(&self.node(to).inputs)
    }

    /// Marks what a node needs, directly or not; then [`Mesh::is_needed`] tells.
    pub(super) fn mark_needed(&mut self, by: NodeId) {
        self.marks.begin(&[]);
        for at in (0..=self.place(by)).rev() {
            let of = self.order[at];
            let node = self.nodes[of as usize].as_ref();
            let node = node.expect("what is in the order is there");
            if of == by || self.marks.any(&node.outputs) {
                self.marks.add(&node.inputs);
            }
        }
    }

    /// Is a node among those that [`Mesh::mark_needed`] found?
    pub(super) fn is_needed(&self, node: NodeId) -> bool {
        self.marks.any(&self.node(node).outputs)
    }

    /// Puts one node in the place of two, of which the second may read the first. It runs after all
    /// that does not need it. Gives the place up to which nodes before the second are as they were:
    /// they, and what they need, stay what they are, so whoever found nothing to join there finds
    /// nothing now.
    pub(super) fn replace(&mut self, [first, second]: [NodeId; 2], joined: Node) -> usize {
        let new = number(self.nodes.len());
        let (begin, end) = (self.place(first), self.place(second));
        for gone in [first, second] {
            let node = self.nodes[gone as usize].take();
            let node = node.expect("what is joined is there");
            for id in node.outputs {
                self.writer[id as usize] = None;
            }
            for id in node.inputs {
                let readers = &mut self.readers[id as usize];
                if let Some(at) = readers.iter().position(|reader| *reader == gone) {
                    readers.swap_remove(at);
                }
            }
        }
        for id in &joined.outputs {
            self.writer[*id as usize] = Some(new);
        }
        for id in &joined.inputs {
            self.readers[*id as usize].push(new);
        }
        self.marks.begin(&joined.outputs);
        self.nodes.push(Some(joined));
        self.place.push(0);
        let mut later = vec![new];
        let (mut write, mut same) = (begin, begin);
        for at in begin..self.order.len() {
            let of = self.order[at];
            let Some(node) = &self.nodes[of as usize] else {
                continue;
            };
            if self.marks.any(&node.inputs) {
                self.marks.add(&node.outputs);
                later.push(of);
            } else {
                self.order[write] = of;
                self.place[of as usize] = write;
                write += 1;
                same += usize::from(at < end);
            }
        }
        self.order.truncate(write);
        self.order.extend(later);
        for (at, of) in self.order.iter().enumerate().skip(write) {
            self.place[*of as usize] = at;
        }
        same
    }

    /// The flow with the nodes as they are now.
    pub(super) fn into_flow(mut self) -> Flow {
        let nodes = self.order.iter();
        let nodes = nodes.filter_map(|of| self.nodes[*of as usize].take());
        self.flow.with_nodes(nodes.collect())
    }
}

fn number(at: usize) -> NodeId {
    NodeId::try_from(at).expect("few nodes")
}
