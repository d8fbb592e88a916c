//! One decision after the other: where a task goes, and what a device takes next.

use std::collections::VecDeque;

use super::forecast::forecast;
use super::{Work, shares};

/// A stage of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Task {
    /// Which frame.
    pub frame: usize,
    /// Which of its stages.
    pub stage: usize,
}

/// How tasks are dealt. With all of them, later stages go before earlier ones, and a device with
/// nothing to do takes over from the one with the longest queue what it would end sooner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// A frame stays where it began; frames are dealt by speed, as they come.
    Home,
    /// The same, heavy frames first.
    HomeHeavyFirst,
    /// A task goes where it would be done first, the way there included.
    Soonest,
    /// The same, heavy frames first.
    SoonestHeavyFirst,
    /// A task goes where its stage is due, by the shares in which all devices would be busy to the
    /// end; of those, where it would be done first.
    Shares,
    /// Tasks wait for all; a device takes one of the stage with which it is furthest behind its
    /// share, and of others what nobody would get to in time.
    Asking,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Home,
        Self::HomeHeavyFirst,
        Self::Soonest,
        Self::SoonestHeavyFirst,
        Self::Shares,
        Self::Asking,
    ];

    fn is_heavy_first(self) -> bool {
        matches!(self, Self::HomeHeavyFirst | Self::SoonestHeavyFirst)
    }
}

/// How many tasks of a stage are looked at for one that needs not be brought.
const GLANCES: usize = 8;

/// How much of what is believed of a device the last task changes.
const LEARNING: f64 = 0.25;

/// Deals tasks to devices while they run.
///
/// Whoever drives it asks [`take`](Self::take) when a device could hold another task, and tells
/// [`done`](Self::done) when one is. A decision costs some comparisons for each device, however many
/// tasks are waiting.
#[derive(Clone, Debug)]
pub struct Dealer {
    work: Work,
    rule: Rule,
    /// For each device, what is dealt to it and not taken: a queue for each stage.
    queues: Vec<Vec<VecDeque<usize>>>,
    waiting: Vec<usize>,
    /// What waits for any device: a queue for each stage.
    common: Vec<VecDeque<usize>>,
    /// For each device, what all that is dealt to it and not done is thought to take.
    loads: Vec<f64>,
    held: Vec<usize>,
    /// Where each frame's latest result is; `None` is the host.
    places: Vec<Option<usize>>,
    /// How many times longer than was said each device takes.
    factors: Vec<f64>,
    shares: Vec<Vec<f64>>,
    given: Vec<Vec<f64>>,
    left: usize,
}

impl Dealer {
    /// Deals by this rule.
    pub fn new(work: Work, rule: Rule) -> Self {
        let (devices, stages) = (work.devices(), work.stages());
        let shares = match rule {
            Rule::Shares | Rule::Asking => shares::of(&work.costs).1,
            _ => Vec::new(),
        };
        let mut order: Vec<usize> = (0..work.frames.len()).collect();
        if rule.is_heavy_first() {
            order.sort_by(|a, b| work.frames[*b].total_cmp(&work.frames[*a]));
        }
        let mut dealer = Self {
            rule,
            queues: vec![vec![VecDeque::new(); stages]; devices],
            waiting: vec![0; devices],
            common: vec![VecDeque::new(); stages],
            loads: vec![0.0; devices],
            held: vec![0; devices],
            places: vec![None; work.frames.len()],
            factors: vec![1.0; devices],
            shares,
            given: vec![vec![0.0; devices]; stages],
            left: work.frames.len() * stages,
            work,
        };
        if devices > 0 && stages > 0 {
            for frame in order {
                dealer.place(Task { frame, stage: 0 });
            }
        }
        dealer
    }

    /// Deals by the rule that would be done first, if everything took what is thought.
    pub fn best(work: Work) -> Self {
        let mut best: Option<(f64, Rule)> = None;
        for rule in Rule::ALL {
            let time = forecast(Self::new(work.clone(), rule), &work).time;
            if best.is_none_or(|(known, _)| time < known) {
                best = Some((time, rule));
            }
        }
        let rule = best.map_or(Rule::Soonest, |(_, rule)| rule);
        Self::new(work, rule)
    }

