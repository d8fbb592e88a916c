//! Threads that read units before their turn, where one thread is not enough.
//!
//! Files that only have to be copied are as fast as memory, and a second copy of them would cost more than it
//! brings. Those that have to be decoded take a core each; several of them decode several at once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use warploom_io::records::RecordReader;

use crate::course::Course;
use crate::outcome::Failure;
use crate::reading::{Arrival, load};

/// Reading that is slower than this, in bytes a second, is decoding, or a disk that gains by being asked for
/// more at once.
const SLOW: f64 = 600e6;
/// The first units go to memory that nobody has touched yet, which takes as long as decoding and says nothing.
const FIRST: u32 = 6;
/// So many in a row are slow before it is believed: a neighbour may have had the processor.
const SLOW_ONES: u32 = 2;
/// Units smaller than this cost more to hand over than to read.
const WORTH_IT: usize = 1 << 16;
/// The most threads beside the one that asks.
const MOST: usize = 4;

/// A unit, by its course and its number there.
#[derive(Clone, Debug)]
struct Errand {
    course: Arc<Course>,
    number: u64,
    arrivals: Arc<[Arrival]>,
}

impl Errand {
    fn is(&self, course: &Arc<Course>, number: u64) -> bool {
        self.number == number && Arc::ptr_eq(&self.course, course)
    }
}

/// A unit that was read before its turn.
#[derive(Debug)]
pub(crate) struct Early {
    bytes: Vec<u8>,
}

impl Early {
    /// Puts its images where they belong.
    pub(crate) fn put(&self, arrivals: &[Arrival], bytes: &mut [u8]) {
        let mut rest = &self.bytes[..];
        for arrival in arrivals {
            let (image, others) = rest.split_at(arrival.range.len());
            bytes[arrival.range.clone()].copy_from_slice(image);
            rest = others;
        }
    }
}

#[derive(Debug)]
enum State {
    Waiting,
    UnderWay,
    Done(Result<Early, Failure>),
}

#[derive(Debug, Default)]
struct Desk {
    errands: VecDeque<(Errand, State)>,
    /// Memory of units that are over: making new pages costs as much as decoding.
    spare: Vec<Vec<u8>>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    desk: Mutex<Desk>,
    /// Something is waiting, or done.
    news: Condvar,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'d>(&self, desk: MutexGuard<'d, Desk>) -> MutexGuard<'d, Desk> {
        self.news.wait(desk).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads that read units before their turn. There are none until reading turns out to be slow.
#[derive(Debug)]
pub(crate) struct Readers {
    shared: Arc<Shared>,
    /// How many threads there may be.
    most: usize,
    threads: usize,
    /// Units that were read without help, and how many of the last were slow.
    read: u32,
    slow: u32,
}

impl Readers {
    /// As many as the machine has cores for.
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::of((cores - 1).min(MOST))
    }

    /// At most so many.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            shared: Arc::default(),
            most,
            threads: 0,
            read: 0,
            slow: 0,
        }
    }

    /// So many bytes were read in so much time without help.
    pub(crate) fn learn(&mut self, bytes: usize, took: Duration) {
        let is_slow = bytes >= WORTH_IT && (bytes as f64) < took.as_secs_f64() * SLOW;
        self.read += 1;
        if self.threads > 0 || self.read <= FIRST {
            return;
        }
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        if self.slow < SLOW_ONES {
            return;
        }
        for _ in 0..self.most {
            let shared = Arc::clone(&self.shared);
            let work = move || serve(&shared);
            // Without them it goes on as before. Nobody waits for their end: a disk may hang.
            let thread = thread::Builder::new().name("read ahead".into()).spawn(work);
            self.threads += usize::from(thread.is_ok());
        }
    }

    /// Has units from `next` on read, as many as there are threads.
    pub(crate) fn begin(&mut self, course: &Arc<Course>, next: u64, arrivals: &[Arc<[Arrival]>]) {
        if self.threads == 0 {
            return;
        }
        let mut desk = self.shared.desk();
        for number in next..(next + self.threads as u64).min(course.items()) {
            let mut known = desk.errands.iter();
            if known.any(|(errand, _)| errand.is(course, number)) {
                continue;
            }
            let item = course.item(number);
            if course.is_lost(item) {
                continue;
            }
            let errand = Errand {
                course: Arc::clone(course),
                number,
                arrivals: Arc::clone(&arrivals[item.unit.variant]),
            };
            desk.errands.push_back((errand, State::Waiting));
        }
        drop(desk);
        self.shared.news.notify_all();
    }

    /// A unit that was begun, when it is there. `None` is for whoever asks to read.
    pub(crate) fn take(
        &mut self,
        course: &Arc<Course>,
        number: u64,
    ) -> Option<Result<Early, Failure>> {
        if self.threads == 0 {
            return None;
        }
        let mut desk = self.shared.desk();
        loop {
            // What was before is of records that are lost, or of a course that is over.
            desk.errands.retain(|(errand, _)| {
                Arc::ptr_eq(&errand.course, course) && errand.number >= number
            });
            let mut all = desk.errands.iter();
            let at = all.position(|(errand, _)| errand.is(course, number))?;
            if matches!(desk.errands[at].1, State::UnderWay) {
                desk = self.shared.wait(desk);
                continue;
            }
            return match desk.errands.remove(at)?.1 {
                State::Done(read) => Some(read),
                State::Waiting | State::UnderWay => None,
            };
        }
    }
}

impl Readers {
    /// Takes a unit back whose images are where they belong.
    pub(crate) fn give_back(&mut self, early: Early) {
        self.shared.desk().spare.push(early.bytes);
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.desk().is_closed = true;
        self.shared.news.notify_all();
    }
}

