//! The journal of a run: what happened, appended, and never changed.
//!
//! One coordinator writes one journal and holds a lock on it while it lives; the system drops the lock
//! with the process. A journal that ends in the middle of a frame, because its writer died, is taken up
//! after the last whole frame. Where bytes in the middle are damaged, what is behind them is put aside
//! and those records are done again: that costs time and loses nothing, because outcomes are idempotent.
//!
//! # What is on the disk when
//! Events are handed to the system before the action they announce: an attempt before the worker gets
//! it, an outcome after it was delivered and before anything follows from it. So they survive the death
//! of any process. [`Durability`] says when they also survive the loss of power.

mod event;
mod file;
mod frame;
mod history;

pub use event::{BatchId, Cause, Entry, Event, Holder};
pub(crate) use file::sync_folder;
pub use file::{Durability, Journal, Opened, Sight, Torn, look, read};
pub use frame::Tear;
pub use history::{History, Suspects};
