//! What cutting means: everything is looked at again after each join. Slow, and short enough to be seen
//! to be right.

use warploom_flow::flow::{Flow, Node, Prim, ValueId};

use super::KEPT;
use crate::pass::{Edge, Pass, Rowwise, looks_again};

fn pass_of(flow: &Flow, nodes: Vec<usize>) -> Pass {
    let members = || nodes.iter().map(|at| &flow.nodes()[*at]);
    let made = |id: &ValueId| members().any(|node| node.outputs.contains(id));
    let mut inputs: Vec<ValueId> = Vec::new();
    for id in members().flat_map(|node| &node.inputs) {
        if !made(id) && !inputs.contains(id) {
            inputs.push(*id);
        }
    }
    let outside = |at: usize| !nodes.contains(&at);
    let needs = |id: &ValueId, at: usize| outside(at) || looks_again(flow, at, *id);
    let needed =
        |id: &ValueId| flow.outputs().contains(id) || flow.readers(*id).any(|at| needs(id, at));
    let outputs = members().flat_map(|node| &node.outputs);
    let outputs = outputs.copied().filter(needed).collect();
    Pass {
        nodes,
        inputs,
        outputs,
    }
}

/// Does a node read other planes of a value, or any row? Rolling rows are a few of one plane.
fn reads_planes(node: &Node, value: ValueId) -> bool {
    let dag = match &node.prim {
        Prim::Map { dag, .. } => dag,
        Prim::Crop { .. } => return node.inputs.contains(&value),
        _ => return false,
    };
    let loads = dag.stencil().unwrap_or_default();
    loads
        .iter()
        .any(|(at, offset)| offset[0] != 0 && node.inputs[*at as usize] == value)
}

/// As [`super::partition`].
pub(super) fn partition(flow: &Flow, most: usize) -> Vec<Pass> {
    let mut cut = Cut::new(flow, most);
    let nodes = flow.nodes();
    for at in 0..nodes.len() {
        for writer in cut.needs[at].clone() {
            cut.join(writer, at);
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        let images = node
            .inputs
            .iter()
            .filter(|id| flow.kind(**id).image().is_some());
        for id in images {
            for sibling in flow.readers(*id).filter(|reader| *reader < at) {
                let is_part = |at: usize| matches!(nodes[at].prim, Prim::Crop { .. });
                if !is_part(sibling) && !is_part(at) {
                    cut.join(sibling, at);
                }
            }
        }
    }
    cut.rowwise = nodes
        .iter()
        .map(|node| Rowwise::of(flow, node).or_else(|| Rowwise::gathered(flow, node)))
        .collect();
    for (at, node) in nodes.iter().enumerate() {
        if Rowwise::gathered(flow, node).is_some() {
            let writer = flow.writer(node.inputs[0]).map(|writer| writer as usize);
            let readers = flow.readers(node.inputs[0]).filter(|reader| *reader < at);
            let alone = |cut: &Cut<'_>| cut.live[at] && cut.members(cut.pass[at]).count() == 1;
            for other in writer.into_iter().chain(readers) {
                if alone(&cut) {
                    cut.join(other, at);
                }
            }
        }
    }
    cut.passes()
}

/// A flow being cut: which pass each node is in, by a number.
struct Cut<'a> {
    flow: &'a Flow,
    most: usize,
    rowwise: Vec<Option<Rowwise>>,
    /// The nodes each node reads.
    needs: Vec<Vec<usize>>,
    /// Whether others need what a node makes.
    live: Vec<bool>,
    pass: Vec<usize>,
}

impl<'a> Cut<'a> {
    fn new(flow: &'a Flow, most: usize) -> Self {
        let nodes = flow.nodes();
        let mut live = vec![false; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let needed = |id: &ValueId| {
                flow.outputs().contains(id) || flow.readers(*id).any(|reader| live[reader])
            };
            live[at] = nodes[at].outputs.iter().any(needed);
        }
        let writers = |node: &Node| {
            let writers = node.inputs.iter().filter_map(|id| flow.writer(*id));
            writers.map(|writer| writer as usize).collect()
        };
        Self {
            flow,
            most,
            needs: nodes.iter().map(writers).collect(),
            rowwise: nodes.iter().map(|node| Rowwise::of(flow, node)).collect(),
            live,
            pass: (0..nodes.len()).collect(),
        }
    }

    fn members(&self, pass: usize) -> impl Iterator<Item = usize> {
        (0..self.pass.len()).filter(move |at| self.pass[*at] == pass && self.live[*at])
    }

    /// Puts two nodes, and all that run with them, into one pass if that can be.
    fn join(&mut self, first: usize, second: usize) {
        let (a, b) = (self.pass[first], self.pass[second]);
        if a == b || !self.live[first] || !self.live[second] || !self.alike(a, b) {
            return;
        }
        let before = self.pass.clone();
        for pass in &mut self.pass {
            if *pass == b {
                *pass = a;
            }
        }
        let joined = pass_of(self.flow, self.members(a).collect());
        let slices = joined.inputs.len() + joined.outputs.len();
        if slices > self.most || self.order().is_none() {
            self.pass = before;
        }
    }

    fn alike(&self, a: usize, b: usize) -> bool {
        let all = || self.members(a).chain(self.members(b));
        let mut edge = Edge::None;
        let mut dims = None;
        for at in all() {
            let Some(rowwise) = self.rowwise[at] else {
                return false;
            };
            edge = edge.with(rowwise.edge);
            if *dims.get_or_insert(rowwise.dims) != rowwise.dims || edge == Edge::Mixed {
                return false;
            }
        }
        let kept = [a, b].map(|pass| {
            let kept = |at: usize| self.rowwise[at].map_or(0, |it| it.kept);
            self.members(pass).map(kept).sum::<u64>()
        });
        if !kept.contains(&0) && kept[0] + kept[1] > KEPT {
            return false;
        }
        let nodes = self.flow.nodes();
        let listed = |id: &ValueId| self.flow.kind(*id).image().is_none();
        let waits = |at: usize| {
            let mut lists = nodes[at].inputs.iter().filter(|id| listed(id));
            lists.any(|id| all().any(|maker| nodes[maker].outputs.contains(id)))
        };
        if all().any(waits) {
            return false;
        }
        let made = || all().flat_map(|at| &nodes[at].outputs);
        all().all(|at| !made().any(|value| reads_planes(&nodes[at], *value)))
    }

    /// An order in which passes can run; `None` when they wait for each other.
    fn order(&self) -> Option<Vec<usize>> {
        let mut waiting: Vec<usize> = Vec::new();
        for at in 0..self.pass.len() {
            if self.live[at] && !waiting.contains(&self.pass[at]) {
                waiting.push(self.pass[at]);
            }
        }
        let mut done = vec![false; self.pass.len()];
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let before = order.len();
            waiting.retain(|pass| {
                let known = |need: &usize| self.pass[*need] == *pass || done[self.pass[*need]];
                let ready = self
                    .members(*pass)
                    .all(|at| self.needs[at].iter().all(known));
                if ready {
                    done[*pass] = true;
                    order.push(*pass);
                }
                !ready
            });
            if order.len() == before {
                return None;
            }
        }
        Some(order)
    }

    fn passes(&self) -> Vec<Pass> {
        let Some(order) = self.order() else {
            unreachable!("only passes that can run were joined")
        };
        let passes = order.into_iter().map(|pass| {
            let nodes: Vec<usize> = self.members(pass).collect();
            match nodes[..] {
                [at] => Pass::alone(self.flow, at),
                _ => pass_of(self.flow, nodes),
            }
        });
        passes.collect()
    }
}