    /// How it deals.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// How many devices it deals to.
    pub fn devices(&self) -> usize {
        self.work.devices()
    }

    /// Is everything done?
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Is a frame's latest result elsewhere, so that it has to be brought to this device first?
    pub fn must_move(&self, device: usize, task: Task) -> bool {
        task.stage == 0 || self.places[task.frame] != Some(device)
    }

    fn way(&self, device: usize, task: Task) -> f64 {
        if self.must_move(device, task) {
            self.work.moves[device] * self.work.frames[task.frame]
        } else {
            0.0
        }
    }

    /// What a task is thought to take on a device, by what was seen of that device.
    fn cost(&self, device: usize, task: Task) -> f64 {
        let said = self.work.costs[device][task.stage] * self.work.frames[task.frame];
        said * self.factors[device]
    }

    fn place(&mut self, task: Task) {
        let devices = 0..self.work.devices();
        let soonest = |dealer: &Self, among: &mut dyn Iterator<Item = usize>| {
            let end = |device: usize| {
                dealer.loads[device] + dealer.cost(device, task) + dealer.way(device, task)
            };
            among.min_by(|a, b| end(*a).total_cmp(&end(*b)))
        };
        let device = match self.rule {
            Rule::Home | Rule::HomeHeavyFirst => match self.places[task.frame] {
                Some(home) if task.stage > 0 => Some(home),
                _ => {
                    // A chain stays together, so all of it counts.
                    let end = |device: usize| {
                        let chain: f64 = self.work.costs[device].iter().sum();
                        let own = chain * self.work.frames[task.frame] * self.factors[device];
                        self.loads[device] * chain
                            / self.work.costs[device][0].max(f64::MIN_POSITIVE)
                            + own
                    };
                    devices.min_by(|a, b| end(*a).total_cmp(&end(*b)))
                }
            },
            Rule::Soonest | Rule::SoonestHeavyFirst => soonest(self, &mut devices.into_iter()),
            Rule::Asking => {
                self.common[task.stage].push_back(task.frame);
                return;
            }
            Rule::Shares => {
                let (shares, given) = (&self.shares[task.stage], &self.given[task.stage]);
                let all: f64 = given.iter().sum::<f64>() + 1.0;
                let due = |device: usize| shares[device] * all - given[device];
                let most = devices.clone().map(due).fold(0.0, f64::max);
                let is_near = |device| self.places[task.frame] == Some(device);
                let is_due = |device: &usize| {
                    let due = due(*device);
                    due > 1e-9 && (due > 0.5 * most || is_near(*device))
                };
                soonest(self, &mut devices.clone().filter(is_due))
                    .or_else(|| soonest(self, &mut devices.into_iter()))
            }
        };
        if let Some(device) = device {
            self.given[task.stage][device] += 1.0;
            self.give(device, task);
        }
    }

    fn give(&mut self, device: usize, task: Task) {
        self.loads[device] += self.cost(device, task);
        self.queues[device][task.stage].push_back(task.frame);
        self.waiting[device] += 1;
    }

    /// The next task for a device that could hold another; `None` when there is none for it now.
    /// While something is on its way to the device (`is_bringing`), it can take only what is there.
    pub fn take(&mut self, device: usize, is_bringing: bool) -> Option<Task> {
        if self.held[device] >= self.work.slots {
            return None;
        }
        if self.rule == Rule::Asking {
            return self.ask(device, is_bringing);
        }
        if self.waiting[device] == 0 && self.held[device] == 0 {
            self.take_over(device);
        }
        // Later stages first: frames that are begun are finished.
        let queues = self.queues[device].iter().enumerate().rev();
        let mut found = queues.filter_map(|(stage, queue)| {
            let tasks = queue.iter().map(|frame| Task {
                frame: *frame,
                stage,
            });
            let mut near = tasks.take(GLANCES).enumerate();
            near.find(|(_, task)| !is_bringing || self.way(device, *task) == 0.0)
        });
        let (at, task) = found.next()?;
        self.queues[device][task.stage].remove(at);
        self.waiting[device] -= 1;
        self.held[device] += 1;
        Some(task)
    }

