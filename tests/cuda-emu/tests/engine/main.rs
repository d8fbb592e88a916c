//! The engine against references that know nothing of it.

mod rig;

mod faults;
mod fuzz;
mod kernels;
mod ops;
