//! One launch: what runs, over which grid, under which rules.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::fault::Fault;
use super::memory::DeviceMemory;
use super::module::Kernel;

/// One kernel over one grid.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// What runs.
    pub kernel: &'a Kernel,
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes of shared memory behind the kernel's own, for `extern __shared__`.
    pub dynamic_shared: u32,
    /// Parameters, laid out as [`Entry::params`](super::Entry::params) says.
    pub params: &'a [u8],
    /// Address of each variable, in the order of [`Module::globals`](super::Module::globals).
    pub globals: &'a [u64],
    /// Who owns which address.
    pub memory: &'a dyn DeviceMemory,
    /// Takes what kernels print.
    pub print: &'a (dyn Fn(&str) + Sync),
    /// When set, the launch ends with [`FaultKind::Cancelled`](super::FaultKind::Cancelled).
    pub cancel: Option<&'a AtomicBool>,
    /// Checks and limits.
    pub rules: Rules,
}

impl std::fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.kernel.name())
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("dynamic_shared", &self.dynamic_shared)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// How strict a launch is, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Decides the order of blocks, and the order of threads between barriers.
    pub seed: u64,
    /// Host threads that run blocks; with one, the calling thread does it.
    pub workers: usize,
    /// Whether a read of shared memory that was never written is a fault.
    pub uninitialised_shared: bool,
    /// Whether threads of a block may meet at different `bar.sync` instructions without a count,
    /// which CUDA leaves undefined and hardware mostly allows.
    pub divergent_barriers: bool,
    /// After this time a launch is given up; the clock is looked at in loops, calls and at the
    /// beginning of each block.
    pub time: Option<Duration>,
    /// After about so many loop iterations, calls and blocks, over all threads, a launch is given up;
    /// they are counted twenty thousand at a time.
    pub steps: Option<u64>,
    /// Local memory of a thread for the frames of called functions.
    pub stack_bytes: u32,
    /// Value of `%smid` ranges over `0..processors`.
    pub processors: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            seed: 0,
            workers: 1,
            uninitialised_shared: true,
            divergent_barriers: false,
            time: Some(Duration::from_mins(1)),
            steps: None,
            stack_bytes: 16 << 10,
            processors: 4,
        }
    }
}

/// Runs every block of the grid, and returns when all have ended.
///
/// # Errors
/// The first mistake noticed; which of several comes first may depend on the seed and, with more
/// than one worker, on chance.
pub fn launch(launch: &Launch<'_>) -> Result<(), Fault> {
    crate::exec::run(launch)
}
