//! What does not fit together in a recording.

use super::Recording;
use super::item::{DeviceNo, RecordNo};

/// Something that a recording says and cannot be.
///
/// Traces, reports and metrics are made of flawed recordings too: what is wrong is left out of
/// them, or cut to what can be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A number that is no place in its list.
    #[error("{what} {place} names {list} {number}, and there are {there}")]
    Dangling {
        /// What sort of thing it is.
        what: &'static str,
        /// Which of them.
        place: usize,
        /// The list it refers to.
        list: &'static str,
        /// The number it gives.
        number: usize,
        /// How many there are.
        there: usize,
    },
    /// It ends before it begins.
    #[error("{what} {place} begins at {begin} ns and ends at {end} ns")]
    Backwards {
        /// What sort of thing it is.
        what: &'static str,
        /// Which of them.
        place: usize,
        /// Its beginning.
        begin: u64,
        /// Its end.
        end: u64,
    },
    /// It ends after the run.
    #[error("{what} {place} ends at {end} ns, after the run, which took {wall} ns")]
    Late {
        /// What sort of thing it is.
        what: &'static str,
        /// Which of them.
        place: usize,
        /// Its end.
        end: u64,
        /// The run's end.
        wall: u64,
    },
    /// A counter's sample is older than the one before it, or not a number.
    #[error("sample {sample} of counter `{counter}` is out of order or not a number")]
    Sample {
        /// The counter's name.
        counter: String,
        /// Which sample.
        sample: usize,
    },
}

impl Recording {
    /// Everything that does not fit together. None for what a correct runner records.
    pub fn flaws(&self) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        self.span_flaws(&mut flaws);
        self.record_flaws(&mut flaws);
        for (place, counter) in self.counters.iter().enumerate() {
            self.check_device(&mut flaws, "counter", place, counter.device);
            let mut before = 0;
            for (sample, taken) in counter.samples.iter().enumerate() {
                if taken.at < before || !taken.value.is_finite() {
                    let counter = counter.name.clone();
                    flaws.push(Flaw::Sample { counter, sample });
                }
                before = before.max(taken.at);
            }
        }
        for (place, lane) in self.lanes.iter().enumerate() {
            self.check_device(&mut flaws, "lane", place, lane.place.device());
        }
        for (place, edge) in self.edges.iter().enumerate() {
            self.check_device(&mut flaws, "edge", place, edge.device);
        }
        for (place, bound) in self.bounds.iter().enumerate() {
            self.check_device(&mut flaws, "bound", place, bound.device);
        }
        for (place, mark) in self.marks.iter().enumerate() {
            self.check_device(&mut flaws, "mark", place, mark.device);
            self.check_time(&mut flaws, "mark", place, (mark.at, mark.at));
        }
        flaws
    }

    fn span_flaws(&self, flaws: &mut Vec<Flaw>) {
        for (place, span) in self.spans.iter().enumerate() {
            let lists = [
                ("lane", span.lane.index(), self.lanes.len()),
                ("stage", span.stage.index(), self.stages.len()),
            ];
            for (list, number, there) in lists {
                check_place(flaws, ("span", place), (list, number), there);
            }
            if let Some(last) = span.count.checked_sub(1) {
                let last = span.first.after(last as usize);
                self.check_record(flaws, "span", place, last);
            }
            self.check_time(flaws, "span", place, (span.begin, span.end));
        }
    }

    fn record_flaws(&self, flaws: &mut Vec<Flaw>) {
        for (place, record) in self.records.iter().enumerate() {
            self.check_device(flaws, "record", place, record.device);
            let begin = record.begin.unwrap_or(0);
            let end = record.end.unwrap_or(begin);
            self.check_time(flaws, "record", place, (begin, end));
        }
        for (place, thumbnail) in self.thumbnails.iter().enumerate() {
            self.check_record(flaws, "thumbnail", place, thumbnail.record);
        }
    }

    fn check_device(
        &self,
        flaws: &mut Vec<Flaw>,
        what: &'static str,
        place: usize,
        device: Option<DeviceNo>,
    ) {
        if let Some(device) = device {
            check_place(
                flaws,
                (what, place),
                ("device", device.index()),
                self.devices.len(),
            );
        }
    }

    fn check_record(&self, flaws: &mut Vec<Flaw>, what: &'static str, place: usize, at: RecordNo) {
        check_place(
            flaws,
            (what, place),
            ("record", at.index()),
            self.records.len(),
        );
    }

    fn check_time(
        &self,
        flaws: &mut Vec<Flaw>,
        what: &'static str,
        place: usize,
        (begin, end): (u64, u64),
    ) {
        if end < begin {
            flaws.push(Flaw::Backwards {
                what,
                place,
                begin,
                end,
            });
        }
        if end.max(begin) > self.wall {
            let (end, wall) = (end.max(begin), self.wall);
            flaws.push(Flaw::Late {
                what,
                place,
                end,
                wall,
            });
        }
    }
}

