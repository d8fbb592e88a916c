//! How bytes get into a large file: through the system's memory, or past it.
//!
//! Through it is the usual way: the system copies the bytes to pages of its own and writes them to the disk when
//! it likes. Where pages are dear, as on virtual machines whose memory is lent to them as they touch it, that costs
//! more than computing an image. Past it the disk takes the bytes from where they are, next to nothing is left to
//! the processor, and whoever writes waits for the disk. Which is better only trying tells: the other way is tried
//! where the usual one keeps the processor busy, and taken for as long as it is not slower.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Smaller files are not worth the question.
const LARGE: u64 = 1 << 20;
/// Bytes for each second of the processor, below which the usual way is dear.
const DEAR: f64 = 1.5e9;
/// After so many files the way that was not taken is looked at again.
const AGAIN: u32 = 64;
/// Disks take whole blocks.
const BLOCK: usize = 4096;

/// How bytes get into a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Through,
    Past,
}

/// What is known of both ways.
#[derive(Debug)]
struct Known {
    /// Bytes a second of the processor's and of the clock's.
    through: Option<(f64, f64)>,
    /// Bytes a second of the clock's.
    past: Option<f64>,
    /// Files since the way that is not taken was looked at.
    since: u32,
    /// A file system does not know the other way.
    is_refused: bool,
}

impl Known {
    const fn nothing() -> Self {
        Self {
            through: None,
            past: None,
            since: 0,
            is_refused: false,
        }
    }

    fn choose(&mut self) -> Way {
        let Some((processor, clock)) = self.through.filter(|_| !self.is_refused) else {
            return Way::Through;
        };
        if processor >= DEAR {
            return Way::Through;
        }
        let Some(past) = self.past else {
            return Way::Past;
        };
        let (better, other) = if past >= clock {
            (Way::Past, Way::Through)
        } else {
            (Way::Through, Way::Past)
        };
        self.since += 1;
        if self.since < AGAIN {
            return better;
        }
        self.since = 0;
        other
    }

    fn note(&mut self, way: Way, bytes: u64, spent: Duration, took: Duration) {
        let speed = |time: Duration| bytes as f64 / time.as_secs_f64().max(1e-9);
        match way {
            Way::Through => self.through = Some((speed(spent), speed(took))),
            Way::Past => self.past = Some(speed(took)),
        }
    }
}

static KNOWN: Mutex<Known> = Mutex::new(Known::nothing());

