//! When a stage may begin, and its beginning.

use std::sync::Arc;

use warploom_core::Queue;

use super::crew::{Crew, Job, Watch, panic_text};
use super::error::StageError;
use super::pipeline::Pipeline;
use super::report::Command;
use super::turn::{Batch, DeviceTurn};
use super::wiring::{Fact, Need};
use crate::model::StageId;

/// How many turns of a host stage may be given to its thread before the first of them is done: one
/// runs, the next is at hand, so that a thread does not wait for the driver between them.
const AHEAD: u64 = 2;

pub(super) enum Trouble {
    Stage(StageError),
    Race(super::error::Race),
}

impl<C: Crew> Pipeline<C> {
    /// The generation at which a stage has to stop for now.
    pub(super) fn horizon(&self, at: usize) -> u64 {
        if let Some(end) = self.end {
            return end;
        }
        if self.wires[at].is_source {
            return u64::MAX;
        }
        let sources = self.wires.iter().zip(&self.progress);
        let done = sources
            .filter(|(wires, _)| wires.is_source)
            .map(|(_, progress)| progress.done);
        done.min().unwrap_or(0)
    }

    pub(super) fn may_begin(&self, at: usize) -> bool {
        let progress = self.progress[at];
        let wires = &self.wires[at];
        let is_host = wires.queue.is_none();
        if progress.begun >= self.horizon(at)
            || (is_host && progress.begun >= progress.done + AHEAD)
        {
            return false;
        }
        wires
            .needs
            .iter()
            .all(|need| self.is_met(need, progress.begun))
    }

    /// Is this condition of a stage's `generation` met?
    pub(super) fn is_met(&self, need: &Need, generation: u64) -> bool {
        let Some(wanted) = generation.checked_add_signed(-need.lag) else {
            return true;
        };
        if need.lag < 0 && self.end.is_some_and(|end| wanted >= end) {
            // What would come before it on its queue does not come at all.
            return true;
        }
        let progress = self.progress[need.fact.stage().0];
        match need.fact {
            Fact::Enqueued(_) => progress.begun > wanted,
            Fact::Done(_) | Fact::Seen(_) => progress.done > wanted,
        }
    }

    /// Is everything done that a stage's queue would be told to wait for before its next turn?
    pub(super) fn could_run(&self, at: usize) -> bool {
        let generation = self.progress[at].begun;
        self.wires[at].waits.iter().all(|wait| {
            let of = generation.checked_sub(u64::from(wait.lag));
            of.is_none_or(|of| self.progress[wait.stage.0].done > of)
        })
    }

    pub(super) fn batch(&mut self, generation: u64) -> Batch {
        let (first, at) = (generation * self.options.batch, self.ring(generation));
        let full = match self.options.records {
            Some(all) => all.saturating_sub(first).min(self.options.batch),
            None => self.options.batch,
        };
        let is_last = self.end == Some(generation + 1) && self.fills[at] > 0;
        Batch {
            generation,
            first,
            records: if is_last { self.fills[at] } else { full },
        }
    }

    pub(super) fn begin(&mut self, stage: StageId) {
        let generation = self.progress[stage.0].begun;
        self.progress[stage.0].begun += 1;
        let batch = self.batch(generation);
        if let Err(error) = self.try_begin(stage, batch) {
            match error {
                Trouble::Race(race) => {
                    let end = self.end.map_or(generation, |end| end.min(generation));
                    self.end = Some(end);
                    self.failure.get_or_insert(race.into());
                }
                Trouble::Stage(error) => self.fail(stage, generation, error),
            }
        }
    }

    pub(super) fn try_begin(&mut self, stage: StageId, batch: Batch) -> Result<(), Trouble> {
        let generation = batch.generation;
        let wires = &self.wires[stage.0];
        for edge in wires.needs.iter().filter_map(|need| need.edge) {
            self.summary.edges[edge.0].waits += 1;
        }
        if let Some(races) = &mut self.races {
            let (needs, waits) = (&wires.needs, &wires.waits);
            races
                .begin(stage, generation, needs, waits, wires.queue, &self.pool)
                .map_err(Trouble::Race)?;
            self.summary.checked += 1;
        }
        if self.options.log {
            let waits = wires.waits.iter();
            let waits = waits.filter_map(|wait| {
                let of = generation.checked_sub(u64::from(wait.lag))?;
                Some((wait.stage, of))
            });
            let uses = self.pool.accesses(stage).iter();
            let slots = uses.filter_map(|(resource, how)| {
                let slot = self.pool.slot_of(*resource, *how, generation)?;
                Some((*resource, *how, slot))
            });
            self.summary.log.push(Command {
                queue: wires.queue,
                stage,
                generation,
                records: batch.records,
                slots: slots.collect(),
                waits: waits.collect(),
            });
        }
        match wires.queue {
            None => {
                self.running += 1;
                self.crew.start(Job {
                    stage,
                    batch,
                    is_timed: self.meter.is_some(),
                });
                Ok(())
            }
            Some(queue) => self.enqueue(stage, queue, batch).map_err(Trouble::Stage),
        }
    }

    pub(super) fn enqueue(
        &mut self,
        stage: StageId,
        queue: usize,
        batch: Batch,
    ) -> Result<(), StageError> {
        let wires = &self.wires[stage.0];
        let generation = batch.generation;
        for wait in &wires.waits {
            let Some(from) = generation.checked_sub(u64::from(wait.lag)) else {
                continue;
            };
            let (when, event) = &self.events[wait.stage.0][self.ring(from)];
            if let (true, Some(event)) = (*when == from + 1, event) {
                self.queues[queue].wait(event)?;
                self.summary.edges[wait.edge.0].waits += 1;
            }
        }
        let metered = match &self.meter {
            Some(_) => Some(self.queues[queue].record()?),
            None => None,
        };
        let hold = self.pool.hold_to_enqueue(stage, generation)?;
        if let Some(work) = &mut self.work[stage.0] {
            let mut turn = DeviceTurn {
                hold: &hold,
                queue: &mut self.queues[queue],
                args: &mut self.args,
                batch,
            };
            self.guard.begin(stage, generation);
            let work = std::panic::AssertUnwindSafe(|| work.enqueue(&mut turn));
            let done = std::panic::catch_unwind(work);
            if let Some(stray) = self.guard.end() {
                return Err(stray.into());
            }
            done.unwrap_or_else(|panic| Err(StageError::Panicked(panic_text(&*panic))))?;
        }
        drop(hold);
        if let (Some(meter), Some(begin)) = (&mut self.meter, metered) {
            let end = self.queues[queue].record()?;
            meter.enqueued(queue, begin, end);
        }
        if !wires.is_recorded {
            self.unsent[queue] = Some((stage, generation));
            return Ok(());
        }
        self.unsent[queue] = None;
        let event = self.queues[queue].record()?;
        self.summary.recorded += 1;
        if wires.is_seen {
            self.crew.watch(Watch {
                stage,
                queue,
                generation,
                event: Arc::clone(&event),
            });
        }
        let at = self.ring(generation);
        self.events[stage.0][at] = (generation + 1, Some(event));
        Ok(())
    }
}
