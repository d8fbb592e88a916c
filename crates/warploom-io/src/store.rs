//! The bytes of a file, read from where they are needed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Fault;
use crate::region::index;

/// Small things that are near each other, such as directories, are read in pieces of this size.
const WINDOW: usize = 1 << 16;

/// A file, or its bytes in memory.
#[derive(Debug)]
pub(crate) struct Store {
    content: Content,
    length: u64,
    window: Vec<u8>,
    window_at: u64,
}

#[derive(Debug)]
enum Content {
    File(File),
    Memory(Vec<u8>),
}

impl Store {
    pub(crate) fn file(file: File, length: u64) -> Self {
        Self {
            content: Content::File(file),
            length,
            window: Vec::new(),
            window_at: 0,
        }
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self {
            content: Content::Memory(bytes),
            length,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// How many bytes the file has.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Fills `out` with the bytes from `at` on.
    pub(crate) fn read_at(&mut self, at: u64, out: &mut [u8], what: &str) -> Result<(), Fault> {
        let end = at.saturating_add(out.len() as u64);
        let wanted = out.len() as u64;
        let short = |there: u64| Fault::Short {
            what: what.to_owned(),
            wanted,
            there: there.saturating_sub(at),
        };
        if end > self.length {
            return Err(short(self.length));
        }
        match &mut self.content {
            Content::Memory(bytes) => {
                out.copy_from_slice(&bytes[index(at)..index(end)]);
                Ok(())
            }
            Content::File(file) => {
                let read = file
                    .seek(SeekFrom::Start(at))
                    .and_then(|_| file.read_exact(out));
                read.map_err(|error| match error.kind() {
                    // It has become shorter since it was opened.
                    io::ErrorKind::UnexpectedEof => short(at),
                    _ => Fault::open(&error),
                })
            }
        }
    }

    /// A few bytes from `at` on, by way of a larger piece that is kept.
    pub(crate) fn peek(&mut self, at: u64, count: usize, what: &str) -> Result<&[u8], Fault> {
        let end = at.saturating_add(count as u64);
        let kept = self.window_at + self.window.len() as u64;
        if at < self.window_at || end > kept {
            let there = index(self.length.saturating_sub(at));
            if count > there {
                return Err(Fault::Short {
                    what: what.to_owned(),
                    wanted: count as u64,
                    there: there as u64,
                });
            }
            let mut window = std::mem::take(&mut self.window);
            window.resize(count.max(WINDOW).min(there), 0);
            let read = self.read_at(at, &mut window, what);
            self.window = window;
            self.window_at = at;
            if let Err(fault) = read {
                self.window.clear();
                return Err(fault);
            }
        }
        let from = index(at - self.window_at);
        Ok(&self.window[from..from + count])
    }
}

/// Room that reading needs for itself, kept from one image to the next, and a way to end early.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A piece as it is stored.
    pub(crate) stored: Vec<u8>,
    /// The piece as it was before it was stored.
    pub(crate) decoded: Vec<u8>,
    /// One more, for codecs in a row.
    pub(crate) spare: Vec<u8>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Scratch {
    /// Asked between pieces.
    pub(crate) fn go_on(&self) -> Result<(), Fault> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Fault::Stopped);
        }
        Ok(())
    }
}

/// Makes a buffer so long, without touching more of it than is new; `fault` where there is no room.
pub(crate) fn make_room(buffer: &mut Vec<u8>, bytes: u64) -> Result<(), Fault> {
    let no_room = || Fault::NoMemory { bytes };
    let count = usize::try_from(bytes).map_err(|_| no_room())?;
    if count > buffer.len() {
        buffer
            .try_reserve_exact(count - buffer.len())
            .map_err(|_| no_room())?;
    }
    buffer.resize(count, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_seen_through_a_window_and_directly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        for mut store in [
            Store::file(file, bytes.len() as u64),
            Store::memory(bytes.clone()),
        ] {
            for at in [0, 5, 65_530, 199_990, 3, 100_000] {
                assert_eq!(store.peek(at, 10, "it").unwrap(), &bytes[index(at)..][..10]);
                let mut direct = [0; 10];
                store.read_at(at, &mut direct, "it").unwrap();
                assert_eq!(direct, bytes[index(at)..][..10]);
            }
            let fault = store.peek(199_995, 10, "it").unwrap_err();
            assert_eq!(
                fault.to_string(),
                "is cut short: it needs 10 bytes, 5 are there"
            );
            assert!(store.peek(u64::MAX, 10, "it").is_err());
            assert!(store.read_at(u64::MAX, &mut [0; 4], "it").is_err());
        }
    }
}
