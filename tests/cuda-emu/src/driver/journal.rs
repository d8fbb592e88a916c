//! What is told on standard error, and the fault that is kept for who asks.

use std::collections::HashSet;
use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::plan::Log;

static LEVEL: AtomicU8 = AtomicU8::new(1);

static LAST_FAULT: Mutex<Option<String>> = Mutex::new(None);

/// Sets what is told from now on.
pub(crate) fn set_level(log: Log) {
    LEVEL.store(number(log), Ordering::Relaxed);
}

/// Whether something of this weight is told.
pub(crate) fn tells(log: Log) -> bool {
    LEVEL.load(Ordering::Relaxed) >= number(log)
}

fn number(log: Log) -> u8 {
    match log {
        Log::Quiet => 0,
        Log::Faults => 1,
        Log::Calls => 2,
    }
}

/// Tells something of this weight.
pub(crate) fn tell(log: Log, text: fmt::Arguments<'_>) {
    if tells(log) {
        shout(text);
    }
}

/// Tells something whatever was asked for. A closed standard error is no reason to fail.
pub(crate) fn shout(text: fmt::Arguments<'_>) {
    // One write, so that lines of several threads do not mix.
    let line = format!("warploom-emu: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Tells something once per process and `key`.
pub(crate) fn tell_once(log: Log, key: &'static str, text: fmt::Arguments<'_>) {
    static TOLD: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.get_or_insert_default().insert(key) {
        tell(log, text);
    }
}

/// Tells a fault, and keeps it.
pub(crate) fn fault(text: &str) {
    let mut last = LAST_FAULT.lock().unwrap_or_else(PoisonError::into_inner);
    *last = Some(text.to_owned());
    drop(last);
    tell(Log::Faults, format_args!("{text}"));
}

/// The last fault of the process.
pub(crate) fn last_fault() -> Option<String> {
    let last = LAST_FAULT.lock().unwrap_or_else(PoisonError::into_inner);
    last.clone()
}
