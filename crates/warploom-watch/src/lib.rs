//! What a run did, for people and for their tools.
//!
//! Whoever runs a pipeline fills a [`Recording`]: plain data, cheap to collect.
#![forbid(unsafe_code)]

mod base64;
pub mod board;
pub mod recording;
mod trace;

pub use recording::Recording;
pub use trace::trace;
