//! How much of its images a part of a flow's results needs.

use std::ops::Range;

use crate::expr::{Dag, Id, Node as Term};
use crate::flow::{Combine, Flow, Node, Prim, ValueId, ValueKind, Weights};
use crate::{Boundary, Dims};

/// What must surround a part of an image so that the part comes out as it does in the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halo {
    /// Pixels to each side, along z, y, x.
    pub reach: Dims,
    /// What is read starts at a multiple of this: running sums begin anew at fixed places.
    pub grain: Dims,
}

/// A part of the results, and what of the images it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What it gives, along z, y, x.
    pub gives: [Range<u64>; 3],
    /// What it reads.
    pub reads: [Range<u64>; 3],
}

impl Part {
    /// The extents of what it reads: those of its flow.
    pub fn extents(&self) -> Dims {
        [0, 1, 2].map(|axis| self.reads[axis].end - self.reads[axis].start)
    }
}

impl Halo {
    /// Cuts images into parts of at most these extents.
    ///
    /// # Panics
    /// When a part has no extent.
    pub fn parts(&self, dims: Dims, most: Dims) -> Vec<Part> {
        assert!(!most.contains(&0), "a part of no extent");
        let along =
            |axis: usize| (0..dims[axis].div_ceil(most[axis])).map(move |at| at * most[axis]);
        let mut parts = Vec::new();
        for z in along(0) {
            for y in along(1) {
                for x in along(2) {
                    parts.push(self.part(dims, [z, y, x], most));
                }
            }
        }
        parts
    }

    fn part(&self, dims: Dims, start: Dims, most: Dims) -> Part {
        let both = [0, 1, 2].map(|axis| self.stretch(axis, dims[axis], start[axis], most[axis]));
        Part {
            gives: both.clone().map(|(gives, _)| gives),
            reads: both.map(|(_, reads)| reads),
        }
    }

    /// What a part that starts here gives along one axis, and what it reads.
    fn stretch(&self, axis: usize, dim: u64, start: u64, most: u64) -> (Range<u64>, Range<u64>) {
        let gives = start..dim.min(start + most);
        let grain = self.grain[axis];
        let first = start.saturating_sub(self.reach[axis]) / grain * grain;
        let reads = first..dim.min(gives.end + self.reach[axis]);
        (gives, reads)
    }

    /// How long the stretches are that parts of at most `most` pixels read along one axis of `dim`.
    pub fn lengths(&self, axis: usize, dim: u64, most: u64) -> impl Iterator<Item = u64> {
        let starts = (0..dim.div_ceil(most.max(1))).map(move |at| at * most);
        starts.map(move |start| {
            let (_, reads) = self.stretch(axis, dim, start, most);
            reads.end - reads.start
        })
    }
}

/// What surrounds a part of a flow's results; `None` when a pixel may depend on all pixels, or on
/// where it is in the whole. Numbers that a formula reads are no pixels: every part gets all of them.
pub fn halo(flow: &Flow) -> Option<Halo> {
    let mut grain: Dims = [1; 3];
    let mut reach: Vec<Dims> = vec![[0; 3]; flow.values().len()];
    for node in flow.nodes().iter().rev() {
        let own = reach_of(flow, node, &mut grain)?;
        let mut needed: Dims = [0; 3];
        for id in &node.outputs {
            needed = larger(needed, reach[*id as usize]);
        }
        let total = [0, 1, 2].map(|axis| needed[axis] + own[axis]);
        for id in &node.inputs {
            reach[*id as usize] = larger(reach[*id as usize], total);
        }
    }
    let inputs = flow.inputs().iter();
    let reach = inputs.fold([0; 3], |most, id| larger(most, reach[*id as usize]));
    Some(Halo { reach, grain })
}

fn larger(a: Dims, b: Dims) -> Dims {
    [0, 1, 2].map(|axis| a[axis].max(b[axis]))
}

/// How far one node reads; `None` when it looks at more than surroundings.
fn reach_of(flow: &Flow, node: &Node, grain: &mut Dims) -> Option<Dims> {
    let dims = flow.kind(node.outputs[0]).image()?.dims;
    let formula = matches!(node.prim, Prim::Map { .. });
    let alike = |id: &ValueId| match flow.kind(*id) {
        ValueKind::Image(image) => image.dims == dims,
        ValueKind::List { .. } => formula && node.inputs.contains(id),
    };
    if !node.inputs.iter().chain(&node.outputs).all(alike) {
        return None;
    }
    let (reach, boundary) = match &node.prim {
        Prim::Map { dag, .. } => return map_reach(dag, dims),
        Prim::Taps(taps) => {
            let radius = taps.weights.radius() as u64;
            let even = matches!(&taps.weights, Weights::Even(weights) if weights.len() == 1);
            let radius = if even { 0 } else { radius };
            (along(taps.axis, radius), taps.boundary)
        }
        Prim::Window {
            axis,
            radius,
            combine,
            boundary,
        } => {
            if *combine == Combine::Sum {
                let at = usize::from(*axis);
                grain[at] = common_multiple(grain[at], 2 * u64::from(*radius) + 1);
            }
            (along(*axis, u64::from(*radius)), *boundary)
        }
        Prim::Around {
            footprint,
            boundary,
            ..
        }
        | Prim::Rank {
            footprint,
            boundary,
            ..
        } => (footprint.reach().map(u64::from), *boundary),
        _ => return None,
    };
    wraps(boundary, reach, dims).then_some(reach)
}

/// What wraps around needs the other end, unless there is but one pixel.
fn wraps(boundary: Boundary, reach: Dims, dims: Dims) -> bool {
    boundary != Boundary::Wrap || (0..3).all(|axis| reach[axis] == 0 || dims[axis] == 1)
}

fn along(axis: u8, radius: u64) -> Dims {
    [0, 1, 2].map(|other| if other == axis { radius } else { 0 })
}

fn map_reach(dag: &Dag, dims: Dims) -> Option<Dims> {
    let mut reach: Dims = [0; 3];
    let mut seen = vec![false; dag.nodes().len()];
    let mut waiting: Vec<Id> = dag.outputs().iter().map(|output| output.id).collect();
    while let Some(id) = waiting.pop() {
        if std::mem::replace(&mut seen[id as usize], true) {
            continue;
        }
        match dag.node(id) {
            Term::Load { at, boundary, .. } => {
                let offset = dag.offset(at)?.map(|by| u64::from(by.unsigned_abs()));
                if !wraps(boundary, offset, dims) {
                    return None;
                }
                reach = larger(reach, offset);
            }
            Term::Coord(_) | Term::Extent(_) | Term::InputExtent { .. } => return None,
            term => waiting.extend(term.operands()),
        }
    }
    Some(reach)
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use warploom_core::DType;

    use super::*;
    use crate::ImageType;
    use crate::expr::Ty;

    #[test]
    fn numbers_that_a_formula_reads_are_no_pixels() {
        let mut flow = Flow::new();
        let image = flow.input(ValueKind::Image(ImageType::plane(DType::F32, 8, 9)));
        let list = flow.input(ValueKind::scalars(3));
        let bright = flow.map(&[image, list], image, DType::U8, &[], |graph, ids, _| {
            let pixel = graph.pixel(ids[0]).cast(Ty::F64);
            pixel.gt(graph.scalar(ids[1], 2))
        });
        flow.output(bright);
        let (reach, grain) = ([0; 3], [1; 3]);
        assert_eq!(halo(&flow), Some(Halo { reach, grain }));
    }
}
