//! A plan that runs.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::{Arg, CancelToken, CheckedDevice, CheckedQueue, Event, Queue, QueueDesc};

use super::crew::{Crew, Note, Outcome, Post};
use super::error::RunError;
use super::guard::Guard;
use super::meter::Meter;
use super::options::RunOptions;
use super::payload::{DeviceWork, Fill, Payload, Payloads};
use super::pool::Pool;
use super::races::Races;
use super::report::{EdgeCount, Summary};
use super::wiring::{Wires, window, wire};
use crate::model::{Plan, StageId};

/// The longest the driver sleeps while it may be called off.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// How far one stage is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Generations enqueued or started.
    pub(super) begun: u64,
    /// Generations known to be done.
    pub(super) done: u64,
}

/// A recorded event and its generation, from 1.
pub(super) type Recorded = (u64, Option<Arc<dyn Event>>);

/// A plan that runs: one thread decides, and moves no bytes.
///
/// Dropping it at any moment waits for what is running and frees everything. What was not enqueued
/// then never is. Nobody waits for what outlasted the patience: a host stage that does not return
/// keeps its thread and its slots, and nothing else.
pub struct Pipeline<C: Crew> {
    pub(super) plan: Arc<Plan>,
    pub(super) wires: Vec<Wires>,
    pub(super) pool: Arc<Pool>,
    pub(super) crew: C,
    pub(super) queues: Vec<CheckedQueue>,
    pub(super) guard: Arc<Guard>,
    /// For each queue, who enqueued last without anything recorded since.
    pub(super) unsent: Vec<Option<(StageId, u64)>>,
    pub(super) work: Vec<Option<Box<dyn DeviceWork>>>,
    pub(super) progress: Vec<Progress>,
    pub(super) events: Vec<Vec<Recorded>>,
    /// For each stage, how many generations are known not to have failed.
    pub(super) verified: Vec<u64>,
    /// Records of the latest generations.
    pub(super) fills: Vec<u64>,
    pub(super) args: Vec<Arg>,
    /// Generations there are; unknown until a source says so.
    pub(super) end: Option<u64>,
    pub(super) failure: Option<RunError>,
    pub(super) races: Option<Races>,
    pub(super) meter: Option<Meter>,
    pub(super) summary: Summary,
    pub(super) options: RunOptions,
    pub(super) running: u64,
    pub(super) begun_at: Duration,
    pub(super) is_abandoned: bool,
}

impl<C: Crew> std::fmt::Debug for Pipeline<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("progress", &self.progress)
            .field("end", &self.end)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

impl<C: Crew> Pipeline<C> {
    /// Makes queues and slots, and gives host stages to `crew`. Nothing runs yet.
    pub fn start(
        plan: &Plan,
        device: &CheckedDevice,
        payloads: Payloads,
        crew: C,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        Self::wired(plan, wire(plan), device, payloads, crew, options)
    }

    /// The same, with the end of every stage of the device recorded and seen, so that somebody can
    /// decide who goes next.
    pub(super) fn watched(
        plan: &Plan,
        device: &CheckedDevice,
        payloads: Payloads,
        crew: C,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        let mut wires = wire(plan);
        for wires in wires.iter_mut().filter(|wires| wires.queue.is_some()) {
            (wires.is_recorded, wires.is_seen) = (true, true);
        }
        Self::wired(plan, wires, device, payloads, crew, options)
    }

