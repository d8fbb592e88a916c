//! A race detector: vector clocks over everything that a run really waits for.
//!
//! Each node of the model has a component, which counts its generations. The clock of a happening
//! is what is known to be over when it begins, by waits that were issued and conditions that were
//! kept, not by luck: so what it reports does not depend on how long anything took.

use super::error::Race;
use super::pool::Pool;
use super::wiring::{Need, Wait};
use crate::model::{How, Node, Plan, ResourceId, StageId, index};

type Clock = Vec<u64>;

/// Who used a slot: node and generation, counted from 1.
type Mark = (usize, u64);

#[derive(Clone, Debug, Default)]
struct Use {
    generation: u64,
    before: Vec<Mark>,
    writers: Vec<Mark>,
    readers: Vec<Mark>,
}

/// The clocks of a run.
#[derive(Debug)]
pub(crate) struct Races {
    nodes: usize,
    window: usize,
    /// For each node, the clocks of its latest generations.
    clocks: Vec<Vec<Clock>>,
    /// For each queue, the clock of what was enqueued last.
    queues: Vec<Clock>,
    uses: Vec<Vec<Use>>,
    names: Vec<String>,
    resources: Vec<String>,
    scratch: Clock,
}

fn join(into: &mut Clock, other: &[u64]) {
    for (mine, theirs) in into.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

impl Races {
    pub(crate) fn new(plan: &Plan, window: usize) -> Self {
        let nodes = 2 * plan.graph().stages().len();
        let uses = (0..plan.graph().resources().len()).map(|at| {
            let slots = plan.slots(ResourceId(at));
            (0..slots).map(|_| Use::default()).collect()
        });
        Self {
            nodes,
            window,
            clocks: vec![vec![vec![0; nodes]; window]; nodes],
            queues: vec![vec![0; nodes]; plan.queues().len()],
            uses: uses.collect(),
            names: plan
                .graph()
                .stages()
                .iter()
                .map(|s| s.name.clone())
                .collect(),
            resources: plan
                .graph()
                .resources()
                .iter()
                .map(|r| r.name.clone())
                .collect(),
            scratch: vec![0; nodes],
        }
    }

    fn at(&self, generation: u64) -> usize {
        usize::try_from(generation % self.window as u64).unwrap_or(0)
    }

    /// Adds what was known at `node` of the generation `lag` before `generation`.
    fn learn(&mut self, node: Node, generation: u64, lag: i64) {
        let Ok(from) = u64::try_from(i128::from(generation) - i128::from(lag)) else {
            return;
        };
        let (node, at) = (index(node), self.at(from));
        let known = &self.clocks[node][at];
        // A clock that was overwritten, or is not there yet, teaches nothing.
        if known[node] == from + 1 {
            join(&mut self.scratch, known);
        }
    }

    fn keep(&mut self, node: Node, generation: u64) {
        let (node, at) = (index(node), self.at(generation));
        self.scratch[node] = generation + 1;
        self.clocks[node][at].copy_from_slice(&self.scratch);
    }

    /// A stage of the host begins, or one of the device is enqueued.
    pub(crate) fn begin(
        &mut self,
        stage: StageId,
        generation: u64,
        needs: &[Need],
        waits: &[Wait],
        queue: Option<usize>,
        pool: &Pool,
    ) -> Result<(), Race> {
        debug_assert_eq!(self.scratch.len(), self.nodes);
        self.scratch.fill(0);
        for need in needs {
            self.learn(need.fact.node(), generation, need.lag);
        }
        let run = Node::Run(stage);
        let Some(queue) = queue else {
            self.learn(run, generation, 1);
            self.keep(run, generation);
            return self.touch(run, generation, pool, |_| true);
        };
        let enqueue = Node::Enqueue(stage);
        self.learn(enqueue, generation, 1);
        self.keep(enqueue, generation);
        self.touch(enqueue, generation, pool, |how| how == How::Look)?;
        join(&mut self.scratch, &self.queues[queue]);
        for wait in waits {
            self.learn(Node::Run(wait.stage), generation, i64::from(wait.lag));
        }
        self.keep(run, generation);
        self.queues[queue].copy_from_slice(&self.scratch);
        self.touch(run, generation, pool, |how| how != How::Look)
    }

    /// Checks every use of a slot against those it must come after.
    fn touch(
        &mut self,
        node: Node,
        generation: u64,
        pool: &Pool,
        wanted: fn(How) -> bool,
    ) -> Result<(), Race> {
        let own = (index(node), generation + 1);
        for (resource, how) in pool.accesses(node.stage()) {
            if !wanted(*how) {
                continue;
            }
            let Some(slot) = pool.slot_of(*resource, *how, generation) else {
                continue;
            };
            let used = &mut self.uses[resource.0][slot];
            let clash = match how {
                How::Read | How::Look | How::Previous => {
                    used.readers.push(own);
                    first_unknown(&self.scratch, own, &used.writers)
                }
                How::Write
                    if used.generation == own.1
                        && used.readers.is_empty()
                        && !used.writers.is_empty() =>
                {
                    used.writers.push(own);
                    first_unknown(&self.scratch, own, &used.before)
                }
                How::Write | How::Update => {
                    used.before.clear();
                    used.before.append(&mut used.writers);
                    used.before.append(&mut used.readers);
                    used.generation = own.1;
                    used.writers.push(own);
                    first_unknown(&self.scratch, own, &used.before)
                }
            };
            if let Some((first, first_generation)) = clash {
                return Err(Race {
                    resource: self.resources[resource.0].clone(),
                    slot,
                    first: self.names[first / 2].clone(),
                    first_generation: first_generation - 1,
                    second: self.names[own.0 / 2].clone(),
                    second_generation: generation,
                });
            }
        }
        Ok(())
    }
}

fn first_unknown(clock: &[u64], own: Mark, marks: &[Mark]) -> Option<Mark> {
    let mut marks = marks.iter().filter(|mark| **mark != own);
    marks.find(|(node, when)| clock[*node] < *when).copied()
}
