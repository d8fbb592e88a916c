//! What is computed, as plain values: typed expressions over pixels, the primitives that they
//! fill, and flows of primitives over typed images.
//!
//! Nothing here runs on a device or knows one. The catalogue is lowered into flows, the engine
//! runs them on processors, and templates turn them into kernels for everything else: this crate
//! is the definition that all of them keep.
#![forbid(unsafe_code)]

pub mod boundary;
pub mod expr;
pub mod flow;
pub mod image;

pub use boundary::Boundary;
pub use image::{Dims, ImageType};
