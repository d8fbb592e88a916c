//! The stage that reads.

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use warploom_core::DType;
use warploom_io::records::{Record, RecordReader};
use warploom_io::{FileError, Header, thumbnail};
use warploom_kernels::program::to_pairs;
use warploom_watch::recording::Picture;
use xxhash_rust::xxh3::Xxh3;

use crate::course::{Course, Item, Seen};
use crate::error::RecordFault;
use crate::outcome::Failure;
use crate::readers::Readers;

/// How wide and high pictures are at most.
pub(crate) const PIXELS: u32 = 192;

/// Where in a slot an image of a record goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// The channel it is, where the plan names one.
    pub(crate) channel: Option<String>,
    pub(crate) range: Range<usize>,
    /// Does the device keep numbers of 64 bits as pairs?
    pub(crate) pairs: bool,
}

/// Reads units of records into memory that it is lent.
pub(crate) struct Reading {
    reader: RecordReader,
    content: Xxh3,
    readers: Readers,
}

impl Reading {
    /// With so many threads that read ahead at most; how many pay, if nothing is said.
    pub(crate) fn new(readers: Option<usize>) -> Self {
        Self {
            reader: RecordReader::new(),
            content: Xxh3::new(),
            readers: readers.map_or_else(Readers::new, Readers::of),
        }
    }

    /// Reads one unit. What cannot be read loses its record and nothing else.
    pub(crate) fn fill(
        &mut self,
        course: &Arc<Course>,
        number: u64,
        arrivals: &[Arrival],
        bytes: &mut [u8],
    ) {
        let item = course.item(number);
        if item.place == 0 {
            self.content = Xxh3::new();
            course.recorder.begin(item.number);
        }
        let early = self.readers.take(course, number);
        if course.is_lost(item) {
            return;
        }
        let read = if let Some(early) = early {
            early.map(|early| {
                early.put(arrivals, bytes);
                self.readers.give_back(early);
            })
        } else {
            let begun = Instant::now();
            let read = load(&mut self.reader, course, item, arrivals, bytes);
            let length: usize = arrivals.iter().map(|arrival| arrival.range.len()).sum();
            self.readers.learn(length, begun.elapsed());
            read
        };
        if let Err(failure) = read {
            course.lose(item.number, failure);
            return;
        }
        for arrival in arrivals {
            let place = &mut bytes[arrival.range.clone()];
            self.content.update(place);
            if item.place == 0 && course.recorder.is_pictured(item.number) {
                picture(course, item.number, place);
            }
            if arrival.pairs && course.header.dtype == DType::F64 {
                to_pairs(place);
            }
        }
        if item.place + 1 == course.units.len() {
            let seen = Seen {
                content: format!("{:032x}", self.content.digest128()),
                stamp: stamp(&item.task.record),
            };
            course.note(item.number, seen);
        }
    }

    /// What will be asked for next is begun, where that pays.
    pub(crate) fn look_ahead(
        &mut self,
        course: &Arc<Course>,
        next: u64,
        arrivals: &[Arc<[Arrival]>],
    ) {
        self.readers.begin(course, next, arrivals);
    }
}

/// Reads the images of a unit to where they belong in `bytes`. A reader that panics is a mistake of ours,
/// which is no reason to lose other records.
pub(crate) fn load(
    reader: &mut RecordReader,
    course: &Course,
    item: Item<'_>,
    arrivals: &[Arrival],
    bytes: &mut [u8],
) -> Result<(), Failure> {
    let work = AssertUnwindSafe(|| read(reader, course, item, arrivals, bytes));
    catch_unwind(work).unwrap_or_else(|_| {
        *reader = RecordReader::new();
        Err(Failure::of(&RecordFault::Panicked { doing: "reading" }))
    })
}

