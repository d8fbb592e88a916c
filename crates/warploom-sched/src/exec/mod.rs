//! The executor: one thread decides, crews and queues do the work.

mod berth;
mod chain;
mod crew;
mod dealing;
mod ending;
mod error;
#[cfg(all(test, warploom_shuttle))]
mod interleavings;
mod meter;
mod options;
mod payload;
mod pipeline;
mod pool;
mod races;
mod report;
mod step;
mod sync;
mod tenant;
mod tenants;
mod threads;
mod tray;
mod turn;
mod wiring;

pub use crew::{Crew, Job, Note, Outcome, Post, Watch};
pub use dealing::deal;
pub use error::{LeaseError, Race, RunError, StageError};
pub use options::RunOptions;
pub use payload::{DeviceWork, Fill, HostWork, Payloads};
pub use pipeline::Pipeline;
pub use pool::{Hold, Pool, ReadLease, SlotState, WriteLease};
pub use report::{Command, EdgeCount, Owner, Summary, Usage};
pub use tenant::{Tenant, TenantId};
pub use tenants::Tenants;
pub use threads::{DRIVER, Threads};
pub use turn::{Batch, DeviceTurn, HostTurn, Use};
