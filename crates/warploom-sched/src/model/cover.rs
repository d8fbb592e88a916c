//! Which waits are needed, and what covers the others.

use super::edge::{Carry, Edge, Node};
use super::graph::{EdgeId, StageGraph};
use super::marked::{Line, Marked, Why, index};

/// Decides how each link is kept, before anything is left out: the host keeps what starts on the
/// host, events the rest.
pub(crate) fn by_kind(graph: &StageGraph, edges: &mut [Edge]) {
    for link in edges.iter_mut().flat_map(|edge| &mut edge.links) {
        if link.carry == Carry::Event && link.from.is_host(graph) {
            link.carry = Carry::Lease;
        }
        if link.carry == Carry::Gate && !link.from.is_host(graph) {
            // A device may wait for a device.
            link.carry = Carry::Event;
        }
    }
}

/// The fewest tokens on a way from `from` to `to`, and the edges on it.
fn nearest(marked: &Marked, from: usize, to: usize) -> Option<(i64, Vec<EdgeId>)> {
    let mut near: Vec<Option<i64>> = vec![None; marked.nodes];
    let mut by = vec![usize::MAX; marked.nodes];
    near[from] = Some(0);
    let mut home = None;
    for _ in 0..=marked.nodes {
        let mut changed = false;
        for (at, arc) in marked.arcs.iter().enumerate() {
            let Some(start) = near[arc.from] else {
                continue;
            };
            let reach = start + arc.tokens;
            // The way back to where it began is a way too, though not the empty one.
            if arc.to == from {
                if from == to && home.is_none_or(|(known, _)| reach < known) {
                    home = Some((reach, at));
                }
                continue;
            }
            if near[arc.to].is_none_or(|known| reach < known) {
                near[arc.to] = Some(reach);
                by[arc.to] = at;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let (tokens, mut at) = if from == to {
        home?
    } else {
        (near[to]?, by[to])
    };
    let mut edges = Vec::new();
    loop {
        let arc = &marked.arcs[at];
        if let Why::Edge(edge) = arc.why {
            edges.push(edge);
        }
        if arc.from == from {
            edges.reverse();
            return Some((tokens, edges));
        }
        at = by[arc.from];
    }
}

/// What orders runs: an event that exists orders nothing by that alone.
fn ordering(mut marked: Marked) -> Marked {
    marked.arcs.retain(|arc| arc.why != Why::Recorded);
    marked
}

/// Leaves out every wait that queues and other waits imply, and says by what.
///
/// A link from `u` to `v` over `lag` generations is implied by any other way from `u` to `v` with at
/// most `lag` tokens, because each stage runs its generations in order. Leaving out one implied
/// link changes nothing in what is reachable, so links are tried one after the other.
pub(crate) fn elide(graph: &StageGraph, queues: &[Line], skew: &[u32], edges: &mut [Edge]) {
    let frame = ordering(Marked::frame(graph, queues, skew));
    for link in edges.iter_mut().flat_map(|edge| &mut edge.links) {
        let (from, to) = (index(link.from), index(link.to));
        let near = nearest(&frame, from, to);
        if link.carry != Carry::Gate && near.is_some_and(|(tokens, _)| tokens <= lag(link.lag)) {
            link.carry = Carry::Fifo;
        }
    }
    let places: Vec<(usize, usize)> = edges
        .iter()
        .enumerate()
        .flat_map(|(at, edge)| (0..edge.links.len()).map(move |link| (at, link)))
        .collect();
    let mut covered = Vec::new();
    for (edge, link) in places.into_iter().rev() {
        let known = edges[edge].links[link].clone();
        if !matches!(known.carry, Carry::Event | Carry::Lease) {
            continue;
        }
        edges[edge].links[link].carry = Carry::Covered(Vec::new());
        if cover(graph, &frame, edges, known.from, known.to, known.lag).is_some() {
            covered.push((edge, link));
        } else {
            edges[edge].links[link].carry = known.carry;
        }
    }
    // Now that it is settled what stays, say what covers what went.
    for (edge, link) in covered {
        let known = &edges[edge].links[link];
        let by = cover(graph, &frame, edges, known.from, known.to, known.lag);
        edges[edge].links[link].carry = Carry::Covered(by.unwrap_or_default());
    }
}

fn lag(lag: u32) -> i64 {
    i64::from(lag)
}

fn cover(
    graph: &StageGraph,
    frame: &Marked,
    edges: &[Edge],
    from: Node,
    to: Node,
    generations: u32,
) -> Option<Vec<EdgeId>> {
    let all = ordering(frame.clone().with_edges(graph, edges));
    let (tokens, by) = nearest(&all, index(from), index(to))?;
    (tokens <= lag(generations)).then_some(by)
}

/// Does what is kept imply this link?
pub(crate) fn is_kept(
    graph: &StageGraph,
    queues: &[Line],
    skew: &[u32],
    edges: &[Edge],
    link: &super::edge::Link,
) -> bool {
    let frame = ordering(Marked::frame(graph, queues, skew));
    cover(graph, &frame, edges, link.from, link.to, link.lag).is_some()
}
