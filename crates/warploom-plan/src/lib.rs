//! The compiler: a pipeline and what is known of the machine go in; out comes an
//! [`ExecutionPlan`] that is type-correct, placed, laid out in memory and explained, or every
//! reason why there is none, each with what to change.
//!
//! Everything here is a pure function of plain values: no files, no clock, no threads, no
//! environment, no device is opened. The same pipeline, records, survey and options give the same
//! plan, to the byte (I5).
//!
//! ```
//! use warploom_core::DType;
//! use warploom_plan::{Options, Pipeline, Sources, compile};
//!
//! let text = r#"
//!     name = "smooth"
//!     [[step]]
//!     name = "soft"
//!     op = "gaussian"
//!     sigma = 2
//! "#;
//! let pipeline = Pipeline::from_toml(text).expect("it parses");
//! let sources = Sources::plane(DType::U16, 512, 512);
//! let plan = compile(&pipeline, &sources, None, &Options::default()).expect("it compiles");
//! assert_eq!(plan.device.name, "cpu");
//! ```
#![forbid(unsafe_code)]

pub mod batch;
mod branch;
pub mod calibration;
mod candidate;
pub mod chain;
mod channel;
mod check;
mod choice;
mod compile;
pub mod diagnostic;
mod draft;
mod explain;
mod fallback;
mod fit;
mod handful;
pub mod language;
mod missing;
pub mod options;
mod output;
pub mod pipeline;
mod place;
pub mod plan;
mod pool;
mod reason;
mod resolve;
mod segment;
mod shortage;
pub mod sources;
pub mod stack;
mod target;
mod tile;
mod typed;
mod uses;
mod world;

pub use calibration::Calibration;
pub use check::check;
pub use compile::compile;
pub use diagnostic::{Diagnostic, Place, Problem, Severity};
pub use options::Options;
pub use pipeline::Pipeline;
pub use plan::ExecutionPlan;
pub use sources::Sources;
pub use warploom_kernels::fuse::Speed;