    fn ask(&mut self, device: usize, is_bringing: bool) -> Option<Task> {
        let near = |dealer: &Self, stage: usize| {
            let frames = dealer.common[stage].iter().take(GLANCES).enumerate();
            let ways = frames.map(|(at, frame)| {
                let task = Task {
                    frame: *frame,
                    stage,
                };
                (at, dealer.way(device, task))
            });
            let there = ways.filter(|(_, way)| !is_bringing || *way == 0.0);
            there.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
        };
        let progress = |dealer: &Self, stage: usize| {
            (dealer.given[stage][device] + 1.0) / dealer.shares[stage][device]
        };
        let own = (0..self.work.stages())
            .rev()
            .filter(|stage| self.shares[*stage][device] > 1e-9)
            .filter_map(|stage| Some((stage, near(self, stage)?)))
            .min_by(|a, b| progress(self, a.0).total_cmp(&progress(self, b.0)));
        let (stage, at) = match own {
            Some(own) => own,
            None if self.held[device] == 0 => {
                let mut others = (0..self.work.stages()).rev();
                others.find_map(|stage| {
                    let at = self.common[stage].len().checked_sub(1)?;
                    let frame = self.common[stage][at];
                    let task = Task { frame, stage };
                    let here = self.cost(device, task) + self.way(device, task);
                    (!is_bringing && here < self.others_take(device, task)).then_some((stage, at))
                })?
            }
            None => return None,
        };
        let frame = self.common[stage].remove(at)?;
        self.given[stage][device] += 1.0;
        self.held[device] += 1;
        Some(Task { frame, stage })
    }

    /// How long the others would need to get to the end of what waits for them.
    fn others_take(&self, device: usize, task: Task) -> f64 {
        let others = (0..self.work.devices()).filter(|other| *other != device);
        let ends = others.map(|other| {
            let own = (0..self.work.stages()).map(|stage| {
                let tasks = self.common[stage].len() as f64 * self.shares[stage][other];
                tasks * self.work.costs[other][stage] * self.factors[other]
            });
            own.sum::<f64>().max(self.cost(other, task))
        });
        ends.fold(0.0, f64::max)
    }

    /// Takes a task that waits elsewhere, if it ends sooner here than it would there.
    fn take_over(&mut self, device: usize) {
        let others = (0..self.work.devices()).filter(|other| *other != device);
        let busiest = others
            .filter(|other| self.waiting[*other] > 0)
            .max_by(|a, b| self.loads[*a].total_cmp(&self.loads[*b]));
        let Some(from) = busiest else {
            return;
        };
        let stages = self.queues[from].iter().enumerate();
        let mut last = stages.filter_map(|(stage, queue)| {
            let frame = *queue.back()?;
            Some(Task { frame, stage })
        });
        let Some(task) = last.next() else {
            return;
        };
        if self.cost(device, task) + self.way(device, task) < self.loads[from] {
            self.queues[from][task.stage].pop_back();
            self.waiting[from] -= 1;
            self.loads[from] = (self.loads[from] - self.cost(from, task)).max(0.0);
            self.give(device, task);
        }
    }

    /// A task is done on the device that took it, after so long.
    pub fn done(&mut self, device: usize, task: Task, took: f64) {
        self.loads[device] = (self.loads[device] - self.cost(device, task)).max(0.0);
        self.held[device] -= 1;
        self.left -= 1;
        self.learn(device, task, took);
        self.places[task.frame] = Some(device);
        if self.held[device] + self.waiting[device] == 0 {
            self.loads[device] = 0.0;
        }
        if task.stage + 1 < self.work.stages() {
            let stage = task.stage + 1;
            self.place(Task { stage, ..task });
        }
    }

    fn learn(&mut self, device: usize, task: Task, took: f64) {
        let said = self.work.costs[device][task.stage] * self.work.frames[task.frame];
        if said <= 0.0 || !took.is_finite() {
            return;
        }
        let before = self.factors[device];
        let after = before + LEARNING * (took / said - before);
        self.factors[device] = after.max(1e-3);
        // What waits there takes as much longer as what was done.
        self.loads[device] *= self.factors[device] / before;
    }
}
