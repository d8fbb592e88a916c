//! One family of instructions per file, against plain Rust.

mod integers;
mod values;
