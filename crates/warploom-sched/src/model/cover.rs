//! Which waits are needed, and what covers the others.

use std::collections::VecDeque;

use super::edge::{Carry, Edge, Link};
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

/// A way from `from` to `to` over at most `lag` generations, as the edges on it.
///
/// Every step of the way lies between the two generations: what comes before the first or after
/// the last does not exist at the ends of a stream, and would order nothing there.
fn way(marked: &Marked, from: usize, to: usize, lag: u32) -> Option<Vec<EdgeId>> {
    let room = i64::from(lag);
    let state = |node: usize, tokens: i64| {
        usize::try_from(tokens)
            .ok()
            .map(|t| t * marked.nodes + node)
    };
    let count = marked.nodes * (usize::try_from(room).ok()? + 1);
    let mut by: Vec<Option<(usize, usize)>> = vec![None; count];
    let start = state(from, 0)?;
    let mut open = VecDeque::from([(from, 0)]);
    while let Some((node, tokens)) = open.pop_front() {
        let here = state(node, tokens)?;
        for (at, arc) in marked
            .arcs
            .iter()
            .enumerate()
            .filter(|(_, arc)| arc.from == node)
        {
            let after = tokens + arc.tokens;
            if !(0..=room).contains(&after) {
                continue;
            }
            let there = state(arc.to, after)?;
            if by[there].is_some() || (there == start && arc.to != to) {
                continue;
            }
            by[there] = Some((here, at));
            if arc.to == to {
                return Some(retrace(marked, &by, start, there));
            }
            open.push_back((arc.to, after));
        }
    }
    None
}

fn retrace(
    marked: &Marked,
    by: &[Option<(usize, usize)>],
    start: usize,
    end: usize,
) -> Vec<EdgeId> {
    let (mut edges, mut at) = (Vec::new(), end);
    while let Some((before, arc)) = by[at] {
        if let Why::Edge(edge) | Why::Recorded(edge) = marked.arcs[arc].why {
            edges.push(edge);
        }
        at = before;
        if at == start {
            break;
        }
    }
    edges.reverse();
    edges
}

/// Leaves out every wait without which everything still comes in the order that is demanded, and
/// says what covers it.
///
/// A demand of `v` after `u` over `lag` generations is met by any way from `u` to `v` with at most
/// `lag` tokens, because each stage runs its generations in order. The host waits earlier than a
/// demand asks it to, before it enqueues, and others may rely on that; so what goes is checked
/// against all demands and not only its own. What is left at the end is needed, each of it.
pub(crate) fn elide(graph: &StageGraph, queues: &[Line], skew: &[u32], edges: &mut [Edge]) {
    let frame = Marked::frame(graph, queues, skew);
    for link in edges.iter_mut().flat_map(|edge| &mut edge.links) {
        let (from, to) = (index(link.from), index(link.to));
        if link.carry != Carry::Gate && way(&frame, from, to, link.lag).is_some() {
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
        let all = frame.clone().with_edges(graph, edges);
        if is_met(&all, &known) && are_met(&all, edges) {
            covered.push((edge, link));
        } else {
            edges[edge].links[link].carry = known.carry;
        }
    }
    // Now that it is settled what stays, say what covers what went.
    let all = frame.with_edges(graph, edges);
    for (edge, link) in covered {
        let known = &edges[edge].links[link];
        let by = way(&all, index(known.from), index(known.to), known.lag);
        edges[edge].links[link].carry = Carry::Covered(by.unwrap_or_default());
    }
}

fn is_met(all: &Marked, link: &Link) -> bool {
    way(all, index(link.from), index(link.to), link.lag).is_some()
}

/// Is everything in order that has to be, beside what shares a queue?
pub(crate) fn are_met(all: &Marked, edges: &[Edge]) -> bool {
    let links = edges.iter().flat_map(|edge| &edge.links);
    let mut open = links.filter(|link| link.carry != Carry::Fifo);
    open.all(|link| is_met(all, link))
}
