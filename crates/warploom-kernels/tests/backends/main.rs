//! Every primitive on every device: the same numbers as on the CPU.
//!
//! A case is a flow and its inputs. It runs on the CPU backend and on every other device of the
//! process, or is computed by its definition where the case says so, and results are compared: bit
//! for bit on OpenCL and CUDA (all NaN count as one), within a bound on wgpu. A primitive that would
//! take the way over the host fails its case, unless the case says that it may. Each file is one
//! family; a case is a line of its table. Backends that are not there are skipped, and said to be,
//! unless `WARPLOOM_REQUIRE` names them.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test says what it skips and compares exactly, a variable is how CI reaches through cargo test, and noise is cut to size"
)]

mod along;
mod case;
mod compare;
mod custom;
mod devices;
mod ends;
mod formulas;
mod fused;
mod holes;
mod objects;
mod over;
mod places;
mod reference;
mod request;
mod rig;
mod routes;
mod spots;
mod tiled;
mod whole;