    fn wired(
        plan: &Plan,
        wires: Vec<Wires>,
        device: &CheckedDevice,
        payloads: Payloads,
        mut crew: C,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        if options.records.is_none() && !wires.iter().any(|wires| wires.is_source) {
            return Err(RunError::Endless);
        }
        let payloads = payloads.sorted(plan)?;
        let pool = Arc::new(Pool::new(plan, device)?);
        let guard = Guard::new(&pool);
        let mut queues = Vec::new();
        for queue in plan.queues() {
            let desc = QueueDesc::named(&*queue.name)
                .with_class(queue.class)
                .with_threads(queue.threads);
            let made = device.queue(&desc).map_err(|error| RunError::Start {
                error: Box::new(error),
            })?;
            queues.push(guard.watch(made));
        }
        let (mut work, mut posts) = (Vec::new(), Vec::new());
        for (at, payload) in payloads.into_iter().enumerate() {
            match payload {
                Payload::Device(device) => work.push(Some(device)),
                Payload::Host(host) => {
                    let name = &plan.graph().stages()[at].name;
                    let thread = wires[at].thread.clone().unwrap_or_else(|| name.clone());
                    posts.push(Post::new(StageId(at), thread, host, Arc::clone(&pool)));
                    work.push(None);
                }
            }
        }
        crew.adopt(posts)?;
        let (stages, window) = (wires.len(), window(plan));
        let batch = options.batch.max(1);
        let end = options.records.map(|records| records.div_ceil(batch));
        let mut clocks = None;
        if let (true, Some(queue)) = (options.is_metered, queues.first_mut()) {
            let compared = compare_clocks(queue, &crew, options.patience);
            clocks = compared.map_err(|error| RunError::Start {
                error: Box::new(error),
            })?;
        }
        let begun_at = crew.now();
        let meter = options
            .is_metered
            .then(|| Meter::new(plan, &wires, clocks, begun_at));
        Ok(Self {
            meter,
            races: options.check_races.then(|| Races::new(plan, window)),
            summary: Summary {
                edges: vec![EdgeCount::default(); plan.edges().len()],
                ..Summary::default()
            },
            plan: Arc::new(plan.clone()),
            wires,
            pool,
            begun_at,
            crew,
            unsent: vec![None; queues.len()],
            queues,
            guard,
            work,
            progress: vec![Progress::default(); stages],
            events: vec![vec![(0, None); window]; stages],
            verified: vec![0; stages],
            fills: vec![0; window],
            args: Vec::new(),
            end,
            failure: None,
            options: RunOptions { batch, ..options },
            running: 0,
            is_abandoned: false,
        })
    }

    /// The slots. Whoever keeps them can look at them while the plan runs.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The first failure, after everything before it was finished and everything that was enqueued
    /// is done. Asking again gives the same error.
    pub fn run(&mut self) -> Result<&Summary, RunError> {
        while self.turn()? {}
        Ok(&self.summary)
    }

