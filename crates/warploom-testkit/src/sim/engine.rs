//! Virtual time: lines of operations that begin and end.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use warploom_core::{DeviceError, QueueClass, Result};

use super::backend::{Engines, Operation, Pace};
use super::choice::Chooser;
use super::event::Point;
use super::memory::{Content, Effect};
use crate::fake::Card;

/// A line of the host in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lane(pub(super) usize);

/// What happened in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepped {
    /// Nothing can happen.
    Stuck,
    /// Something happened on a queue.
    Moved,
    /// The host's work with this key has begun.
    Began(u64),
    /// The host's work with this key has ended.
    Ended(u64),
}

#[derive(Debug)]
pub(super) enum Work {
    Effect(Effect),
    Mark(Arc<Point>),
    Wait(Arc<Point>),
    Host(u64),
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) work: Work,
    pub(super) doom: Option<DeviceError>,
    /// How long it takes; `None` is for ever.
    pub(super) time: Option<u64>,
}

#[derive(Debug)]
struct Running {
    op: Op,
    /// When it ends; `None` is never.
    ends: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) label: String,
    /// The engine it shares with other queues, if it has none of its own.
    engine: Option<QueueClass>,
    /// Enqueued, and how many of it are submitted.
    ops: VecDeque<Op>,
    submitted: usize,
    running: Option<Running>,
    failed: Option<DeviceError>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) now: u64,
    pub(super) lines: Vec<Line>,
    pub(super) chooser: Chooser,
    pub(super) pace: Pace,
    pub(super) jitter: u64,
    /// Does a queue go on when what it waited for failed?
    pub(super) is_forgetful: bool,
    pub(super) engines: Engines,
    /// What the host's work did while somebody waited who does not look at that.
    untold: VecDeque<Stepped>,
}

/// What device, queues, events and buffers of a simulation share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) card: Arc<Card>,
    state: Mutex<State>,
    changed: Condvar,
    pub(super) is_loose: bool,
    pub(super) is_free_running: bool,
}