/// One thread: reads what waits, the oldest first.
fn serve(shared: &Shared) {
    let mut reader = RecordReader::new();
    let mut desk = shared.desk();
    while !desk.is_closed {
        let mut all = desk.errands.iter_mut();
        let next = all.find(|(_, state)| matches!(state, State::Waiting));
        let Some((errand, state)) = next else {
            desk = shared.wait(desk);
            continue;
        };
        *state = State::UnderWay;
        let errand = errand.clone();
        let bytes = desk.spare.pop().unwrap_or_default();
        drop(desk);
        let read = early(&mut reader, &errand, bytes);
        desk = shared.desk();
        let mut all = desk.errands.iter_mut();
        let own = all.find(|(other, _)| other.is(&errand.course, errand.number));
        // Nobody may want it any more.
        if let Some((_, state)) = own {
            *state = State::Done(read);
        }
        shared.news.notify_all();
    }
}

/// Reads a unit, its images one behind the other.
fn early(reader: &mut RecordReader, errand: &Errand, mut bytes: Vec<u8>) -> Result<Early, Failure> {
    let mut end = 0;
    let mut packed = errand.arrivals.to_vec();
    for arrival in &mut packed {
        let start = end;
        end += arrival.range.len();
        arrival.range = start..end;
    }
    bytes.resize(end, 0);
    let item = errand.course.item(errand.number);
    load(reader, &errand.course, item, &packed, &mut bytes)?;
    Ok(Early { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::PoisonError;
    use std::time::Instant;

    use warploom_core::{DType, Shape};
    use warploom_io::{Header, Sync, write_image};
    use warploom_plan::{Options, Pipeline, compile};

    use crate::course::Setting;
    use crate::input::{Input, sources};
    use crate::recorder::Recorder;
    use crate::tasks::tasks;
    use crate::unit::units;

    /// Records of 32 x 32 numbers, each the record's own; the fourth is cut short.
    fn course(folder: &std::path::Path) -> Arc<Course> {
        let header = Header::new(DType::U8, Shape::new(&[32, 32]).unwrap());
        for number in 0..9_u8 {
            let path = folder.join(format!("r{number}.npy"));
            write_image(&path, &header, &[number; 1024], Sync::No).unwrap();
            if number == 3 {
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, &bytes[..500]).unwrap();
            }
        }
        let text = "name = \"none\"\n[[step]]\nname = \"more\"\nop = \"maximum_box\"\nradius = 1\n\
             [[output]]\nof = \"more\"\nwrite = \"{record}.npy\"\n";
        let pipeline = Pipeline::from_toml(text).unwrap();
        let input = Input::find(&folder.to_string_lossy()).unwrap();
        let sources = sources(&input.header, "the records", &pipeline, folder).unwrap();
        let plan = compile(&pipeline, &sources, None, &Options::default()).unwrap();
        let output = folder.join("out");
        Arc::new(Course::new(Setting {
            units: units(&plan),
            tasks: tasks(&plan, &input.records, &output, &input.header).unwrap(),
            header: input.header,
            output,
            recipe: String::new(),
            plan: Arc::new(plan),
            recorder: Arc::new(Recorder::new(Instant::now(), false, 9)),
            listener: Arc::new(|_| {}),
        }))
    }

    #[test]
    fn units_are_read_before_their_turn_and_failures_are_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let course = course(folder.path());
        let arrivals: [Arc<[Arrival]>; 1] = [Arc::from([Arrival {
            channel: None,
            range: 256..256 + 1024,
            pairs: false,
        }])];
        let mut readers = Readers::of(2);
        readers.begin(&course, 0, &arrivals);
        assert!(readers.take(&course, 0).is_none(), "nobody reads ahead yet");
        // Nothing is known before memory was touched once, what is fast enough needs nobody, and one slow
        // unit among others may be anybody's fault.
        for _ in 0..FIRST {
            readers.learn(1 << 20, Duration::from_secs(1));
        }
        for _ in 0..5 {
            readers.learn(1 << 20, Duration::from_secs(1));
            readers.learn(1 << 20, Duration::from_micros(10));
        }
        assert_eq!(readers.threads, 0);
        for _ in 0..SLOW_ONES {
            readers.learn(1 << 20, Duration::from_secs(1));
        }
        assert_eq!(readers.threads, 2);
        let (mut early, mut slot) = (0, vec![99; 2048]);
        for number in 0..9 {
            readers.begin(&course, number, &arrivals);
            // Until it is done or under way, so that what is read early is looked at.
            let is_waiting = || {
                let desk = readers.shared.desk.lock();
                let desk = desk.unwrap_or_else(PoisonError::into_inner);
                let mut all = desk.errands.iter();
                all.any(|(one, state)| one.number == number && matches!(state, State::Waiting))
            };
            let end = Instant::now() + Duration::from_secs(30);
            while is_waiting() && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
            match readers.take(&course, number) {
                Some(Ok(unit)) => {
                    unit.put(&arrivals[0], &mut slot);
                    let own = u8::try_from(number).unwrap();
                    assert!(slot[256..1280].iter().all(|byte| *byte == own));
                    assert!(
                        slot[..256]
                            .iter()
                            .chain(&slot[1280..])
                            .all(|byte| *byte == 99)
                    );
                    readers.give_back(unit);
                    early += 1;
                }
                Some(Err(failure)) => assert_eq!(number, 3, "{}", failure.reason),
                None => panic!("{number} was never begun"),
            }
        }
        assert_eq!(early, 8);
    }
}
