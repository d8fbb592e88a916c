//! Which expressions go into the kernels of other primitives.

use warploom_core::DType;

use super::cost::operations;
use super::join::Map;
use super::note::Note;
use super::options::Options;
use crate::Dims;
use crate::cpu::Pass;
use crate::flow::{Combine, Flow, Node, Prim, ValueId};
use crate::gpu::{Room, Tuning};

/// What runs with a node in its kernels.
#[derive(Clone, Copy, Default)]
struct Joint {
    before: Option<usize>,
    after: Option<usize>,
}

/// Nodes being joined with the expressions around them.
struct Holes<'a> {
    flow: &'a Flow,
    options: &'a Options,
    rooms: Vec<Option<Room>>,
    joints: Vec<Joint>,
    /// Expressions that run with another node.
    taken: Vec<bool>,
}

/// The passes of a flow: each node alone, or with an expression that it reads, or one that reads it.
///
/// A node runs where the expression behind it stood, which is the first that reads what it makes, and
/// an expression before it runs wherever it is read. So nothing ever waits for itself.
pub(super) fn passes(
    flow: &Flow,
    options: &Options,
    tuning: &Tuning,
    notes: &mut Vec<Note>,
) -> Vec<Pass> {
    let nodes = flow.nodes();
    let room = |node: &Node| match Map::of(node) {
        None if node.outputs.len() == 1 => Some(Room::of(flow, node, tuning)),
        _ => None,
    };
    let mut holes = Holes {
        flow,
        options,
        rooms: nodes.iter().map(room).collect(),
        joints: vec![Joint::default(); nodes.len()],
        taken: vec![false; nodes.len()],
    };
    for at in 0..nodes.len() {
        notes.extend(holes.goes_on(at));
    }
    for at in 0..nodes.len() {
        notes.extend(holes.goes_in(at));
    }
    let passes = holes.passes();
    holes.side_by_side(passes, notes)
}

/// How far apart passes may be that become one.
const NEAR: usize = 8;

/// Nodes whose kernels go over pixels in the same way.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Totals(Dims),
    /// Along an axis.
    Taps(u8, Dims),
    /// Along an axis, with a radius; of which type, and whether it is a sum.
    Window(u8, u32, DType, bool, Dims),
}

impl Sort {
    fn of(flow: &Flow, node: &Node) -> Option<Self> {
        let kind = flow.kind(node.inputs[0]);
        Some(match &node.prim {
            Prim::Totals => Self::Totals(kind.dims()),
            Prim::Taps(taps) => Self::Taps(taps.axis, kind.dims()),
            Prim::Window {
                axis,
                radius,
                combine,
                ..
            } => {
                let is_sum = *combine == Combine::Sum;
                Self::Window(*axis, *radius, kind.dtype(), is_sum, kind.dims())
            }
            _ => return None,
        })
    }
}

fn bytes(flow: &Flow, ids: &[ValueId]) -> u64 {
    let images = ids.iter().map(|id| flow.kind(*id));
    let images = images.filter(|kind| kind.image().is_some());
    images.map(|kind| kind.bytes()).sum()
}

