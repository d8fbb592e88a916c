//! Who holds what on one device, and who waits for it: plain data, no clock, no files, no locks.
//!
//! Both desks keep their truth in a [`Book`]; the local one in memory, the shared one in a file.
//! The invariant: a waiter is granted only when it [may](Book::may_take) be: in its turn, and if
//! it fits.

use super::request::LeaseCapacity;

/// The longest label that is kept, in bytes; a longer one is cut at a character.
pub(crate) const MAX_LABEL: usize = 63;

/// What a lease is for, in a few words, stored inline so that a book is one block of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    len: u8,
    bytes: [u8; MAX_LABEL],
}

impl Label {
    pub(crate) fn new(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_LABEL)];
        let mut bytes = [0; MAX_LABEL];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "cut to MAX_LABEL above")]
        let len = text.len() as u8;
        Self { len, bytes }
    }

    pub(crate) fn as_str(&self) -> &str {
        let len = usize::from(self.len).min(MAX_LABEL);
        // Only whole characters get in; an empty text beats a panic all the same.
        std::str::from_utf8(&self.bytes[..len]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A desk, as books name it: a random number, and the process for people to read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Owner {
    pub(crate) id: u64,
    pub(crate) pid: u32,
}

/// A place in the queue of one device: smaller came earlier. The owner is part of it because after
/// a book was lost and re-asserted, two desks may remember the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    pub(crate) owner: Owner,
}

/// One line of a book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) ticket: Ticket,
    /// Holding, or still waiting?
    pub(crate) held: bool,
    pub(crate) slots: u32,
    pub(crate) bytes: u64,
    /// Waiting or holding since then, in milliseconds since 1970. Only ever shown.
    pub(crate) since_ms: u64,
    pub(crate) label: Label,
}

/// What one device's holders and waiters are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Book {
    /// The number of the next ticket.
    pub(crate) next: u64,
    /// In the order of tickets.
    entries: Vec<Entry>,
}

impl Book {
    /// Holders and waiters, oldest first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Slots and bytes that are held. Saturates: the numbers may come from a file.
    pub(crate) fn held(&self) -> (u64, u64) {
        let held = self.entries.iter().filter(|entry| entry.held);
        held.fold((0, 0), |(slots, bytes), entry| {
            (
                u64::saturating_add(slots, entry.slots.into()),
                u64::saturating_add(bytes, entry.bytes),
            )
        })
    }

    /// Would this fit beside what is held?
    pub(crate) fn has_room(&self, slots: u32, bytes: u64, capacity: LeaseCapacity) -> bool {
        let (held_slots, held_bytes) = self.held();
        held_slots.saturating_add(slots.into()) <= capacity.slots.into()
            && held_bytes
                .checked_add(bytes)
                .is_some_and(|sum| sum <= capacity.bytes)
    }

    /// How much of the device is spoken for, in millionths: the larger of slots and bytes.
    pub(crate) fn load(&self, capacity: LeaseCapacity) -> u64 {
        let share = |held: u64, all: u64| {
            let millionths = u128::from(held) * 1_000_000 / u128::from(all.max(1));
            u64::try_from(millionths).unwrap_or(u64::MAX)
        };
        let (slots, bytes) = self.held();
        share(slots, capacity.slots.into()).max(share(bytes, capacity.bytes))
    }

    /// How many wait, not counting owners that are asleep.
    pub(crate) fn waiting(&self, asleep: &[Owner]) -> usize {
        self.awake(asleep).count()
    }

    /// How many waiters came before this ticket, not counting owners that are asleep.
    pub(crate) fn ahead_of(&self, ticket: Ticket, asleep: &[Owner]) -> usize {
        self.awake(asleep)
            .take_while(|entry| entry.ticket < ticket)
            .count()
    }

    /// The oldest waiter, not counting owners that are asleep.
    pub(crate) fn first_waiting(&self, asleep: &[Owner]) -> Option<Ticket> {
        self.awake(asleep).next().map(|entry| entry.ticket)
    }

    fn awake<'a>(&'a self, asleep: &'a [Owner]) -> impl Iterator<Item = &'a Entry> {
        self.entries
            .iter()
            .filter(|entry| !entry.held && !asleep.contains(&entry.ticket.owner))
    }

    /// Numbers the next ticket.
    pub(crate) fn ticket(&mut self, owner: Owner) -> Ticket {
        let number = self.next;
        // Saturates: the number may come from a file.
        self.next = self.next.saturating_add(1);
        Ticket { number, owner }
    }

    /// Puts an entry where its ticket belongs: at the end, except for re-asserted ones.
    pub(crate) fn insert(&mut self, entry: Entry) {
        self.next = self.next.max(entry.ticket.number.saturating_add(1));
        let at = self
            .entries
            .partition_point(|other| other.ticket < entry.ticket);
        self.entries.insert(at, entry);
    }

    /// May this waiter be granted? Only in its turn, and only if it fits.
    pub(crate) fn may_take(
        &self,
        ticket: Ticket,
        capacity: LeaseCapacity,
        asleep: &[Owner],
    ) -> bool {
        self.find(ticket).is_ok_and(|at| {
            let entry = &self.entries[at];
            !entry.held
                && self.ahead_of(ticket, asleep) == 0
                && self.has_room(entry.slots, entry.bytes, capacity)
        })
    }

    /// Grants a waiter, which [may](Self::may_take) be.
    pub(crate) fn grant(&mut self, ticket: Ticket, now_ms: u64) {
        if let Ok(at) = self.find(ticket) {
            self.entries[at].held = true;
            self.entries[at].since_ms = now_ms;
        }
    }

    /// Strikes an entry out.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        let found = self.find(ticket);
        if let Ok(at) = found {
            self.entries.remove(at);
        }
        found.is_ok()
    }

    /// Strikes out every entry that `keep` does not want.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// Forgets everything; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.next = 0;
        self.entries.clear();
    }

    pub(crate) fn contains(&self, ticket: Ticket) -> bool {
        self.find(ticket).is_ok()
    }

    fn find(&self, ticket: Ticket) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.ticket.cmp(&ticket))
    }
}
