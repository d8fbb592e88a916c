//! One of several plans on a device: what it may take, and how far it is.

use std::time::Duration;

use warploom_core::QueueClass;

use super::berth::Berth;
use super::crew::{Crew, Note, Outcome};
use super::error::RunError;
use super::pipeline::Pipeline;
use super::report::Summary;
use crate::model::{Arbiter, Budget, Passage, Plan, StageId};

/// The engines of a device: one for each class of queues.
pub(super) const ENGINES: usize = 3;

pub(super) fn engine_of(class: QueueClass) -> usize {
    match class {
        QueueClass::Upload => 1,
        QueueClass::Download => 2,
        _ => 0,
    }
}

/// A plan that shares a device with others: its weight, and what it may take.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tenant {
    /// What people call it.
    pub name: String,
    /// Its share of a busy engine, against the weights of the others.
    pub weight: u32,
    /// The most memory that its slots may take.
    pub budget: Budget,
}

impl Tenant {
    /// A tenant with the same share as any other and no budget of its own.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: 1,
            budget: Budget::default(),
        }
    }

    /// The same with this weight; 0 is taken for 1.
    #[must_use]
    pub fn with_weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// The same within this much memory.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }
}

/// The number of a tenant, from 0 in the order in which they came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TenantId(pub(super) usize);

impl TenantId {
    /// Its place in the list.
    pub fn index(self) -> usize {
        self.0
    }
}

/// Work that is on the way.
#[derive(Debug)]
struct Flight {
    stage: StageId,
    generation: u64,
    engine: usize,
    passage: Passage,
    since: Duration,
    /// Did it have to wait for other work of its plan?
    had_to_wait: bool,
}

/// A tenant that has moved in.
pub(super) struct Member<C: Crew> {
    pub(super) pipeline: Pipeline<Berth<C>>,
    /// For each stage of the device, the engine it needs.
    engines: Vec<Option<usize>>,
    /// What each stage is thought to take.
    costs: Vec<Option<Duration>>,
    flights: Vec<Flight>,
    /// When anything was last heard of it.
    pub(super) heard: Duration,
    pub(super) outcome: Option<Result<Summary, RunError>>,
}

impl<C: Crew> Member<C> {
    pub(super) fn new(plan: &Plan, pipeline: Pipeline<Berth<C>>, now: Duration) -> Self {
        let stages = plan.graph().stages();
        let mut engines = vec![None; stages.len()];
        for queue in plan.queues() {
            for stage in &queue.stages {
                engines[stage.0] = Some(engine_of(queue.class));
            }
        }
        let known = |time: Duration| (!time.is_zero()).then_some(time);
        Self {
            pipeline,
            engines,
            costs: stages.iter().map(|stage| known(stage.time)).collect(),
            flights: Vec::new(),
            heard: now,
            outcome: None,
        }
    }

    /// The stage that this engine could take, the oldest generation's first: with what it waits for
    /// on the device done, or, where `patient`, merely enqueued.
    pub(super) fn ready(&self, engine: usize, patient: bool) -> Option<StageId> {
        if self.outcome.is_some() {
            return None;
        }
        let own = self.engines.iter().enumerate();
        let own = own.filter(|(at, needs)| {
            **needs == Some(engine)
                && self.pipeline.may_begin(*at)
                && (patient || self.pipeline.could_run(*at))
        });
        own.min_by_key(|(at, _)| (self.pipeline.progress[*at].begun, *at))
            .map(|(at, _)| StageId(at))
    }

    pub(super) fn is_ready(&self) -> bool {
        (0..ENGINES).any(|engine| self.ready(engine, true).is_some())
    }

    /// Is anything of it running on the host or on the way?
    pub(super) fn is_under_way(&self) -> bool {
        self.pipeline.running > 0 || !self.flights.is_empty()
    }

    /// Enqueues a stage that was chosen. `watched` tells how many events are watched by now.
    pub(super) fn fly(
        &mut self,
        stage: StageId,
        engine: usize,
        passage: Passage,
        now: Duration,
        watched: impl Fn() -> u64,
    ) -> Option<Passage> {
        let generation = self.pipeline.progress[stage.0].begun;
        let had_to_wait = !self.pipeline.could_run(stage.0);
        let before = watched();
        self.pipeline.begin(stage);
        self.heard = now;
        if watched() == before {
            // It was refused, and its end will not be heard of.
            return Some(passage);
        }
        self.flights.push(Flight {
            stage,
            generation,
            engine,
            passage,
            since: now,
            had_to_wait,
        });
        None
    }

    pub(super) fn cost(&self, stage: StageId) -> Option<Duration> {
        self.costs[stage.0]
    }

    /// Takes news in. What it says of an engine is settled with that engine's arbiter.
    pub(super) fn hear(
        &mut self,
        note: Note,
        now: Duration,
        arbiters: &mut [Arbiter; ENGINES],
        last: &mut [Duration; ENGINES],
    ) {
        self.heard = now;
        let mut flights = self.flights.iter();
        let known = flights.position(|f| (f.stage, f.generation) == (note.stage, note.generation));
        if let (Outcome::Seen(_), Some(at)) = (&note.outcome, known) {
            let flight = self.flights.remove(at);
            // The engine does one thing at a time: it began when it was done with the one before.
            let begun = flight.since.max(last[flight.engine]);
            let took = now.saturating_sub(begun);
            last[flight.engine] = now;
            let thought = self.costs[flight.stage.0];
            let took = match thought {
                // How long it waited for work of its own plan says nothing about itself.
                Some(thought) if flight.had_to_wait => took.min(thought),
                _ => took,
            };
            let learnt = thought.map_or(took, |thought| (thought * 3 + took) / 4);
            self.costs[flight.stage.0] = Some(learnt);
            arbiters[flight.engine].finish(flight.passage, took);
        }
        if self.outcome.is_none() {
            self.pipeline.absorb(note);
        }
    }

    /// Ends it if nothing is left to do.
    pub(super) fn end_if_over(&mut self) {
        if self.outcome.is_some() || !self.pipeline.is_over() || !self.flights.is_empty() {
            return;
        }
        self.pipeline.settle();
        self.outcome = Some(match &self.pipeline.failure {
            Some(error) => Err(error.clone()),
            None => Ok(self.pipeline.summary.clone()),
        });
    }

    /// Gives it up: nothing was heard of it for so long.
    pub(super) fn give_up(&mut self, waited: Duration) {
        let error = self.pipeline.give_up(waited);
        self.flights.clear();
        self.outcome = Some(Err(error));
    }
}
