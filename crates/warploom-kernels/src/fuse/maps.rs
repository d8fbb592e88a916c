//! Which expressions join.

use std::collections::HashSet;

use super::cost::operations;
use super::holes;
use super::join::{Map, join};
use super::mesh::Mesh;
use super::note::Note;
use super::options::Options;
use crate::Boundary;
use crate::cpu::{self, Pass};
use crate::flow::{Flow, Node, NodeId, ValueId};

/// Terms of expressions that may be put together in vain, while looking for what can be computed
/// side by side: hundreds of long expressions of one image fit together two by two or not at all,
/// and trying all pairs would take minutes.
const PATIENCE: usize = 2_000_000;

/// A flow with fewer passes, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Fused {
    /// The flow; values keep their numbers.
    pub flow: Flow,
    /// Its nodes in the order they run, those together that run as one.
    pub passes: Vec<Pass>,
    /// What was decided.
    pub notes: Vec<Note>,
}

impl Fused {
    /// Every node that is needed a pass of its own.
    pub fn none(flow: &Flow) -> Self {
        let flow = needed(flow);
        let passes = (0..flow.nodes().len()).map(|at| Pass::alone(&flow, at));
        Self {
            passes: passes.collect(),
            flow,
            notes: Vec::new(),
        }
    }
}

/// Joins what can share a pass over memory. The result means the same, bit for bit.
pub fn fuse(flow: &Flow, options: &Options) -> Fused {
    let flow = needed(flow);
    let mut notes = Vec::new();
    let mut mesh = Mesh::new(&flow);
    chain(&mut mesh, &mut notes, options);
    if !options.rows {
        beside(&mut mesh, &mut notes, options);
    }
    let flow = mesh.into_flow();
    let passes = if options.rows {
        let passes = cpu::partition(&flow, options.buffers);
        let shared = passes.iter().filter(|pass| pass.nodes.len() > 1);
        notes.extend(shared.map(|pass| Note::rows(&flow, pass)));
        passes
    } else if let Some(tuning) = &options.holes {
        holes::passes(&flow, options, tuning, &mut notes)
    } else {
        let alone = (0..flow.nodes().len()).map(|at| Pass::alone(&flow, at));
        alone.collect()
    };
    Fused {
        flow,
        passes,
        notes,
    }
}

/// The flow without nodes whose results nobody needs.
fn needed(flow: &Flow) -> Flow {
    let mut wanted = vec![false; flow.values().len()];
    for id in flow.outputs() {
        wanted[*id as usize] = true;
    }
    let mut kept: Vec<Node> = Vec::new();
    for node in flow.nodes().iter().rev() {
        if node.outputs.iter().any(|id| wanted[*id as usize]) {
            for id in &node.inputs {
                wanted[*id as usize] = true;
            }
            kept.push(node.clone());
        }
    }
    kept.reverse();
    flow.with_nodes(kept)
}

/// Joins expressions of which the second reads the first, the foremost pair first, until none is
/// left.
fn chain(mesh: &mut Mesh<'_>, notes: &mut Vec<Note>, options: &Options) {
    let mut stored: HashSet<(ValueId, usize)> = HashSet::new();
    let mut place = 0;
    while let Some(at) = mesh.at(place) {
        place = match chained(mesh, at, notes, &mut stored, options) {
            Some((first, joined)) => mesh.replace([first, at], joined),
            None => place + 1,
        };
    }
}

/// What a node and the first of those it reads that it can be joined with become.
fn chained(
    mesh: &mut Mesh<'_>,
    at: NodeId,
    notes: &mut Vec<Note>,
    stored: &mut HashSet<(ValueId, usize)>,
    options: &Options,
) -> Option<(NodeId, Node)> {
    for nth in 0..mesh.node(at).inputs.len() {
        let input = mesh.node(at).inputs[nth];
        let Some(writer) = mesh.writer(input) else {
            continue;
        };
        let (Some(first), Some(second)) = (Map::of(mesh.node(writer)), Map::of(mesh.node(at)))
        else {
            continue;
        };
        let Some(decision) = decide(mesh.flow, &first, &second, input, options) else {
            continue;
        };
        if let Note::Stored { value, times } = decision {
            if stored.insert((value, times)) {
                notes.push(decision);
            }
            continue;
        }
        let read = |id: &ValueId| mesh.readers(*id).iter().any(|reader| *reader != at);
        let others = |id: &ValueId| mesh.flow.is_output(*id) || read(id);
        let keep: Vec<ValueId> = first.node.outputs.iter().copied().filter(others).collect();
        // Rows that others read too are in the cache anyway, and those others may want more of
        // them than this reader.
        if options.rows && keep.iter().any(read) {
            continue;
        }
        if buffers(&first, &second, &keep) > options.buffers {
            continue;
        }
        if !keep.is_empty() && (moved(&decision) || mesh.depends_otherwise(writer, at)) {
            continue;
        }
        let (first, second) = (Map::of(mesh.node(writer))?, Map::of(mesh.node(at))?);
        let joined = join(&first, &second, &keep);
        if !fits(&joined, options) {
            continue;
        }
        notes.push(decision);
        return Some((writer, joined));
    }
    None
}

/// A first map that is computed at other pixels than the second's cannot be stored beside it in
/// fewer bytes than it is now.
fn moved(decision: &Note) -> bool {
    matches!(decision, Note::Recomputed { .. })
}

