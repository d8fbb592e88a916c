//! Which nodes the CPU computes row by row in one pass.

use crate::expr::Node as Term;
use crate::flow::{Flow, Node, Prim, ValueId};

/// Nodes that run as one, in an order in which they can run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The nodes, by their place in the flow.
    pub nodes: Vec<usize>,
    /// Values they read from outside.
    pub inputs: Vec<ValueId>,
    /// Values that are needed outside.
    pub outputs: Vec<ValueId>,
}

impl Group {
    /// One node alone.
    pub fn alone(flow: &Flow, at: usize) -> Self {
        Self::of(flow, vec![at])
    }

    fn of(flow: &Flow, nodes: Vec<usize>) -> Self {
        let made = |id: &ValueId| {
            nodes
                .iter()
                .any(|at| flow.nodes()[*at].outputs.contains(id))
        };
        let mut inputs: Vec<ValueId> = Vec::new();
        let mut outputs: Vec<ValueId> = Vec::new();
        for at in &nodes {
            let node = &flow.nodes()[*at];
            for id in &node.inputs {
                if !made(id) && !inputs.contains(id) {
                    inputs.push(*id);
                }
            }
            for id in &node.outputs {
                let outside = |reader: usize| !nodes.contains(&reader);
                if flow.outputs().contains(id) || flow.readers(*id).any(outside) {
                    outputs.push(*id);
                }
            }
        }
        Self {
            nodes,
            inputs,
            outputs,
        }
    }
}

/// Can a node be computed row by row, from rows of its inputs?
fn by_rows(flow: &Flow, node: &Node) -> bool {
    let Some(out) = flow.kind(node.outputs[0]).image() else {
        return false;
    };
    let mut images = node.inputs.iter().filter_map(|id| flow.kind(*id).image());
    if !images.all(|image| image.dims == out.dims) {
        return false;
    }
    match &node.prim {
        Prim::Map { dag, .. } => dag.stencil().is_some(),
        Prim::Taps(taps) => taps.axis > 0,
        Prim::Window { axis, .. } => *axis > 0,
        _ => false,
    }
}

/// Does a node read this value only in the plane it computes? Rolling rows hold one plane.
fn in_plane(node: &Node, value: ValueId) -> bool {
    let Prim::Map { dag, .. } = &node.prim else {
        return true;
    };
    dag.nodes().iter().all(|(term, _)| match term {
        Term::Load { image, at, .. } if node.inputs[*image as usize] == value => {
            dag.offset(*at).is_some_and(|offset| offset[0] == 0)
        }
        // A number is needed before the first row.
        Term::Scalar { list, .. } => node.inputs[*list as usize] != value,
        _ => true,
    })
}

/// Cuts a flow into groups, in an order in which they can run: chains of expressions and of sums
/// and windows along rows and columns become one group each; everything else stays alone.
pub fn row_groups(flow: &Flow) -> Vec<Group> {
    let nodes = flow.nodes();
    // Which group each node is in, by the group's first node.
    let mut group: Vec<usize> = (0..nodes.len()).collect();
    for at in 0..nodes.len() {
        if !by_rows(flow, &nodes[at]) {
            continue;
        }
        for id in &nodes[at].inputs {
            let Some(writer) = flow.writer(*id).map(|writer| writer as usize) else {
                continue;
            };
            let joins = by_rows(flow, &nodes[writer])
                && in_plane(&nodes[at], *id)
                && flow.kind(*id).dims() == flow.kind(nodes[at].outputs[0]).dims();
            if !joins || group[writer] == group[at] {
                continue;
            }
            let (old, new) = (group[at], group[writer]);
            let merged: Vec<usize> = group
                .iter()
                .map(|g| if *g == old { new } else { *g })
                .collect();
            if in_order(flow, &merged).is_some() {
                group = merged;
            }
        }
    }
    let Some(order) = in_order(flow, &group) else {
        unreachable!("only groups that can run were merged")
    };
    order
        .into_iter()
        .map(|first| {
            let members = (0..nodes.len()).filter(|at| group[*at] == first);
            Group::of(flow, members.collect())
        })
        .collect()
}

/// An order in which groups can run; `None` when they wait for each other.
fn in_order(flow: &Flow, group: &[usize]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = (0..group.len()).filter(|at| group[*at] == *at).collect();
    let mut done = vec![false; group.len()];
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let before = order.len();
        waiting.retain(|candidate| {
            let ready = (0..group.len())
                .filter(|at| group[*at] == *candidate)
                .all(|at| {
                    let writers = flow.nodes()[at]
                        .inputs
                        .iter()
                        .filter_map(|id| flow.writer(*id));
                    let mut writers = writers.map(|writer| writer as usize);
                    writers.all(|writer| group[writer] == *candidate || done[group[writer]])
                });
            if ready {
                done[*candidate] = true;
                order.push(*candidate);
            }
            !ready
        });
        if order.len() == before {
            return None;
        }
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use warploom_core::DType;

    use super::*;
    use crate::Boundary;
    use crate::flow::{ValueKind, Weights};
    use crate::image::ImageType;

    fn gaussian(flow: &mut Flow, image: ValueId, axes: &[u8]) -> ValueId {
        axes.iter().fold(image, |image, axis| {
            let weights = Weights::Even(vec![0.5, 0.25]);
            flow.taps(image, *axis, weights, Boundary::Clamp)
        })
    }

    #[test]
    fn a_difference_of_gaussians_is_one_group() {
        let mut flow = Flow::new();
        let image = flow.input(ValueKind::Image(ImageType::plane(DType::U16, 30, 40)));
        let narrow = gaussian(&mut flow, image, &[1, 2]);
        let wide = gaussian(&mut flow, narrow, &[1, 2]);
        let difference = flow.map(&[narrow, wide], wide, DType::F32, &[], |g, images, _| {
            g.pixel(images[0]) - g.pixel(images[1])
        });
        flow.output(difference);
        let groups = row_groups(&flow);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].inputs, [image]);
        assert_eq!(groups[0].outputs, [difference]);
    }

    #[test]
    fn sums_along_z_stay_alone_and_a_number_is_waited_for() {
        let mut flow = Flow::new();
        let image = flow.input(ValueKind::Image(ImageType::stack(DType::U16, 9, 30, 40)));
        let smooth = gaussian(&mut flow, image, &[0, 1, 2]);
        let totals = flow.add(Prim::Totals, &[smooth], ValueKind::scalars(5));
        let scaled = flow.map(
            &[smooth, totals],
            smooth,
            DType::F32,
            &[],
            |g, images, _| g.pixel(images[0]) / g.scalar(images[1], 1).cast(crate::expr::Ty::F32),
        );
        flow.output(scaled);
        let groups = row_groups(&flow);
        let sizes: Vec<usize> = groups.iter().map(|group| group.nodes.len()).collect();
        assert_eq!(sizes, [1, 2, 1, 1]);
        assert_eq!(groups[1].outputs, [smooth]);
    }
}
