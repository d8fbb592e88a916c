//! What is this backend's own business: drivers that are missing, identities, sub-buffers, mapped
//! memory, markers, the compiler and its cache. The contract itself is `conformance`'s.
//!
//! Every test runs on every device of the process; `children` runs them again under other drivers
//! and without any. A machine without OpenCL passes, and says so.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::float_cmp,
    reason = "tests panic on purpose, say what they skip, and compare exact results"
)]

mod children;
mod events;
mod functions;
mod kernels;
mod memory;
mod probe;
mod programs;
mod queues;
mod rig;
