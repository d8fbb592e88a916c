//! The backend on emulated devices that fail on order, and the registry on devices of any identity.
//!
//! A process has one emulated machine, made of its environment when the driver starts. So a test
//! plays each of its scenes in a process of its own, which is this binary again: see [`scene`].
//!
//! `cargo xtask test --only cuda` runs this with the emulator in front of the loader. Anywhere else
//! every test says why it is skipped, and fails when `WARPLOOM_REQUIRE` names `cuda`.

mod calls;
mod codes;
mod faults;
mod flight;
mod kept;
mod leases;
mod loss;
mod memory;
mod modules;
mod rig;
mod scene;
mod survey;
