//! What a run did, for people and for their tools.
//!
//! Whoever runs a pipeline fills a [`Recording`]: plain data, cheap to collect. From it come a
//! [`trace`] for Perfetto, a [`report`] for people and [`metrics`] for Prometheus. While it runs, a
//! notice on the [`board`] tells everybody on the machine how far it is; with detection and leases
//! that is a [`Machine`], which `warploom top` shows.
//!
//! Nothing here knows a device or a scheduler, prints, or reads the environment. Only the board
//! touches files.
#![forbid(unsafe_code)]

mod base64;
pub mod board;
mod figures;
mod layer;
mod machine;
mod metrics;
pub mod recording;
mod report;
mod trace;

pub use machine::{Machine, MachineDevice};
pub use metrics::{Measured, metrics};
pub use recording::Recording;
pub use report::report;
pub use trace::trace;
