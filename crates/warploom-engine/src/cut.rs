//! Which nodes of a flow share one pass over rows.

use super::pass::{Edge, Pass, Rowwise, looks_again};
use warploom_flow::flow::{Flow, Node, Prim, ValueId};

/// Cuts a flow into passes, in an order in which they can run: chains of expressions, sums and
/// windows along rows and columns become one each, and so do those that read the same image;
/// reductions go with the pass that makes their image, or with one that reads it; everything else
/// stays alone. No pass reads and writes more than `most` values. Nodes that
/// nobody needs are left out.
pub fn partition(flow: &Flow, most: usize) -> Vec<Pass> {
    let mut cut = Cut::new(flow, most);
    let nodes = flow.nodes();
    for (at, node) in nodes.iter().enumerate() {
        for id in &node.inputs {
            if let Some(writer) = flow.writer(*id) {
                cut.join(writer as usize, at);
            }
        }
    }
    // Groups that would not take a node, by the number of the try; many readers of an image are in
    // few groups.
    let mut refused = vec![0; nodes.len()];
    let mut tries = 0;
    for (at, node) in nodes.iter().enumerate() {
        let images = node
            .inputs
            .iter()
            .filter(|id| flow.kind(**id).image().is_some());
        tries += 1;
        // Parts of an image have little in common but the image.
        let is_part = |at: usize| matches!(nodes[at].prim, Prim::Crop { .. });
        if is_part(at) {
            continue;
        }
        for id in images {
            let readers = flow.readers(*id).take_while(|reader| *reader < at);
            for sibling in readers.filter(|reader| !is_part(*reader)) {
                let group = cut.group(sibling);
                if refused[group] == tries {
                    continue;
                }
                if cut.join(sibling, at) {
                    tries += 1;
                } else {
                    refused[group] = tries;
                }
            }
        }
    }
    // Reductions last: they fit anywhere, and should keep nothing apart.
    for (at, node) in nodes.iter().enumerate() {
        cut.groups[at].rowwise = cut.groups[at]
            .rowwise
            .or_else(|| Rowwise::gathered(flow, node));
    }
    for (at, node) in nodes.iter().enumerate() {
        if Rowwise::gathered(flow, node).is_none() {
            continue;
        }
        let image = node.inputs[0];
        let writer = flow.writer(image).map(|writer| writer as usize);
        let readers = flow.readers(image).take_while(|reader| *reader < at);
        for other in writer.into_iter().chain(readers) {
            if cut.join(other, at) {
                break;
            }
        }
    }
    cut.passes()
}

/// Bytes of rows that a pass may keep: they have to stay near the processor that rolls them through.
/// Ten steps of a deconvolution, which are twenty blurs of 17 rows, took 111 ms on 2048 x 2048 pixels in one
/// pass, 88 with eight blurs to a pass, 62 with five, 63 with four, 69 with one. Where rows are four times as
/// long, one blur to a pass was the best. What a background of 51 rows is made of took 5.0 ms together and
/// 6.4 in two passes; the two windows of 61 rows that a variance has are just below the limit.
const KEPT: u64 = 5 << 20;

/// Nodes that are to run as one.
#[derive(Clone, Debug)]
struct Group {
    /// `None` when rows do not suffice.
    rowwise: Option<Rowwise>,
    /// What it reads that others make, sorted.
    inputs: Vec<ValueId>,
    /// What it makes that others need, sorted.
    outputs: Vec<ValueId>,
    /// How many of them the flow gives, which no joining makes fewer.
    given: usize,
    /// Values of which it reads other planes, or any row.
    planes: Vec<ValueId>,
}

impl Group {
    fn alone(flow: &Flow, at: usize) -> Self {
        let pass = Pass::of(flow, vec![at]);
        let node = &flow.nodes()[at];
        Self {
            rowwise: Rowwise::of(flow, node),
            given: node
                .outputs
                .iter()
                .filter(|id| flow.is_output(**id))
                .count(),
            inputs: sorted(pass.inputs),
            outputs: sorted(pass.outputs),
            planes: other_planes(node),
        }
    }
}

