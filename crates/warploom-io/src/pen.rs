//! How bytes get into a large file: through the system's memory, or past it.
//!
//! Through it is the usual way: the system copies the bytes to pages of its own and writes them to the disk when
//! it likes. That takes the processor a good part of what computing an image does, and more on virtual machines
//! whose memory is lent to them as they touch it. Past it the disk takes the bytes from where they are, little is
//! left to the processor, and whoever writes waits for the disk. Which is better only trying tells: past it is taken
//! where it saves the processor work, and where those who write either have time left or are no slower by it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Smaller files are not worth the question.
const LARGE: u64 = 1 << 20;
/// Bytes for each second of the processor above which the usual way is as good as any.
const CHEAP: f64 = 6e9;
/// How much less of the processor the other way must take.
const SAVES: f64 = 1.25;
/// Who has waited for this part of the time for something to write is fast enough.
const LEISURE: f64 = 0.1;
/// What a file's cost counts for when the next one of its way is written.
const FADES: f64 = 0.9;
/// After so many files the way that was not taken is looked at again.
const AGAIN: u32 = 64;
/// Disks take whole blocks.
const BLOCK: usize = 4096;
/// What is gathered for disks that take bytes only from where blocks begin: each write waits for the disk.
const GATHERED: usize = 1 << 20;

/// How bytes get into a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Through,
    Past,
}

/// What a way was seen to cost, of late.
#[derive(Clone, Copy, Default, Debug)]
struct Cost {
    bytes: f64,
    /// Seconds of the processor, of the clock, and those in which there was nothing to write.
    spent: f64,
    took: f64,
    waited: f64,
}

impl Cost {
    fn of(bytes: u64, spent: Duration, took: Duration, waited: Duration) -> Self {
        Self {
            bytes: bytes as f64,
            spent: spent.as_secs_f64(),
            took: took.as_secs_f64(),
            waited: waited.as_secs_f64(),
        }
    }

    /// With what was seen before, which counts less and less. Files come in groups, so one says little.
    fn after(self, before: Self) -> Self {
        let both = |of: fn(&Self) -> f64| of(&self) + FADES * of(&before);
        Self {
            bytes: both(|cost| cost.bytes),
            spent: both(|cost| cost.spent),
            took: both(|cost| cost.took),
            waited: both(|cost| cost.waited),
        }
    }

    /// Bytes a second of the processor.
    fn processor(&self) -> f64 {
        self.bytes / self.spent.max(1e-9)
    }

    /// Bytes a second of the clock.
    fn clock(&self) -> f64 {
        self.bytes / self.took.max(1e-9)
    }

    /// The part of the time for which there was nothing to write.
    fn leisure(&self) -> f64 {
        self.waited / (self.waited + self.took).max(1e-9)
    }
}