fn decide(
    flow: &Flow,
    first: &Map<'_>,
    second: &Map<'_>,
    value: ValueId,
    options: &Options,
) -> Option<Note> {
    let (from, to) = (flow.kind(value), flow.kind(second.node.outputs[0]));
    if from.dims() != to.dims() || from.image().is_none() {
        return None;
    }
    let same_extents = |map: &Map<'_>| {
        let mut images = map
            .node
            .inputs
            .iter()
            .filter_map(|id| flow.kind(*id).image());
        images.all(|image| image.dims == to.dims())
    };
    // All that the second reads of the first moves with it.
    let offsets = second.offsets(&first.node.outputs)?;
    let mut places: Vec<[i32; 3]> = offsets.iter().map(|(offset, _)| *offset).collect();
    places.sort_unstable();
    places.dedup();
    let saved = 2 * from.bytes();
    if places.iter().all(|offset| *offset == [0; 3]) {
        return Some(Note::Chained { value, saved });
    }
    // Outside, a zero is seen, not the expression of zeros.
    let zero = |(offset, boundary): &([i32; 3], Boundary)| {
        *boundary == Boundary::Zero && *offset != [0; 3]
    };
    if !first.is_placeless() || !same_extents(first) || offsets.iter().any(zero) {
        return None;
    }
    if options.rows {
        return None;
    }
    let times = places.len();
    let again = operations(first.dag) * (times - 1) as f64 * from.elements() as f64;
    let machine = &options.machine;
    if machine.computing(again) < machine.moving(saved) {
        Some(Note::Recomputed {
            value,
            times,
            saved,
        })
    } else {
        Some(Note::Stored { value, times })
    }
}

/// Joins expressions that read a common image and do not depend on each other, the foremost pair
/// first, until none is left.
fn beside(mesh: &mut Mesh<'_>, notes: &mut Vec<Note>, options: &Options) {
    let mut place = 0;
    let mut patience = PATIENCE;
    while let Some(at) = mesh.at(place) {
        place = match neighbour(mesh, at, options, &mut patience) {
            Some((first, joined, saved)) => {
                notes.push(Note::Beside { saved });
                mesh.replace([first, at], joined)
            }
            None => place + 1,
        };
    }
}

/// The first node before this one that it can be computed beside, what both become, and the bytes
/// that saves.
fn neighbour(
    mesh: &mut Mesh<'_>,
    at: NodeId,
    options: &Options,
    patience: &mut usize,
) -> Option<(NodeId, Node, u64)> {
    let two = Map::of(mesh.node(at))?;
    let dims = |node: &Node| mesh.flow.kind(node.outputs[0]).dims();
    let images = two.node.inputs.iter();
    let images = images.filter(|id| mesh.flow.kind(**id).image().is_some());
    let readers = images.flat_map(|id| mesh.readers(*id)).copied();
    let earlier = readers.filter(|reader| mesh.place(*reader) < mesh.place(at));
    // Most that cannot be are told by their numbers of buffers, before anything is searched.
    let able = earlier.filter(|reader| {
        let node = mesh.node(*reader);
        // Both read some image.
        let least = 1 + node.outputs.len() + two.node.outputs.len();
        if least > options.buffers {
            return false;
        }
        let one = Map::of(node).filter(|_| dims(node) == dims(two.node));
        one.is_some_and(|one| buffers(&one, &two, &node.outputs) <= options.buffers)
    });
    let mut able: Vec<NodeId> = able.collect();
    able.sort_unstable_by_key(|reader| mesh.place(*reader));
    able.dedup();
    if !able.is_empty() {
        mesh.mark_needed(at);
    }
    able.into_iter().find_map(|before| {
        if *patience == 0 || mesh.is_needed(before) {
            return None;
        }
        let (one, two) = (Map::of(mesh.node(before))?, Map::of(mesh.node(at))?);
        let joined = join(&one, &two, &one.node.outputs);
        let shared = one.node.inputs.iter();
        let shared = shared.filter(|id| two.node.inputs.contains(id));
        let images = shared.filter(|id| mesh.flow.kind(**id).image().is_some());
        let saved = images.map(|id| mesh.flow.kind(*id).bytes()).sum();
        if saved > 0 && fits(&joined, options) {
            return Some((before, joined, saved));
        }
        let terms = Map::of(&joined).map_or(0, |map| map.dag.nodes().len());
        *patience = patience.saturating_sub(terms);
        None
    })
}

/// How many buffers two expressions have when they are one.
fn buffers(first: &Map<'_>, second: &Map<'_>, keep: &[ValueId]) -> usize {
    let (first, second) = (first.node, second.node);
    let mut inputs: Vec<ValueId> = first.inputs.iter().chain(&second.inputs).copied().collect();
    inputs.retain(|id| !first.outputs.contains(id));
    inputs.sort_unstable();
    inputs.dedup();
    inputs.len() + keep.len() + second.outputs.len()
}

fn fits(node: &Node, options: &Options) -> bool {
    let buffers = node.inputs.len() + node.outputs.len();
    let terms = Map::of(node).map_or(0, |map| map.dag.nodes().len());
    buffers <= options.buffers && terms <= options.terms
}

#[cfg(test)]
mod meaning;
#[cfg(test)]
mod tests;