fn sorted(mut ids: Vec<ValueId>) -> Vec<ValueId> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The values a node reads other planes of, or any row. Rolling rows are a few of one plane.
fn other_planes(node: &Node) -> Vec<ValueId> {
    let dag = match &node.prim {
        Prim::Map { dag, .. } => dag,
        Prim::Crop { .. } => return node.inputs.clone(),
        _ => return Vec::new(),
    };
    let loads = dag.stencil().unwrap_or_default();
    let beyond = loads.iter().filter(|(_, offset)| offset[0] != 0);
    beyond.map(|(at, _)| node.inputs[*at as usize]).collect()
}

/// A flow being cut. A group is known by the number of one of its nodes.
struct Cut<'a> {
    flow: &'a Flow,
    most: usize,
    groups: Vec<Group>,
    /// Whether others need what a node makes.
    live: Vec<bool>,
    /// What nodes look at again when it was made.
    again: Vec<Option<ValueId>>,
    /// Another node of the same group, nearer to the one the group is known by.
    nearer: Vec<usize>,
    /// Groups a search has seen bear its number.
    seen: Vec<usize>,
    search: usize,
}

impl<'a> Cut<'a> {
    fn new(flow: &'a Flow, most: usize) -> Self {
        let nodes = flow.nodes();
        let mut live = vec![false; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let needed =
                |id: &ValueId| flow.is_output(*id) || flow.readers(*id).any(|reader| live[reader]);
            live[at] = nodes[at].outputs.iter().any(needed);
        }
        let again = (0..nodes.len()).map(|at| {
            let image = nodes[at].inputs.first().copied();
            image.filter(|image| looks_again(flow, at, *image))
        });
        Self {
            flow,
            most,
            again: again.collect(),
            groups: (0..nodes.len()).map(|at| Group::alone(flow, at)).collect(),
            live,
            nearer: (0..nodes.len()).collect(),
            seen: vec![0; nodes.len()],
            search: 0,
        }
    }

    /// The group a node is in.
    fn group(&mut self, mut at: usize) -> usize {
        while self.nearer[at] != at {
            self.nearer[at] = self.nearer[self.nearer[at]];
            at = self.nearer[at];
        }
        at
    }

    /// The group that makes a value, if one does.
    fn maker(&mut self, id: ValueId) -> Option<usize> {
        let writer = self.flow.writer(id)?;
        Some(self.group(writer as usize))
    }

    /// Puts two nodes, and all that run with them, into one group if that can be.
    fn join(&mut self, first: usize, second: usize) -> bool {
        let (a, b) = (self.group(first), self.group(second));
        if a == b || !self.live[first] || !self.live[second] {
            return false;
        }
        if self.groups[a].given + self.groups[b].given > self.most {
            return false;
        }
        let Some(joined) = self.joined(a, b) else {
            return false;
        };
        if joined.inputs.len() + joined.outputs.len() > self.most || self.waits(&joined, [a, b]) {
            return false;
        }
        self.nearer[b] = a;
        self.groups[a] = joined;
        true
    }

