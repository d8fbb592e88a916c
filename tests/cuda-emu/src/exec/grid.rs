//! A whole launch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::block;
use super::order::Permutation;
use super::worker::Worker;
use crate::engine::{Fault, FaultKind, Launch};
use crate::jit::EntryCode;

/// Most threads of a block, on all hardware there is.
const MOST_THREADS: u64 = 1024;
/// Local memory and shared memory of a launch stay far below what would not fit.
const MOST_LOCAL: u64 = 512 << 10;

/// What all workers of a launch share.
pub(super) struct Grid<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) code: &'a EntryCode,
    /// Threads of a block.
    pub(super) threads: usize,
    blocks: u64,
    /// Static and dynamic.
    pub(super) shared_bytes: u32,
    /// Of one thread.
    pub(super) local_bytes: u32,
    started: Instant,
    order: Permutation,
    next: AtomicU64,
    stop: AtomicBool,
    steps: AtomicU64,
    fault: Mutex<Option<Fault>>,
}

impl std::fmt::Debug for Grid<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grid")
            .field("launch", self.launch)
            .finish_non_exhaustive()
    }
}

/// See [`launch`](crate::engine::launch).
pub(crate) fn run(launch: &Launch<'_>) -> Result<(), Fault> {
    let grid = Grid::new(launch).map_err(|why| Fault {
        kind: FaultKind::InvalidLaunch { why },
        kernel: launch.kernel.name().to_owned(),
        block: [0; 3],
        thread: [0; 3],
        line: 0,
    })?;
    let most = usize::try_from(grid.blocks).unwrap_or(usize::MAX);
    let workers = launch.rules.workers.clamp(1, most);
    if workers == 1 {
        grid.work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| grid.work());
            }
            grid.work();
        });
    }
    let fault = grid.fault.into_inner();
    match fault.unwrap_or_else(PoisonError::into_inner) {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

impl<'a> Grid<'a> {
    fn new(launch: &'a Launch<'a>) -> Result<Self, String> {
        let entry = launch.kernel.entry();
        let code = launch.kernel.image().code(launch.kernel.index());
        let product = |sides: [u32; 3]| {
            let sides = sides.map(u64::from);
            sides[0].checked_mul(sides[1])?.checked_mul(sides[2])
        };
        let threads = product(launch.block).unwrap_or(u64::MAX);
        let limit = u64::from(entry.max_threads.unwrap_or(u32::MAX)).min(MOST_THREADS);
        if threads == 0 || threads > limit {
            return Err(format!(
                "a block of {:?} has {threads} threads; 1 to {limit} are possible",
                launch.block
            ));
        }
        if let Some(required) = entry.required_threads
            && required != launch.block
        {
            return Err(format!(
                "a block of {:?}; the kernel requires {required:?}",
                launch.block
            ));
        }
        let blocks = product(launch.grid).unwrap_or(u64::MAX);
        if blocks == 0 || blocks > 1 << 48 {
            return Err(format!("a grid of {:?} blocks", launch.grid));
        }
        if launch.params.len() < entry.params_size as usize {
            return Err(format!(
                "{} bytes of parameters; the kernel has {}",
                launch.params.len(),
                entry.params_size
            ));
        }
        let globals = launch.kernel.image().globals().len();
        if launch.globals.len() != globals {
            return Err(format!(
                "addresses of {} variables; the module has {globals}",
                launch.globals.len()
            ));
        }
        let start = code.dynamic_shared_offset;
        let shared_bytes = match launch.dynamic_shared {
            0 => Some(entry.static_shared),
            dynamic => start.checked_add(dynamic),
        };
        let shared_bytes = shared_bytes
            .filter(|bytes| *bytes <= 1 << 24)
            .ok_or_else(|| format!("{} bytes of shared memory", launch.dynamic_shared))?;
        let stack = if code.has_calls {
            launch.rules.stack_bytes
        } else {
            0
        };
        let local_bytes = u64::from(entry.local_bytes) + u64::from(stack);
        let local_bytes = u32::try_from(local_bytes)
            .ok()
            .filter(|bytes| u64::from(*bytes) <= MOST_LOCAL)
            .ok_or_else(|| format!("{local_bytes} bytes of local memory for each thread"))?;
        Ok(Self {
            launch,
            code,
            threads: usize::try_from(threads).unwrap_or(usize::MAX),
            blocks,
            shared_bytes,
            local_bytes,
            started: Instant::now(),
            order: Permutation::new(launch.rules.seed, blocks),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            fault: Mutex::new(None),
        })
    }

    fn work(&self) {
        let worker = Worker::new(self);
        block::run_all(&worker);
    }

    /// The number of a block that nobody has taken yet, and its coordinates.
    pub(super) fn next_block(&self) -> Option<(u64, [u32; 3])> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        if place >= self.blocks || self.is_over() {
            return None;
        }
        let number = self.order.at(place);
        let [width, height, _] = self.launch.grid.map(u64::from);
        let coordinates = [
            number % width,
            number / width % height,
            number / width / height,
        ];
        let narrow = |side| u32::try_from(side).unwrap_or(u32::MAX);
        Some((number, coordinates.map(narrow)))
    }

    /// Bytes between the local memories of two threads.
    pub(super) fn local_stride(&self) -> usize {
        // The gap is never part of anybody's memory, so running past the end is noticed.
        (self.local_bytes as usize + 64).next_multiple_of(64)
    }

    /// Whether somebody has reported a fault.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The first report counts.
    pub(super) fn report(&self, fault: Fault) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Counts loop iterations, and says what speaks against more of them.
    pub(super) fn spend(&self, steps: u64) -> Result<(), FaultKind> {
        let steps = self.steps.fetch_add(steps, Ordering::Relaxed) + steps;
        let elapsed = self.started.elapsed();
        let rules = &self.launch.rules;
        if rules.time.is_some_and(|limit| elapsed > limit)
            || rules.steps.is_some_and(|limit| steps > limit)
        {
            return Err(FaultKind::Runaway { steps, elapsed });
        }
        let cancel = self.launch.cancel;
        if cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(FaultKind::Cancelled);
        }
        Ok(())
    }

    /// Time since the launch, in nanoseconds.
    pub(super) fn nanoseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
