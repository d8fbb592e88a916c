//! What a kernel did wrong, and where.

use std::time::Duration;

use super::memory::{Access, Space, Why};

/// The first mistake of a launch. It ends the launch; memory keeps what was written until then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`, block {block:?}, thread {thread:?}, PTX line {line}: {kind}")]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Name of the kernel.
    pub kernel: String,
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// `%tid` of the thread.
    pub thread: [u32; 3],
    /// Line of the PTX text, counted from one; zero when no instruction is to blame.
    pub line: u32,
}

/// The sorts of mistakes that are noticed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside of what the thread may touch.
    #[error("illegal {access} of {bytes} bytes at {space} address {address:#x}: {why}")]
    IllegalAddress {
        /// Through which state space.
        space: Space,
        /// The address, relative to its state space.
        address: u64,
        /// Length of the access.
        bytes: u32,
        /// Sort of access.
        access: Access,
        /// What is wrong with it.
        why: Why,
    },
    /// An address that is no multiple of the length of the access.
    #[error("misaligned {access} of {bytes} bytes at {space} address {address:#x}")]
    Misaligned {
        /// Through which state space.
        space: Space,
        /// The address, relative to its state space.
        address: u64,
        /// Length of the access.
        bytes: u32,
        /// Sort of access.
        access: Access,
    },
    /// Shared memory that no thread of the block has written yet.
    #[error(
        "read of {bytes} bytes at shared address {address:#x}, which the block never wrote in full"
    )]
    UninitialisedShared {
        /// Offset in the shared memory of the block.
        address: u64,
        /// Length of the access.
        bytes: u32,
    },
    /// Threads that had to meet at one barrier are waiting at different ones.
    #[error("divergent barrier: {detail}")]
    BarrierDivergence {
        /// Who waits where.
        detail: String,
    },
    /// Nobody can go on.
    #[error("deadlock: {detail}")]
    Deadlock {
        /// Who waits where.
        detail: String,
    },
    /// A synchronising warp instruction whose operands are not allowed.
    #[error("invalid warp operation: {detail}")]
    InvalidWarpOperation {
        /// What is wrong.
        detail: String,
    },
    /// The kernel executed `trap` or `brkpt`.
    #[error("the kernel executed `trap`")]
    Trap,
    /// An `assert` of the source did not hold.
    #[error("assertion `{message}` failed at {file}:{source_line} in `{function}`")]
    Assert {
        /// The expression.
        message: Box<str>,
        /// Source file.
        file: Box<str>,
        /// Line of the source file.
        source_line: u32,
        /// Function it is in.
        function: Box<str>,
    },
    /// Calls nested too deeply, or too much local memory.
    #[error("stack overflow: {detail}")]
    StackOverflow {
        /// Which stack, and its size.
        detail: String,
    },
    /// A call through a pointer that is no function of the expected signature.
    #[error("illegal call through {address:#x}: {detail}")]
    IllegalCall {
        /// The pointer.
        address: u64,
        /// What is there.
        detail: String,
    },
    /// The launch took longer than its limit.
    #[error("still running after {steps} loop iterations in {elapsed:?}")]
    Runaway {
        /// Backward branches and calls counted until then.
        steps: u64,
        /// Time since the launch.
        elapsed: Duration,
    },
    /// The launch was told to stop.
    #[error("the launch was cancelled")]
    Cancelled,
    /// The launch itself makes no sense; nothing has run.
    #[error("{why}")]
    InvalidLaunch {
        /// What is wrong.
        why: String,
    },
}
