//! Cycles: those without a token are deadlocks, and the slowest one sets the rate.

use std::fmt;

use super::edge::{Edge, Node};
use super::graph::StageGraph;
use super::marked::{Arc, Marked, Why, node};

/// One step around a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What happens.
    pub node: Node,
    /// In which generation, counted from the first step's.
    pub generation: i64,
    /// The stage's name.
    pub stage: String,
    /// Why the next step waits for this one.
    pub reason: String,
}

/// Things that wait for each other in a circle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// Each waits for the one before it, the first for the last.
    pub steps: Vec<Step>,
    /// Generations that fit into the circle at once; none is a deadlock.
    pub tokens: i64,
    /// How long one round takes, in nanoseconds.
    pub time: u64,
}

impl Cycle {
    /// The stages in it, each once, in order.
    pub fn stages(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !names.contains(&step.stage.as_str()) {
                names.push(&step.stage);
            }
        }
        names
    }

    pub(crate) fn of(graph: &StageGraph, edges: &[Edge], arcs: &[Arc]) -> Self {
        // Begin with something that runs, in the earliest generation, so that equal cycles read
        // equally.
        let mut offsets = Vec::new();
        let mut at = 0;
        for arc in arcs {
            offsets.push(at);
            at += arc.tokens;
        }
        let key = |index: &usize| (offsets[*index], node(arcs[*index].from));
        let start = (0..arcs.len()).min_by_key(key).unwrap_or(0);
        let mut steps = Vec::new();
        for turn in 0..arcs.len() {
            let index = (start + turn) % arcs.len();
            let arc = &arcs[index];
            let round = if index < start { at } else { 0 };
            let from = node(arc.from);
            steps.push(Step {
                node: from,
                generation: offsets[index] + round - offsets[start],
                stage: graph.stage_at(from.stage()).name.clone(),
                reason: reason(edges, arc),
            });
        }
        Self {
            steps,
            tokens: at,
            time: arcs.iter().map(|arc| arc.time).sum(),
        }
    }
}

fn reason(edges: &[Edge], arc: &Arc) -> String {
    match arc.why {
        Why::Submit => "enqueued first".into(),
        Why::Turn => "one after the other on its queue".into(),
        Why::Recorded(edge) => format!("{}, whose event must exist", edges[edge.0].name),
        Why::Edge(edge) => edges[edge.0].name.clone(),
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let what = match step.node {
                Node::Enqueue(_) => "enqueue ",
                Node::Run(_) => "",
            };
            let generation = match step.generation {
                0 => "k".to_owned(),
                later => format!("k{later:+}"),
            };
            write!(f, "{what}{}({generation})", step.stage)?;
            write!(f, " -> [{}] ", step.reason)?;
        }
        let first = self.steps.first();
        let first = first.map_or("", |step| step.stage.as_str());
        write!(f, "-> {first}(k)")
    }
}

/// A cycle in which `weight` sums up to more than nothing, or `None` when there is none.
///
/// Longest paths from everywhere at once (Bellman and Ford): whoever still gets longer after as
/// many rounds as there are nodes is reached from such a cycle, which the chain of predecessors
/// then contains.
fn positive(marked: &Marked, weight: impl Fn(&Arc) -> i128) -> Option<Vec<Arc>> {
    let mut far = vec![0_i128; marked.nodes];
    let mut by: Vec<Option<usize>> = vec![None; marked.nodes];
    let mut grown = None;
    for _ in 0..=marked.nodes {
        grown = None;
        for (at, arc) in marked.arcs.iter().enumerate() {
            let reach = far[arc.from] + weight(arc);
            if reach > far[arc.to] {
                far[arc.to] = reach;
                by[arc.to] = Some(at);
                grown = Some(arc.to);
            }
        }
        grown?;
    }
    let mut at = grown?;
    for _ in 0..marked.nodes {
        at = marked.arcs[by[at]?].from;
    }
    let (start, mut cycle) = (at, Vec::new());
    loop {
        let arc = marked.arcs[by[at]?];
        cycle.push(arc);
        at = arc.from;
        if at == start {
            cycle.reverse();
            return Some(cycle);
        }
    }
}

/// A cycle without a token: everything in it waits for itself.
pub(crate) fn without_token(marked: &Marked) -> Option<Vec<Arc>> {
    // A cycle has at most as many arcs as there are nodes, so the sum is positive just when the
    // tokens add up to nothing or less.
    let scale = marked.nodes as i128 + 1;
    positive(marked, |arc| 1 - i128::from(arc.tokens) * scale)
}

/// The time between generations in a steady state, exactly: `time / tokens` nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// Nanoseconds for this many generations.
    pub time: u64,
    /// Generations.
    pub tokens: u64,
}

impl Period {
    /// Nanoseconds per generation.
    pub fn nanos(self) -> f64 {
        self.time as f64 / self.tokens.max(1) as f64
    }

    fn cross(self) -> impl Fn(&Arc) -> i128 {
        move |arc| {
            i128::from(arc.time) * i128::from(self.tokens)
                - i128::from(arc.tokens) * i128::from(self.time)
        }
    }
}

impl PartialOrd for Period {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Period {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (a, b) = (
            u128::from(self.time) * u128::from(other.tokens),
            u128::from(other.time) * u128::from(self.tokens),
        );
        // Equal periods written with other numbers are still different values.
        a.cmp(&b).then(self.tokens.cmp(&other.tokens))
    }
}

/// The slowest cycle of a live graph: the most time per token. `None` when nothing takes time.
///
/// From any cycle, look for a slower one and go on from there until there is none. Each is found
/// exactly, in whole numbers, so the last one is the maximum and not near it.
pub(crate) fn slowest(marked: &Marked) -> Option<(Period, Vec<Arc>)> {
    let mut period = Period { time: 0, tokens: 1 };
    let mut best = None;
    while let Some(cycle) = positive(marked, period.cross()) {
        let time = cycle.iter().map(|arc| arc.time).sum();
        let tokens: i64 = cycle.iter().map(|arc| arc.tokens).sum();
        let Ok(tokens) = u64::try_from(tokens) else {
            break;
        };
        if tokens == 0 {
            break;
        }
        period = Period { time, tokens };
        best = Some((period, cycle));
    }
    best
}
