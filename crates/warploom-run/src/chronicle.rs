//! What a fleet did when, from its journal: for traces and reports of several devices.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use warploom_fleet::journal::{self, BatchId, Cause, Entry, Event};
use warploom_watch::Recording;
use warploom_watch::recording::{
    Clock, Device, DeviceNo, Lane, LaneNo, Mark, Occasion, Outcome as Ending, Place, Record,
    RecordNo, Span, StageNo,
};

use crate::folder::{About, RunFolder};
use crate::gathering::gather;
use crate::job::Job;
use crate::outcome::{Outcome, Summary};
use crate::tidings::failure;

impl Job {
    /// What a run on several devices did when; `open` says where the fleet's records are among all.
    pub(crate) fn chronicle(
        &self,
        folder: &RunFolder,
        open: &[usize],
        summary: &Summary,
        took: Duration,
    ) -> Recording {
        let title = self.output().file_name().unwrap_or_default();
        let title = title.to_string_lossy();
        // A run that had nothing to do has no journal.
        let entries = journal::read(&folder.path().join("journal")).unwrap_or_default();
        let wall = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let chronicle = Chronicle::new(&title, folder.about(), open, summary);
        let mut recording = chronicle.read(&entries, wall);
        gather(folder.path(), folder.about(), &mut recording);
        recording
    }
}

/// A batch at a worker.
struct Flight {
    slot: usize,
    begin: u64,
    first: usize,
    count: usize,
    /// Records without an outcome.
    open: Vec<u64>,
}

/// Makes a recording of a journal.
pub(crate) struct Chronicle<'a> {
    recording: Recording,
    about: &'a About,
    /// The place of each of the journal's records among all of the run.
    places: &'a [usize],
    /// The device of each slot, its lane, and when it was done with its last batch.
    slots: Vec<(DeviceNo, LaneNo, u64)>,
    devices: BTreeMap<&'a str, DeviceNo>,
    flights: HashMap<BatchId, Flight>,
    batch: StageNo,
}

impl<'a> Chronicle<'a> {
    /// `title` is what people call the run; `summary` has all its records.
    pub(crate) fn new(
        title: &str,
        about: &'a About,
        places: &'a [usize],
        summary: &Summary,
    ) -> Self {
        let mut recording = Recording::new(title, &about.pipeline);
        recording.plan.clone_from(&about.plan);
        recording.started = about.started;
        for done in &summary.records {
            let mut record = Record::new(&done.record);
            record.outcome = match &done.outcome {
                Outcome::Ok { .. } => Ending::Ok,
                Outcome::Skipped => Ending::Skipped,
                Outcome::NotStarted => Ending::NotStarted,
                Outcome::Failed(failure) => Ending::Failed {
                    reason: failure.reason.clone(),
                    code: failure.code.clone(),
                },
            };
            recording.record(record);
        }
        let batch = recording.stage("batch");
        let (mut slots, mut devices) = (Vec::new(), BTreeMap::new());
        for device in &about.devices {
            let face = device.label.clone();
            let number = recording.device(Device::new(&device.label, &device.name).face(face));
            devices.insert(device.id.as_str(), number);
            for worker in 0..device.workers {
                let name = match device.workers {
                    1 => "worker".to_owned(),
                    _ => format!("worker {}", worker + 1),
                };
                let lane = recording.lane(Lane::new(name, Place::Host(number)));
                slots.push((number, lane, 0));
            }
        }
        Self {
            recording,
            about,
            places,
            slots,
            devices,
            flights: HashMap::new(),
            batch,
        }
    }

    /// Reads everything that happened.
    pub(crate) fn read(mut self, entries: &[Entry], wall: u64) -> Recording {
        for entry in entries {
            let since = entry.at.saturating_sub(self.about.started);
            self.take(since.saturating_mul(1_000_000), &entry.event);
        }
        let mut recording = self.recording;
        // The journal's clock is the calendar's, in milliseconds: what happened last may lie a little
        // behind what the run took by its own clock.
        let ends = recording.spans.iter().map(|span| span.end);
        let marks = recording.marks.iter().map(|mark| mark.at);
        let records = recording.records.iter().filter_map(|record| record.end);
        let last = ends.chain(marks).chain(records).max().unwrap_or(0);
        recording.wall = wall.max(last);
        recording
    }

