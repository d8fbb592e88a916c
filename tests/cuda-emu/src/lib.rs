//! A CUDA driver for machines without one.
//!
//! The [`engine`] runs PTX that NVIDIA's own compiler has made, on host threads, and is stricter than
//! hardware: it checks every access, poisons fresh memory, shuffles the order of threads and blocks,
//! and reports what it finds instead of carrying on. It proves that kernels are right, never that
//! they are fast, and is called *emulated* wherever it shows.
//!
//! The [`driver`] is what programs find when they look for `libcuda`: the functions of the CUDA driver
//! interface, in a dynamic library that takes the place of NVIDIA's. It keeps memory, streams and
//! contexts, and is strict about them too: memory that was freed stays known as freed, stale handles
//! are refused, copies read and write when they run, and streams are held up at random, so that what
//! nobody waited for is missing. What it emulates is read from the environment: see [`plan`].

mod exec;
mod jit;
mod math;
mod ptx;

pub mod driver;
pub mod engine;
pub mod plan;
