//! A fake queue: counts, obeys its script, and passes work to its lane.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use warploom_core::{
    Arg, Buffer, DeviceError, Event, Grid, Kernel, Queue, QueueClass, Result, Slice,
};

use super::buffer::{FakeBuffer, Touch};
use super::device::Shared;
use super::event::FakeEvent;
use super::fault::{Call, Fate};
use super::flaw::Flaw;
use super::lane::{Held, Job, Lane, Work, read, write};

/// A queue of a fake device.
#[derive(Debug)]
pub(crate) struct FakeQueue {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    class: QueueClass,
}

impl FakeQueue {
    pub(crate) fn new(shared: &Arc<Shared>, lane: Arc<Lane>, class: QueueClass) -> Self {
        Self {
            shared: Arc::clone(shared),
            lane,
            class,
        }
    }

    fn push(&self, work: Work, fate: Fate, touches: Vec<Touch>) {
        let doom = match fate {
            Fate::Fine => None,
            Fate::Doomed(error) => Some(error),
        };
        self.lane.push(Job {
            work,
            doom,
            touches,
        });
    }

    fn submit(&self) {
        if self.shared.has(Flaw::LaunchesReversed) {
            self.lane.reverse();
        }
        self.lane.submit();
    }

    fn held(&self, slice: &Slice) -> Held {
        if self.shared.has(Flaw::NotKept) {
            return Held::Loose(Arc::downgrade(slice.buffer()), slice.range());
        }
        Held::Fast(slice.clone())
    }
}

fn touch(buffer: &Arc<dyn Buffer>) -> Result<Touch> {
    Ok(FakeBuffer::of(buffer)?.touch())
}

impl Queue for FakeQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let fate = self.shared.card.admit(Call::Upload)?;
        if self.shared.has(Flaw::UploadOvertakes) {
            return write(src, dst);
        }
        let dst = if self.shared.has(Flaw::UploadAligned) {
            let start = dst.start() & !3;
            Slice::new(Arc::clone(dst.buffer()), start..start + dst.len())?
        } else {
            dst.clone()
        };
        let touches = vec![touch(dst.buffer())?];
        self.push(Work::Write(src.to_vec(), dst), fate, touches);
        Ok(())
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        self.shared.card.enter(Call::Download)?;
        let bytes = if self.shared.has(Flaw::DownloadOvertakes) {
            read(src)?
        } else {
            let (reply, answer) = sync_channel(1);
            let touches = vec![touch(src.buffer())?];
            self.push(Work::Read(src.clone(), reply), Fate::Fine, touches);
            self.submit();
            let gone = |_| DeviceError::lost(self.shared.id(), "download", "its queue ended");
            answer.recv().map_err(gone)??
        };
        dst.copy_from_slice(&bytes);
        Ok(())
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        let fate = self.shared.card.admit(Call::Copy)?;
        let touches = vec![touch(src.buffer())?, touch(dst.buffer())?];
        let work = Work::Copy(self.held(src), self.held(dst));
        self.push(work, fate, touches);
        Ok(())
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let fate = self.shared.card.admit(Call::Launch)?;
        if self.shared.has(Flaw::HintsObeyed) && self.class != QueueClass::Compute {
            let what = format!("kernels on a queue for {:?}", self.class);
            return Err(DeviceError::unsupported(self.shared.id(), what));
        }
        let mut touches = Vec::new();
        let mut seen = Vec::new();
        for arg in args {
            if let Arg::Slice(slice) = arg {
                touches.push(touch(slice.buffer())?);
            }
            seen.push(self.distort(arg)?);
        }
        let grid = if self.shared.has(Flaw::GridFlattened) {
            Grid::groups([grid.groups[0], 1, 1])
        } else {
            grid
        };
        let work = Work::Launch(Arc::clone(kernel), grid, seen);
        self.push(work, fate, touches);
        Ok(())
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.shared.card.enter(Call::Record)?;
        let event = Arc::new(FakeEvent::new(&self.shared));
        if self.shared.has(Flaw::EventsEarly) {
            event.reach(Ok(()));
        }
        self.push(Work::Mark(Arc::clone(&event)), Fate::Fine, Vec::new());
        if !self.shared.has(Flaw::RecordLazy) {
            self.submit();
        }
        Ok(event)
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.shared.card.enter(Call::Wait)?;
        let any: &dyn Any = &**event;
        if any.is::<FakeEvent>() {
            if !self.shared.has(Flaw::WaitIgnored) {
                let work = Work::Wait(Arc::clone(event));
                self.push(work, Fate::Fine, Vec::new());
            }
        } else if !self.shared.has(Flaw::StrangerIgnored) {
            event.wait(None)?;
        }
        Ok(())
    }
}

impl FakeQueue {
    /// The argument as the kernel gets it; itself, unless the fake is flawed.
    fn distort(&self, arg: &Arg) -> Result<Arg> {
        Ok(match arg {
            Arg::F32(_) if self.shared.has(Flaw::NumbersZeroed) => Arg::F32(0.0),
            Arg::Slice(slice) if self.shared.has(Flaw::OffsetsIgnored) => {
                Slice::new(Arc::clone(slice.buffer()), 0..slice.len())?.into()
            }
            other => other.clone(),
        })
    }
}

impl Drop for FakeQueue {
    fn drop(&mut self) {
        if self.shared.has(Flaw::DropDiscards) {
            self.lane.discard();
        }
        self.submit();
    }
}
