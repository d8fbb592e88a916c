//! From a graph to a plan: queues, slots, edges and waits, proved live.

use warploom_core::Space;

use super::cover;
use super::cycle::{Cycle, Period, slowest, without_token};
use super::depth;
use super::edge::{self, Carry, Edge, Link, Node, Sort};
use super::error::PlanError;
use super::graph::{EdgeId, How, ResourceId, Slots, StageGraph, StageId};
use super::marked::{Line, Marked};
use super::queues::{self, PlannedQueue};
use super::shape::Shape;

/// How much memory slots may take, in bytes; `None` is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// Of the device.
    pub device: Option<u64>,
    /// Of the host, pinned or not.
    pub host: Option<u64>,
}

/// What a plan may use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How much memory.
    pub budget: Budget,
    /// This many slots of every resource that does not say how many; `None` lets the rate decide.
    pub depth: Option<u32>,
    /// Does another plan use the same slots in turn?
    pub shares_slots: bool,
    /// Slots start at multiples of this many bytes.
    pub align: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            depth: None,
            shares_slots: false,
            align: 256,
        }
    }
}

impl Options {
    /// The same with this many slots of everything.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        let depth = Some(depth);
        Self { depth, ..self }
    }

    /// The same within this much device memory.
    #[must_use]
    pub fn with_device_budget(mut self, bytes: u64) -> Self {
        self.budget.device = Some(bytes);
        self
    }

    /// The same for slots that another plan uses in turn.
    #[must_use]
    pub fn sharing_slots(self) -> Self {
        Self {
            shares_slots: true,
            ..self
        }
    }
}

/// What slots take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Of the device, shared memory included.
    pub device: u64,
    /// Page-locked, of the host.
    pub pinned: u64,
    /// Of the host.
    pub host: u64,
}

impl Memory {
    pub(crate) fn of(graph: &StageGraph, slots: &[u32], align: u64) -> Self {
        let mut memory = Self::default();
        for (resource, slots) in graph.resources.iter().zip(slots) {
            let bytes = stride(resource.bytes, align) * u64::from(*slots);
            *match resource.space {
                Space::Host => &mut memory.host,
                Space::Pinned => &mut memory.pinned,
                _ => &mut memory.device,
            } += bytes;
        }
        memory
    }

    /// All of it.
    pub fn total(self) -> u64 {
        self.device + self.pinned + self.host
    }
}

/// Bytes from one slot to the next.
pub(crate) fn stride(bytes: u64, align: u64) -> u64 {
    bytes.max(1).next_multiple_of(align.max(1))
}

/// Queues, slots, edges and waits for one graph. Live: nothing in it waits for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub(crate) graph: StageGraph,
    pub(crate) queues: Vec<PlannedQueue>,
    pub(crate) skew: Vec<u32>,
    pub(crate) slots: Vec<u32>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) shape: Shape,
    pub(crate) limit: Option<(Period, Cycle)>,
    pub(crate) bound: Option<Period>,
    pub(crate) align: u64,
}

/// Plans a graph.
///
/// # Errors
/// When names, reads or memory do not fit, when stages would wait for each other for ever, and when
/// the device would wait for the host.
pub fn plan(graph: &StageGraph, options: &Options) -> Result<Plan, PlanError> {
    check(graph, options)?;
    let shape = Shape::select(graph, options.shares_slots);
    match Draft::new(graph, shape, options).finish() {
        // What runs ahead needs a slot more; where there is none, nothing runs ahead.
        Err(PlanError::Budget { .. }) if shape == Shape::Pipelined => {
            Draft::new(graph, Shape::DrainBeforeKick, options).finish()
        }
        other => other,
    }
}

fn check(graph: &StageGraph, options: &Options) -> Result<(), PlanError> {
    if graph.stages.is_empty() {
        return Err(PlanError::Empty);
    }
    own_names("stage", graph.stages.iter().map(|stage| &stage.name))?;
    own_names("resource", graph.resources.iter().map(|known| &known.name))?;
    for resource in &graph.resources {
        let (Slots::Exactly(slots) | Slots::UpTo(slots)) = resource.slots;
        for slots in [Some(slots), options.depth].into_iter().flatten() {
            if !(1..=depth::MOST).contains(&slots) {
                return Err(PlanError::SlotCount {
                    resource: resource.name.clone(),
                    slots,
                    most: depth::MOST,
                });
            }
        }
    }
    for stage in &graph.stages {
        for access in &stage.accesses {
            let resource = graph.resource_at(access.resource);
            let on_host = stage.is_host() || access.how == How::Look;
            if on_host && !resource.space.host_visible() {
                return Err(PlanError::Unseen {
                    stage: stage.name.clone(),
                    resource: resource.name.clone(),
                    space: resource.space,
                });
            }
        }
    }
    Ok(())
}

