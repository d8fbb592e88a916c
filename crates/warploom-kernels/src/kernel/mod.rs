//! Kernels: statements around expressions, written once and emitted in every language.
//!
//! A template is Rust code that drives a [`Builder`]: it declares buffers and numbers, opens loops
//! and branches, loads, computes, stores. What comes out is a [`KernelDef`], plain data, and from it
//! [`text`](KernelDef::text) in OpenCL C, CUDA C or WGSL. Sizes are always numbers given at launch.

mod builder;
mod c;
mod def;
mod prelude;
mod walk;
mod wgsl;
mod wide;

pub use builder::{Buf, Builder, Img, Var};
pub use def::{
    Access, ArrayDecl, Atomic, BufferDecl, KernelDef, Place, ScalarDecl, Space, Stmt, Target, Work,
};