fn check_place(
    flaws: &mut Vec<Flaw>,
    (what, place): (&'static str, usize),
    (list, number): (&'static str, usize),
    there: usize,
) {
    if number >= there {
        flaws.push(Flaw::Dangling {
            what,
            place,
            list,
            number,
            there,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Bound, Clock, Counter, Device, Edge, Lane, LaneNo, Mark, Place, Record, Sample, Span,
        StageNo, Thumbnail,
    };
    use super::*;

    fn sound() -> Recording {
        let mut recording = Recording::new("t", "p");
        let gpu = recording.device(Device::new("gpu0", "card"));
        let lane = recording.lane(Lane::new("compute", Place::Queue(gpu)));
        let stage = recording.stage("blur");
        let first = recording.record(Record::new("r").done_at(0, 100).on(gpu));
        recording.spans.push(Span {
            lane,
            stage,
            generation: 0,
            first,
            count: 1,
            begin: 10,
            end: 100,
            clock: Clock::Host,
        });
        recording.wall = 100;
        recording
    }

    fn only_flaw(change: impl FnOnce(&mut Recording)) -> String {
        let mut recording = sound();
        assert_eq!(recording.flaws(), []);
        change(&mut recording);
        match &recording.flaws()[..] {
            [flaw] => flaw.to_string(),
            flaws => panic!("{flaws:?}"),
        }
    }

    #[test]
    fn each_thing_that_cannot_be_is_named() {
        let device = Some(DeviceNo(1));
        let cases = [
            only_flaw(|r| r.spans[0].lane = LaneNo(1)),
            only_flaw(|r| r.spans[0].stage = StageNo(9)),
            only_flaw(|r| r.spans[0].count = 2),
            only_flaw(|r| r.spans[0].end = 9),
            only_flaw(|r| r.spans[0].end = 101),
            only_flaw(|r| r.records[0].device = device),
            only_flaw(|r| r.records[0].end = Some(101)),
            only_flaw(|r| r.lanes[0].place = Place::Host(DeviceNo(1))),
            only_flaw(|r| {
                r.edges.push(Edge {
                    device,
                    ..Edge::default()
                });
            }),
            only_flaw(|r| {
                r.bounds.push(Bound {
                    device,
                    ..Bound::default()
                });
            }),
            only_flaw(|r| {
                r.counters.push(Counter {
                    device,
                    ..Counter::default()
                });
            }),
            only_flaw(|r| {
                r.marks.push(Mark {
                    device,
                    ..Mark::default()
                });
            }),
            only_flaw(|r| {
                r.marks.push(Mark {
                    at: 101,
                    ..Mark::default()
                });
            }),
            only_flaw(|r| {
                let record = RecordNo(1);
                r.thumbnails.push(Thumbnail {
                    record,
                    ..Thumbnail::default()
                });
            }),
        ];
        insta::assert_snapshot!(cases.join("\n"));
    }

    #[test]
    fn samples_are_in_order_and_numbers() {
        let counter = |samples: &[(u64, f64)]| Counter {
            name: "memory".into(),
            samples: samples
                .iter()
                .map(|&(at, value)| Sample { at, value })
                .collect(),
            ..Counter::default()
        };
        let backwards = only_flaw(|r| r.counters.push(counter(&[(5, 1.0), (4, 1.0), (5, 1.0)])));
        assert_eq!(
            backwards,
            "sample 1 of counter `memory` is out of order or not a number"
        );
        only_flaw(|r| r.counters.push(counter(&[(5, f64::NAN)])));
    }

    #[test]
    fn work_of_no_record_needs_none() {
        let mut recording = sound();
        recording.spans[0].count = 0;
        recording.spans[0].first = RecordNo(7);
        assert_eq!(recording.flaws(), []);
    }
}
