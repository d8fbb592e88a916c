//! What each stage waits for, as tables that a run looks up.

use crate::model::{Carry, Edge, EdgeId, How, Node, Place, Plan, StageId, turn_lag};

/// Something that has to have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    /// A host stage is done.
    Done(StageId),
    /// A stage was enqueued.
    Enqueued(StageId),
    /// The host has seen that a stage of the device is done.
    Seen(StageId),
}

impl Fact {
    pub(crate) fn stage(self) -> StageId {
        let (Self::Done(stage) | Self::Enqueued(stage) | Self::Seen(stage)) = self;
        stage
    }

    pub(crate) fn node(self) -> Node {
        match self {
            Self::Enqueued(stage) => Node::Enqueue(stage),
            Self::Done(stage) | Self::Seen(stage) => Node::Run(stage),
        }
    }
}

/// A fact about the generation that is `lag` before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    pub(crate) fact: Fact,
    /// Negative where a queue takes later generations first.
    pub(crate) lag: i64,
    pub(crate) edge: Option<EdgeId>,
}

/// An event that a queue waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    pub(crate) stage: StageId,
    pub(crate) lag: u32,
    pub(crate) edge: EdgeId,
}

/// What one stage waits for, and who waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wires {
    /// The host's conditions, before it enqueues or starts the stage.
    pub(crate) needs: Vec<Need>,
    /// The device's conditions.
    pub(crate) waits: Vec<Wait>,
    /// Is its end recorded?
    pub(crate) is_recorded: bool,
    /// Does the host have to see its end?
    pub(crate) is_seen: bool,
    /// Its queue.
    pub(crate) queue: Option<usize>,
    /// What goes before it on its queue, in each generation.
    pub(crate) before: Vec<StageId>,
    /// Does nothing come before it?
    pub(crate) is_source: bool,
    /// The thread it shares.
    pub(crate) thread: Option<String>,
}

pub(crate) fn wire(plan: &Plan) -> Vec<Wires> {
    let stages = plan.graph().stages();
    let mut wires: Vec<Wires> = stages
        .iter()
        .map(|stage| Wires {
            is_source: stage.is_host()
                && stage.accesses.iter().all(|access| access.how == How::Write),
            thread: match &stage.place {
                Place::Host { thread } => thread.clone(),
                Place::Device { .. } => None,
            },
            ..Wires::default()
        })
        .collect();
    for (number, queue) in plan.queues().iter().enumerate() {
        for (at, to) in queue.stages.iter().enumerate() {
            wires[to.0].queue = Some(number);
            let mates = queue.stages.iter().copied();
            wires[to.0].before = mates.filter(|mate| mate < to).collect();
            for (before, from) in queue.stages.iter().enumerate() {
                if before == at {
                    continue;
                }
                let lag = turn_lag(&plan.skew, (before, *from), (at, *to));
                // A later generation does not come at the end of a stream; its own does.
                for lag in [Some(lag), (lag < 0).then_some(0)].into_iter().flatten() {
                    wires[to.0].needs.push(Need {
                        fact: Fact::Enqueued(*from),
                        lag,
                        edge: None,
                    });
                }
            }
        }
    }
    for (edge, known) in plan.edge_ids() {
        for link in known.links() {
            connect(
                plan,
                &mut wires,
                edge,
                link.from,
                link.to,
                link.lag,
                &link.carry,
            );
        }
    }
    for queue in plan.queues() {
        for stage in queue.stages.iter().filter(|stage| plan.runs_away(**stage)) {
            (wires[stage.0].is_recorded, wires[stage.0].is_seen) = (true, true);
            wires[stage.0].needs.push(Need {
                fact: Fact::Seen(*stage),
                lag: LEASH,
                edge: None,
            });
        }
    }
    wires
}

/// How many generations the host may be ahead of a stage that nothing else holds back.
const LEASH: i64 = 16;

fn connect(
    plan: &Plan,
    wires: &mut [Wires],
    edge: EdgeId,
    from: Node,
    to: Node,
    lag: u32,
    carry: &Carry,
) {
    let dropped = plan.edges()[edge.0].dropped;
    let target = to.stage().0;
    let mut need = |fact, edge| {
        wires[target].needs.push(Need {
            fact,
            lag: i64::from(lag),
            edge,
        });
    };
    match carry {
        Carry::Fifo | Carry::Covered(_) | Carry::Gate => {}
        Carry::Lease if dropped => {}
        Carry::Lease => match from {
            Node::Enqueue(stage) => need(Fact::Enqueued(stage), Some(edge)),
            Node::Run(stage) => need(Fact::Done(stage), Some(edge)),
        },
        Carry::Event if to.is_host(plan.graph()) => {
            if dropped {
                need(Fact::Enqueued(from.stage()), None);
            } else {
                need(Fact::Seen(from.stage()), Some(edge));
            }
            let source = &mut wires[from.stage().0];
            (source.is_recorded, source.is_seen) = (true, true);
        }
        Carry::Event => {
            // An event is recorded before it is waited for; a lost wait leaves that order alone.
            need(Fact::Enqueued(from.stage()), None);
            if !dropped {
                wires[target].waits.push(Wait {
                    stage: from.stage(),
                    lag,
                    edge,
                });
            }
            wires[from.stage().0].is_recorded = true;
        }
    }
}

/// How many generations apart two stages can be at most, generously: a power of two, by which places are
/// found without a division.
pub(crate) fn window(plan: &Plan) -> usize {
    let lags = plan.edges().iter().flat_map(Edge::links);
    let lag = lags.map(|link| link.lag).max().unwrap_or(0);
    let skew = plan.skew.iter().copied().max().unwrap_or(0);
    let room = LEASH.unsigned_abs() + 2 * u64::from(lag + skew) + 4;
    usize::try_from(room.next_power_of_two()).unwrap_or(usize::MAX)
}
