//! The one place that knows whether the crew's threads are real or shuttle's.
//!
//! `--cfg warploom_shuttle` explores the very code that ships. Shuttle has no clock: a wait with a
//! timeout is one without, so a wake-up that is missing shows as a deadlock.

#[cfg(warploom_shuttle)]
pub(super) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
#[cfg(not(warploom_shuttle))]
pub(super) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
