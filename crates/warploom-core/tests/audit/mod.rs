//! The ledger format once more, written from its description and not from the code: what an
//! auditor who trusts nobody would use.

use std::path::Path;

/// One line of a ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) ticket: u64,
    pub(crate) owner: u64,
    pub(crate) pid: u32,
    pub(crate) holds: bool,
    pub(crate) slots: u32,
    pub(crate) bytes: u64,
    pub(crate) label: String,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size]
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn small(bytes: &[u8], at: usize) -> u32 {
    u32::try_from(number(bytes, at, 4)).expect("four bytes")
}

/// Of everything from byte 32 on.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for at in (0..bytes.len()).step_by(8) {
        sum = (sum ^ number(bytes, at, 8))
            .wrapping_mul(0x100_0000_01b3)
            .rotate_left(29);
    }
    sum
}

/// The lines of a ledger; `None` when it is being written, or damaged.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<Line>> {
    if bytes.len() < 64 || &bytes[..8] != b"WLLEDGER" || number(bytes, 8, 4) != 1 {
        return None;
    }
    let end = 64 + 128 * usize::try_from(number(bytes, 48, 4)).ok()?;
    if bytes.len() < end || number(bytes, 24, 8) != checksum(&bytes[32..end]) {
        return None;
    }
    let line = |record: &[u8]| {
        let label = &record[65..65 + usize::from(record[64])];
        Line {
            ticket: number(record, 0, 8),
            owner: number(record, 8, 8),
            pid: small(record, 16),
            holds: number(record, 20, 4) == 1,
            slots: small(record, 24),
            bytes: number(record, 32, 8),
            label: String::from_utf8(label.to_vec()).expect("labels are text"),
        }
    };
    Some(bytes[64..end].chunks(128).map(line).collect())
}

/// The lines of the ledger at `path`, read without its lock.
pub(crate) fn read(path: &Path) -> Option<Vec<Line>> {
    parse(&std::fs::read(path).ok()?)
}
