//! What is particular to this backend; the contract itself is tested in `conformance.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test's helpers do; the lints know only the test functions themselves"
)]

mod adapters;
mod bytes;
mod kernels;
mod order;
mod rig;