impl Holes<'_> {
    /// The expression of a node, if it looks at one pixel of images of these extents and at nothing
    /// else.
    fn pixelwise(&self, at: usize) -> Option<Map<'_>> {
        let map = Map::of(&self.flow.nodes()[at])?;
        let dims = self.flow.kind(map.node.outputs[0]).dims();
        let inputs = map.node.inputs.iter().map(|id| self.flow.kind(*id));
        let mut images = inputs.filter(|kind| kind.image().is_some()).peekable();
        let some = images.peek().is_some();
        let fits = map.is_placeless() && map.dag.nodes().len() <= self.options.terms;
        (some && fits && images.all(|image| image.dims() == dims)).then_some(map)
    }

    /// Do so many more buffers fit into the kernels of a node?
    fn fits(&self, core: usize, more: usize) -> bool {
        let node = &self.flow.nodes()[core];
        let own = self.rooms[core].map_or(0, |room| room.buffers);
        let joint = self.joints[core];
        let others = [joint.before, joint.after].into_iter().flatten();
        let others = others.map(|at| &self.flow.nodes()[at]);
        let others: usize = others
            .map(|node| node.inputs.len() + node.outputs.len())
            .sum();
        own + node.inputs.len() + node.outputs.len() + others + more <= self.options.buffers
    }

    /// An expression behind a node goes on with what the node's kernels write.
    fn goes_on(&mut self, at: usize) -> Option<Note> {
        let map = self.pixelwise(at)?;
        let more = map.node.inputs.len() + map.node.outputs.len();
        let dims = self.flow.kind(map.node.outputs[0]).dims();
        let able = map.node.inputs.iter().filter_map(|id| {
            let core = self.flow.writer(*id)? as usize;
            let room = self.rooms[core]?;
            let first = self.flow.readers(*id).next() == Some(at);
            let kind = self.flow.kind(*id);
            let fits = kind.image().is_some() && kind.dims() == dims && self.fits(core, more);
            let free = self.joints[core].after.is_none();
            (room.writes && first && fits && free).then_some((core, *id))
        });
        let (core, value) = able.max()?;
        let whole = self.flow.kind(value).bytes();
        let saved = if self.is_kept(value, at) {
            whole
        } else {
            2 * whole
        };
        self.joints[core].after = Some(at);
        self.taken[at] = true;
        Some(Note::GoesOn {
            value,
            of: self.flow.nodes()[core].prim.name(),
            saved,
        })
    }

    /// Does anybody but this node need a value?
    fn is_kept(&self, value: ValueId, by: usize) -> bool {
        self.flow.is_output(value) || self.flow.readers(value).any(|reader| reader != by)
    }

    /// An expression is computed where others read it, if all who read it can and it pays.
    fn goes_in(&mut self, at: usize) -> Option<Note> {
        if self.taken[at] {
            return None;
        }
        let map = self.pixelwise(at)?;
        let [value] = map.node.outputs[..] else {
            return None;
        };
        if self.flow.is_output(value) {
            return None;
        }
        let more = map.node.inputs.len();
        let mut reads = 0.0;
        let mut readers = Vec::new();
        for reader in self.flow.readers(value) {
            let inputs = &self.flow.nodes()[reader].inputs;
            let once = inputs.iter().filter(|id| **id == value).count() == 1;
            // An image that is there twice would be bound twice.
            let apart = !inputs.iter().any(|id| map.node.inputs.contains(id));
            let free = self.joints[reader].before.is_none() && self.fits(reader, more);
            let room = self.rooms[reader]?.reads?;
            if inputs[0] != value || !once || !apart || !free {
                return None;
            }
            reads += room;
            readers.push(reader);
        }
        let (given, made) = (
            bytes(self.flow, &map.node.inputs),
            self.flow.kind(value).bytes(),
        );
        let machine = &self.options.machine;
        let elements = self.flow.kind(value).elements() as f64;
        let again = operations(map.dag) * (reads - 1.0).max(0.0) * elements;
        let stored = given as f64 + made as f64 * (1.0 + reads);
        let inside = given as f64 * reads;
        let gain = (stored - inside) / machine.bytes_per_second;
        if machine.computing(again) >= gain {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a few times"
            )]
            let times = reads.ceil() as usize;
            return Some(Note::Stored { value, times });
        }
        let names = readers
            .iter()
            .map(|reader| self.flow.nodes()[*reader].prim.name());
        let note = Note::GoesIn {
            value,
            into: names.collect(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bytes of images"
            )]
            saved: (stored - inside) as u64,
        };
        self.taken[at] = true;
        for reader in readers {
            self.joints[reader].before = Some(at);
        }
        Some(note)
    }

    /// Passes of one sort that read the same image become one, each time two that are near each other
    /// and do not wait for one another.
    fn side_by_side(&self, mut passes: Vec<Pass>, notes: &mut Vec<Note>) -> Vec<Pass> {
        let mut at = 0;
        while at < passes.len() {
            let others = at + 1..passes.len().min(at + 1 + NEAR);
            let found = others.clone().find_map(|other| {
                let saved = self.alike(&passes[at], &passes[other])?;
                let (between, later) = (&passes[at..other], &passes[other]);
                let waits = between
                    .iter()
                    .any(|pass| later.inputs.iter().any(|id| pass.outputs.contains(id)));
                (!waits).then_some((other, saved))
            });
            let Some((other, saved)) = found else {
                at += 1;
                continue;
            };
            let two = passes.remove(other);
            let one = &mut passes[at];
            for node in two.nodes {
                if !one.nodes.contains(&node) {
                    one.nodes.push(node);
                }
            }
            for id in two.inputs {
                if !one.inputs.contains(&id) {
                    one.inputs.push(id);
                }
            }
            one.outputs.extend(two.outputs);
            let names = one.nodes.iter();
            let names = names.map(|node| self.flow.nodes()[*node].prim.name());
            notes.push(Note::SideBySide {
                names: names.filter(|name| *name != "map").collect(),
                saved,
            });
        }
        passes
    }

    /// The bytes of images that two passes of one sort both read, if they fit into one.
    fn alike(&self, one: &Pass, two: &Pass) -> Option<u64> {
        let sort = |pass: &Pass| {
            let nodes = pass.nodes.iter().map(|at| &self.flow.nodes()[*at]);
            let mut cores = nodes.filter(|node| Map::of(node).is_none());
            let first = cores.next()?;
            let sort = Sort::of(self.flow, first)?;
            cores
                .all(|node| Sort::of(self.flow, node) == Some(sort))
                .then_some(sort)
        };
        if sort(one)? != sort(two)? {
            return None;
        }
        let shared = two.inputs.iter().copied();
        let shared: Vec<ValueId> = shared.filter(|id| one.inputs.contains(id)).collect();
        let saved = bytes(self.flow, &shared);
        let buffers = |pass: &Pass| {
            let own = pass.nodes.iter().filter_map(|at| self.rooms[*at]);
            let own: usize = own.map(|room| room.buffers).sum();
            own + pass.inputs.len() + pass.outputs.len()
        };
        let fits = buffers(one) + buffers(two) - shared.len() <= self.options.buffers;
        (saved > 0 && fits).then_some(saved)
    }

    fn passes(&self) -> Vec<Pass> {
        let mut core_of = vec![None; self.joints.len()];
        for (core, joint) in self.joints.iter().enumerate() {
            if let Some(after) = joint.after {
                core_of[after] = Some(core);
            }
        }
        let mut passes = Vec::new();
        for (at, core) in core_of.into_iter().enumerate() {
            match core {
                Some(core) => passes.push(self.joined(core)),
                None if self.taken[at] || self.joints[at].after.is_some() => {}
                None if self.joints[at].before.is_some() => passes.push(self.joined(at)),
                None => passes.push(Pass::alone(self.flow, at)),
            }
        }
        passes
    }

    /// A node and the expressions around it.
    fn joined(&self, core: usize) -> Pass {
        let Joint { before, after } = self.joints[core];
        let nodes: Vec<usize> = [before, Some(core), after].into_iter().flatten().collect();
        let node = |at: usize| &self.flow.nodes()[at];
        let made: Vec<ValueId> = nodes
            .iter()
            .flat_map(|at| node(*at).outputs.clone())
            .collect();
        let mut inputs: Vec<ValueId> = Vec::new();
        for id in nodes.iter().flat_map(|at| &node(*at).inputs) {
            if !made.contains(id) && !inputs.contains(id) {
                inputs.push(*id);
            }
        }
        let mut outputs = node(core).outputs.clone();
        if let Some(after) = after {
            outputs.retain(|id| self.is_kept(*id, after));
            outputs.extend(&node(after).outputs);
        }
        Pass {
            nodes,
            inputs,
            outputs,
        }
    }
}

#[cfg(test)]
mod tests;
