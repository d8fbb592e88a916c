//! What a queue and its thread share: the list of commands, and the first failure.
//!
//! Commands are plain values in vectors that the two sides swap, so that after a warm-up nothing
//! is allocated to send one. A thread that is busy is not woken: a command sent to it costs one
//! uncontended lock.

use std::sync::{Arc, OnceLock};
use std::vec::Drain;

use warploom_core::host::FnKernel;
use warploom_core::{Arg, DeviceError, Grid, Result};

use crate::buffer::Claim;
use crate::event::CpuEvent;
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
pub(crate) struct Batch {
    commands: Vec<Sent>,
    operands: Operands,
}

impl Batch {
    /// Starts to work the batch off, with `operands` as the place for those of one command.
    pub(crate) fn begin<'a>(&'a mut self, operands: &'a mut Operands) -> Todo<'a> {
        Todo {
            commands: self.commands.drain(..),
            claims: self.operands.claims.drain(..),
            scalars: self.operands.scalars.drain(..),
            current: None,
            operands,
        }
    }
}

/// A batch that is being worked off, command by command.
#[derive(Debug)]
pub(crate) struct Todo<'a> {
    commands: Drain<'a, Sent>,
    claims: Drain<'a, Claim>,
    scalars: Drain<'a, (usize, Arg)>,
    current: Option<Command>,
    operands: &'a mut Operands,
}

impl Todo<'_> {
    /// The command whose turn it is, with its operands.
    pub(crate) fn current(&mut self) -> Option<(&Command, &Operands)> {
        if self.current.is_none() {
            let sent = self.commands.next()?;
            let Operands { claims, scalars } = &mut *self.operands;
            claims.extend(self.claims.by_ref().take(sent.claims));
            scalars.extend(self.scalars.by_ref().take(sent.scalars));
            self.current = Some(sent.command);
        }
        self.current
            .as_ref()
            .map(|command| (command, &*self.operands))
    }

    /// Ends the current command and its claims, so that an event after it means that its memory
    /// is free.
    ///
    /// # Panics
    /// When a destructor of what a kernel had captured does. The command is ended all the same.
    pub(crate) fn finish(&mut self) {
        let command = self.current.take();
        self.operands.clear();
        drop(command);
    }
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

    /// Keeps `error`, unless something went wrong before: what comes later follows from the first.
    pub(crate) fn fail(&self, error: DeviceError) {
        let _ = self.fault.set(error);
    }

    /// Swaps the next commands into `batch`, which is empty; false when no more will come.
    pub(crate) fn next(&self, batch: &mut Batch) -> bool {
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