    fn take(&mut self, at: u64, event: &Event) {
        match event {
            Event::Attempt {
                batch,
                slot,
                records,
            } => self.attempt(
                at,
                *batch,
                *slot as usize,
                &records.iter().collect::<Vec<_>>(),
            ),
            Event::Ok {
                record, attempts, ..
            }
            | Event::Failed {
                record, attempts, ..
            } => {
                self.end(at, *record, *attempts);
                if let Event::Failed { record, reason, .. } = event
                    && let Some(log) = failure(reason, *attempts, None).log
                    && let Some(place) = self.place(*record)
                {
                    let last = log.lines().next_back().unwrap_or_default();
                    let name = &self.recording.records[place].name;
                    let note = format!("{name}: the last words of its worker were: {last}");
                    self.recording.notes.push(note);
                }
            }
            Event::Charged {
                batch,
                cause,
                records,
            } => {
                let device = self.close(at, *batch);
                let text = match cause {
                    Cause::Hung { .. } | Cause::Late { .. } | Cause::DeviceLost { .. } => {
                        cause.to_string()
                    }
                    _ => format!("a worker came to grief: {cause}"),
                };
                let text = format!("{text}; {} records were under way", records.len());
                self.mark(at, device, Occasion::Lost, text);
            }
            Event::Returned { batch, records } => {
                let back: Vec<u64> = records.iter().collect();
                if let Some(flight) = self.flights.get_mut(batch) {
                    flight.open.retain(|record| !back.contains(record));
                    if flight.open.is_empty() {
                        self.close(at, *batch);
                    }
                }
            }
            Event::Quarantined { device, why } => {
                let device = self.devices.get(device.as_str()).copied();
                self.mark(at, device, Occasion::Quarantine, why.clone());
            }
            Event::Readmitted { device } => {
                let device = self.devices.get(device.as_str()).copied();
                let text = "it passed its probe".to_owned();
                self.mark(at, device, Occasion::Readmitted, text);
            }
            Event::GivenUp { device, why } => {
                let device = self.devices.get(device.as_str()).copied();
                self.mark(at, device, Occasion::Lost, format!("given up: {why}"));
            }
            Event::Ceiling { model, batch, .. } => {
                let note = format!("{model} has room for {batch} records at once");
                self.recording.notes.push(note);
            }
            _ => {}
        }
    }

    /// Where one of the journal's records is among all.
    fn place(&self, record: u64) -> Option<usize> {
        let place = self.places.get(usize::try_from(record).ok()?)?;
        (*place < self.recording.records.len()).then_some(*place)
    }

    fn attempt(&mut self, at: u64, batch: BatchId, slot: usize, records: &[u64]) {
        let Some((device, _, _)) = self.slots.get(slot).copied() else {
            return;
        };
        let mut again = 0;
        let all = records.iter().filter_map(|record| self.place(*record));
        let all: Vec<usize> = all.collect();
        for &place in &all {
            let record = &mut self.recording.records[place];
            again += u64::from(record.attempts > 0);
            record.attempts += 1;
            record.begin = Some(at);
            record.device = Some(device);
        }
        if again > 0 {
            let text = format!("{again} records are tried again");
            self.mark(at, Some(device), Occasion::Retry, text);
        }
        let (first, last) = (all.iter().min(), all.iter().max());
        let first = first.copied().unwrap_or(0);
        self.flights.insert(
            batch,
            Flight {
                slot,
                begin: at,
                first,
                count: last.map_or(0, |last| last - first + 1),
                open: records.to_vec(),
            },
        );
    }

    fn end(&mut self, at: u64, record: u64, attempts: u32) {
        if let Some(place) = self.place(record) {
            let known = &mut self.recording.records[place];
            known.attempts = attempts;
            known.end = Some(at.max(known.begin.unwrap_or(0)));
        }
        let holds = |flight: &Flight| flight.open.contains(&record);
        let found = self.flights.iter_mut().find(|(_, flight)| holds(flight));
        let Some((batch, flight)) = found else {
            return;
        };
        flight.open.retain(|open| *open != record);
        let batch = *batch;
        if flight.open.is_empty() {
            self.close(at, batch);
        }
    }

    /// A batch is over: where it was.
    fn close(&mut self, at: u64, batch: BatchId) -> Option<DeviceNo> {
        let flight = self.flights.remove(&batch)?;
        let (device, lane, free) = self.slots.get_mut(flight.slot)?;
        // It waited at its worker until the one before was done.
        let begin = flight.begin.max(*free).min(at);
        *free = at;
        let (device, lane) = (*device, *lane);
        self.recording.spans.push(Span {
            lane,
            stage: self.batch,
            generation: batch,
            first: RecordNo::at(flight.first),
            count: u32::try_from(flight.count).unwrap_or(u32::MAX),
            begin,
            end: at,
            clock: Clock::Host,
        });
        Some(device)
    }

