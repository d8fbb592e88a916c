//! Many devices, one supervised process each, and every record accounted for.
//!
//! A [`Fleet`] has records done by worker processes, one per slot of a device. Whatever dies on the way,
//! each record ends as exactly one [`Outcome`]: done, failed with a reason, or not started; and a run whose
//! coordinator was killed goes on where its journal ends.
//!
//! ```text
//!  Fleet::run        the thread that starts everything and waits in one place       supervisor/
//!    policy          every decision, as a pure state machine                        policy/
//!    journal         what happened, appended by one writer                          journal/, rundir
//!    wire            frames through a pair of sockets, bytes through shared memory  wire/
//!    mask            which device a worker sees                                     mask
//!  worker::serve     the other end, in which a [`Work`] runs                        worker, work
//! ```
//!
//! # What happens when
//! | trouble | the records | the device |
//! | --- | --- | --- |
//! | a worker dies, hangs, loses its device or talks nonsense | those under way run in halves, elsewhere first, until one is left that does it alone three times: it fails | a strike; too many in a row, and it is in quarantine until it passes a probe |
//! | memory runs out | run in smaller batches; alone, it fails | the size is remembered for its model |
//! | the size of batches was fixed, and memory runs out | stay not started, and the run ends in an error | |
//! | the work fails a record | it fails, with the work's words | |
//! | the coordinator dies | what was not delivered is done again | workers die with it |
//! | Ctrl-C ([`Stopper`]) | once: those under way are done; twice: they stay not started | no process is left |
//!
//! Linux only: it stands on process descriptors, shared memory without names, and on the signal that a
//! parent's death sends.
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod builder;
mod crew;
mod error;
mod fleet;
pub mod health;
mod holder;
pub mod journal;
pub mod mask;
mod outcomes;
pub mod policy;
mod record;
mod report;
pub mod rundir;
mod stop;
mod supervisor;
mod wire;
mod work;
pub mod worker;

pub use builder::FleetBuilder;
pub use crew::{FleetDevice, Program};
pub use error::FleetError;
pub use fleet::Fleet;
pub use outcomes::{Delivered, Outcomes};
pub use policy::{Counts, Rules, Schedule};
pub use record::{Answer, Outcome, Reason, Record, Spans};
pub use report::{Delivery, Failure, Incident, Order, Report, SlotSnapshot, SlotState, Snapshot};
pub use stop::{Listening, Stopper};
pub use work::{Assigned, Batch, Load, Refusal, Trouble, Work};
