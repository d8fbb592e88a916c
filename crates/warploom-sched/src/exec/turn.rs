//! What a stage's payload sees: its turn, and the slots of that turn.

use std::sync::Arc;

use warploom_core::{Arg, CheckedQueue, Grid, Kernel, Queue, Slice};

use super::error::StageError;
use super::lease::{ReadLease, WriteLease};
use super::pool::Hold;
use crate::model::ResourceId;

/// Which records a turn is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The generation, from 0.
    pub generation: u64,
    /// The first record.
    pub first: u64,
    /// How many; the last batch may have fewer than the others.
    pub records: u64,
}

/// An argument of a launch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Use<'a> {
    /// A slot that is read.
    Read(&'a ReadLease<'a>),
    /// A slot that is written.
    Write(&'a WriteLease<'a>),
    /// A part of a slot, or memory of the stage's own.
    Slice(Slice),
    /// A number.
    Number(Arg),
}

/// A stage's turn on a device: what it does here is enqueued.
#[derive(Debug)]
pub struct DeviceTurn<'t> {
    pub(crate) hold: &'t Hold<'t>,
    pub(crate) queue: &'t mut CheckedQueue,
    pub(crate) args: &'t mut Vec<Arg>,
    pub(crate) batch: Batch,
}

impl<'t> DeviceTurn<'t> {
    /// The records of this turn.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// A slot that the stage declared to read.
    ///
    /// What is leased does not outlive the turn:
    /// ```compile_fail
    /// # use warploom_sched::{DeviceTurn, ReadLease, ResourceId};
    /// fn keep(turn: &DeviceTurn<'_>, image: ResourceId) -> ReadLease<'static> {
    ///     turn.read(image).unwrap()
    /// }
    /// ```
    /// and what is leased for reading cannot be written:
    /// ```compile_fail
    /// # use warploom_sched::{DeviceTurn, ResourceId};
    /// fn swap(turn: &mut DeviceTurn<'_>, image: ResourceId) {
    ///     let (from, to) = (turn.read(image).unwrap(), turn.read(image).unwrap());
    ///     turn.copy(&from, &to).unwrap();
    /// }
    /// ```
    /// Nor does a payload get at what another pipeline, or its own last turn, was leased: nothing
    /// leased can be kept in it.
    /// ```compile_fail,E0521
    /// # use warploom_sched::{Payloads, ReadLease, ResourceId, StageId};
    /// fn smuggle(stage: StageId, image: ResourceId) -> Payloads {
    ///     let mut kept: Option<ReadLease<'static>> = None;
    ///     Payloads::new().device(stage, move |turn| {
    ///         kept = Some(turn.read(image)?);
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn read(&self, resource: ResourceId) -> Result<ReadLease<'t>, StageError> {
        Ok(self.hold.read(resource)?)
    }

    /// A slot that the stage declared to write.
    pub fn write(&self, resource: ResourceId) -> Result<WriteLease<'t>, StageError> {
        Ok(self.hold.write(resource)?)
    }

    /// What the generation before left; `None` in the first.
    pub fn previous(&self, resource: ResourceId) -> Option<ReadLease<'t>> {
        self.hold.previous(resource)
    }

    /// Lends the host the bytes of a slot that the stage declared to look at.
    pub fn look(&self, resource: ResourceId, f: impl FnOnce(&[u8])) -> Result<(), StageError> {
        let lease = self.hold.read(resource)?;
        lend(lease.slice(), |bytes| f(bytes))
    }

    /// Copies one slot to another, as much as both hold.
    pub fn copy(&mut self, from: &ReadLease<'_>, to: &WriteLease<'_>) -> Result<(), StageError> {
        let bytes = from.slice().len().min(to.slice().len());
        if from.slice().len() == to.slice().len() {
            self.queue.copy(from.slice(), to.slice())?;
        } else {
            let (from, to) = (from.slice().part(0..bytes)?, to.slice().part(0..bytes)?);
            self.queue.copy(&from, &to)?;
        }
        Ok(())
    }

    /// Runs a kernel.
    pub fn launch(
        &mut self,
        kernel: &Arc<dyn Kernel>,
        grid: Grid,
        uses: &[Use<'_>],
    ) -> Result<(), StageError> {
        self.args.clear();
        self.args.extend(uses.iter().map(|one| match one {
            Use::Read(lease) => lease.slice().clone().into(),
            Use::Write(lease) => lease.slice().clone().into(),
            Use::Slice(slice) => slice.clone().into(),
            Use::Number(number) => number.clone(),
        }));
        let launched = self.queue.launch(kernel, grid, self.args);
        self.args.clear();
        Ok(launched?)
    }

    /// The queue itself, for programs that enqueue on their own. It refuses what is about slots that this turn
    /// does not hold, or holds for reading where they would be written, and then the stage has failed.
    pub fn queue(&mut self) -> &mut CheckedQueue {
        self.queue
    }
}

/// A stage's turn on the host.
///
/// Bytes are lent while a closure runs, and to one at a time. A stage that lends several slots at
/// once, one closure inside another, does so in the order of its resources: two stages that each
/// wait for what the other has would wait for ever.
#[derive(Debug)]
pub struct HostTurn<'t> {
    pub(crate) hold: &'t Hold<'t>,
    pub(crate) batch: Batch,
}

impl HostTurn<'_> {
    /// The records of this turn. A source that decides how many there are sees the most there may
    /// be.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// Lends the bytes of a slot that the stage declared to read.
    pub fn read(&self, resource: ResourceId, f: impl FnOnce(&[u8])) -> Result<(), StageError> {
        let lease = self.hold.read(resource)?;
        lend(lease.slice(), |bytes| f(bytes))
    }

    /// Lends what the generation before left; does nothing in the first.
    pub fn read_previous(
        &self,
        resource: ResourceId,
        f: impl FnOnce(&[u8]),
    ) -> Result<(), StageError> {
        match self.hold.previous(resource) {
            Some(lease) => lend(lease.slice(), |bytes| f(bytes)),
            None => Ok(()),
        }
    }

    /// Lends the bytes of a slot that the stage declared to write.
    pub fn write(&self, resource: ResourceId, f: impl FnOnce(&mut [u8])) -> Result<(), StageError> {
        let lease = self.hold.write(resource)?;
        lend(lease.slice(), f)
    }
}

fn lend(slice: &Slice, f: impl FnOnce(&mut [u8])) -> Result<(), StageError> {
    let mut f = Some(f);
    let range = slice.host_range();
    slice.buffer().with_host(&mut |bytes| {
        if let Some(f) = f.take() {
            f(&mut bytes[range.clone()]);
        }
    })?;
    Ok(())
}
