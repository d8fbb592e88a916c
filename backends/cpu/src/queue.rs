//! Queues: the host's side of a thread that works in order.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use warploom_core::{Arg, Event, Grid, Kernel, Queue, QueueDesc, Result, Slice};

use crate::buffer::{Claim, CpuBuffer, find_overlap, put_in_order};
use crate::device::{Core, Pool};
use crate::error::{no_thread, overlap};
use crate::event::CpuEvent;
use crate::kernel;
use crate::link::{Command, Link, Operands};
use crate::worker::Worker;

/// A queue with a thread of its own.
#[derive(Debug)]
pub(crate) struct CpuQueue {
    core: Arc<Core>,
    pool: Arc<Pool>,
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
    /// Where a command's operands are gathered; kept for its capacity.
    operands: Operands,
}

impl CpuQueue {
    pub(crate) fn start(core: Arc<Core>, desc: &QueueDesc) -> Result<Self> {
        let link = Arc::new(Link::default());
        let pool = core.pool(desc)?;
        let worker = Worker {
            core: Arc::clone(&core),
            pool: Arc::clone(&pool),
            link: Arc::clone(&link),
        };
        let thread = thread::Builder::new()
            .name(thread_name(&desc.label))
            .spawn(move || worker.run())
            .map_err(|error| no_thread(core.id(), "a queue's thread", error))?;
        Ok(Self {
            core,
            pool,
            link,
            thread: Some(thread),
            operands: Operands::default(),
        })
    }

    fn send(&mut self, command: Command) {
        self.link.send(command, &mut self.operands);
    }

    /// Blocks until everything earlier is done, as plain slices demand.
    ///
    /// Then the calling thread moves the bytes itself: when the queue is at rest that saves a trip
    /// to the queue's thread, and when it is not, the trip would have ended here all the same.
    fn rest(&self) -> Result<()> {
        self.link.fault()?;
        self.link.rest();
        self.link.fault()
    }

    /// Claims every slice among `args`, and gathers the numbers.
    fn gather(&mut self, kernel: &dyn Kernel, args: &[Arg]) -> Result<()> {
        let device = self.core.id();
        for (index, arg) in args.iter().enumerate() {
            let Arg::Slice(slice) = arg else {
                self.operands.scalars.push((index, arg.clone()));
                continue;
            };
            let write = kernel
                .params()
                .get(index)
                .is_some_and(|param| param.is_written());
            let claim = Claim::new(device, slice, index, write)?;
            self.operands.claims.push(claim);
        }
        put_in_order(&mut self.operands.claims);
        match find_overlap(&self.operands.claims) {
            Some(args) => Err(overlap(device, kernel.name(), args)),
            None => Ok(()),
        }
    }
}

impl Queue for CpuQueue {
    fn upload(&mut self, src: &[u8], dst: &Slice) -> Result<()> {
        let buffer = CpuBuffer::of(self.core.id(), &**dst.buffer())?;
        self.rest()?;
        buffer.store(src, dst);
        Ok(())
    }

    fn download(&mut self, src: &Slice, dst: &mut [u8]) -> Result<()> {
        let buffer = CpuBuffer::of(self.core.id(), &**src.buffer())?;
        self.rest()?;
        buffer.fetch(src, dst);
        Ok(())
    }

    fn copy(&mut self, src: &Slice, dst: &Slice) -> Result<()> {
        self.link.fault()?;
        let device = self.core.id();
        let (src, dst) = (
            Claim::new(device, src, 0, false)?,
            Claim::new(device, dst, 1, true)?,
        );
        self.operands.claims.extend([src, dst]);
        put_in_order(&mut self.operands.claims);
        self.send(Command::Copy);
        Ok(())
    }

    fn launch(&mut self, kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        self.link.fault()?;
        let own = kernel::own(kernel)?;
        if let Err(error) = self.gather(&**kernel, args) {
            self.operands.clear();
            return Err(error);
        }
        self.send(Command::Launch { kernel: own, grid });
        Ok(())
    }

    fn record(&mut self) -> Result<Arc<dyn Event>> {
        self.link.fault()?;
        let device = self.core.id();
        if self.link.is_at_rest() {
            // The last command may have failed between the two looks.
            let outcome = self.link.fault().map(|()| self.core.now());
            return Ok(Arc::new(CpuEvent::over(device, outcome)));
        }
        let event = Arc::new(CpuEvent::ahead(device));
        self.send(Command::Record(Arc::clone(&event)));
        Ok(event)
    }

    fn wait(&mut self, event: &Arc<dyn Event>) -> Result<()> {
        self.link.fault()?;
        if let Some(own) = CpuEvent::of(event) {
            if own.is_done() != Ok(true) {
                self.send(Command::Wait(own));
            }
            return Ok(());
        }
        event.wait(None).inspect_err(|error| {
            // What follows must not run, what came before must: so the failure takes its place.
            let failed = CpuEvent::over(self.core.id(), Err(error.clone()));
            self.send(Command::Wait(Arc::new(failed)));
        })
    }
}

impl Drop for CpuQueue {
    fn drop(&mut self) {
        self.link.close();
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A kernel can own the queue that runs it. On either of these threads, joining would wait
        // for what is below on this very stack; the thread ends by itself when all is done.
        let own = thread.thread().id() == thread::current().id();
        let inside = self.pool.threads.current_thread_index().is_some();
        if !own && !inside {
            // It ends: every event it may wait for was recorded before, so its queue reaches it
            // without this one. The thread catches all panics, so there is nothing to report.
            let _ = thread.join();
        }
    }
}

/// A name the operating system takes: not empty, no zero bytes.
pub(crate) fn thread_name(label: &str) -> String {
    if label.is_empty() {
        return "cpu queue".into();
    }
    label.replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("", "cpu queue")]
    #[case("upload", "upload")]
    #[case("a\0b", "a b")]
    fn labels_become_thread_names(#[case] label: &str, #[case] name: &str) {
        assert_eq!(thread_name(label), name);
    }
}
