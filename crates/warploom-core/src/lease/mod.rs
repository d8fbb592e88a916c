//! Leases: the right to use slots and bytes of a device.
//!
//! # What a lease promises
//! * **In order.** Each device serves its queue in the order of arrival. A large request is never
//!   overtaken by small ones behind it, so nobody starves. A request for several devices queues
//!   at each, takes the first it gets and leaves the other queues at once.
//! * **Never too much.** What is held on a device never exceeds its capacity, in slots or bytes.
//! * **Until dropped.** Dropping a [`Lease`] releases it, on every way out. A process that dies
//!   with leases is found out by the next one that has to wait: at once when it arrives, within
//!   a tenth of a second when it already waits.
//! * **Or not at all.** A request that can never be granted is refused at once, with the numbers.
//!   Waiting ends with the deadline or the [`CancelToken`], and leaves nothing behind.
//!
//! # The ledger
//! [`LeaseDesk::local`] serves one process. [`LeaseDesk::shared`] keeps a directory in which all
//! processes agree:
//! ```text
//! warploom/KEY.ledger               the book of one device; locked while it is read or written
//! warploom/desks/PID-ID.alive       locked for as long as that desk lives
//! warploom/desks/PID-ID.KEY.share   that desk's own lines, from which the book can be made again
//! ```
//! Locks are advisory (`flock`), so the kernel drops them with the process, even after `kill -9`.
//! The format is in `record.rs`, the reasons for it in `ledger.rs`.
//!
//! # What to know
//! * Processes may see different capacities for one device, because their limits differ. Each
//!   keeps to its own number, and counts what everybody holds.
//! * A waiter whose process is stopped (Ctrl-Z) is passed after two seconds and keeps its place. A
//!   *holder* that is stopped holds.
//! * A process that is stopped in the few microseconds in which it has a ledger locked blocks that
//!   ledger: waits end with [`LeaseError::LedgerBusy`] at their deadline, releases are retried by
//!   a thread.
//! * A child made by `fork` without `exec` inherits the locks: its parent counts as alive until
//!   both are gone, and the child must not use the parent's desk. `std::process::Command` is not
//!   concerned: its children inherit nothing.
//! * Ledger files may be deleted or overwritten while in use: the next to look makes them again
//!   from the shares. If the whole directory is deleted, or a living desk's `.alive` file, that
//!   desk's leases are unknown to the others until it next leases or releases.
//! * It is an agreement among programs that keep it, not a guard against those that do not.

mod book;
mod cancel;
mod desk;
mod error;
mod folder;
#[cfg(all(test, warploom_shuttle))]
mod interleavings;
mod ledger;
mod local;
mod patience;
mod presence;
mod queues;
mod record;
mod request;
mod shared;
pub mod shared_folder;
mod sheet;
mod signal;
mod sleepers;
mod status;
mod sync;

pub use cancel::CancelToken;
pub use desk::{Lease, LeaseDesk};
pub use error::LeaseError;
pub use folder::default_ledger_dir;
pub use request::{DeskDevice, LeaseCapacity, LeaseRequest};
pub use status::{DeviceLeases, Holder};
