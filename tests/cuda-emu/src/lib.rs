//! A CUDA driver for machines without one.
//!
//! The [`engine`] runs PTX that NVIDIA's own compiler has made, on host threads, and is stricter than
//! hardware: it checks every access, poisons fresh memory, shuffles the order of threads and blocks,
//! and reports what it finds instead of carrying on. It proves that kernels are right, never that
//! they are fast, and is called *emulated* wherever it shows.

mod exec;
mod jit;
mod math;
mod ptx;

pub mod engine;
