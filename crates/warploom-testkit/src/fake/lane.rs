//! The thread behind a fake queue.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use warploom_core::host::{FnKernel, copy_now};
use warploom_core::{Arg, Buffer, DeviceError, Event, Grid, Kernel, Result, Slice};

use super::buffer::{FakeBuffer, Touch};
use super::device::Shared;
use super::event::FakeEvent;
use super::flaw::Flaw;

/// A piece of work and what it holds.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    /// An error this work was told to meet.
    pub(crate) doom: Option<DeviceError>,
    /// Dropped after the work, so that host access waits for it.
    pub(crate) touches: Vec<Touch>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Write(Vec<u8>, Slice),
    Read(Slice, SyncSender<Result<Vec<u8>>>),
    Copy(Held, Held),
    Launch(Arc<dyn Kernel>, Grid, Vec<Arg>),
    Mark(Arc<FakeEvent>),
    Wait(Arc<dyn Event>),
}

/// A slice of queued work.
#[derive(Debug)]
pub(crate) enum Held {
    /// Kept alive, as it should be.
    Fast(Slice),
    /// Only remembered.
    Loose(Weak<dyn Buffer>, Range<u64>),
}

impl Held {
    fn slice(&self) -> Option<Slice> {
        match self {
            Self::Fast(slice) => Some(slice.clone()),
            Self::Loose(buffer, range) => Slice::new(buffer.upgrade()?, range.clone()).ok(),
        }
    }
}

/// What is queued on one fake queue, and the way to its thread.
#[derive(Debug)]
pub(crate) struct Lane {
    intake: Mutex<Intake>,
}

#[derive(Debug)]
struct Intake {
    /// Queued and not started.
    batch: Vec<Job>,
    runner: Runner,
}

#[derive(Debug)]
enum Runner {
    Thread(Sender<Job>),
    Here(Worker),
}

impl Lane {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self> {
        let mut worker = Worker {
            shared: Arc::clone(shared),
            failed: None,
        };
        let runner = if shared.card.at_once {
            Runner::Here(worker)
        } else {
            let (send, receive): (_, Receiver<Job>) = channel();
            // It ends by itself when the queue is dropped and all its work is done; nobody waits.
            thread::Builder::new()
                .name(format!("{} queue", shared.id()))
                .spawn(move || receive.into_iter().for_each(|job| worker.run(job)))
                .map_err(|error| DeviceError::driver(shared.id(), "queue", error))?;
            Runner::Thread(send)
        };
        Ok(Self {
            intake: Mutex::new(Intake {
                batch: Vec::new(),
                runner,
            }),
        })
    }

    fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job; it starts when submitted, or at once where the device is told so.
    pub(crate) fn push(&self, job: Job) {
        let mut intake = self.intake();
        match &mut intake.runner {
            Runner::Thread(_) => intake.batch.push(job),
            Runner::Here(worker) => worker.run(job),
        }
    }

    /// Starts what is queued.
    pub(crate) fn submit(&self) {
        let mut intake = self.intake();
        let batch = std::mem::take(&mut intake.batch);
        if let Runner::Thread(send) = &intake.runner {
            for job in batch {
                // The thread lives as long as its sender does.
                let _ = send.send(job);
            }
        }
    }

    /// Turns the queued launches around.
    pub(crate) fn reverse(&self) {
        let is_launch = |job: &Job| matches!(job.work, Work::Launch(..));
        for run in self
            .intake()
            .batch
            .chunk_by_mut(|a, b| is_launch(a) && is_launch(b))
        {
            run.reverse();
        }
    }

    /// Forgets what is queued.
    pub(crate) fn discard(&self) {
        self.intake().batch.clear();
    }
}

/// Runs the jobs of one queue, in order.
#[derive(Debug)]
struct Worker {
    shared: Arc<Shared>,
    /// The first failure. What comes after it in the queue does not run, and says so.
    failed: Option<DeviceError>,
}

impl Worker {
    fn run(&mut self, job: Job) {
        let shared = Arc::clone(&self.shared);
        let _turn = match &job.work {
            Work::Launch(..) | Work::Copy(..) if shared.has(Flaw::QueuesSerial) => {
                Some(shared.turn.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => None,
        };
        let trouble = self.failed.clone().or_else(|| shared.card.lost());
        let health = trouble.or(job.doom).map_or(Ok(()), Err);
        let outcome = match job.work {
            Work::Mark(event) => {
                event.reach(health.clone());
                health
            }
            Work::Read(slice, reply) => {
                // Whoever asked is waiting, or gone and not interested.
                let _ = reply.send(health.clone().and_then(|()| read(&slice)));
                health
            }
            work => health.and_then(|()| self.perform(work)),
        };
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
        drop(job.touches);
    }

    fn perform(&self, work: Work) -> Result<()> {
        match work {
            Work::Write(bytes, dst) => write(&bytes, &dst),
            Work::Copy(src, dst) => match (src.slice(), dst.slice()) {
                (Some(src), Some(dst)) => self.copy(&src, &dst),
                // Only flawed fakes lose their slices, and quietly, as drivers would.
                _ => Ok(()),
            },
            Work::Launch(kernel, grid, args) => {
                let args: Vec<Arg> = args.iter().map(inside).collect::<Result<_>>()?;
                FnKernel::run(&kernel, grid, &args)
            }
            Work::Wait(event) => wait(&event),
            Work::Mark(_) | Work::Read(..) => Ok(()),
        }
    }

    fn copy(&self, src: &Slice, dst: &Slice) -> Result<()> {
        let (src, dst) = (FakeBuffer::inside(src)?, FakeBuffer::inside(dst)?);
        if self.shared.has(Flaw::CopyShort) && src.len() > 1 {
            let all_but_one = 0..src.len() - 1;
            return copy_now(&src.part(all_but_one.clone())?, &dst.part(all_but_one)?);
        }
        if self.shared.has(Flaw::CopyRewritesAll) {
            let mut all = Vec::new();
            dst.buffer()
                .with_host(&mut |bytes| all.extend_from_slice(bytes))?;
            let mut new = Vec::new();
            src.buffer()
                .with_host(&mut |bytes| new.extend_from_slice(&bytes[src.host_range()]))?;
            all[dst.host_range()].copy_from_slice(&new);
            // The time a real device would take over a whole buffer.
            thread::sleep(std::time::Duration::from_millis(1));
            return dst
                .buffer()
                .with_host(&mut |bytes| bytes.copy_from_slice(&all));
        }
        copy_now(&src, &dst)
    }
}

/// An argument over the bytes themselves.
fn inside(arg: &Arg) -> Result<Arg> {
    match arg {
        Arg::Slice(slice) => FakeBuffer::inside(slice).map(Arg::Slice),
        number => Ok(number.clone()),
    }
}

/// A device's wait: the event's own count of calls stays as it is.
fn wait(event: &Arc<dyn Event>) -> Result<()> {
    let any: &dyn std::any::Any = &**event;
    match any.downcast_ref::<FakeEvent>() {
        Some(fake) => fake.settle(None),
        None => event.wait(None),
    }
}

pub(crate) fn read(src: &Slice) -> Result<Vec<u8>> {
    let src = FakeBuffer::inside(src)?;
    let mut out = Vec::new();
    src.buffer()
        .with_host(&mut |bytes| out.extend_from_slice(&bytes[src.host_range()]))?;
    Ok(out)
}

pub(crate) fn write(bytes: &[u8], dst: &Slice) -> Result<()> {
    let dst = FakeBuffer::inside(dst)?;
    dst.buffer()
        .with_host(&mut |all| all[dst.host_range()].copy_from_slice(bytes))
}
