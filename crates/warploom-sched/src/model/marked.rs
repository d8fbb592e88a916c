//! The marked graph: what happens once per generation, and what each happening waits for.
//!
//! An arc from `a` to `b` with `m` tokens says that `b` of generation `g` comes after `a` of
//! generation `g - m`. Free slots are tokens; so is the fact that a queue starts empty. Tokens may
//! be negative where a queue takes a later generation of one stage before an earlier one of another.

use super::edge::{Carry, Edge, Link, Node};
use super::graph::{EdgeId, StageGraph, StageId};

/// Why an arc is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Why {
    /// A stage runs after it was enqueued.
    Submit,
    /// A queue or thread takes work in order.
    Turn,
    /// An event is recorded before anyone waits for it.
    Recorded(EdgeId),
    /// An edge wants it.
    Edge(EdgeId),
}

/// One reason to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arc {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) tokens: i64,
    /// How long the first takes, in nanoseconds.
    pub(crate) time: u64,
    pub(crate) why: Why,
}

/// Nodes and arcs of one graph. Node `2 s` is the enqueueing of stage `s`, `2 s + 1` its run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) nodes: usize,
    pub(crate) arcs: Vec<Arc>,
}

pub(crate) fn index(node: Node) -> usize {
    match node {
        Node::Enqueue(stage) => 2 * stage.0,
        Node::Run(stage) => 2 * stage.0 + 1,
    }
}

pub(crate) fn node(index: usize) -> Node {
    let stage = StageId(index / 2);
    if index.is_multiple_of(2) {
        Node::Enqueue(stage)
    } else {
        Node::Run(stage)
    }
}

/// Stages that share a queue or a thread, in the order it takes them.
pub(crate) type Line = Vec<StageId>;

impl Marked {
    /// What holds without any edge: queues, threads, and that work is enqueued before it runs.
    pub(crate) fn frame(graph: &StageGraph, queues: &[Line], skew: &[u32]) -> Self {
        let mut marked = Self {
            nodes: 2 * graph.stages.len(),
            arcs: Vec::new(),
        };
        for stage in graph.ids() {
            let (enqueue, run) = (Node::Enqueue(stage), Node::Run(stage));
            marked.add(graph, run, run, 1, Why::Turn);
            if !graph.stage_at(stage).is_host() {
                marked.add(graph, enqueue, enqueue, 1, Why::Turn);
                marked.add(graph, enqueue, run, 0, Why::Submit);
            }
        }
        for line in queues {
            // Every pair, not only neighbours: at the ends of a stream neighbours are missing.
            for (at, from) in line.iter().enumerate() {
                for (before, to) in line.iter().enumerate().filter(|(other, _)| *other != at) {
                    let tokens = turn_lag(skew, (at, *from), (before, *to));
                    for make in [Node::Enqueue, Node::Run] {
                        marked.add(graph, make(*from), make(*to), tokens, Why::Turn);
                        if tokens < 0 {
                            // What comes after a later generation comes after its own.
                            marked.add(graph, make(*from), make(*to), 0, Why::Turn);
                        }
                    }
                }
            }
        }
        marked
    }

    fn add(&mut self, graph: &StageGraph, from: Node, to: Node, tokens: i64, why: Why) {
        let time = match from {
            Node::Enqueue(_) => 0,
            Node::Run(stage) => {
                u64::try_from(graph.stage_at(stage).time.as_nanos()).unwrap_or(u64::MAX)
            }
        };
        self.arcs.push(Arc {
            from: index(from),
            to: index(to),
            tokens,
            time,
            why,
        });
    }

    /// Does anything lead from one to the other, over however many generations?
    pub(crate) fn is_reachable(&self, from: Node, to: Node) -> bool {
        let mut reached = vec![false; self.nodes];
        let mut open = vec![index(from)];
        while let Some(node) = open.pop() {
            for arc in self.arcs.iter().filter(|arc| arc.from == node) {
                if !std::mem::replace(&mut reached[arc.to], true) {
                    open.push(arc.to);
                }
            }
        }
        reached[index(to)]
    }

    /// The same with everything that a run waits for because of the edges. Of an edge that was
    /// dropped it still keeps that an event is recorded before it would be waited for.
    pub(crate) fn with_edges(mut self, graph: &StageGraph, edges: &[Edge]) -> Self {
        for (at, edge) in edges.iter().enumerate() {
            for link in &edge.links {
                self.with_link(graph, EdgeId(at), link, edge.dropped);
            }
        }
        self
    }

    fn with_link(&mut self, graph: &StageGraph, edge: EdgeId, link: &Link, dropped: bool) {
        let (from, to, lag) = (link.from, link.to, i64::from(link.lag));
        let why = Why::Edge(edge);
        match link.carry {
            Carry::Fifo | Carry::Covered(_) => {}
            Carry::Gate | Carry::Lease if dropped => {}
            Carry::Gate => self.add(graph, from, to, lag, why),
            Carry::Lease => self.add(graph, from, lease_target(graph, to), lag, why),
            Carry::Event => {
                if !dropped {
                    self.add(graph, from, to, lag, why);
                }
                let (from, to) = (Node::Enqueue(from.stage()), lease_target(graph, to));
                self.add(graph, from, to, lag, Why::Recorded(edge));
            }
        }
    }
}

/// By how many generations a queue is further with the second when it has done the first; each with
/// its place on the queue.
pub(crate) fn turn_lag(skew: &[u32], first: (usize, StageId), second: (usize, StageId)) -> i64 {
    let wrap = i64::from(first.0 > second.0);
    wrap + i64::from(skew[first.1.0]) - i64::from(skew[second.1.0])
}

/// Where the host waits before `to` may happen: a device never waits for the host.
pub(crate) fn lease_target(graph: &StageGraph, to: Node) -> Node {
    match to {
        Node::Run(stage) if !graph.stage_at(stage).is_host() => Node::Enqueue(stage),
        other => other,
    }
}
