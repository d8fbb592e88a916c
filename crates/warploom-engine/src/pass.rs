//! Which nodes of a flow share one pass over rows.

use warploom_core::DType;

use super::rows::MOST;
use super::tape::Tape;
use warploom_flow::expr::Node as Term;
use warploom_flow::flow::{Flow, Node, Prim, ValueId, ValueKind};
use warploom_flow::{Boundary, Dims};

/// Nodes that run as one, and what they read and write. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// The nodes, by their place in the flow, each after those it depends on.
    pub nodes: Vec<usize>,
    /// Values they read that others made, each once.
    pub inputs: Vec<ValueId>,
    /// Values they make that others need.
    pub outputs: Vec<ValueId>,
}

impl Pass {
    /// One node alone.
    pub fn alone(flow: &Flow, at: usize) -> Self {
        let pass = Self::of(flow, vec![at]);
        if pass.by_rows(flow) {
            return pass;
        }
        // What does not go by rows writes all it makes.
        let outputs = flow.nodes()[at].outputs.clone();
        Self { outputs, ..pass }
    }

    /// Can all its nodes be computed row by row?
    pub(super) fn by_rows(&self, flow: &Flow) -> bool {
        let nodes = self.nodes.iter().map(|at| &flow.nodes()[*at]);
        nodes
            .map(|node| Rowwise::of(flow, node))
            .all(|it| it.is_some())
    }

    fn of(flow: &Flow, nodes: Vec<usize>) -> Self {
        let members = || nodes.iter().map(|at| &flow.nodes()[*at]);
        let made = |id: &ValueId| members().any(|node| node.outputs.contains(id));
        let mut inputs: Vec<ValueId> = Vec::new();
        for id in members().flat_map(|node| &node.inputs) {
            if !made(id) && !inputs.contains(id) {
                inputs.push(*id);
            }
        }
        let outside = |at: usize| !nodes.contains(&at);
        let needed = |id: &ValueId| flow.outputs().contains(id) || flow.readers(*id).any(outside);
        let outputs = members().flat_map(|node| &node.outputs);
        let outputs = outputs.copied().filter(needed).collect();
        Self {
            nodes,
            inputs,
            outputs,
        }
    }
}

/// What becomes of rows outside the image that a node reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    /// It reads no other rows.
    None,
    /// They are those of the other end.
    Wrap,
    /// They are made up.
    Other,
    /// Both, so rows cannot be numbered one way for all.
    Mixed,
}

impl Edge {
    fn of(boundary: Boundary) -> Self {
        if boundary == Boundary::Wrap {
            Self::Wrap
        } else {
            Self::Other
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, edge) | (edge, Self::None) => edge,
            (a, b) if a == b => a,
            _ => Self::Mixed,
        }
    }
}

/// A node that can be computed row by row.
#[derive(Clone, Copy, Debug)]
struct Rowwise {
    dims: Dims,
    edge: Edge,
}

impl Rowwise {
    /// `None` when rows do not suffice.
    fn of(flow: &Flow, node: &Node) -> Option<Self> {
        let dims = flow.kind(node.outputs[0]).image()?.dims;
        for id in node.inputs.iter().chain(&node.outputs) {
            match flow.kind(*id) {
                ValueKind::Image(image) if image.dims == dims => {}
                ValueKind::List {
                    dtype: DType::F64, ..
                } => {}
                _ => return None,
            }
        }
        // Extents are those of an input.
        let mut inputs = node.inputs.iter();
        inputs.find(|id| flow.kind(**id).image().is_some())?;
        let edge = match &node.prim {
            Prim::Taps(taps) if taps.axis == 1 => Edge::of(taps.boundary),
            Prim::Window {
                axis: 1, boundary, ..
            } => Edge::of(*boundary),
            Prim::Taps(taps) if taps.axis == 2 => Edge::None,
            Prim::Window { axis: 2, .. } => Edge::None,
            Prim::Map { dag, .. } => {
                let fits = dag.outputs().len() <= MOST && Tape::new(dag).is_some();
                let loads = dag.nodes().iter().filter_map(|(term, _)| match term {
                    Term::Load { at, boundary, .. } => Some((dag.offset(*at), *boundary)),
                    _ => None,
                });
                let beyond = loads.filter(|(at, _)| at.is_some_and(|at| at[1] != 0));
                let edges = beyond.map(|(_, boundary)| Edge::of(boundary));
                fits.then(|| edges.fold(Edge::None, Edge::with))?
            }
            _ => return None,
        };
        Some(Self { dims, edge })
    }
}

/// Does a node read other planes of a value? Rolling rows are of one plane.
fn reads_planes(node: &Node, value: ValueId) -> bool {
    let Prim::Map { dag, .. } = &node.prim else {
        return false;
    };
    let loads = dag.stencil().unwrap_or_default();
    loads
        .iter()
        .any(|(at, offset)| offset[0] != 0 && node.inputs[*at as usize] == value)
}

