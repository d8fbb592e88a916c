//! The engine against references that know nothing of it.

mod rig;

mod kernels;
mod ops;
