//! How a run ends: failures, calling off, and waiting for what was enqueued.

use std::time::Duration;

use warploom_core::{CancelToken, DeviceError, Queue};

use super::crew::Crew;
use super::error::{RunError, StageError};
use super::pipeline::Pipeline;
use crate::model::StageId;

/// A stage whose work failed, and in which generation.
type Failed = Box<(StageId, u64, DeviceError)>;

impl<C: Crew> Pipeline<C> {
    pub(super) fn heed_cancel(&mut self) {
        let cancelled = |token: &CancelToken| token.is_cancelled();
        if self.failure.is_some() || !self.options.cancel.as_ref().is_some_and(cancelled) {
            return;
        }
        // What the device has got is finished; nothing else is begun.
        let devices = self.wires.iter().zip(&self.progress);
        let enqueued = devices.filter(|(wires, _)| wires.queue.is_some());
        let most = enqueued.map(|(_, progress)| progress.begun).max();
        let most = most.unwrap_or_else(|| {
            let begun = self.progress.iter().map(|progress| progress.begun);
            begun.max().unwrap_or(0)
        });
        self.end = Some(self.end.map_or(most, |end| end.min(most)));
        self.failure = Some(RunError::Cancelled { delivered: most });
    }

    /// Did everything that a stage's generation was waited for succeed? A queue that waits for work
    /// that failed may go on and compute with rubbish, so what the host gets to see is asked about
    /// all the way back, each stage once for each generation.
    pub(super) fn verify(&mut self, stage: StageId, generation: u64) -> Result<(), Failed> {
        if self.verified[stage.0] > generation {
            return Ok(());
        }
        self.verified[stage.0] = generation + 1;
        // What went before it on its queue may have waited for something, too.
        for at in 0..self.wires[stage.0].before.len() {
            self.verify(self.wires[stage.0].before[at], generation)?;
        }
        for at in 0..self.wires[stage.0].waits.len() {
            let wait = self.wires[stage.0].waits[at];
            let Some(of) = generation.checked_sub(u64::from(wait.lag)) else {
                continue;
            };
            let (when, event) = &self.events[wait.stage.0][self.ring(of)];
            if let (true, Some(event)) = (*when == of + 1, event) {
                event
                    .is_done()
                    .map_err(|error| Box::new((wait.stage, of, error)))?;
            }
            self.verify(wait.stage, of)?;
        }
        Ok(())
    }

    /// The first failure stays; everything before the earliest failed generation goes on.
    pub(super) fn fail(&mut self, stage: StageId, generation: u64, error: StageError) {
        self.end = Some(self.end.map_or(generation, |end| end.min(generation)));
        let name = &self.plan.graph().stages()[stage.0].name;
        self.failure.get_or_insert_with(|| RunError::Stage {
            stage: name.clone(),
            generation,
            error: Box::new(error),
        });
    }

    /// Has everything begun that there is, and is the host done?
    pub(super) fn is_over(&self) -> bool {
        let Some(end) = self.end else {
            return false;
        };
        self.running == 0 && self.progress.iter().all(|progress| progress.begun >= end)
    }

    pub(super) fn give_up(&mut self, waited: Duration) -> RunError {
        let chain = self.chain();
        let error = RunError::Timeout { waited, chain };
        self.is_abandoned = true;
        let stages = self.wires.iter().zip(&self.progress).enumerate();
        for (at, (wires, progress)) in stages {
            // A thread that does not come back must not keep those who gave it up.
            if wires.queue.is_none() && progress.begun > progress.done {
                self.crew.abandon(StageId(at));
            }
        }
        self.failure.get_or_insert(error).clone()
    }

    /// Waits for everything that was enqueued. Failures of work that nobody looked at show here.
    pub(super) fn settle(&mut self) {
        // All of them first: what is enqueued starts when something is recorded after it.
        let ends: Vec<_> = self.queues.iter_mut().map(Queue::record).collect();
        let begun = self.crew.now();
        for (queue, end) in ends.into_iter().enumerate() {
            let waited = end.and_then(|event| event.wait(Some(self.options.patience)));
            let last = self.plan.queues()[queue].stages.last().copied();
            if let (Err(error), Some(stage)) = (waited, last) {
                let generation = self.progress[stage.0].begun.saturating_sub(1);
                self.fail(stage, generation, error.into());
            }
        }
        let done = self.end.unwrap_or(0);
        let records = |generation| self.last_records(generation);
        self.summary.records = match done {
            0 => 0,
            done => (done - 1) * self.options.batch + records(done - 1),
        };
        self.summary.generations = done;
        let now = self.crew.now();
        self.blocked(now.saturating_sub(begun));
        self.summary.wall = now.saturating_sub(self.begun_at);
        if let Some(meter) = &mut self.meter {
            (self.summary.usages, self.summary.lost) = meter.conclude(now);
        }
        if let Some(RunError::Cancelled { delivered }) = &mut self.failure {
            *delivered = done;
        }
    }

    pub(super) fn last_records(&self, generation: u64) -> u64 {
        let partial = self.fills[self.ring(generation)];
        if partial > 0 {
            return partial;
        }
        let first = generation * self.options.batch;
        let all = self.options.records.unwrap_or(u64::MAX);
        all.saturating_sub(first).min(self.options.batch)
    }
}
