//! Host threads in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use warploom_sched::{Crew, Job, Note, Outcome, Plan, Post, RunError, StageId, Watch};
use warploom_testkit::sim::{Lane, Sim, Stepped};

/// A job that was started, when it began, and what came of it if it was done at once.
#[derive(Debug)]
struct Started {
    key: u64,
    job: Job,
    begun: Option<Duration>,
    early: Option<Outcome>,
}

/// Host threads in virtual time.
#[derive(Debug)]
pub(crate) struct SimCrew {
    sim: Sim,
    times: Vec<Duration>,
    lanes: Vec<(String, Lane)>,
    posts: Vec<Post>,
    jobs: Vec<Started>,
    watches: Vec<Watch>,
    notes: VecDeque<Note>,
    next_key: u64,
}

impl SimCrew {
    pub(crate) fn new(sim: &Sim, plan: &Plan) -> Self {
        Self::of_all(sim, &[plan])
    }

    /// For several plans, whose stages are counted on.
    pub(crate) fn of_all(sim: &Sim, plans: &[&Plan]) -> Self {
        let stages = plans.iter().flat_map(|plan| plan.graph().stages());
        Self {
            sim: sim.clone(),
            times: stages.map(|stage| stage.time).collect(),
            lanes: Vec::new(),
            posts: Vec::new(),
            jobs: Vec::new(),
            watches: Vec::new(),
            notes: VecDeque::new(),
            next_key: 0,
        }
    }

    fn perform(&mut self, at: usize) -> Outcome {
        let job = self.jobs[at].job;
        let post = self.posts.iter_mut().find(|post| post.stage() == job.stage);
        post.map_or(Outcome::Skipped, |post| post.perform(job.batch))
    }

    fn absorb(&mut self, stepped: Stepped) -> bool {
        match stepped {
            Stepped::Stuck => return false,
            Stepped::Moved => {}
            Stepped::Began(key) => {
                if let Some(at) = self.jobs.iter().position(|started| started.key == key) {
                    self.jobs[at].begun = Some(self.sim.now());
                    // Some look at their bytes when they begin, others when they end.
                    if key % 2 == 0 {
                        let outcome = self.perform(at);
                        self.jobs[at].early = Some(outcome);
                    }
                }
            }
            Stepped::Ended(key) => {
                if let Some(at) = self.jobs.iter().position(|started| started.key == key) {
                    let early = self.jobs[at].early.take();
                    let outcome = early.unwrap_or_else(|| self.perform(at));
                    let Started { job, begun, .. } = self.jobs.remove(at);
                    self.notes.push_back(Note {
                        stage: job.stage,
                        generation: job.batch.generation,
                        outcome,
                        span: begun.map(|begun| (begun, self.sim.now())),
                    });
                }
            }
        }
        true
    }

    fn is_any_reached(&self) -> bool {
        let reached = |watch: &Watch| !matches!(watch.event.is_done(), Ok(false));
        self.watches.iter().any(reached)
    }
}

impl Crew for SimCrew {
    fn now(&self) -> Duration {
        self.sim.now()
    }

    fn adopt(&mut self, posts: Vec<Post>) -> Result<(), RunError> {
        self.posts.extend(posts);
        Ok(())
    }

    fn start(&mut self, job: Job) {
        let post = self.posts.iter().find(|post| post.stage() == job.stage);
        let name = post.map_or("", Post::thread).to_owned();
        let known = self.lanes.iter().find(|(known, _)| *known == name);
        let lane = if let Some((_, lane)) = known {
            *lane
        } else {
            let lane = self.sim.lane(&name);
            self.lanes.push((name, lane));
            lane
        };
        let key = self.next_key;
        self.next_key += 1;
        self.jobs.push(Started {
            key,
            job,
            begun: None,
            early: None,
        });
        self.sim.start(lane, key, self.times[job.stage.index()]);
    }

    fn watch(&mut self, watch: Watch) {
        self.watches.push(watch);
    }

    fn poll(&mut self) -> Option<Note> {
        if let Some(note) = self.notes.pop_front() {
            return Some(note);
        }
        for at in 0..self.watches.len() {
            let outcome = match self.watches[at].event.is_done() {
                Ok(false) => continue,
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            };
            let watch = self.watches.remove(at);
            return Some(Note {
                stage: watch.stage,
                generation: watch.generation,
                outcome: Outcome::Seen(outcome),
                span: None,
            });
        }
        None
    }

    fn rest(&mut self, timeout: Duration) {
        let deadline = self.sim.now() + timeout;
        while self.notes.is_empty() && !self.is_any_reached() {
            let stepped = self.sim.step();
            if !self.absorb(stepped) || self.sim.now() > deadline {
                let left = deadline.saturating_sub(self.sim.now());
                self.sim.pass(left);
                return;
            }
        }
    }

    fn abandon(&mut self, stage: StageId) {
        self.jobs.retain(|started| started.job.stage != stage);
    }

    fn dismiss(&mut self) {
        while !self.jobs.is_empty() {
            let stepped = self.sim.step();
            if !self.absorb(stepped) {
                return;
            }
        }
        self.watches.clear();
    }
}
