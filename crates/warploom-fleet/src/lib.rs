//! Many devices, one supervised process each, and every record accounted for: the journal that says what
//! became of each, and the decisions.
#![forbid(unsafe_code)]

mod error;
pub mod journal;
pub mod policy;
mod record;
pub mod rundir;

pub use error::FleetError;
pub use record::{Answer, Outcome, Reason, Record, Spans};
