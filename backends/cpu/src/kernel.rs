//! Host kernels: from claims on buffers to the slices a Rust function sees.

use std::any::Any;
use std::sync::Arc;

use rayon::ThreadPool;
use warploom_core::host::{FnKernel, run_caught};
use warploom_core::{Arg, Grid, HostArg, HostCall, Kernel, Result};

use crate::buffer::{Patience, locked};
use crate::link::Operands;

/// A kernel of ours, seen through the contract.
pub(crate) fn own(kernel: &Arc<dyn Kernel>) -> Result<Arc<FnKernel>> {
    let any: Arc<dyn Any + Send + Sync> = Arc::<dyn Kernel>::clone(kernel);
    any.downcast().map_err(|_| {
        let stranger = FnKernel::of(&**kernel);
        stranger.expect_err("one that is ours was just downcast")
    })
}

/// Runs a kernel on `pool`, with its ranges locked, and gives its outcome; nothing when a range is
/// in use and there is no patience. `scalars` carry the index of their argument, as claims do.
///
/// The locks are taken by the calling thread. One that waits is never one of the pool: there it
/// would keep others from running.
///
/// # Safety
/// The claims are in order, and [`find_overlap`](crate::buffer::find_overlap) found nothing.
pub(crate) unsafe fn run(
    pool: &ThreadPool,
    kernel: &FnKernel,
    grid: Grid,
    operands: &Operands,
    patience: Patience,
) -> Option<Result<()>> {
    let Operands { claims, scalars } = operands;
    let mut outcome = None;
    locked(claims, patience, &mut || {
        let count = claims.len() + scalars.len();
        let mut args = Vec::with_capacity(count);
        args.resize_with(count, || HostArg::Scalar(Arg::U32(0)));
        for claim in claims {
            let (block, range) = (claim.block(), claim.span().bytes.clone());
            args[claim.index()] = if claim.is_write() {
                // SAFETY: `locked` excludes other commands and the host from the range until this
                // closure returns, and the caller says that no other claim shares a byte with it.
                HostArg::Write(unsafe { block.exclusive(range) })
            } else {
                // SAFETY: `locked` excludes writers among other commands and the host until this
                // closure returns, and the caller says that no written claim shares a byte with it.
                HostArg::Read(unsafe { block.shared(range) })
            };
        }
        for (index, scalar) in scalars {
            args[*index] = HostArg::Scalar(scalar.clone());
        }
        let (device, name, run) = (kernel.device(), kernel.name(), kernel.function());
        let mut call = HostCall::new(grid, args);
        // On a thread of the pool this is a plain call.
        outcome = Some(pool.install(|| run_caught(device, name, run, &mut call)));
    });
    outcome
}
