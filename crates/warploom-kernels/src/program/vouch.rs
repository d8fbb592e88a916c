//! The one place where this crate vouches for its kernels. For those that somebody else wrote,
//! [`SourceOp`](crate::gpu::SourceOp) has that person's word.

use warploom_core::{KernelCode, KernelSource, Param};

use crate::kernel::{KernelDef, Target};

/// A generated kernel as a source that can be loaded.
#[expect(
    unsafe_code,
    reason = "the one place where this crate vouches for its kernels"
)]
pub(super) fn source<'a>(
    def: &'a KernelDef,
    text: &'a str,
    params: &'a [Param],
    target: Target,
) -> KernelSource<'a> {
    let code = match target {
        Target::Wgsl => return KernelSource::wgsl(&def.name, text, params, def.group),
        Target::OpenCl => KernelCode::OpenClC(text),
        Target::Cuda => KernelCode::CudaC(text),
    };
    // SAFETY: parameters and text come from one definition, so they agree in number, order and
    // type. The kernel never leaves this crate: it is only launched by `Loaded::enqueue`, with the
    // extents, pitches and counts that the same plan computed from the values' own types, over
    // slices that were checked to be as long as those types say. Templates guard every item
    // against the extents they are given and are run against the CPU engine, on PoCL and on an
    // emulator that checks every access. What somebody else wrote was vouched for when it was taken
    // in, for launches of just this form.
    unsafe { KernelSource::vouch(&def.name, code, params, def.group) }
}
