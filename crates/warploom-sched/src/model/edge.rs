//! Edges: the named rules that keep a slot from being read too early or written too soon.

use std::fmt;

use super::graph::{EdgeId, How, ResourceId, StageGraph, StageId};

/// Something that happens once per generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Node {
    /// The host enqueues a stage of the device.
    Enqueue(StageId),
    /// A stage runs.
    Run(StageId),
}

impl Node {
    /// The stage it belongs to.
    pub fn stage(self) -> StageId {
        let (Self::Enqueue(stage) | Self::Run(stage)) = self;
        stage
    }

    /// Does it happen on the host?
    pub fn is_host(self, graph: &StageGraph) -> bool {
        match self {
            Self::Enqueue(_) => true,
            Self::Run(stage) => graph.stage_at(stage).is_host(),
        }
    }
}

/// What an edge is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sort {
    /// What one stage wrote is there for all who read it.
    Ready,
    /// All have read a slot, so it may be written again.
    Free,
    /// What is changed in place or written again in a generation, after those before.
    Change,
    /// A host stage takes generations in order, oldest first.
    Oldest,
    /// A generation starts when the one before has left the pipeline.
    Alone,
}

/// How the order of two nodes is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carry {
    /// By the queue or thread they share, which runs in order.
    Fifo,
    /// By an event: recorded after the first, waited for before the second, by the second's queue
    /// or by the host.
    Event,
    /// By the host, which does the second when it has done or seen the first.
    Lease,
    /// By other waits, of these edges, and the order of queues.
    Covered(Vec<EdgeId>),
    /// By the device, which waits for the host. Never in a plan that was accepted.
    Gate,
}

/// One pair of nodes that an edge puts in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// What comes first.
    pub from: Node,
    /// What comes after it.
    pub to: Node,
    /// How many generations later.
    pub lag: u32,
    /// How that is kept.
    pub carry: Carry,
}

/// A named happens-before rule that guards a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub(crate) sort: Sort,
    pub(crate) resource: Option<ResourceId>,
    pub(crate) links: Vec<Link>,
    pub(crate) name: String,
    pub(crate) guards: String,
    pub(crate) keeper: Keeper,
    pub(crate) dropped: bool,
}

/// Who keeps an edge, whether or not something else implies it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Keeper {
    /// A queue or a thread, by running in order.
    Line,
    /// The host, by the order of what it does.
    Host,
    /// Events of a device.
    Event,
}

impl Edge {
    /// What it is called: resource and sort, and the writer where there are several.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What goes wrong without it.
    pub fn guards(&self) -> &str {
        &self.guards
    }

    /// What it is for.
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// The resource it guards.
    pub fn resource(&self) -> Option<ResourceId> {
        self.resource
    }

    /// The nodes it puts in order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Who keeps it.
    pub fn keeper(&self) -> Keeper {
        self.keeper
    }

    /// Settles who keeps it, from how its links are kept.
    pub(crate) fn settle(&mut self, graph: &StageGraph) {
        let keepers = self.links.iter().map(|link| match link.carry {
            Carry::Fifo => Keeper::Line,
            _ if link.from.is_host(graph) => Keeper::Host,
            _ => Keeper::Event,
        });
        self.keeper = keepers.max().unwrap_or(Keeper::Line);
    }

    /// Does anything wait because of it? If not, queues and other edges imply it.
    pub fn is_live(&self) -> bool {
        let waits = |link: &Link| matches!(link.carry, Carry::Event | Carry::Lease | Carry::Gate);
        !self.dropped && self.links.iter().any(waits)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// Uses of one resource in the order of stages, as sets that must follow each other.
#[derive(Debug, Default)]
struct Life {
    /// Who writes it first in a generation.
    first: Vec<StageId>,
    /// Who wrote what is there now.
    writers: Vec<StageId>,
    /// Who has read it since.
    readers: Vec<Node>,
    /// Who used what was there before them.
    before: Vec<Node>,
    previous: Vec<(StageId, bool)>,
    ready: Vec<(StageId, Node, bool)>,
    change: Vec<(Node, StageId)>,
}

/// What is read before anything was written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) resource: ResourceId,
    pub(crate) stage: StageId,
}

impl Life {
    fn of(graph: &StageGraph, resource: ResourceId) -> Result<Self, Unwritten> {
        let mut life = Self::default();
        for stage in graph.ids() {
            let accesses = graph.stage_at(stage).accesses.iter();
            for access in accesses.filter(|access| access.resource == resource) {
                life.add(stage, access.how, access.gated)
                    .map_err(|()| Unwritten { resource, stage })?;
            }
        }
        if let Some((stage, _)) = life.previous.first()
            && life.writers.is_empty()
        {
            let stage = *stage;
            return Err(Unwritten { resource, stage });
        }
        Ok(life)
    }

    fn add(&mut self, stage: StageId, how: How, gated: bool) -> Result<(), ()> {
        match how {
            How::Previous => {
                self.previous.push((stage, gated));
                return Ok(());
            }
            How::Write => {
                if self.writers.is_empty() {
                    self.first.push(stage);
                } else if self.readers.is_empty() {
                    if self.first == self.writers {
                        self.first.push(stage);
                    }
                } else {
                    self.follow(stage);
                    return Ok(());
                }
                let before = self.before.iter();
                self.change.extend(before.map(|node| (*node, stage)));
                self.writers.push(stage);
                return Ok(());
            }
            How::Read | How::Look | How::Update => {}
        }
        if self.writers.is_empty() {
            return Err(());
        }
        if how == How::Update {
            self.follow(stage);
            return Ok(());
        }
        let node = if how == How::Look {
            Node::Enqueue(stage)
        } else {
            Node::Run(stage)
        };
        for writer in &self.writers {
            self.ready.push((*writer, node, gated));
        }
        self.readers.push(node);
        Ok(())
    }

