//! Reading and writing the files of a ledger: whole ones, and single words of them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::record::{BEAT_AT, HEADER, Sort, VERSION_AT, length};

/// Reads as much as the header says there is, or what there is.
pub(crate) fn read_whole<'a>(
    mut file: &File,
    sort: Sort,
    buffer: &'a mut Vec<u8>,
) -> io::Result<&'a [u8]> {
    file.seek(SeekFrom::Start(0))?;
    buffer.resize(buffer.len().max(4096), 0);
    let mut filled = 0;
    loop {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled >= HEADER {
            match length(&buffer[..filled], sort) {
                Some(length) if length > filled => buffer.resize(buffer.len().max(length), 0),
                _ => break,
            }
        }
    }
    Ok(&buffer[..filled])
}

/// One write, so that nothing short of the machine's death comes in between.
pub(crate) fn write_whole(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
}

pub(crate) fn read_beat(path: &Path) -> Option<u64> {
    read_word(&File::open(path).ok()?, BEAT_AT)
}

/// Shows that the owner of this share is awake.
pub(crate) fn write_beat(mut share: &File, beat: u64) -> io::Result<()> {
    share.seek(SeekFrom::Start(BEAT_AT))?;
    share.write_all(&beat.to_le_bytes())
}

/// The version of a ledger, without its lock: good enough to see that it changed.
pub(crate) fn read_version(ledger: &File) -> Option<u64> {
    read_word(ledger, VERSION_AT)
}

fn read_word(mut file: &File, at: u64) -> Option<u64> {
    let mut word = [0; 8];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut word).ok()?;
    Some(u64::from_le_bytes(word))
}
