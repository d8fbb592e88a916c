//! What a run did, for people and for their tools.
//!
//! Whoever runs a pipeline fills a [`Recording`]: plain data, cheap to collect.
#![forbid(unsafe_code)]

mod base64;
pub mod board;
mod figures;
mod layer;
pub mod recording;
mod report;
mod trace;

pub use recording::Recording;
pub use report::report;
pub use trace::trace;