    /// A stage that writes over what is there.
    fn follow(&mut self, stage: StageId) {
        let readers = std::mem::take(&mut self.readers);
        let before = if readers.is_empty() {
            self.writers.iter().map(|stage| Node::Run(*stage)).collect()
        } else {
            readers
        };
        self.change.extend(before.iter().map(|node| (*node, stage)));
        self.before = before;
        self.writers = vec![stage];
    }
}

fn open_link(from: Node, to: Node, lag: u32, gated: bool) -> Link {
    let carry = if gated { Carry::Gate } else { Carry::Event };
    Link {
        from,
        to,
        lag,
        carry,
    }
}

/// All edges that follow from who reads and writes what, with `slots` of each resource. How each
/// is kept is decided later.
pub(crate) fn derive(graph: &StageGraph, slots: &[u32]) -> Result<Vec<Edge>, Unwritten> {
    let mut edges = Vec::new();
    for (at, slots) in slots.iter().enumerate() {
        let resource = ResourceId(at);
        let life = Life::of(graph, resource)?;
        edges.extend(ready_edges(graph, resource, &life));
        edges.extend(change_edge(graph, resource, &life));
        edges.extend(free_edge(graph, resource, &life, *slots));
    }
    for stage in graph.ids().filter(|id| graph.stage_at(*id).is_host()) {
        let name = &graph.stage_at(stage).name;
        edges.push(Edge {
            sort: Sort::Oldest,
            resource: None,
            links: vec![Link {
                carry: Carry::Fifo,
                ..open_link(Node::Run(stage), Node::Run(stage), 1, false)
            }],
            name: format!("{name} oldest first"),
            guards: format!("the order of generations in {name}"),
            keeper: Keeper::Line,
            dropped: false,
        });
    }
    Ok(edges)
}

fn ready_edges(graph: &StageGraph, resource: ResourceId, life: &Life) -> Vec<Edge> {
    let name = &graph.resource_at(resource).name;
    let mut writers: Vec<StageId> = life.ready.iter().map(|(writer, ..)| *writer).collect();
    writers.extend(&life.writers);
    writers.sort_unstable();
    writers.dedup();
    let several = writers.len() > 1;
    let mut edges = Vec::new();
    for writer in writers {
        let own = life.ready.iter().filter(|(from, ..)| *from == writer);
        let mut links: Vec<Link> = own
            .map(|(_, reader, gated)| open_link(Node::Run(writer), *reader, 0, *gated))
            .collect();
        if life.writers.contains(&writer) {
            let later = life.previous.iter();
            links.extend(later.map(|(reader, gated)| {
                open_link(Node::Run(writer), Node::Run(*reader), 1, *gated)
            }));
        }
        if links.is_empty() {
            continue;
        }
        let stage = &graph.stage_at(writer).name;
        edges.push(Edge {
            sort: Sort::Ready,
            resource: Some(resource),
            name: if several {
                format!("{name} ready from {stage}")
            } else {
                format!("{name} ready")
            },
            guards: format!("what {stage} writes to {name}, until it is all there"),
            links,
            keeper: Keeper::Line,
            dropped: false,
        });
    }
    edges
}

fn change_edge(graph: &StageGraph, resource: ResourceId, life: &Life) -> Option<Edge> {
    let name = &graph.resource_at(resource).name;
    let links: Vec<Link> = life
        .change
        .iter()
        .map(|(from, to)| open_link(*from, Node::Run(*to), 0, false))
        .collect();
    (!links.is_empty()).then(|| Edge {
        sort: Sort::Change,
        resource: Some(resource),
        name: format!("{name} change"),
        guards: format!("{name} from being changed while others use it"),
        links,
        keeper: Keeper::Line,
        dropped: false,
    })
}

fn free_edge(graph: &StageGraph, resource: ResourceId, life: &Life, slots: u32) -> Option<Edge> {
    let name = &graph.resource_at(resource).name;
    let mut last: Vec<(Node, u32)> = life.readers.iter().map(|node| (*node, slots)).collect();
    if last.is_empty() {
        let writers = life.writers.iter();
        last.extend(writers.map(|stage| (Node::Run(*stage), slots)));
    }
    // A slot read a generation later is free a generation later.
    let previous = life.previous.iter();
    last.extend(previous.map(|(stage, _)| (Node::Run(*stage), slots - 1)));
    let mut links = Vec::new();
    for (from, lag) in last {
        for to in &life.first {
            if lag == 0 && from == Node::Run(*to) {
                // A stage that reads what it left itself, in place.
                continue;
            }
            links.push(open_link(from, Node::Run(*to), lag, false));
        }
    }
    (!links.is_empty()).then(|| Edge {
        sort: Sort::Free,
        resource: Some(resource),
        name: format!("{name} free"),
        guards: format!("{name} from being written again while it is still used"),
        links,
        keeper: Keeper::Line,
        dropped: false,
    })
}