    /// Does everything that can be done now, or sleeps until there is news. Answers whether there
    /// is more to do.
    ///
    /// # Errors
    /// As [`run`](Self::run), when nothing is left to do but to report it.
    pub fn turn(&mut self) -> Result<bool, RunError> {
        if self.is_abandoned {
            return Err(self.failure.clone().unwrap_or(RunError::Endless));
        }
        self.heed_cancel();
        let begun = self.meter.as_ref().map(|_| self.crew.now());
        let any = self.advance();
        if let (Some(meter), Some(begun)) = (&mut self.meter, begun) {
            meter.drove(self.crew.now().saturating_sub(begun));
        }
        if any {
            return Ok(true);
        }
        if !self.is_over() {
            self.flush();
            self.rest()?;
            return Ok(true);
        }
        self.settle();
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => Ok(false),
        }
    }

    /// Has something failed? The run ends when what was begun before is done: a source that waits for
    /// something to come should be told, because it is waited for.
    pub fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// What was done so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// One round over all stages in their order, so that a generation goes as far as it can.
    fn advance(&mut self) -> bool {
        let mut any = false;
        while let Some(note) = self.crew.poll() {
            self.absorb(note);
            any = true;
        }
        for at in 0..self.wires.len() {
            while self.may_begin(at) {
                self.begin(StageId(at));
                any = true;
            }
        }
        any
    }

    /// Gives host stages that may begin to the crew.
    pub(super) fn begin_host_stages(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.wires.len() {
            while self.wires[at].queue.is_none() && self.may_begin(at) {
                self.begin(StageId(at));
                any = true;
            }
        }
        any
    }

    /// Whatever is enqueued starts when something is recorded after it, at the latest now.
    fn flush(&mut self) {
        for queue in 0..self.queues.len() {
            if let Some((stage, generation)) = self.unsent[queue].take() {
                match self.queues[queue].record() {
                    Ok(_) => self.summary.recorded += 1,
                    Err(error) => self.fail(stage, generation, error.into()),
                }
            }
        }
    }

    pub(super) fn absorb(&mut self, note: Note) {
        let at = note.stage.0;
        if let (Some(meter), Outcome::Ran(_)) = (&mut self.meter, &note.outcome) {
            meter.ran(note.stage, note.span);
        }
        match note.outcome {
            Outcome::Seen(Ok(())) => match self.verify(note.stage, note.generation) {
                Ok(()) => {
                    let done = &mut self.progress[at].done;
                    *done = (*done).max(note.generation + 1);
                }
                Err(failed) => {
                    let (stage, generation, error) = *failed;
                    self.fail(stage, generation, error.into());
                }
            },
            Outcome::Seen(Err(error)) => {
                self.fail(note.stage, note.generation, error.into());
            }
            Outcome::Skipped => self.running -= 1,
            Outcome::Ran(Err(error)) => {
                self.running -= 1;
                self.fail(note.stage, note.generation, error);
            }
            Outcome::Ran(Ok(fill)) => {
                self.running -= 1;
                self.progress[at].done = note.generation + 1;
                if self.wires[at].is_source {
                    self.filled(note.generation, fill);
                }
            }
        }
    }

    /// A source has said how full a batch is.
    fn filled(&mut self, generation: u64, fill: Fill) {
        let end = match fill {
            Fill::Full => return,
            Fill::Last(0) | Fill::End => generation,
            Fill::Last(records) => {
                let at = self.ring(generation);
                self.fills[at] = records.min(self.options.batch);
                generation + 1
            }
        };
        self.end = Some(self.end.map_or(end, |known| known.min(end)));
    }

    pub(super) fn ring(&self, generation: u64) -> usize {
        // As many as a power of two.
        usize::try_from(generation).unwrap_or(0) & (self.fills.len() - 1)
    }

    /// The driver had nothing to do for so long.
    pub(super) fn blocked(&mut self, waited: Duration) {
        self.summary.blocked += waited;
        if let Some(meter) = &mut self.meter {
            meter.waited(waited);
        }
    }

    fn rest(&mut self) -> Result<(), RunError> {
        let begun = self.crew.now();
        let blame = self.blame();
        loop {
            let waited = self.crew.now().saturating_sub(begun);
            let left = self.options.patience.saturating_sub(waited);
            if left.is_zero() {
                return Err(self.give_up(waited));
            }
            let nap = match self.options.cancel {
                Some(_) if self.failure.is_none() => left.min(GLANCE),
                _ => left,
            };
            self.crew.rest(nap);
            let waited = self.crew.now().saturating_sub(begun);
            let note = self.crew.poll();
            let is_cancelled = self
                .options
                .cancel
                .as_ref()
                .is_some_and(CancelToken::is_cancelled);
            if note.is_none() && !(is_cancelled && self.failure.is_none()) {
                continue;
            }
            self.blocked(waited);
            if let Some(edge) = blame {
                self.summary.edges[edge.0].blocked += waited;
            }
            if let Some(note) = note {
                self.absorb(note);
            }
            return Ok(());
        }
    }
}

/// What the device's clock said when the crew's said that; `None` where it has no clock. Of several
/// looks the quickest counts: whoever waits hears of an event a little later, and never earlier.
fn compare_clocks(
    queue: &mut CheckedQueue,
    crew: &impl Crew,
    patience: Duration,
) -> warploom_core::Result<Option<(Duration, Duration)>> {
    const LOOKS: u32 = 5;
    let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    let mut best: Option<(Duration, Duration)> = None;
    for _ in 0..LOOKS {
        let event = queue.record()?;
        event.wait(Some(patience))?;
        let now = crew.now();
        let Some(at) = event.at() else {
            return Ok(None);
        };
        let ahead = |(device, crew): (Duration, Duration)| nanos(crew) - nanos(device);
        if best.is_none_or(|best| ahead((at, now)) < ahead(best)) {
            best = Some((at, now));
        }
    }
    Ok(best)
}

impl<C: Crew> Drop for Pipeline<C> {
    fn drop(&mut self) {
        self.crew.dismiss();
        if self.is_abandoned {
            return;
        }
        let ends: Vec<_> = self.queues.iter_mut().map(Queue::record).collect();
        for end in ends.into_iter().flatten() {
            // What fails now has nobody left to tell; buffers are kept by whoever uses them.
            let _ = end.wait(Some(self.options.patience));
        }
    }
}
