//! The executor: one thread decides, crews and queues do the work.

mod berth;
mod chain;
mod crew;
mod dealing;
mod ending;
mod error;
mod guard;
#[cfg(all(test, warploom_shuttle))]
mod interleavings;
mod lease;
mod meter;
mod options;
mod payload;
mod pipeline;
mod places;
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
pub use lease::{ReadLease, WriteLease};
pub use options::RunOptions;
pub use payload::{DeviceWork, Fill, HostWork, Payloads};
pub use pipeline::Pipeline;
pub use pool::{Hold, Pool, SlotState};
pub use report::{Command, EdgeCount, Owner, Summary, Usage};
pub use tenant::{Tenant, TenantId};
pub use tenants::Tenants;
pub use threads::{DRIVER, Threads};
pub use turn::{Batch, DeviceTurn, HostTurn, Use};