impl World {
    pub(super) fn new(
        card: Arc<Card>,
        chooser: Chooser,
        pace: Pace,
        jitter: u64,
        [is_loose, is_free_running]: [bool; 2],
    ) -> Self {
        Self {
            card,
            state: Mutex::new(State {
                now: 0,
                lines: Vec::new(),
                chooser,
                pace,
                jitter,
                is_forgetful: false,
                engines: Engines::Own,
                untold: VecDeque::new(),
            }),
            changed: Condvar::new(),
            is_loose,
            is_free_running,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn line(&self, label: &str) -> usize {
        self.line_on(label, None)
    }

    /// A line whose work takes its turn on an engine with that of other lines.
    pub(super) fn line_on(&self, label: &str, engine: Option<QueueClass>) -> usize {
        let mut state = self.state();
        let engine = engine.filter(|_| state.engines == Engines::OfClass);
        state.lines.push(Line {
            label: label.to_owned(),
            engine,
            ..Line::default()
        });
        state.lines.len() - 1
    }

    pub(super) fn push(&self, line: usize, work: Work, doom: Option<DeviceError>) {
        let mut state = self.state();
        let time = state.time_of(line, &work);
        state.lines[line].ops.push_back(Op { work, doom, time });
    }

    /// The host's work: it takes this long, and begins when the lane's work before it has ended.
    pub(super) fn push_host(&self, lane: usize, key: u64, time: u64) {
        let mut state = self.state();
        let time = match state.pace {
            Pace::Random => {
                let longest = 1 << state.chooser.between(0, 10);
                state.chooser.between(1, longest)
            }
            Pace::Said(_) => state.spread(time),
        };
        let line = &mut state.lines[lane];
        line.ops.push_back(Op {
            work: Work::Host(key),
            doom: None,
            time: Some(time),
        });
        line.submitted = line.ops.len();
    }

    pub(super) fn submit(&self, line: usize) {
        let mut state = self.state();
        let line = &mut state.lines[line];
        line.submitted = line.ops.len();
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn submit_all(&self) {
        for line in &mut self.state().lines {
            line.submitted = line.ops.len();
        }
        self.changed.notify_all();
    }

    /// Waits for somebody else to submit something, in real time, because nothing can happen here.
    pub(super) fn sleep(&self, state: MutexGuard<'_, State>, most: std::time::Duration) {
        drop(self.changed.wait_timeout(state, most));
    }

    /// The next thing happens, for somebody who looks only at queues.
    pub(super) fn step(&self) -> Stepped {
        let lost = self.card.lost();
        let mut state = self.state();
        let stepped = state.step(lost.as_ref());
        if matches!(stepped, Stepped::Began(_) | Stepped::Ended(_)) {
            state.untold.push_back(stepped);
        }
        drop(state);
        self.changed.notify_all();
        stepped
    }

    /// The next thing happens, or is told if it happened.
    pub(super) fn told_step(&self) -> Stepped {
        let untold = self.state().untold.pop_front();
        untold.unwrap_or_else(|| {
            let stepped = self.step();
            // It is told now.
            self.state().untold.pop_back().unwrap_or(stepped)
        })
    }

    /// Does queued work touch these bytes?
    pub(super) fn touches(&self, content: &Arc<Content>) -> bool {
        let state = self.state();
        state.lines.iter().any(|line| {
            let running = line.running.iter().map(|running| &running.op);
            let mut ops = line.ops.iter().chain(running);
            ops.any(|op| matches!(&op.work, Work::Effect(effect) if effect.touches(content)))
        })
    }
}

impl State {
    /// A time, varied by the jitter.
    fn spread(&mut self, time: u64) -> u64 {
        let part = time / 100 * self.jitter;
        if part == 0 {
            return time;
        }
        self.chooser.between(time - part.min(time), time + part)
    }

    fn time_of(&mut self, line: usize, work: &Work) -> Option<u64> {
        let Work::Effect(effect) = work else {
            return Some(0);
        };
        let operation = Operation {
            queue: &self.lines[line].label,
            kernel: effect.kernel(),
            bytes: effect.bytes(),
        };
        match self.pace.clone() {
            Pace::Random => {
                // Mostly short and now and then long: what is late once is what shows lost order.
                let longest = 1 << self.chooser.between(0, 10);
                Some(self.chooser.between(1, longest))
            }
            Pace::Said(pace) => {
                let time = pace(&operation)?;
                let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                Some(self.spread(nanos))
            }
        }
    }

    /// Passes marks and waits that can be passed, until none can. Answers whether there were any.
    fn settle(&mut self, lost: Option<&DeviceError>) -> bool {
        let (mut again, mut any) = (true, false);
        while again {
            again = false;
            let (now, is_forgetful) = (self.now, self.is_forgetful);
            for line in &mut self.lines {
                while line.running.is_none() && line.submitted > 0 {
                    let outcome = match line.ops.front().map(|op| &op.work) {
                        Some(Work::Mark(point)) => {
                            let trouble = line.failed.as_ref().or(lost);
                            point.reach(trouble.map_or(Ok(now), |error| Err(error.clone())));
                            None
                        }
                        Some(Work::Wait(point)) => match point.reached() {
                            None => break,
                            Some(Err(error)) if !is_forgetful => Some(error),
                            Some(_) => None,
                        },
                        _ => break,
                    };
                    if let Some(error) = outcome {
                        line.failed.get_or_insert(error);
                    }
                    line.ops.pop_front();
                    line.submitted -= 1;
                    (again, any) = (true, true);
                }
            }
        }
        any
    }

    fn begin(&mut self, line: usize) -> Stepped {
        let now = self.now;
        let line = &mut self.lines[line];
        let Some(mut op) = line.ops.pop_front() else {
            return Stepped::Stuck;
        };
        line.submitted -= 1;
        let stepped = match &mut op.work {
            Work::Host(key) => Stepped::Began(*key),
            Work::Effect(effect) => {
                if line.failed.is_none() && op.doom.is_none() {
                    effect.begin();
                }
                Stepped::Moved
            }
            Work::Mark(_) | Work::Wait(_) => Stepped::Moved,
        };
        // What failed before does not run, and takes no time.
        let time = if line.failed.is_some() {
            Some(0)
        } else {
            op.time
        };
        let ends = time.map(|time| now.saturating_add(time));
        line.running = Some(Running { op, ends });
        stepped
    }

    fn end(&mut self, line: usize, lost: Option<&DeviceError>) -> Stepped {
        let line = &mut self.lines[line];
        let Some(running) = line.running.take() else {
            return Stepped::Stuck;
        };
        match running.op.work {
            Work::Host(key) => Stepped::Ended(key),
            Work::Effect(effect) => {
                let trouble = line.failed.clone().or(running.op.doom);
                let outcome: Result<()> = match trouble.or_else(|| lost.cloned()) {
                    Some(error) => Err(error),
                    None => effect.end(),
                };
                if let Err(error) = outcome {
                    line.failed.get_or_insert(error);
                }
                Stepped::Moved
            }
            Work::Mark(_) | Work::Wait(_) => Stepped::Moved,
        }
    }

    fn ready(&self) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        let ready = lines.filter(|(_, line)| {
            let first = line.ops.front().map(|op| &op.work);
            let is_work = matches!(first, Some(Work::Effect(_) | Work::Host(_)));
            let is_free = |engine| {
                let mut same = self.lines.iter();
                !same.any(|line| line.engine == Some(engine) && line.running.is_some())
            };
            line.running.is_none()
                && line.submitted > 0
                && is_work
                && line.engine.is_none_or(is_free)
        });
        ready.map(|(at, _)| at).collect()
    }

    fn step(&mut self, lost: Option<&DeviceError>) -> Stepped {
        let idle = if self.settle(lost) {
            Stepped::Moved
        } else {
            Stepped::Stuck
        };
        let ready = self.ready();
        let lines = self.lines.iter().enumerate();
        let ending: Vec<(usize, u64)> = lines
            .filter_map(|(at, line)| Some((at, line.running.as_ref()?.ends?)))
            .collect();
        let stepped = if self.chooser.is_scripted() {
            let count = ready.len() + ending.len();
            if count == 0 {
                return idle;
            }
            self.now += 1;
            match self.chooser.choose(count) {
                at if at < ready.len() => self.begin(ready[at]),
                at => self.end(ending[at - ready.len()].0, lost),
            }
        } else if ready.is_empty() {
            let Some(first) = ending.iter().map(|(_, ends)| *ends).min() else {
                return idle;
            };
            let ties: Vec<usize> = ending
                .iter()
                .filter(|(_, ends)| *ends == first)
                .map(|(at, _)| *at)
                .collect();
            self.now = self.now.max(first);
            let chosen = self.chooser.choose(ties.len());
            self.end(ties[chosen], lost)
        } else {
            let chosen = self.chooser.choose(ready.len());
            self.begin(ready[chosen])
        };
        self.settle(lost);
        stepped
    }

    /// When the next operation ends.
    pub(super) fn next_end(&self) -> Option<u64> {
        let lines = self.lines.iter();
        let ends = lines.filter_map(|line| line.running.as_ref()?.ends);
        ends.min()
    }

    pub(super) fn can_begin(&self) -> bool {
        !self.ready().is_empty()
    }
}
