//! Tests for backends, and a backend for tests.
//!
//! # The conformance suite
//! Every sentence of the contract in `warploom-core` is a named case, and every case runs on every
//! device a backend finds. A backend's whole test is
//!
//! ```no_run
//! # const ENTRY: warploom_core::BackendEntry = warploom_core::BackendEntry::new(
//! #     warploom_core::BackendId::new("mine"), || Err(warploom_core::LoadError::absent("")));
//! fn main() {
//!     warploom_testkit::main(&[ENTRY]);
//! }
//! ```
//!
//! in `tests/conformance.rs`, with `harness = false` in its manifest. The usual arguments of test
//! binaries work: `cargo test --test conformance -- mine:0::queue`. A case that cannot run on a
//! device says why and counts as ignored. When `WARPLOOM_REQUIRE` names the backend (a comma list),
//! its absence is a failure. [`run`] is the same suite for those with a harness of their own; it
//! returns plain [`CaseReport`]s.
//!
//! # The fake
//! [`FakeBackend`] is a backend of scripted devices: any identity, any memory size, any failure at
//! any call. It passes the suite. Its [`Flaw`]s are mistakes real backends make, and each of them
//! makes the suite fail, which is how we know that the suite can.
//!
//! # The simulation
//! [`sim::Sim`] is a device in virtual time: work overlaps in any order that events allow, by a seed
//! or a script, and memory shows what was not in order.
#![deny(unsafe_code)]

mod case;
mod conformance;
mod expect;
pub mod fake;
mod harness;
mod kernels;
mod noise;
mod programs;
mod rig;
mod run;
mod session;
pub mod sim;
mod slow;
mod watchdog;

pub use case::{Case, CaseReport, Outcome};
pub use conformance::cases;
pub use expect::Expect;
pub use fake::{FakeBackend, FakeDevice, Flaw};
pub use harness::{main, main_with};
pub use kernels::{KernelText, kernel_texts};
pub use run::{Options, run};
