//! A host thread that runs blocks, one after the other.

use std::cell::{Cell, RefCell};

use corosensei::Yielder;

use super::arena::Arena;
use super::barrier::Arrivals;
use super::context::{Slots, ThreadContext};
use super::grid::Grid;
use super::wait::Wait;
use crate::engine::{Fault, FaultKind, Region};

/// What a thread is told when it may run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Go,
    /// The launch is over; return as soon as possible.
    Stop,
}

/// A thread of the block, as seen from outside.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) wait: Cell<Wait>,
    /// What it gets for its wait.
    pub(super) reply: Cell<u64>,
    /// Null when threads are not coroutines.
    pub(super) yielder: Cell<*const Yielder<Signal, ()>>,
}

/// Answered by calls of compiled code: go on, or return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop;

#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) slots: Slots,
    pub(super) shared: Arena,
    pub(super) shadow: Arena,
    pub(super) local: Arena,
    pub(super) params: Arena,
    pub(super) threads: Vec<Thread>,
    pub(super) arrivals: RefCell<Arrivals>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(grid: &'a Grid<'a>) -> Self {
        let shared = grid.shared_bytes as usize;
        let locals = if grid.code.needs_fibers {
            grid.threads
        } else {
            1
        };
        let params = Arena::new(grid.launch.params.len());
        params.write(0, grid.launch.params);
        let thread = |_| Thread {
            wait: Cell::new(Wait::Ready),
            reply: Cell::new(0),
            yielder: Cell::new(std::ptr::null()),
        };
        Self {
            grid,
            slots: Slots::new(),
            shared: Arena::new(shared),
            // Vector accesses look at the shadow in words.
            shadow: Arena::new(shared.next_multiple_of(16)),
            local: Arena::new(locals * grid.local_stride()),
            params,
            threads: (0..grid.threads).map(thread).collect(),
            arrivals: RefCell::default(),
        }
    }

    /// Local memory of the thread at `place`.
    pub(super) fn local_of(&self, place: usize) -> Region {
        let base = self.local.base() + (place * self.grid.local_stride()) as u64;
        Region {
            base,
            end: base + u64::from(self.grid.local_bytes),
        }
    }

    /// Fresh shared memory, and nothing known about the rest.
    pub(super) fn begin_block(&self) {
        let length = self.grid.shared_bytes as usize;
        let is_checked = self.grid.launch.rules.uninitialised_shared;
        self.shared.poison(0, length);
        self.shadow.fill(0, length, u8::from(!is_checked));
        self.slots.forget();
        self.arrivals.borrow_mut().clear();
    }

    /// Ends the launch because of what the thread did.
    pub(super) fn fault(&self, context: &ThreadContext, line: u32, kind: FaultKind) -> Stop {
        self.grid.report(Fault {
            kind,
            kernel: self.grid.launch.kernel.name().to_owned(),
            block: context.ctaid.get(),
            thread: context.tid.get(),
            line,
        });
        Stop
    }

    /// Lets others run until `wait` is over.
    pub(super) fn suspend(&self, context: &ThreadContext, wait: Wait) -> Result<u64, Stop> {
        let thread = &self.threads[context.number.get()];
        thread.wait.set(wait);
        // SAFETY: the coroutine set the pointer when it began, to the yielder that lives as long as
        // it runs; this code runs inside of it, since kernels that may wait always get coroutines.
        let yielder = unsafe { thread.yielder.get().as_ref() };
        let yielder = yielder.expect("a kernel that waits runs in coroutines");
        match yielder.suspend(()) {
            Signal::Go => Ok(thread.reply.get()),
            Signal::Stop => Err(Stop),
        }
    }
}
