//! Memory that two processes share.
//!
//! One process puts bytes in, tells the other where, and leaves them alone until it is told that they were
//! read. Both only ever copy: no reference into the memory exists, so a process that breaks the rules can
//! spoil bytes, and no more.
#![expect(
    unsafe_code,
    reason = "copying from and to memory that another process maps is done through pointers"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};

use super::Violation;

/// After these nobody can make the memory shorter, which would end whoever reads it.
const SEALS: SealFlags = SealFlags::GROW
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// A stretch of shared memory.
#[derive(Debug)]
pub(crate) struct Arena {
    map: MmapRaw,
}

impl Arena {
    /// A new stretch, and what another process opens it with. It takes memory as it is used.
    pub(crate) fn create(bytes: u64) -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("warploom-fleet", flags)?;
        ftruncate(&memory, bytes)?;
        fcntl_add_seals(&memory, SEALS)?;
        let arena = Self::map(&memory, bytes)?;
        Ok((arena, memory))
    }

    /// The stretch that another process made.
    pub(crate) fn open(memory: OwnedFd) -> io::Result<Self> {
        if !fcntl_get_seals(&memory)?.contains(SEALS) {
            return Err(io::Error::other("the shared memory is not sealed"));
        }
        let file = File::from(memory);
        let bytes = file.metadata()?.len();
        Self::map(&OwnedFd::from(file), bytes)
    }

    fn map(memory: &OwnedFd, bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let map = MmapOptions::new().len(bytes).map_raw(memory)?;
        Ok(Self { map })
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Puts bytes in.
    pub(crate) fn put(&self, at: u64, bytes: &[u8]) -> Result<(), Violation> {
        let start = self.start(at, bytes.len() as u64)?;
        // SAFETY: `start` is inside the mapping, as `start()` checked.
        let to = unsafe { self.map.as_mut_ptr().add(start) };
        // SAFETY: `start()` checked that the mapping has `bytes.len()` bytes from there on; a sealed memory
        // never gets shorter; `bytes` is this process's own memory and so does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Takes a copy of bytes out, in place of what `into` holds.
    pub(crate) fn take(&self, at: u64, bytes: u64, into: &mut Vec<u8>) -> Result<(), Violation> {
        let start = self.start(at, bytes)?;
        let count = usize::try_from(bytes).unwrap_or(usize::MAX);
        into.resize(count, 0);
        // SAFETY: `start` is inside the mapping, as `start()` checked.
        let from = unsafe { self.map.as_ptr().add(start) };
        // SAFETY: as in `put`, and `into` has `count` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), count) };
        Ok(())
    }

    /// Where bytes start, if they are all inside.
    fn start(&self, at: u64, bytes: u64) -> Result<usize, Violation> {
        let room = self.bytes();
        let inside = at.checked_add(bytes).is_some_and(|end| end <= room);
        match usize::try_from(at) {
            Ok(start) if inside => Ok(start),
            _ => Err(Violation::Place { at, bytes, room }),
        }
    }
}

/// Bytes that begin a cache line each: two processes do not fight over one.
const LINE: u64 = 64;

/// Which parts of a stretch are in use, as its sender knows it.
#[derive(Debug)]
pub(crate) struct Shelf {
    room: u64,
    /// Length by start.
    taken: BTreeMap<u64, u64>,
}

impl Shelf {
    pub(crate) fn new(room: u64) -> Self {
        Self {
            room,
            taken: BTreeMap::new(),
        }
    }

    /// A place for so many bytes, the first that is large enough.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(LINE)?;
        let mut start = 0;
        for (&at, &length) in &self.taken {
            if at - start >= bytes {
                break;
            }
            start = at + length;
        }
        if self.room.checked_sub(start)? < bytes {
            return None;
        }
        self.taken.insert(start, bytes);
        Some(start)
    }

    /// A place is free again; false when it was not taken.
    pub(crate) fn give(&mut self, at: u64) -> bool {
        self.taken.remove(&at).is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_one_mapping_puts_in_another_takes_out() {
        let (ours, memory) = Arena::create(1 << 16).unwrap();
        let theirs = Arena::open(memory).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        ours.put(60_000, &bytes).unwrap();
        let mut found = vec![1; 9];
        theirs.take(60_000, 5000, &mut found).unwrap();
        assert_eq!(found, bytes);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let (arena, _memory) = Arena::create(4096).unwrap();
        let mut found = Vec::new();
        for (at, bytes) in [
            (4096, 1),
            (0, 4097),
            (u64::MAX, 2),
            (5000, 0),
            (1, u64::MAX),
        ] {
            let taken = arena.take(at, bytes, &mut found);
            let room = 4096;
            assert_eq!(taken, Err(Violation::Place { at, bytes, room }));
        }
        assert!(arena.put(4095, &[1, 2]).is_err());
        assert_eq!(arena.take(4096, 0, &mut found), Ok(()));
    }

    #[test]
    fn memory_that_could_shrink_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("unsealed", flags).unwrap();
        ftruncate(&memory, 4096).unwrap();
        assert!(Arena::open(memory).is_err());
    }

    proptest! {
        /// Places never overlap, and what is given back can be had again.
        #[test]
        fn places_do_not_overlap(steps in proptest::collection::vec((any::<bool>(), 0_u64..900), 0..80)) {
            let mut shelf = Shelf::new(4096);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (give, number) in steps {
                if give && !held.is_empty() {
                    let (at, _) = held.remove(usize::try_from(number).unwrap() % held.len());
                    prop_assert!(shelf.give(at) && !shelf.give(at));
                } else if let Some(at) = shelf.take(number) {
                    prop_assert!(at + number <= 4096);
                    let apart = |&(other, length): &(u64, u64)| at + number <= other || other + length <= at;
                    prop_assert!(held.iter().all(apart));
                    held.push((at, number.max(1)));
                }
            }
            for (at, _) in held {
                prop_assert!(shelf.give(at));
            }
            prop_assert_eq!(shelf.take(4096), Some(0));
        }
    }
}