fn own_names<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), PlanError> {
    let mut seen = Vec::new();
    for name in names {
        if name.is_empty() || seen.contains(&name) {
            let name = name.clone();
            return Err(PlanError::Name { what, name });
        }
        seen.push(name);
    }
    Ok(())
}

/// A plan in the making: everything but the slots is fixed.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) graph: &'a StageGraph,
    pub(crate) options: &'a Options,
    shape: Shape,
    queues: Vec<PlannedQueue>,
    lines: Vec<Line>,
    skew: Vec<u32>,
}

impl<'a> Draft<'a> {
    fn new(graph: &'a StageGraph, shape: Shape, options: &'a Options) -> Self {
        let levels = graph.levels();
        let queues = queues::derive(graph, &levels);
        let skew = if shape.runs_ahead() {
            levels
        } else {
            vec![0; levels.len()]
        };
        Self {
            lines: queues.iter().map(|queue| queue.stages.clone()).collect(),
            graph,
            options,
            shape,
            queues,
            skew,
        }
    }

    /// All edges with this many slots, each kept on its own.
    pub(crate) fn edges(&self, slots: &[u32]) -> Result<Vec<Edge>, PlanError> {
        let mut edges =
            edge::derive(self.graph, slots).map_err(|unwritten| PlanError::Unwritten {
                stage: self.graph.stage_at(unwritten.stage).name.clone(),
                resource: self.graph.resource_at(unwritten.resource).name.clone(),
            })?;
        if self.shape == Shape::DrainAfterKick {
            edges.extend(alone(self.graph, &edges));
        }
        cover::by_kind(self.graph, &mut edges);
        Ok(edges)
    }

    pub(crate) fn marked(&self, edges: &[Edge]) -> Marked {
        Marked::frame(self.graph, &self.lines, &self.skew).with_edges(self.graph, edges)
    }

    fn finish(self) -> Result<Plan, PlanError> {
        let most = depth::most(self.graph, self.options);
        let edges = self.edges(&most)?;
        let marked = self.marked(&edges);
        if let Some(arcs) = without_token(&marked) {
            let cycle = Cycle::of(self.graph, &edges, &arcs);
            return Err(PlanError::Deadlock { cycle });
        }
        self.refuse_gates(&edges)?;
        let bound = slowest(&marked).map(|(period, _)| period);
        let slots = depth::choose(&self)?;
        let mut edges = self.edges(&slots)?;
        let limit = slowest(&self.marked(&edges));
        let limit = limit.map(|(period, arcs)| (period, Cycle::of(self.graph, &edges, &arcs)));
        cover::elide(self.graph, &self.lines, &self.skew, &mut edges);
        for edge in &mut edges {
            edge.settle(self.graph);
        }
        Ok(Plan {
            graph: self.graph.clone(),
            queues: self.queues,
            skew: self.skew,
            slots,
            edges,
            shape: self.shape,
            limit,
            bound,
            align: self.options.align,
        })
    }

    fn refuse_gates(&self, edges: &[Edge]) -> Result<(), PlanError> {
        for edge in edges {
            let gate = edge.links.iter().find(|link| link.carry == Carry::Gate);
            if let (Some(link), Some(resource)) = (gate, edge.resource) {
                let name = |node: Node| self.graph.stage_at(node.stage()).name.clone();
                return Err(PlanError::FutureHostAction {
                    stage: name(link.to),
                    resource: self.graph.resource_at(resource).name.clone(),
                    host: name(link.from),
                });
            }
        }
        Ok(())
    }
}

