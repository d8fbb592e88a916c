//! What payloads enqueue is about slots that their turn holds, or about memory of their own.
//!
//! A lease cannot outlive its turn, but programs that enqueue on their own take slices, and a slice can be
//! kept. So every call of a pipeline's queues is looked at: a slot that the turn does not hold, or holds
//! for reading where it would be written, is refused before the device hears of it, and the stage has failed,
//! whatever its payload makes of the answer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use warploom_core::{
    Arg, CheckedQueue, DeviceError, Event, Grid, Kernel, Param, Queue, Result, Slice,
};

use super::error::LeaseError;
use super::pool::Pool;
use crate::model::StageId;

/// Nobody has a turn.
const NOBODY: usize = usize::MAX;

/// Whose turn it is, and what was refused in it. One thread enqueues; the others never ask.
#[derive(Debug)]
pub(super) struct Guard {
    pool: Arc<Pool>,
    stage: AtomicUsize,
    generation: AtomicU64,
    has_refused: AtomicBool,
    refused: Mutex<Option<LeaseError>>,
}

impl Guard {
    pub(super) fn new(pool: &Arc<Pool>) -> Arc<Self> {
        Arc::new(Self {
            pool: Arc::clone(pool),
            stage: AtomicUsize::new(NOBODY),
            generation: AtomicU64::new(0),
            has_refused: AtomicBool::new(false),
            refused: Mutex::new(None),
        })
    }

    /// The same queue, looked at.
    pub(super) fn watch(self: &Arc<Self>, queue: CheckedQueue) -> CheckedQueue {
        let guard = Arc::clone(self);
        queue.through(|queue| Box::new(Guarded { queue, guard }))
    }

    /// A stage has its turn.
    pub(super) fn begin(&self, stage: StageId, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
        self.stage.store(stage.0, Ordering::Relaxed);
    }

    /// Its turn is over; what it should not have done.
    pub(super) fn end(&self) -> Option<LeaseError> {
        self.stage.store(NOBODY, Ordering::Relaxed);
        if !self.has_refused.swap(false, Ordering::Relaxed) {
            return None;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.take()
    }

    fn reads(&self, slice: &Slice) -> Result<()> {
        self.check(slice, false)
    }

    fn writes(&self, slice: &Slice) -> Result<()> {
        self.check(slice, true)
    }

    fn check(&self, slice: &Slice, is_written: bool) -> Result<()> {
        let stage = StageId(self.stage.load(Ordering::Relaxed));
        if stage.0 == NOBODY {
            return Ok(());
        }
        let generation = self.generation.load(Ordering::Relaxed);
        let Err(error) = self.pool.covers((stage, generation), slice, is_written) else {
            return Ok(());
        };
        let device = slice.buffer().device();
        let answer = DeviceError::driver(device, "enqueue", &error);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(error);
        self.has_refused.store(true, Ordering::Relaxed);
        Err(answer)
    }
}

/// A queue of a pipeline, below the checks that every queue has.
#[derive(Debug)]
struct Guarded {
    queue: Box<dyn Queue>,
    guard: Arc<Guard>,
}

impl Queue for Guarded {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        self.guard.writes(dst)?;
        self.queue.upload(src, dst)
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.guard.reads(src)?;
        self.queue.download(src, dst)
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        self.guard.reads(src)?;
        self.guard.writes(dst)?;
        self.queue.copy(src, dst)
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        for (param, arg) in kernel.params().iter().zip(args) {
            match (param, arg) {
                (Param::Read, Arg::Slice(slice)) => self.guard.reads(slice)?,
                (_, Arg::Slice(slice)) => self.guard.writes(slice)?,
                _ => {}
            }
        }
        self.queue.launch(kernel, grid, args)
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.queue.record()
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.queue.wait(event)
    }
}
