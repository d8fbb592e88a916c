//! Image operations: one definition each, for every backend, fused.
//!
//! An operation of the catalogue is lowered into a few primitives; chains of primitives become
//! one pass over memory; a group of them becomes either launches of generated kernels (OpenCL C,
//! CUDA C, WGSL) or one call of the CPU engine.
#![deny(unsafe_code)]

pub mod fuse;
pub mod gpu;
pub mod kernel;
pub mod lower;
pub mod op;
pub mod program;

pub use warploom_engine as cpu;
pub use warploom_flow::{Boundary, Dims, ImageType, boundary, expr, flow, image};