/// Cuts a flow into passes, in an order in which they can run: chains of expressions, sums and
/// windows along rows and columns become one each, and so do those that read the same image;
/// everything else stays alone. No pass reads and writes more than `most` values. Nodes that
/// nobody needs are left out.
pub fn partition(flow: &Flow, most: usize) -> Vec<Pass> {
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
                cut.join(sibling, at);
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
        let joined = Pass::of(self.flow, self.members(a).collect());
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
        let nodes = self.flow.nodes();
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
                _ => Pass::of(self.flow, nodes),
            }
        });
        passes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_flow::expr::Ty;
    use warploom_flow::flow::Weights;
    use warploom_flow::image::ImageType;

    fn blur(flow: &mut Flow, image: ValueId, axes: &[u8], boundary: Boundary) -> ValueId {
        axes.iter().fold(image, |image, axis| {
            let weights = Weights::Even(vec![0.5, 0.25]);
            flow.taps(image, *axis, weights, boundary)
        })
    }

    fn plane(flow: &mut Flow) -> ValueId {
        flow.input(ValueKind::Image(ImageType::plane(DType::U16, 30, 40)))
    }

    fn difference(flow: &mut Flow, a: ValueId, b: ValueId) -> ValueId {
        flow.map(&[a, b], a, DType::F32, &[], |g, images, _| {
            g.pixel(images[0]).cast(Ty::F32) - g.pixel(images[1]).cast(Ty::F32)
        })
    }

    fn sizes(flow: &Flow) -> Vec<usize> {
        let passes = partition(flow, 64);
        passes.iter().map(|pass| pass.nodes.len()).collect()
    }

    #[test]
    fn a_difference_of_blurs_is_one_pass() {
        let mut flow = Flow::new();
        let image = plane(&mut flow);
        let narrow = blur(&mut flow, image, &[1, 2], Boundary::Clamp);
        let wide = blur(&mut flow, narrow, &[1, 2], Boundary::Reflect);
        let rest = difference(&mut flow, narrow, wide);
        flow.output(rest);
        let passes = partition(&flow, 64);
        assert_eq!(passes.len(), 1);
        assert_eq!(
            (&passes[0].inputs[..], &passes[0].outputs[..]),
            (&[image][..], &[rest][..])
        );
    }

    #[test]
    fn those_that_read_the_same_image_go_together() {
        let mut flow = Flow::new();
        let image = plane(&mut flow);
        for axis in [1, 2] {
            let edge = flow.taps(image, axis, Weights::Odd(vec![0.5]), Boundary::Clamp);
            flow.output(edge);
        }
        assert_eq!(sizes(&flow), [2]);
        let tight = partition(&flow, 2);
        assert_eq!(tight.len(), 2, "a kernel has so many slices and no more");
    }

    #[test]
    fn rows_that_wrap_around_do_not_mix_with_others() {
        let mut flow = Flow::new();
        let image = plane(&mut flow);
        let wrapped = blur(&mut flow, image, &[1, 2], Boundary::Wrap);
        let other = blur(&mut flow, wrapped, &[1, 2], Boundary::Clamp);
        flow.output(other);
        // The sum along x of the first fits either.
        assert_eq!(sizes(&flow), [2, 2]);
    }

    #[test]
    fn sums_along_z_stay_alone_and_numbers_are_waited_for() {
        let mut flow = Flow::new();
        let image = flow.input(ValueKind::Image(ImageType::stack(DType::U16, 9, 30, 40)));
        let smooth = blur(&mut flow, image, &[0, 1, 2], Boundary::Clamp);
        let totals = flow.add(Prim::Totals, &[smooth], ValueKind::scalars(5));
        let scaled = flow.map(
            &[smooth, totals],
            smooth,
            DType::F32,
            &[],
            |g, images, _| g.pixel(images[0]) / g.scalar(images[1], 1).cast(Ty::F32),
        );
        flow.output(scaled);
        let nobody = difference(&mut flow, scaled, smooth);
        let passes = partition(&flow, 64);
        let sizes: Vec<usize> = passes.iter().map(|pass| pass.nodes.len()).collect();
        assert_eq!(sizes, [1, 2, 1, 1]);
        assert_eq!(passes[1].outputs, [smooth]);
        assert!(passes.iter().all(|pass| !pass.outputs.contains(&nobody)));
    }

    #[test]
    fn a_pass_that_would_wait_for_itself_is_cut() {
        let mut flow = Flow::new();
        let image = plane(&mut flow);
        let smooth = blur(&mut flow, image, &[1, 2], Boundary::Clamp);
        let kind = flow.kind(smooth);
        let flipped = flow.add(Prim::Flip { axis: 1 }, &[smooth], kind);
        let rest = difference(&mut flow, smooth, flipped);
        flow.output(rest);
        assert_eq!(sizes(&flow), [2, 1, 1]);
    }
}
