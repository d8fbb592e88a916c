//! How a book is written to a file. Format 1, little endian:
//!
//! | bytes | header |
//! | --- | --- |
//! | 0..8 | `WLLEDGER` in a ledger, `WLSHARES` in a share |
//! | 8..12, 12..16 | the format's number, and its complement |
//! | 16..24 | beat: a share's owner adds one at least every 100 ms while it waits |
//! | 24..32 | checksum of everything behind it, up to the last record |
//! | 32..40 | version: differs after every change |
//! | 40..48 | the number of the next ticket |
//! | 48..52, 52..64 | how many records follow; zero |
//!
//! | bytes | record, in the order of tickets |
//! | --- | --- |
//! | 0..8, 8..16 | ticket number, owner |
//! | 16..20, 20..24 | process id; 1 holds, 0 waits |
//! | 24..28, 28..32 | slots; zero |
//! | 32..40, 40..48 | bytes; milliseconds since 1970 |
//! | 48..64 | zero |
//! | 64..65, 65..128 | length of the label, label |
//!
//! What lies behind the last record is left over and means nothing. The checksum finds damage and
//! torn writes, not malice: every changed word changes it.

use super::book::{Book, Entry, Label, Owner, Ticket};

pub(crate) const HEADER: usize = 64;
pub(crate) const RECORD: usize = 128;
/// Where the beat is, for those who write nothing else.
pub(crate) const BEAT_AT: u64 = 16;
/// Where the version is, for those who only want to know whether anything changed.
pub(crate) const VERSION_AT: u64 = 32;
/// No machine has that many leases and waiters on one device; a larger count is damage.
pub(crate) const MAX_RECORDS: usize = 4096;

const FORMAT: u32 = 1;
const CHECKED_FROM: usize = 32;

/// Which file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Ledger,
    Share,
}

impl Sort {
    fn magic(self) -> [u8; 8] {
        match self {
            Self::Ledger => *b"WLLEDGER",
            Self::Share => *b"WLSHARES",
        }
    }
}

/// A header's changing fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) beat: u64,
    pub(crate) version: u64,
}

/// Why bytes are not a book.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Damage {
    /// A file that was just made, or cut to nothing.
    #[error("it is empty")]
    Empty,
    /// A whole file of another format: never to be overwritten.
    #[error("it is of format {0}, and this program knows {FORMAT}")]
    Format(u32),
    #[error("{0}")]
    Torn(&'static str),
}

/// How long the file is that this header begins, if it is one.
pub(crate) fn length(header: &[u8], sort: Sort) -> Option<usize> {
    let count = usize::try_from(word32(header, 48)?).ok()?;
    (header.get(..8)? == sort.magic() && count <= MAX_RECORDS).then_some(HEADER + count * RECORD)
}

/// Writes a book over `out`, with as many of its entries as `keep` wants.
pub(crate) fn encode(
    sort: Sort,
    stamp: Stamp,
    book: &Book,
    keep: impl Fn(&Entry) -> bool,
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(HEADER, 0);
    let mut count = 0_u32;
    for entry in book.entries().iter().filter(|entry| keep(entry)) {
        put_entry(entry, out);
        count += 1;
    }
    out[..8].copy_from_slice(&sort.magic());
    out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    out[12..16].copy_from_slice(&(!FORMAT).to_le_bytes());
    out[16..24].copy_from_slice(&stamp.beat.to_le_bytes());
    out[32..40].copy_from_slice(&stamp.version.to_le_bytes());
    out[40..48].copy_from_slice(&book.next.to_le_bytes());
    out[48..52].copy_from_slice(&count.to_le_bytes());
    let sum = checksum(&out[CHECKED_FROM..]);
    out[24..32].copy_from_slice(&sum.to_le_bytes());
}

fn put_entry(entry: &Entry, out: &mut Vec<u8>) {
    let end = out.len() + RECORD;
    out.extend_from_slice(&entry.ticket.number.to_le_bytes());
    out.extend_from_slice(&entry.ticket.owner.id.to_le_bytes());
    out.extend_from_slice(&entry.ticket.owner.pid.to_le_bytes());
    out.extend_from_slice(&u32::from(entry.held).to_le_bytes());
    out.extend_from_slice(&entry.slots.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&entry.bytes.to_le_bytes());
    out.extend_from_slice(&entry.since_ms.to_le_bytes());
    out.extend_from_slice(&[0; 16]);
    let label = entry.label.as_str().as_bytes();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a label has at most 63 bytes"
    )]
    out.push(label.len() as u8);
    out.extend_from_slice(label);
    out.resize(end, 0);
}

/// Reads a book into `book`, which is empty after damage.
pub(crate) fn decode(bytes: &[u8], sort: Sort, book: &mut Book) -> Result<Stamp, Damage> {
    book.clear();
    let result = read(bytes, sort, book);
    if result.is_err() {
        book.clear();
    }
    result
}

