//! The engine against references that know nothing of it.

mod rig;

mod faults;
mod kernels;
mod ops;
