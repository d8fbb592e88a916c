//! Image operations: one definition each, for every backend, fused.
//!
//! An operation of the catalogue is lowered into a few primitives; chains of primitives become
//! one pass over memory; a group of them becomes either launches of generated kernels (OpenCL C,
//! CUDA C, WGSL) or one call of the CPU engine.
#![deny(unsafe_code)]

pub mod boundary;
pub mod cpu;
pub mod expr;
pub mod flow;
pub mod fuse;
pub mod gpu;
pub mod image;
pub mod kernel;
pub mod lower;
pub mod op;
pub mod program;

pub use boundary::Boundary;
pub use image::{Dims, ImageType};
