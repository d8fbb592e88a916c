//! What a worker held, noted by itself, and whether all of that together was allowed.
//!
//! A hold is noted after the lease was granted and its end before the lease is dropped. So a noted
//! hold lies within the real one, and an excess in the notes is an excess in truth.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::roles::{BYTES, NAMES, SLOTS};

/// Nanoseconds on the clock that all processes share.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.expect("it is after 1970").as_nanos();
    u64::try_from(since).expect("it is before 2554")
}

/// One lease, as its worker saw it.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) device: usize,
    pub(crate) slots: u64,
    pub(crate) bytes: u64,
    pub(crate) asked: u64,
    pub(crate) acquired: u64,
    /// `None` when the worker was killed while it held.
    pub(crate) released: Option<u64>,
}

/// All leases of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    pub(crate) holds: Vec<Hold>,
}

impl Journal {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut journal = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().expect("a number");
            if words[0] == "released" {
                let last = journal.holds.last_mut().expect("it was acquired before");
                last.released = Some(number(1));
            } else {
                let device = NAMES.iter().position(|name| *name == words[0]);
                journal.holds.push(Hold {
                    device: device.expect("a known device"),
                    slots: number(1),
                    bytes: number(2),
                    asked: number(3),
                    acquired: number(4),
                    released: None,
                });
            }
        }
        journal
    }

    /// When it let go for the last time.
    pub(crate) fn ended(&self) -> Option<u64> {
        self.holds.last()?.released
    }
}

/// Plays all journals back and adds up.
pub(crate) fn check(journals: &[Journal]) {
    let mut events = Vec::new();
    for hold in journals.iter().flat_map(|journal| &journal.holds) {
        events.push((hold.acquired, true, hold));
        // Of one that was killed we know only that it held at this moment.
        events.push((hold.released.unwrap_or(hold.acquired + 1), false, hold));
    }
    // Ends first: what is let go and taken in the same nanosecond does not overlap.
    events.sort_by_key(|(at, begins, _)| (*at, *begins));
    let mut held = [(0_u64, 0_u64); NAMES.len()];
    for (at, begins, hold) in events {
        let (slots, bytes) = &mut held[hold.device];
        if begins {
            *slots += hold.slots;
            *bytes += hold.bytes;
            assert!(*slots <= SLOTS.into(), "{slots} slots at {at}: {hold:?}");
            assert!(*bytes <= BYTES, "{bytes} bytes at {at}: {hold:?}");
        } else {
            *slots -= hold.slots;
            *bytes -= hold.bytes;
        }
    }
}
