//! What a desk looks like from outside.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::book::{Book, Entry};
use super::request::LeaseCapacity;
use crate::bytes::Bytes;

/// One device's leases at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceLeases {
    /// Which device, by its name at this desk.
    pub name: String,
    /// What this desk thinks can be leased of it.
    pub capacity: LeaseCapacity,
    /// Who holds it, oldest request first.
    pub held: Vec<Holder>,
    /// Who waits for it, in the order they will be served.
    pub waiting: Vec<Holder>,
}

/// Somebody who holds a part of a device, or waits for one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process, as it calls itself; in a container that may be another number than outside.
    pub pid: u32,
    /// What it is for.
    pub label: String,
    /// How many slots.
    pub slots: u32,
    /// How many bytes.
    pub bytes: u64,
    /// Since when it holds, or waits.
    pub since: SystemTime,
}

impl Holder {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            pid: entry.ticket.owner.pid,
            label: entry.label.as_str().to_owned(),
            slots: entry.slots,
            bytes: entry.bytes,
            since: time_of(entry.since_ms),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if !self.label.is_empty() {
            write!(f, " `{}`", self.label)?;
        }
        write!(f, " ({}, {})", slots_text(self.slots), Bytes(self.bytes))
    }
}

/// `1 slot`, `3 slots`.
pub(crate) fn slots_text(slots: u32) -> String {
    format!("{slots} slot{}", if slots == 1 { "" } else { "s" })
}

impl DeviceLeases {
    pub(crate) fn of(name: &str, capacity: LeaseCapacity, book: &Book) -> Self {
        let side = |held| {
            let entries = book.entries().iter();
            let entries = entries.filter(|entry| entry.held == held);
            entries.map(Holder::of).collect()
        };
        Self {
            name: name.to_owned(),
            capacity,
            held: side(true),
            waiting: side(false),
        }
    }
}

/// Now, as books write it.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The time a book wrote. A file may hold any number, so one beyond the clock's range is 1970.
pub(crate) fn time_of(ms: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(ms))
        .unwrap_or(UNIX_EPOCH)
}
