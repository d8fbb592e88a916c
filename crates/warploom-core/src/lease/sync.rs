//! The one place that knows whether threads are real or shuttle's.
//!
//! Everything in this folder takes its locks from here, so that `--cfg warploom_shuttle` explores
//! the very code that ships.

use std::sync::PoisonError;

#[cfg(warploom_shuttle)]
pub(crate) use shuttle::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(warploom_shuttle))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// Locks, poisoned or not.
///
/// No critical section here runs foreign code, so poison means a bug of this module that already
/// panicked somewhere. Going on with the book as it is beats making every later release panic too,
/// most of all inside `Drop`.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
