//! One family of instructions per file, against plain Rust.

mod approximations;
mod atomics;
mod bits;
mod compare;
mod convert;
mod floats;
mod flow;
mod half_conversions;
mod halves;
mod integers;
mod lanes;
mod moves;
mod refused;
mod values;
mod warps;
