//! A crew that several pipelines share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::crew::{Crew, Job, Note, Post, Watch};
use super::error::RunError;
use crate::model::StageId;

/// The crew, and where each pipeline's stages and queues begin in its counting.
#[derive(Debug)]
struct Deck<C> {
    crew: C,
    stages: Vec<usize>,
    next_stage: usize,
    next_queue: usize,
    /// How many events were watched.
    watched: u64,
}

/// All of the crew.
#[derive(Debug)]
pub(super) struct Quarters<C>(Arc<Mutex<Deck<C>>>);

/// One pipeline's part of the crew. News comes to whoever has the [`Quarters`], not here.
#[derive(Debug)]
pub(super) struct Berth<C> {
    deck: Arc<Mutex<Deck<C>>>,
    /// Threads of two tenants are never the same, whatever their names.
    name: String,
    stage: usize,
    queue: usize,
}

fn lock<C>(deck: &Mutex<Deck<C>>) -> MutexGuard<'_, Deck<C>> {
    deck.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Crew> Quarters<C> {
    pub(super) fn new(crew: C) -> Self {
        Self(Arc::new(Mutex::new(Deck {
            crew,
            stages: Vec::new(),
            next_stage: 0,
            next_queue: 0,
            watched: 0,
        })))
    }

    /// Room for a pipeline with so many stages and queues.
    pub(super) fn berth(&self, name: &str, stages: usize, queues: usize) -> Berth<C> {
        let mut deck = lock(&self.0);
        let (stage, queue) = (deck.next_stage, deck.next_queue);
        deck.next_stage += stages;
        deck.next_queue += queues;
        drop(deck);
        Berth {
            deck: Arc::clone(&self.0),
            name: name.to_owned(),
            stage,
            queue,
        }
    }

    /// The pipeline of this berth is there to stay.
    pub(super) fn settle_in(&self, stage: usize) {
        lock(&self.0).stages.push(stage);
    }

    pub(super) fn now(&self) -> Duration {
        lock(&self.0).crew.now()
    }

    /// News, with the number of the pipeline that it is for.
    pub(super) fn poll(&self) -> Option<(usize, Note)> {
        let mut deck = lock(&self.0);
        let note = deck.crew.poll()?;
        let whose = deck
            .stages
            .partition_point(|first| *first <= note.stage.0)
            .checked_sub(1)?;
        let stage = StageId(note.stage.0 - deck.stages[whose]);
        Some((whose, Note { stage, ..note }))
    }

    pub(super) fn rest(&self, timeout: Duration) {
        lock(&self.0).crew.rest(timeout);
    }

    pub(super) fn watched(&self) -> u64 {
        lock(&self.0).watched
    }

    pub(super) fn dismiss(&self) {
        lock(&self.0).crew.dismiss();
    }
}

impl<C> Berth<C> {
    pub(super) fn first_stage(&self) -> usize {
        self.stage
    }
}

impl<C: Crew> Crew for Berth<C> {
    fn now(&self) -> Duration {
        lock(&self.deck).crew.now()
    }

    fn adopt(&mut self, posts: Vec<Post>) -> Result<(), RunError> {
        let moved = posts.into_iter().map(|post| {
            let stage = StageId(post.stage().0 + self.stage);
            post.moved(stage, &self.name)
        });
        lock(&self.deck).crew.adopt(moved.collect())
    }

    fn start(&mut self, job: Job) {
        let stage = StageId(job.stage.0 + self.stage);
        lock(&self.deck).crew.start(Job { stage, ..job });
    }

    fn watch(&mut self, watch: Watch) {
        let mut deck = lock(&self.deck);
        deck.watched += 1;
        deck.crew.watch(Watch {
            stage: StageId(watch.stage.0 + self.stage),
            queue: watch.queue + self.queue,
            ..watch
        });
    }

    fn poll(&mut self) -> Option<Note> {
        None
    }

    fn rest(&mut self, timeout: Duration) {
        lock(&self.deck).crew.rest(timeout);
    }

    fn abandon(&mut self, stage: StageId) {
        let stage = StageId(stage.0 + self.stage);
        lock(&self.deck).crew.abandon(stage);
    }

    /// The crew works for others too; whoever has all of it dismisses it.
    fn dismiss(&mut self) {}
}
