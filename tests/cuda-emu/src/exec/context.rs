//! What compiled code knows about the thread it runs for.

use std::cell::Cell;

use super::worker::Worker;
use crate::engine::{Access, Region, Space};

/// Regions that were found fine, for quick answers. Each place in the text that accesses memory has
/// its slot, and mostly meets the same buffer again and again.
#[derive(Debug)]
pub(crate) struct Slots(Box<[Slot]>);

/// One remembered region; accesses are fine from `base` up to `end`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) base: Cell<u64>,
    pub(crate) end: Cell<u64>,
}

impl Slots {
    /// Slots for each sort of access.
    pub(crate) const OF_EACH_SORT: u32 = 32;
    pub(crate) const SORTS: usize = 5;

    /// The sort of an access: a region that may be read need not be one that may be written, and
    /// what a generic address may reach need not be global memory.
    pub(crate) fn sort(access: Access, space: Space) -> u32 {
        match (access, space) {
            (Access::Write, _) => 1,
            (Access::Atomic, _) => 2,
            (Access::Read, Space::Generic) => 3,
            (Access::Read, Space::Const) => 4,
            (Access::Read, _) => 0,
        }
    }

    pub(super) fn new() -> Self {
        let slot = |_| Slot {
            base: Cell::new(0),
            end: Cell::new(0),
        };
        let count = Self::OF_EACH_SORT as usize * Self::SORTS;
        let slots = Self((0..count).map(slot).collect());
        slots.forget();
        slots
    }

    /// No region is remembered after this.
    pub(super) fn forget(&self) {
        for slot in &self.0 {
            // No address is as large as the base, and none as small as the end.
            slot.base.set(u64::MAX);
            slot.end.set(64);
        }
    }

    pub(super) fn remember(&self, slot: u32, region: Region) {
        let slot = &self.0[slot as usize];
        slot.base.set(region.base);
        slot.end.set(region.end);
    }
}

/// The state of one thread that compiled code reads and writes, at fixed offsets.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ThreadContext {
    pub(crate) tid: Cell<[u32; 3]>,
    pub(crate) ntid: [u32; 3],
    pub(crate) ctaid: Cell<[u32; 3]>,
    pub(crate) nctaid: [u32; 3],
    pub(crate) lane: Cell<u32>,
    pub(crate) warp: Cell<u32>,
    pub(crate) warps: u32,
    pub(crate) processor: Cell<u32>,
    pub(crate) processors: u32,
    pub(crate) total_shared: u32,
    pub(crate) dynamic_shared: u32,
    /// Line of the call that is being made into this crate.
    pub(crate) line: Cell<u32>,
    /// Loop iterations until compiled code asks whether it may go on.
    pub(crate) fuel: Cell<i64>,
    /// Host address of shared memory, its length, and one byte per byte that says whether it was
    /// written.
    pub(crate) shared_base: u64,
    pub(crate) shared_size: u64,
    pub(crate) shadow_base: u64,
    /// Host address of this thread's local memory, and how much of it is in use.
    pub(crate) local_base: u64,
    pub(crate) local_size: u64,
    pub(crate) local_top: Cell<u64>,
    /// Host address of the parameters of the kernel.
    pub(crate) params_base: u64,
    /// Address of each variable of the module.
    pub(crate) globals: *const u64,
    /// Offset of each shared variable of the module, in the layout of this kernel.
    pub(crate) shared_offsets: *const u32,
    pub(crate) slots: *const Slot,
    /// Compiled functions may not let the stack grow below this.
    pub(crate) stack_limit: Cell<u64>,
    /// Number of the thread in its block.
    pub(crate) number: Cell<usize>,
    worker: *const Worker<'static>,
}

/// Loop iterations between two looks at the clock.
pub(super) const FUEL: i64 = 20_000;

impl ThreadContext {
    /// The context of a thread; `place` counts those of one worker.
    ///
    /// The worker must stay where it is, and live longer.
    pub(super) fn new(worker: &Worker<'_>, place: usize) -> Self {
        let launch = worker.grid.launch;
        let local = worker.local_of(place);
        Self {
            tid: Cell::new([0; 3]),
            ntid: launch.block,
            ctaid: Cell::new([0; 3]),
            nctaid: launch.grid,
            lane: Cell::new(0),
            warp: Cell::new(0),
            warps: u32::try_from(worker.grid.threads.div_ceil(32)).unwrap_or(u32::MAX),
            processor: Cell::new(0),
            processors: launch.rules.processors.max(1),
            total_shared: worker.grid.shared_bytes,
            dynamic_shared: launch.dynamic_shared,
            line: Cell::new(0),
            fuel: Cell::new(FUEL),
            shared_base: worker.shared.base(),
            shared_size: u64::from(worker.grid.shared_bytes),
            shadow_base: worker.shadow.base(),
            local_base: local.base,
            local_size: local.end - local.base,
            local_top: Cell::new(0),
            params_base: worker.params.base(),
            globals: launch.globals.as_ptr(),
            shared_offsets: worker.grid.code.shared_offsets.as_ptr(),
            slots: worker.slots.0.as_ptr(),
            stack_limit: Cell::new(0),
            number: Cell::new(0),
            worker: std::ptr::from_ref(worker).cast(),
        }
    }

    /// Becomes thread `number` of block `block`.
    pub(super) fn begin(&self, number: usize, block: [u32; 3], processor: u32) {
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        let [width, height, _] = self.ntid;
        self.tid.set([
            index % width,
            index / width % height,
            index / width / height,
        ]);
        self.ctaid.set(block);
        self.lane.set(index % 32);
        self.warp.set(index / 32);
        self.processor.set(processor);
        self.local_top.set(0);
        self.number.set(number);
    }

    pub(super) fn worker(&self) -> &Worker<'_> {
        // SAFETY: `new` got it from a reference, and its caller keeps the worker in place for longer
        // than its contexts. The lifetime it was cast to is shortened again here.
        unsafe { &*self.worker }
    }
}