    fn mark(&mut self, at: u64, device: Option<DeviceNo>, occasion: Occasion, text: String) {
        self.recording.marks.push(Mark {
            at,
            device,
            occasion,
            text,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::AboutDevice;
    use crate::outcome::{Done, Failure};
    use warploom_fleet::{Answer, Reason};

    const MS: u64 = 1_000_000;

    fn about() -> About {
        let device = |label: &str, workers| AboutDevice {
            label: label.into(),
            name: "card".into(),
            id: format!("cuda/{label}"),
            workers,
        };
        About {
            started: 1_000,
            pipeline: "p".into(),
            devices: vec![device("cuda:0", 2), device("cuda:1", 1)],
            ..About::default()
        }
    }

    fn summary(outcomes: Vec<Outcome>) -> Summary {
        let named = outcomes.into_iter().enumerate();
        let records = named.map(|(at, outcome)| Done {
            record: format!("r{at}"),
            outcome,
        });
        Summary {
            pipeline: "p".into(),
            plan: String::new(),
            device: String::new(),
            faces: Vec::new(),
            tally: warploom_watch::recording::Tally::default(),
            interrupted: false,
            seconds: 0.0,
            mpix_per_second: 0.0,
            error: None,
            changes: Vec::new(),
            races_checked: None,
            run: std::path::PathBuf::new(),
            records: records.collect(),
            recording: None,
        }
    }

    fn ok(record: u64, attempts: u32) -> Event {
        Event::Ok {
            record,
            attempts,
            result: Answer::Kept(Vec::new()),
        }
    }

    fn attempt(batch: u64, slot: u32, records: &[u64]) -> Event {
        Event::Attempt {
            batch,
            slot,
            records: records.iter().copied().collect(),
        }
    }

    #[test]
    fn batches_are_spans_and_griefs_are_marks() {
        let about = about();
        let done = Outcome::Ok { files: Vec::new() };
        // The second was done by an earlier run, so the journal has no number for it.
        let summary = summary(vec![
            done.clone(),
            Outcome::Skipped,
            done.clone(),
            Outcome::Failed(Failure::new("it died")),
            done,
        ]);
        let events = vec![
            (1_000, attempt(0, 0, &[0, 1])),
            (1_001, attempt(1, 2, &[2])),
            (1_002, attempt(2, 0, &[3])),
            (1_010, ok(0, 1)),
            (
                1_020,
                Event::Charged {
                    batch: 1,
                    cause: Cause::Crashed {
                        how: "it ended by signal 9".into(),
                    },
                    records: [2].into_iter().collect(),
                },
            ),
            (
                1_021,
                Event::Quarantined {
                    device: "cuda/cuda:1".into(),
                    why: "too often".into(),
                },
            ),
            (1_030, ok(1, 1)),
            (1_031, attempt(3, 1, &[2])),
            (1_040, ok(3, 1)),
            (
                1_050,
                Event::Failed {
                    record: 2,
                    attempts: 2,
                    reason: Reason::Crashed {
                        how: "it ended by signal 9".into(),
                        log: "one\nlast words".into(),
                    },
                },
            ),
        ];
        let entries: Vec<Entry> = events
            .into_iter()
            .map(|(at, event)| Entry { at, event })
            .collect();
        let places = [0, 2, 3, 4];
        let chronicle = Chronicle::new("out", &about, &places, &summary);
        let recording = chronicle.read(&entries, 45 * MS);
        assert_eq!(recording.flaws(), []);
        assert_eq!(recording.wall, 50 * MS);
        let lanes: Vec<_> = recording.lanes.iter().map(|lane| &lane.name[..]).collect();
        assert_eq!(lanes, ["worker 1", "worker 2", "worker"]);
        let mut spans: Vec<_> = recording
            .spans
            .iter()
            .map(|span| {
                let times = (span.begin / MS, span.end / MS);
                (span.lane.0, times, span.first.0, span.count)
            })
            .collect();
        spans.sort_unstable();
        assert_eq!(
            spans,
            [
                (0, (0, 30), 0, 3),
                // It waited for the batch before it.
                (0, (30, 40), 4, 1),
                (1, (31, 50), 3, 1),
                (2, (1, 20), 3, 1),
            ]
        );
        let failed = &recording.records[3];
        assert_eq!((failed.attempts, failed.device), (2, Some(DeviceNo(0))));
        assert_eq!(failed.end, Some(50 * MS));
        let occasions: Vec<_> = recording
            .marks
            .iter()
            .map(|mark| (mark.occasion.word(), mark.device.unwrap().0))
            .collect();
        assert_eq!(occasions, [("lost", 1), ("quarantine", 1), ("retry", 0)]);
        assert_eq!(
            recording.notes,
            ["r3: the last words of its worker were: last words"]
        );
        assert_eq!(recording.records[1].attempts, 0);
    }
}
