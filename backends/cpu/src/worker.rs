//! The thread behind a queue, and the list of commands it works off.
//!
//! Commands are plain values in vectors that queue and thread swap, so that after a warm-up
//! nothing is allocated to send one. A thread that is busy is not woken: a command sent to it costs
//! one uncontended lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use warploom_core::host::FnKernel;
use warploom_core::{Arg, DeviceError, Event, Grid, Result};

use crate::buffer::{Claim, locked};
use crate::device::Core;
use crate::error::panicked;
use crate::event::CpuEvent;
use crate::kernel;
use crate::monitor::Monitor;

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Copy between two claims; the written one is the target.
    Copy,
    /// Run a kernel.
    Launch { kernel: Arc<FnKernel>, grid: Grid },
    /// Do nothing until the event is reached.
    Wait(Arc<CpuEvent>),
    /// The event is reached.
    Record(Arc<CpuEvent>),
}

/// The operands of a command: what it does to memory, and numbers with their argument index.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    pub(crate) claims: Vec<Claim>,
    pub(crate) scalars: Vec<(usize, Arg)>,
}

impl Operands {
    pub(crate) fn clear(&mut self) {
        self.claims.clear();
        self.scalars.clear();
    }
}

/// Commands in order, and the operands of all of them one after another.
#[derive(Debug, Default)]
struct Batch {
    commands: Vec<Sent>,
    operands: Operands,
}

/// A command and how many of the operands are its own.
#[derive(Debug)]
struct Sent {
    command: Command,
    claims: usize,
    scalars: usize,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// The thread has nothing in hand.
    idle: bool,
    /// No command will follow.
    closing: bool,
}

impl State {
    fn at_rest(&self) -> bool {
        self.idle && self.batch.commands.is_empty()
    }
}

/// What a queue and its thread share.
#[derive(Debug, Default)]
pub(crate) struct Link {
    state: Monitor<State>,
    fault: OnceLock<DeviceError>,
}

impl Link {
    /// Sends a command with its operands, which are left empty.
    pub(crate) fn send(&self, command: Command, operands: &mut Operands) {
        let (claims, scalars) = (operands.claims.len(), operands.scalars.len());
        let sent = Sent {
            command,
            claims,
            scalars,
        };
        self.state.change(|state| {
            state.batch.commands.push(sent);
            let all = &mut state.batch.operands;
            all.claims.append(&mut operands.claims);
            all.scalars.append(&mut operands.scalars);
        });
    }

    /// Is everything done that was sent?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state.with(|state| state.at_rest())
    }

    /// Blocks until everything is done that was sent.
    pub(crate) fn rest(&self) {
        self.state.wait(|state| state.at_rest().then_some(()));
    }

    /// Lets the thread end when everything is done.
    pub(crate) fn close(&self) {
        self.state.change(|state| state.closing = true);
    }

    /// The first thing that went wrong; it stays.
    pub(crate) fn fault(&self) -> Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Swaps the next commands into `batch`, which is empty; false when no more will come.
    fn next(&self, batch: &mut Batch) -> bool {
        let mut take = |state: &mut State| {
            state.idle = state.batch.commands.is_empty();
            if !state.idle {
                std::mem::swap(&mut state.batch, batch);
            }
            (!state.idle || state.closing).then_some(!state.idle)
        };
        // First in a way that tells those who wait for rest, then by sleeping.
        self.state
            .change(&mut take)
            .unwrap_or_else(|| self.state.wait(take))
    }
}

/// The thread's side.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) core: Arc<Core>,
    pub(crate) link: Arc<Link>,
}

impl Worker {
    /// Works until the queue is closed and all is done.
    pub(crate) fn run(self) {
        let mut batch = Batch::default();
        let mut own = Operands::default();
        while self.link.next(&mut batch) {
            let mut claims = batch.operands.claims.drain(..);
            let mut scalars = batch.operands.scalars.drain(..);
            for sent in batch.commands.drain(..) {
                own.claims.extend(claims.by_ref().take(sent.claims));
                own.scalars.extend(scalars.by_ref().take(sent.scalars));
                let command = sent.command;
                // A kernel's panic is caught inside; this is for destructors of what it captured.
                let done = catch_unwind(AssertUnwindSafe(|| self.execute(command, &own)));
                let outcome = done.unwrap_or_else(|payload| {
                    // Its destructor may be the one that panics.
                    std::mem::forget(payload);
                    Err(panicked(self.core.id()))
                });
                if let Err(error) = outcome {
                    // Only the first is kept: the others follow from it.
                    let _ = self.link.fault.set(error);
                }
                // Ends the claims, so that an event after this command means its memory is free.
                own.clear();
            }
        }
    }

    fn execute(&self, command: Command, own: &Operands) -> Result<()> {
        let sound = self.link.fault.get().is_none();
        match command {
            Command::Record(event) => {
                let at = self.core.now();
                event.finish(self.link.fault().map(|()| at));
                Ok(())
            }
            Command::Wait(event) if sound => event.wait(None),
            Command::Copy if sound => {
                copy(&own.claims);
                Ok(())
            }
            Command::Launch { kernel, grid } if sound => {
                let pool = self.core.pool();
                // SAFETY: `CpuQueue::launch` puts the claims in order and refuses overlaps.
                unsafe { kernel::run(pool, &kernel, grid, &own.claims, &own.scalars) }
            }
            // After a failure nothing runs: it would work on bytes that were never made.
            Command::Wait(_) | Command::Copy | Command::Launch { .. } => Ok(()),
        }
    }
}

fn copy(claims: &[Claim]) {
    let [one, other] = claims else { return };
    let (src, dst) = if one.is_write() {
        (other, one)
    } else {
        (one, other)
    };
    let (from, to) = (&src.span().bytes, &dst.span().bytes);
    locked(claims, &mut || {
        // SAFETY: `locked` excludes other commands and the host: writers from both ranges, readers
        // from the written one.
        unsafe { src.block().copy(from.clone(), dst.block(), to.clone()) }
    });
}
