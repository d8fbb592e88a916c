//! Whole-system tests: every backend that is linked, on every device it finds here.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot run says why")]

mod detection;
mod kernels;
mod leases;
mod meter;
mod plans;
mod runs;
mod same_bytes;
mod tenants;
mod together;