fn read(
    reader: &mut RecordReader,
    course: &Course,
    item: Item<'_>,
    arrivals: &[Arrival],
    bytes: &mut [u8],
) -> Result<(), Failure> {
    if item.place == 0 {
        // All of it, so that no plane or channel is left out in silence.
        let found = reader.header(&item.task.record);
        let found = found.map_err(|error| Failure::of(&error))?;
        if !is_alike(&found, &course.header) {
            return Err(differs(&found, &course.header));
        }
    }
    for arrival in arrivals {
        let channel = arrival.channel.as_deref();
        let (plan, record) = (&course.plan, &item.task.record);
        let part = item.unit.part(plan, record, channel, course.axes());
        let place = &mut bytes[arrival.range.clone()];
        let read = reader.read_into(&part, place);
        read.map_err(|error: FileError| Failure::of(&error))?;
    }
    Ok(())
}

/// Takes the picture of a record's first plane, before anything is done to it.
fn picture(course: &Course, task: usize, bytes: &[u8]) {
    let [_, height, width] = course.plan.record.dims;
    let dtype = course.header.dtype;
    let plane = usize::try_from(height * width * dtype.bytes()).unwrap_or(usize::MAX);
    let Some(plane) = bytes.get(..plane) else {
        return;
    };
    if let Some(picture) = thumbnail(dtype, height, width, plane, PIXELS) {
        course.recorder.picture(task, |all| {
            all.before.get_or_insert(Picture(picture));
        });
    }
}

fn is_alike(one: &Header, other: &Header) -> bool {
    (one.dtype, one.shape) == (other.dtype, other.shape)
}

fn differs(found: &Header, wanted: &Header) -> Failure {
    let words = |of: &Header| format!("{} {}", of.shape, of.dtype);
    Failure::of(&RecordFault::Differs {
        found: words(found),
        wanted: words(wanted),
    })
}

/// What the system says of a record's files, which changes when their contents do. When it has not
/// changed there is no need to read them again to know that they are the same.
pub(crate) fn stamp(record: &Record) -> String {
    let mut sum = Xxh3::new();
    for member in record.members() {
        let Ok(found) = fs::metadata(&member.path) else {
            return "unknown".to_owned();
        };
        // Of a folder of chunks this says too little.
        if found.is_dir() {
            return "unknown".to_owned();
        }
        sum.update(member.path.to_string_lossy().as_bytes());
        sum.update(&found.len().to_le_bytes());
        sum.update(&times(&found));
        sum.update(format!("{:?}{:?}", member.choice, member.picks).as_bytes());
    }
    format!("{:032x}", sum.digest128())
}

/// When it was changed last. The time of change of the entry itself cannot be set by anybody.
#[cfg(unix)]
fn times(found: &fs::Metadata) -> Vec<u8> {
    use std::os::unix::fs::MetadataExt as _;
    let times = [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
        found.ino().cast_signed(),
    ];
    times.iter().flat_map(|part| part.to_le_bytes()).collect()
}

#[cfg(not(unix))]
fn times(found: &fs::Metadata) -> Vec<u8> {
    format!("{:?}", found.modified().ok()).into_bytes()
}

/// The pixels of a record as a run over it sees them.
pub(crate) fn content(course: &Course, reader: &mut RecordReader, number: usize) -> Option<String> {
    let mut sum = Xxh3::new();
    let mut bytes = Vec::new();
    let sources = course
        .plan
        .sources
        .iter()
        .filter(|source| source.file.is_none());
    let sources: Vec<_> = sources.collect();
    for place in 0..course.units.len() {
        let item = course.item((number * course.units.len() + place) as u64);
        for source in &sources {
            let channel = source.channel.as_deref();
            let part = item
                .unit
                .part(&course.plan, &item.task.record, channel, course.axes());
            bytes.resize(usize::try_from(source.bytes).ok()?, 0);
            reader.read_into(&part, &mut bytes).ok()?;
            sum.update(&bytes);
        }
    }
    Some(format!("{:032x}", sum.digest128()))
}