    /// What two groups are as one; `None` when their rows do not go together.
    fn joined(&mut self, a: usize, b: usize) -> Option<Group> {
        let (one, two) = (self.groups[a].rowwise?, self.groups[b].rowwise?);
        let edge = one.edge.with(two.edge);
        if one.dims != two.dims || edge == Edge::Mixed {
            return None;
        }
        let kept = one.kept + two.kept;
        if one.kept.min(two.kept) > 0 && kept > KEPT {
            return None;
        }
        let planes = sorted([&self.groups[a].planes[..], &self.groups[b].planes[..]].concat());
        // Numbers of a whole image are not there while its rows are made.
        for (group, other) in [(a, b), (b, a)] {
            for at in 0..self.groups[group].inputs.len() {
                let id = self.groups[group].inputs[at];
                let is_list = self.flow.kind(id).image().is_none();
                if is_list && self.maker(id) == Some(other) {
                    return None;
                }
            }
        }
        let inside = |maker: Option<usize>| maker == Some(a) || maker == Some(b);
        if planes.iter().any(|id| inside(self.maker(*id))) {
            return None;
        }
        let mut inputs = [&self.groups[a].inputs[..], &self.groups[b].inputs[..]].concat();
        inputs.retain(|id| !inside(self.maker(*id)));
        let mut outputs = [&self.groups[a].outputs[..], &self.groups[b].outputs[..]].concat();
        let flow = self.flow;
        outputs.retain(|id| {
            flow.is_output(*id)
                || flow.readers(*id).any(|reader| {
                    self.again[reader] == Some(*id) || !inside(Some(self.group(reader)))
                })
        });
        Some(Group {
            rowwise: Some(Rowwise { edge, kept, ..one }),
            given: self.groups[a].given + self.groups[b].given,
            inputs: sorted(inputs),
            outputs: sorted(outputs),
            planes,
        })
    }

    /// Would two groups as one wait for themselves, through some third?
    fn waits(&mut self, joined: &Group, ours: [usize; 2]) -> bool {
        self.search += 1;
        let mut waiting: Vec<usize> = Vec::new();
        self.look(&joined.inputs, &mut waiting);
        while let Some(group) = waiting.pop() {
            if ours.contains(&group) {
                return true;
            }
            let inputs = std::mem::take(&mut self.groups[group].inputs);
            self.look(&inputs, &mut waiting);
            self.groups[group].inputs = inputs;
        }
        false
    }

    /// Adds the groups that make these values and were not seen yet.
    fn look(&mut self, values: &[ValueId], waiting: &mut Vec<usize>) {
        for id in values {
            if let Some(maker) = self.maker(*id)
                && std::mem::replace(&mut self.seen[maker], self.search) != self.search
            {
                waiting.push(maker);
            }
        }
    }

    /// The groups as passes. One that waits for none that comes later in the flow runs in the first
    /// round, in the order of first nodes; the others in later rounds.
    fn passes(mut self) -> Vec<Pass> {
        let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); self.live.len()];
        for at in 0..self.live.len() {
            if self.live[at] {
                let group = self.group(at);
                nodes[group].push(at);
            }
        }
        let mut rounds: Vec<Option<usize>> = vec![None; nodes.len()];
        for group in 0..nodes.len() {
            if !nodes[group].is_empty() {
                self.settle(group, &nodes, &mut rounds);
            }
        }
        let mut order: Vec<usize> = (0..nodes.len())
            .filter(|group| !nodes[*group].is_empty())
            .collect();
        order.sort_by_key(|group| (rounds[*group], nodes[*group][0]));
        let passes = order.into_iter().map(|group| {
            let nodes = std::mem::take(&mut nodes[group]);
            match nodes[..] {
                [at] => Pass::alone(self.flow, at),
                _ => Pass::of(self.flow, nodes),
            }
        });
        passes.collect()
    }

    /// Finds the round of a group, after those of all it waits for.
    fn settle(&mut self, group: usize, nodes: &[Vec<usize>], rounds: &mut [Option<usize>]) {
        let mut waiting = vec![group];
        while let Some(&group) = waiting.last() {
            let flow = self.flow;
            let writers = self.groups[group].inputs.clone();
            let writers = writers.into_iter().filter_map(|id| flow.writer(id));
            let makers: Vec<usize> = writers.map(|at| self.group(at as usize)).collect();
            let open = makers.iter().find(|maker| rounds[**maker].is_none());
            if let Some(open) = open {
                waiting.push(*open);
                continue;
            }
            let round = makers.iter().map(|maker| {
                let later = nodes[*maker][0] > nodes[group][0];
                rounds[*maker].unwrap_or(0) + usize::from(later)
            });
            rounds[group] = Some(round.max().unwrap_or(0));
            waiting.pop();
        }
    }
}

#[cfg(test)]
mod meaning;
#[cfg(test)]
mod tests;