/// What is known of both ways.
#[derive(Debug)]
struct Known {
    through: Option<Cost>,
    past: Option<Cost>,
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
        let Some(through) = self.through.filter(|_| !self.is_refused) else {
            return Way::Through;
        };
        if through.processor() >= CHEAP {
            return Way::Through;
        }
        let Some(past) = self.past else {
            return Way::Past;
        };
        let saves = past.processor() >= SAVES * through.processor();
        let keeps_up = past.leisure() >= LEISURE || past.clock() >= through.clock();
        let (better, other) = if saves && keeps_up {
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

    fn note(&mut self, way: Way, cost: Cost) {
        let known = match way {
            Way::Through => &mut self.through,
            Way::Past => &mut self.past,
        };
        *known = Some(cost.after(known.unwrap_or_default()));
    }
}

static KNOWN: Mutex<Known> = Mutex::new(Known::nothing());

fn known<T>(f: impl FnOnce(&mut Known) -> T) -> T {
    f(&mut KNOWN.lock().unwrap_or_else(PoisonError::into_inner))
}

thread_local! {
    /// The place in which this thread gathers blocks, kept because new memory is dear.
    static PLACE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// When this thread was done with its last large file.
    static DONE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What writes a file from its beginning.
#[derive(Debug)]
pub(crate) struct Pen<'f> {
    file: &'f File,
    way: Way,
    /// When a large file was begun, by both clocks.
    begun: Option<(Instant, Duration)>,
    written: u64,
    /// The beginning of blocks that are not whole yet, somewhere in it where a block begins.
    rest: Vec<u8>,
    filled: usize,
    /// Does the disk take bytes only from where blocks begin?
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

    /// The place for blocks, which begins where blocks begin in memory.
    fn blocks(&mut self) -> &mut [u8] {
        let size = if self.is_choosy { GATHERED } else { BLOCK };
        if self.rest.is_empty() {
            self.rest = PLACE.take();
            self.rest.resize(GATHERED + BLOCK, 0);
        }
        let at = self.rest.as_ptr().align_offset(BLOCK).min(BLOCK);
        &mut self.rest[at..at + size]
    }

    /// Takes bytes for blocks that are not whole yet, and writes them when they are.
    fn gather(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let filled = self.filled;
        let place = self.blocks();
        let count = bytes.len().min(place.len() - filled);
        place[filled..filled + count].copy_from_slice(&bytes[..count]);
        let is_full = filled + count == place.len();
        self.filled += count;
        if is_full {
            let mut file = self.file;
            file.write_all(self.blocks())?;
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
            let (filled, whole) = (self.filled, self.filled / BLOCK * BLOCK);
            let mut file = self.file;
            file.write_all(&self.blocks()[..whole])?;
            // The last block is not whole, which only the system's memory takes.
            go_past(self.file, false);
            file.write_all(&self.blocks()[whole..filled])?;
            PLACE.set(std::mem::take(&mut self.rest));
        }
        if let Some((begun, before)) = self.begun
            && self.written >= LARGE
        {
            let (took, spent) = (begun.elapsed(), spent().saturating_sub(before));
            let waited = DONE.replace(Some(Instant::now()));
            let waited =
                waited.map_or(Duration::ZERO, |done| begun.saturating_duration_since(done));
            let cost = Cost::of(self.written, spent, took, waited);
            known(|known| known.note(self.way, cost));
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

    /// In GB a second, and the part of the time that is left.
    fn cost(processor: f64, clock: f64, leisure: f64) -> Cost {
        let cost = Cost {
            bytes: 1e9,
            spent: 1.0 / processor,
            took: 1.0 / clock,
            waited: leisure / (1.0 - leisure) / clock,
        };
        assert!((cost.leisure() - leisure).abs() < 1e-9);
        assert!((cost.processor() - processor * 1e9).abs() < 1.0);
        cost
    }

    fn after(through: Cost, past: Option<Cost>) -> Way {
        let mut known = Known::nothing();
        known.note(Way::Through, through);
        if let Some(past) = past {
            known.note(Way::Past, past);
        }
        known.choose()
    }

    #[rstest::rstest]
    #[case::cheap(cost(9.0, 2.0, 0.0), None, Way::Through)]
    #[case::worth_a_try(cost(2.5, 2.0, 0.0), None, Way::Past)]
    #[case::quicker(cost(2.5, 2.0, 0.0), Some(cost(9.0, 2.1, 0.0)), Way::Past)]
    #[case::slower_and_nobody_waits_for_it(
        cost(2.5, 2.0, 0.8),
        Some(cost(9.0, 1.0, 0.4)),
        Way::Past
    )]
    #[case::the_disk_is_slow(cost(2.5, 2.0, 0.8), Some(cost(9.0, 0.1, 0.05)), Way::Through)]
    #[case::saves_nothing(cost(2.5, 2.0, 0.8), Some(cost(2.6, 2.0, 0.8)), Way::Through)]
    fn the_way_that_costs_least_is_taken(
        #[case] through: Cost,
        #[case] past: Option<Cost>,
        #[case] wanted: Way,
    ) {
        assert_eq!(after(through, past), wanted);
    }

    #[test]
    fn the_other_way_is_looked_at_now_and_then() {
        let mut known = Known::nothing();
        assert_eq!(known.choose(), Way::Through);
        known.note(Way::Through, cost(2.5, 2.0, 0.5));
        known.note(Way::Past, cost(9.0, 2.0, 0.5));
        let ways: Vec<Way> = (0..3 * AGAIN).map(|_| known.choose()).collect();
        let others = ways.iter().filter(|way| **way == Way::Through).count();
        assert_eq!(others, 3);
        // Of a group of files only the first was waited for. A few slow ones are no reason, many are.
        for leisure in [0.85, 0.0, 0.0, 0.0, 0.85, 0.0, 0.0, 0.0] {
            known.note(Way::Past, cost(9.0, 1.0, leisure));
            assert_eq!(known.choose(), Way::Past);
        }
        for _ in 0..40 {
            known.note(Way::Past, cost(9.0, 0.2, 0.0));
        }
        assert_eq!(known.choose(), Way::Through);
        for _ in 0..40 {
            known.note(Way::Past, cost(9.0, 3.0, 0.9));
        }
        assert_eq!(known.choose(), Way::Past);
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
            &[128, (2 << 20) + 77],
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