fn read(bytes: &[u8], sort: Sort, book: &mut Book) -> Result<Stamp, Damage> {
    if bytes.is_empty() {
        return Err(Damage::Empty);
    }
    let torn = || Damage::Torn("its header is torn");
    if bytes.get(..8) != Some(&sort.magic()[..]) {
        return Err(torn());
    }
    let format = word32(bytes, 8).ok_or_else(torn)?;
    if word32(bytes, 12) != Some(!format) {
        return Err(torn());
    }
    if format != FORMAT {
        return Err(Damage::Format(format));
    }
    let length = length(bytes, sort).ok_or_else(torn)?;
    let whole = bytes.get(..length);
    let whole = whole.ok_or(Damage::Torn("its end is missing"))?;
    if word64(whole, 24) != Some(checksum(&whole[CHECKED_FROM..])) {
        return Err(Damage::Torn("its checksum is wrong"));
    }
    for record in whole[HEADER..].chunks_exact(RECORD) {
        let entry = take_entry(record).ok_or(Damage::Torn("a record is torn"))?;
        // Searching relies on the order.
        if book
            .entries()
            .last()
            .is_some_and(|last| last.ticket >= entry.ticket)
        {
            return Err(Damage::Torn("its records are out of order"));
        }
        book.insert(entry);
    }
    book.next = book.next.max(word64(whole, 40).ok_or_else(torn)?);
    Ok(Stamp {
        beat: word64(whole, 16).ok_or_else(torn)?,
        version: word64(whole, 32).ok_or_else(torn)?,
    })
}

fn take_entry(record: &[u8]) -> Option<Entry> {
    let length = usize::from(*record.get(64)?);
    let label = record.get(65..65 + length)?;
    Some(Entry {
        ticket: Ticket {
            number: word64(record, 0)?,
            owner: Owner {
                id: word64(record, 8)?,
                pid: word32(record, 16)?,
            },
        },
        held: match word32(record, 20)? {
            0 => false,
            1 => true,
            _ => return None,
        },
        slots: word32(record, 24)?,
        bytes: word64(record, 32)?,
        since_ms: word64(record, 40)?,
        label: Label::new(std::str::from_utf8(label).ok()?),
    })
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    word.try_into().ok().map(u32::from_le_bytes)
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}

/// FNV over words of eight bytes, turned after each so that high bits count too. Each step is
/// one-to-one, so two texts of one length that differ in one word never collide.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(8)
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            (sum ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(29)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let ids = (any::<u64>(), any::<u32>(), any::<bool>());
        (ids, any::<u32>(), any::<u64>(), any::<u64>(), ".{0,40}").prop_map(
            |((id, pid, held), slots, bytes, since_ms, label)| Entry {
                ticket: Ticket {
                    number: 0,
                    owner: Owner { id, pid },
                },
                held,
                slots,
                bytes,
                since_ms,
                label: Label::new(&label),
            },
        )
    }

    fn book() -> impl Strategy<Value = Book> {
        (any::<u32>(), proptest::collection::vec(entry(), 0..6)).prop_map(|(first, entries)| {
            let mut book = Book::default();
            book.next = first.into();
            for mut entry in entries {
                entry.ticket = book.ticket(entry.ticket.owner);
                book.insert(entry);
            }
            book
        })
    }

    fn bytes_of(book: &Book, stamp: Stamp) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(Sort::Ledger, stamp, book, |_| true, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(book in book(), beat: u64, version: u64) {
            let stamp = Stamp { beat, version };
            let mut bytes = bytes_of(&book, stamp);
            prop_assert_eq!(length(&bytes, Sort::Ledger), Some(bytes.len()));
            // What is left over behind the end means nothing.
            bytes.extend_from_slice(b"left over");
            let mut read = Book::default();
            prop_assert_eq!(decode(&bytes, Sort::Ledger, &mut read), Ok(stamp));
            prop_assert_eq!(read, book);
        }

        #[test]
        fn one_changed_byte_is_found(
            book in book(), at: prop::sample::Index, flip in 1_u8..,
        ) {
            let mut bytes = bytes_of(&book, Stamp::default());
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let mut read = Book::default();
            let answer = decode(&bytes, Sort::Ledger, &mut read);
            // The beat is outside the checksum: it changes while nobody holds the lock.
            if (16..24).contains(&at) {
                prop_assert_eq!(read, book);
            } else {
                prop_assert!(matches!(answer, Err(Damage::Torn(_))), "{:?}", answer);
                prop_assert!(read.entries().is_empty());
            }
        }

        #[test]
        fn garbage_is_never_a_book(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(decode(&bytes, Sort::Ledger, &mut Book::default()).is_err());
        }

        #[test]
        fn a_shorter_file_is_never_a_book(book in book(), cut: prop::sample::Index) {
            let bytes = bytes_of(&book, Stamp::default());
            let kept = &bytes[..cut.index(bytes.len())];
            prop_assert!(decode(kept, Sort::Ledger, &mut Book::default()).is_err());
        }
    }

    #[test]
    fn another_format_is_told_from_damage() {
        let mut bytes = bytes_of(&Book::default(), Stamp::default());
        bytes[8..12].copy_from_slice(&7_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&(!7_u32).to_le_bytes());
        let answer = decode(&bytes, Sort::Ledger, &mut Book::default());
        assert_eq!(answer, Err(Damage::Format(7)));
        let text = answer.unwrap_err().to_string();
        assert_eq!(text, "it is of format 7, and this program knows 1");
    }

    #[test]
    fn a_share_is_not_a_ledger() {
        let mut bytes = Vec::new();
        let book = Book::default();
        encode(Sort::Share, Stamp::default(), &book, |_| true, &mut bytes);
        assert!(decode(&bytes, Sort::Ledger, &mut Book::default()).is_err());
        assert!(decode(&bytes, Sort::Share, &mut Book::default()).is_ok());
    }

    #[test]
    fn a_long_label_is_cut_at_a_character() {
        let label = Label::new(&"ä".repeat(40));
        assert_eq!(label.as_str(), "ä".repeat(31));
    }
}