/// One generation at a time: whatever begins waits for whatever ended the one before.
fn alone(graph: &StageGraph, edges: &[Edge]) -> Option<Edge> {
    let same = |link: &&Link| link.lag == 0;
    let links: Vec<&Link> = edges.iter().flat_map(|e| &e.links).filter(same).collect();
    let ends = |id: &StageId| !links.iter().any(|link| link.from.stage() == *id);
    let begins = |id: &StageId| !links.iter().any(|link| link.to.stage() == *id);
    let mut rule = Vec::new();
    for from in graph.ids().filter(ends) {
        for to in graph.ids().filter(begins) {
            rule.push(Link {
                from: Node::Run(from),
                to: Node::Run(to),
                lag: 1,
                carry: Carry::Event,
            });
        }
    }
    (!rule.is_empty()).then(|| Edge {
        sort: Sort::Alone,
        resource: None,
        links: rule,
        name: "one generation at a time".into(),
        guards: "slots that another plan uses in turn".into(),
        keeper: edge::Keeper::Line,
        dropped: false,
    })
}

impl Plan {
    /// What is planned.
    pub fn graph(&self) -> &StageGraph {
        &self.graph
    }

    /// The queues it needs.
    pub fn queues(&self) -> &[PlannedQueue] {
        &self.queues
    }

    /// Every edge, also those that nothing needs to wait for.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edges with their ids.
    pub fn edge_ids(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        let edges = self.edges.iter().enumerate();
        edges.map(|(at, edge)| (EdgeId(at), edge))
    }

    /// The edge of this name.
    pub fn edge(&self, name: &str) -> Option<EdgeId> {
        self.edge_ids()
            .find(|(_, edge)| edge.name == name)
            .map(|(id, _)| id)
    }

    /// How many slots a resource has.
    pub fn slots(&self, resource: ResourceId) -> u32 {
        self.slots[resource.0]
    }

    /// How far generations run ahead of each other.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What all slots take, exactly.
    pub fn memory(&self) -> Memory {
        Memory::of(&self.graph, &self.slots, self.align)
    }

    /// The time between generations in a steady state, by the times that stages declare; `None`
    /// when they declare none.
    pub fn period(&self) -> Option<Period> {
        self.limit.as_ref().map(|(period, _)| *period)
    }

    /// What limits the rate.
    pub fn limit(&self) -> Option<&Cycle> {
        self.limit.as_ref().map(|(_, cycle)| cycle)
    }

    /// The period with as many slots as resources may have.
    pub fn bound(&self) -> Option<Period> {
        self.bound
    }

    /// The edge whose event this one shares: both wait for the end of the same stage, which is
    /// recorded once.
    pub fn alias_of(&self, edge: EdgeId) -> Option<EdgeId> {
        let sources = |edge: &Edge| {
            let links = edge.links.iter().filter(|link| link.carry == Carry::Event);
            links.map(|link| link.from.stage()).collect::<Vec<_>>()
        };
        let own = sources(&self.edges[edge.0]);
        let mut before = self.edge_ids().take(edge.0);
        before
            .find(|(_, other)| {
                let other = sources(other);
                !own.is_empty() && own.iter().all(|stage| other.contains(stage))
            })
            .map(|(id, _)| id)
    }

    /// A mutant: the same plan in which nothing waits because of this edge. For tests that want to
    /// see the loss noticed.
    #[must_use]
    pub fn without(&self, edge: EdgeId) -> Self {
        let mut mutant = self.clone();
        mutant.edges[edge.0].dropped = true;
        mutant
    }

    /// The stages and queues in lines, for the model.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.queues
            .iter()
            .map(|queue| queue.stages.clone())
            .collect()
    }

    /// Could the host enqueue this stage of the device again and again, whatever becomes of it?
    pub(crate) fn runs_away(&self, stage: StageId) -> bool {
        let frame = Marked::frame(&self.graph, &self.lines(), &self.skew);
        let marked = frame.with_edges(&self.graph, &self.edges);
        !marked.is_reachable(Node::Run(stage), Node::Enqueue(stage))
    }

    /// Does what is waited for imply everything that every edge demands? True of every plan, and
    /// of no mutant.
    pub fn is_complete(&self) -> bool {
        let frame = Marked::frame(&self.graph, &self.lines(), &self.skew);
        cover::are_met(&frame.with_edges(&self.graph, &self.edges), &self.edges)
    }
}