fn known<T>(f: impl FnOnce(&mut Known) -> T) -> T {
    f(&mut KNOWN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What writes a file from its beginning.
#[derive(Debug)]
pub(crate) struct Pen<'f> {
    file: &'f File,
    way: Way,
    /// When a large file was begun, by both clocks.
    begun: Option<(Instant, Duration)>,
    written: u64,
    /// The beginning of a block that is not whole yet, somewhere in it where a block begins.
    rest: Vec<u8>,
    filled: usize,
    /// Does the disk take bytes from anywhere?
    is_choosy: bool,
}

impl<'f> Pen<'f> {
    /// For a file of at least so many bytes.
    pub(crate) fn new(file: &'f File, bytes: u64) -> Self {
        let is_large = bytes >= LARGE;
        let mut way = Way::Through;
        if is_large && known(Known::choose) == Way::Past {
            if go_past(file, true) {
                way = Way::Past;
            } else {
                known(|known| known.is_refused = true);
            }
        }
        Self::taking(file, way, is_large.then(|| (Instant::now(), spent())))
    }

    fn taking(file: &'f File, way: Way, begun: Option<(Instant, Duration)>) -> Self {
        Self {
            file,
            way,
            begun,
            written: 0,
            rest: Vec::new(),
            filled: 0,
            is_choosy: false,
        }
    }

    /// The place for a block, which begins where blocks begin in memory.
    fn block(&mut self) -> &mut [u8] {
        self.rest.resize(2 * BLOCK, 0);
        let at = self.rest.as_ptr().align_offset(BLOCK).min(BLOCK);
        &mut self.rest[at..at + BLOCK]
    }

    /// Takes bytes for the block that is not whole yet, and writes it when it is.
    fn gather(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let filled = self.filled;
        let count = bytes.len().min(BLOCK - filled);
        self.block()[filled..filled + count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        if self.filled == BLOCK {
            let mut file = self.file;
            file.write_all(self.block())?;
            self.filled = 0;
        }
        Ok(count)
    }

    fn past(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = bytes.len() / BLOCK * BLOCK;
        if self.filled > 0 || whole == 0 || self.is_choosy {
            return self.gather(bytes);
        }
        let mut file = self.file;
        match file.write(&bytes[..whole]) {
            // A disk that is nearly full may take a part of a block, after which nothing is where blocks begin.
            Ok(count) if count.is_multiple_of(BLOCK) => Ok(count),
            Ok(count) => {
                go_past(self.file, false);
                self.way = Way::Through;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_choosy = true;
                self.gather(bytes)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what is not a whole block, and notes how it went.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.way == Way::Past {
            // The last block is not whole, which only the system's memory takes.
            go_past(self.file, false);
            let filled = self.filled;
            let mut file = self.file;
            file.write_all(&self.block()[..filled])?;
        }
        if let Some((begun, before)) = self.begun
            && self.written >= LARGE
        {
            let (took, spent) = (begun.elapsed(), spent().saturating_sub(before));
            known(|known| known.note(self.way, self.written, spent, took));
        }
        Ok(())
    }
}

impl Write for Pen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match self.way {
            Way::Through => {
                let mut file = self.file;
                file.write(bytes)?
            }
            Way::Past => self.past(bytes)?,
        };
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has writes to a file go past the system's memory, or no longer; false where that is not known.
#[cfg(target_os = "linux")]
fn go_past(file: &File, is_wanted: bool) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let Ok(mut flags) = fcntl_getfl(file) else {
        return false;
    };
    flags.set(OFlags::DIRECT, is_wanted);
    fcntl_setfl(file, flags).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn go_past(_: &File, _: bool) -> bool {
    false
}

/// What this thread has had of a processor.
#[cfg(target_os = "linux")]
fn spent() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn spent() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::BufWriter;

    const SECOND: Duration = Duration::from_secs(1);

    /// Bytes a second.
    fn at(known: &mut Known, way: Way, processor: u64, clock: u64) {
        let time = |speed: u64| SECOND.mul_f64(1e9 / speed as f64);
        known.note(way, 1_000_000_000, time(processor), time(clock));
    }

    #[test]
    fn the_usual_way_is_left_where_it_is_dear_and_the_other_is_not_slower() {
        let mut known = Known::nothing();
        assert_eq!(known.choose(), Way::Through);
        at(&mut known, Way::Through, 4_000_000_000, 2_000_000_000);
        assert_eq!(known.choose(), Way::Through, "it is cheap");
        at(&mut known, Way::Through, 500_000_000, 400_000_000);
        assert_eq!(known.choose(), Way::Past, "it is worth a try");
        at(&mut known, Way::Past, 9_000_000_000, 100_000_000);
        assert_eq!(known.choose(), Way::Through, "the disk is slow");
        at(&mut known, Way::Past, 9_000_000_000, 1_500_000_000);
        assert_eq!(known.choose(), Way::Past, "the disk is fast");
        // Now and then the other is looked at, because things change.
        let ways: Vec<Way> = (0..3 * AGAIN).map(|_| known.choose()).collect();
        let others = ways.iter().filter(|way| **way == Way::Through).count();
        assert_eq!(others, 3);
        at(&mut known, Way::Through, 4_000_000_000, 2_000_000_000);
        assert_eq!(known.choose(), Way::Through, "it is cheap again");
        at(&mut known, Way::Through, 500_000_000, 400_000_000);
        known.is_refused = true;
        assert_eq!(known.choose(), Way::Through, "there is no other");
    }

    #[test]
    fn files_are_the_same_either_way() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3_u32 << 20).map(|at| (at % 253) as u8).collect();
        for pieces in [
            &[0][..],
            &[1],
            &[128, 8192 + 128],
            &[BLOCK],
            &[BLOCK - 1, 1, BLOCK],
            &[100, 1 << 20, 3, 1 << 20, BLOCK + 5],
            &[3 << 20],
        ] {
            for (way, is_choosy) in [(Way::Through, false), (Way::Past, false), (Way::Past, true)] {
                let path = folder.path().join("file");
                let file = File::create(&path).unwrap();
                if way == Way::Past && !go_past(&file, true) {
                    eprintln!("not tried: this file system has no other way");
                    continue;
                }
                let mut pen = Pen::taking(&file, way, None);
                pen.is_choosy = is_choosy;
                let mut writer = BufWriter::with_capacity(1 << 12, pen);
                let mut end = 0;
                for piece in pieces {
                    writer.write_all(&content[end..end + piece]).unwrap();
                    end += piece;
                }
                let pen = writer.into_inner().unwrap();
                assert_eq!(pen.written, end as u64);
                pen.finish().unwrap();
                let found = std::fs::read(&path).unwrap();
                assert!(
                    found == content[..end],
                    "{pieces:?} {way:?} {is_choosy}: {} of {end}",
                    found.len()
                );
            }
        }
    }
}
