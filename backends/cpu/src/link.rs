//! What a queue and its thread share: the list of commands, and the first failure.
//!
//! Commands are plain values in vectors that the two sides swap, so that after a warm-up nothing
//! is allocated to send one. A thread that is busy is not woken: a command sent to it costs one
//! uncontended lock.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::host::FnKernel;
use warploom_core::{Arg, DeviceError, Grid, Result};

use crate::buffer::Claim;
use crate::event::CpuEvent;
use crate::monitor::Monitor;

/// How long a thread that has run short work looks for more before it sleeps. Waking a thread takes about as long.
const MOMENT: Duration = Duration::from_micros(30);

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
    commands: VecDeque<Sent>,
    claims: VecDeque<Claim>,
    scalars: VecDeque<(usize, Arg)>,
}

/// A batch that is being worked off, command by command.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    batch: Batch,
    current: Option<Command>,
    operands: Operands,
}

impl Todo {
    /// The command whose turn it is, with its operands.
    pub(crate) fn current(&mut self) -> Option<(&Command, &Operands)> {
        if self.current.is_none() {
            let sent = self.batch.commands.pop_front()?;
            let Operands { claims, scalars } = &mut self.operands;
            claims.extend(self.batch.claims.drain(..sent.claims));
            scalars.extend(self.batch.scalars.drain(..sent.scalars));
            self.current = Some(sent.command);
        }
        self.current
            .as_ref()
            .map(|command| (command, &self.operands))
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

    /// Puts what has come into `todo`; `Some(false)` when nothing has and nothing will.
    fn take(&mut self, todo: &mut Todo) -> Option<bool> {
        self.idle = self.batch.commands.is_empty();
        if !self.idle {
            std::mem::swap(&mut self.batch, &mut todo.batch);
        }
        (!self.idle || self.closing).then_some(!self.idle)
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
            let Batch {
                commands,
                claims,
                scalars,
            } = &mut state.batch;
            commands.push_back(sent);
            claims.extend(operands.claims.drain(..));
            scalars.extend(operands.scalars.drain(..));
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

    /// Puts the next commands into `todo`, which is worked off; false when no more will come.
    pub(crate) fn next(&self, todo: &mut Todo) -> bool {
        // First in a way that tells those who wait for rest, then by sleeping.
        self.state
            .change(|state| state.take(todo))
            .unwrap_or_else(|| self.state.wait(|state| state.take(todo)))
    }

    /// As [`next`](Self::next) without sleeping: false as well when nothing has come for a moment.
    pub(crate) fn soon(&self, todo: &mut Todo) -> bool {
        let mut taken = self.state.change(|state| state.take(todo));
        let start = Instant::now();
        while taken.is_none() && start.elapsed() < MOMENT {
            thread::yield_now();
            taken = self.state.with(|state| state.take(todo));
        }
        taken == Some(true)
    }
}
