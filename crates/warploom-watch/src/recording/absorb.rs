//! Several recordings as one.

use super::Recording;
use super::item::{Bound, Counter, DeviceNo, Edge, Lane, LaneNo, Place, RecordNo, StageNo};

/// What a worker recorded of one batch.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// What it recorded, without a list of records.
    pub recording: Recording,
    /// By how many nanoseconds it began after the whole.
    pub later: u64,
    /// Where each of its record numbers is to be found in the whole; of a span the first counts.
    pub records: Vec<RecordNo>,
}

impl Recording {
    /// Takes over everything of another recording, which began `later` nanoseconds after this one.
    ///
    /// Devices with the same label are the same device; stages with the same name are the same
    /// stage. Lanes, records and everything else are added behind those that are there, generations
    /// are counted on. A worker whose records are already listed here leaves its own list empty, and
    /// `records` says where each of its record numbers is to be found here; of a batch the first
    /// counts. `None` is for a recording that brings its records.
    pub fn absorb(&mut self, other: Self, later: u64, records: Option<&[RecordNo]>) {
        let generations = self.generations();
        self.take(other, later, records, generations, false);
    }

    /// Takes over what one worker after the other, or one batch after the other, recorded: as
    /// [`absorb`](Self::absorb), but lanes of one name in one place are one lane, counters of one name
    /// and device are one counter, waits for one edge add up, and of a device's bounds the largest stays.
    pub fn absorb_parts(&mut self, parts: impl IntoIterator<Item = Part>) {
        let mut generations = self.generations();
        for part in parts {
            let own = part.recording.generations();
            let records = Some(&part.records[..]);
            self.take(part.recording, part.later, records, generations, true);
            generations = generations.saturating_add(own);
        }
        for counter in &mut self.counters {
            counter.samples.sort_by_key(|sample| sample.at);
        }
    }

    /// The first number that no generation has.
    fn generations(&self) -> u64 {
        let after = self.spans.iter();
        let after = after.map(|span| span.generation.saturating_add(1));
        after.max().unwrap_or(0)
    }

    fn take(
        &mut self,
        other: Self,
        later: u64,
        records: Option<&[RecordNo]>,
        generations: u64,
        joined: bool,
    ) {
        let devices: Vec<DeviceNo> = other
            .devices
            .into_iter()
            .map(|device| {
                let known = self
                    .devices
                    .iter()
                    .position(|known| known.label == device.label);
                known.map_or_else(|| self.device(device), DeviceNo::at)
            })
            .collect();
        let device = |number: DeviceNo| devices.get(number.index()).copied().unwrap_or(number);
        let stages: Vec<StageNo> = other.stages.iter().map(|name| self.stage(name)).collect();
        let records_before = self.records.len();
        let record = |number: RecordNo| match records {
            Some(records) => records.get(number.index()).copied().unwrap_or(number),
            None => number.after(records_before),
        };
        let lanes = other.lanes.into_iter().map(|lane| Lane {
            place: match lane.place {
                Place::Queue(of) => Place::Queue(device(of)),
                Place::Host(of) => Place::Host(device(of)),
                Place::Shared => Place::Shared,
            },
            ..lane
        });
        let lanes: Vec<LaneNo> = lanes
            .map(|lane| {
                let known = self.lanes.iter().position(|known| *known == lane);
                let known = known.filter(|_| joined).map(LaneNo::at);
                known.unwrap_or_else(|| self.lane(lane))
            })
            .collect();
        let moved = |at: u64| at.saturating_add(later);
        self.spans.extend(other.spans.into_iter().map(|mut span| {
            // A number that is out of range stays so.
            let lane = lanes.get(span.lane.index());
            span.lane = lane.copied().unwrap_or(LaneNo(u32::MAX));
            span.stage = stages
                .get(span.stage.index())
                .copied()
                .unwrap_or(span.stage);
            span.first = record(span.first);
            span.generation = span.generation.saturating_add(generations);
            (span.begin, span.end) = (moved(span.begin), moved(span.end));
            span
        }));
        for mut counter in other.counters {
            counter.device = counter.device.map(device);
            for sample in &mut counter.samples {
                sample.at = moved(sample.at);
            }
            let is_same = |known: &&mut Counter| {
                joined && known.name == counter.name && known.device == counter.device
            };
            match self.counters.iter_mut().find(is_same) {
                Some(known) => known.samples.append(&mut counter.samples),
                None => self.counters.push(counter),
            }
        }
        for mut edge in other.edges {
            edge.device = edge.device.map(device);
            let is_same = |known: &&mut Edge| {
                let ends = known.name == edge.name && known.guards == edge.guards;
                joined && ends && known.device == edge.device
            };
            match self.edges.iter_mut().find(is_same) {
                Some(known) => {
                    known.waits = known.waits.saturating_add(edge.waits);
                    known.blocked = known.blocked.saturating_add(edge.blocked);
                }
                None => self.edges.push(edge),
            }
        }
        for mut bound in other.bounds {
            bound.device = bound.device.map(device);
            let is_same = |known: &&mut Bound| joined && known.device == bound.device;
            match self.bounds.iter_mut().find(is_same) {
                Some(known) if known.records_per_second >= bound.records_per_second => {}
                Some(known) => *known = bound,
                None => self.bounds.push(bound),
            }
        }
        self.records
            .extend(other.records.into_iter().map(|mut record| {
                record.device = record.device.map(device);
                (record.begin, record.end) = (record.begin.map(moved), record.end.map(moved));
                record
            }));
        self.thumbnails
            .extend(other.thumbnails.into_iter().map(|mut thumbnail| {
                thumbnail.record = record(thumbnail.record);
                thumbnail
            }));
        self.marks.extend(other.marks.into_iter().map(|mut mark| {
            mark.device = mark.device.map(device);
            mark.at = moved(mark.at);
            mark
        }));
        self.notes.extend(other.notes);
        self.wall = self.wall.max(moved(other.wall));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Clock, Device, Mark, Record, Sample, Span, Thumbnail};
    use super::*;

    fn worker(label: &str, stages: [&str; 2]) -> Recording {
        let mut recording = Recording::new("t", "p");
        let gpu = recording.device(Device::new(label, "card"));
        let lane = recording.lane(Lane::new("compute", Place::Queue(gpu)));
        recording.lane(Lane::new("host", Place::Host(gpu)));
        recording.lane(Lane::new("write", Place::Shared));
        for (generation, stage) in (0..).zip(stages) {
            let stage = recording.stage(stage);
            recording.spans.push(Span {
                lane,
                stage,
                generation,
                first: RecordNo(0),
                count: 1,
                begin: 10,
                end: 20,
                clock: Clock::Device,
            });
        }
        let device = Some(gpu);
        let samples = vec![Sample { at: 5, value: 1.0 }];
        recording.counters.push(Counter {
            device,
            samples,
            ..Counter::default()
        });
        recording.edges.push(Edge {
            device,
            ..Edge::default()
        });
        recording.bounds.push(Bound {
            device,
            records_per_second: 4.0,
            ..Bound::default()
        });
        recording.marks.push(Mark {
            device,
            at: 7,
            ..Mark::default()
        });
        recording.record(Record::new("r").done_at(9, 21).on(gpu));
        recording.thumbnails.push(Thumbnail::default());
        recording.notes.push("n".into());
        recording.wall = 30;
        recording
    }

    #[test]
    fn two_workers_become_one_recording() {
        let mut all = worker("gpu0", ["read", "blur"]);
        all.absorb(worker("gpu1", ["blur", "write"]), 100, None);
        assert_eq!(all.flaws(), []);
        assert_eq!(all.wall, 130);
        assert_eq!(all.stages, ["read", "blur", "write"]);
        assert_eq!(all.bound(), Some(8.0));
        let [_, _, third, fourth] = &all.spans[..] else {
            panic!("{:?}", all.spans);
        };
        assert_eq!(
            (third.lane, third.stage, third.first),
            (LaneNo(3), StageNo(1), RecordNo(1))
        );
        assert_eq!((third.begin, third.end), (110, 120));
        assert_eq!((third.generation, fourth.generation), (2, 3));
        let gpu1 = Some(DeviceNo(1));
        assert_eq!(all.lanes[3].place, Place::Queue(DeviceNo(1)));
        assert_eq!(all.lanes[4].place, Place::Host(DeviceNo(1)));
        assert_eq!(all.lanes[5].place, Place::Shared);
        assert_eq!(
            (all.counters[1].device, all.counters[1].samples[0].at),
            (gpu1, 105)
        );
        assert_eq!((all.edges[1].device, all.bounds[1].device), (gpu1, gpu1));
        assert_eq!((all.marks[1].device, all.marks[1].at), (gpu1, 107));
        let record = &all.records[1];
        assert_eq!(
            (record.device, record.begin, record.end),
            (gpu1, Some(109), Some(121))
        );
        assert_eq!(all.thumbnails[1].record, RecordNo(1));
        assert_eq!(all.notes.len(), 2);
    }

    #[test]
    fn a_worker_of_the_same_device_that_has_no_list_of_its_own() {
        let mut all = worker("gpu0", ["read", "blur"]);
        all.record(Record::new("s"));
        let mut second = worker("gpu0", ["read", "blur"]);
        second.records.clear();
        all.absorb(second, 0, Some(&[RecordNo(1)]));
        assert_eq!(all.flaws(), []);
        assert_eq!(all.devices.len(), 1);
        assert_eq!(all.records.len(), 2);
        assert_eq!(all.spans[2].first, RecordNo(1));
        assert_eq!(all.thumbnails[1].record, RecordNo(1));
        assert_eq!(all.lanes[3].place, Place::Queue(DeviceNo(0)));
    }

    #[test]
    fn batches_of_workers_share_lanes_counters_and_edges() {
        let mut all = Recording::new("t", "p");
        let names = [0, 1, 2, 3].map(|number| all.record(Record::new(number.to_string())));
        let part = |label: &str, later, record: usize| {
            let mut recording = worker(label, ["read", "blur"]);
            recording.records.clear();
            recording.edges[0].waits = 3;
            recording.edges[0].blocked = 5;
            Part {
                recording,
                later,
                records: vec![names[record]],
            }
        };
        all.absorb_parts([
            part("gpu0", 0, 0),
            part("gpu1", 10, 1),
            part("gpu0", 100, 2),
            // A batch that was told of late began early.
            part("gpu0", 50, 3),
        ]);
        assert_eq!(all.flaws(), []);
        // The lane that all share is one; compute and host are one for each device.
        assert_eq!((all.devices.len(), all.lanes.len()), (2, 5));
        assert_eq!(all.spans.len(), 8);
        let on = |record: u32| {
            let spans = all.spans.iter();
            let spans = spans.filter(|span| span.first == RecordNo(record));
            spans.map(|span| span.lane).collect::<Vec<_>>()
        };
        assert_eq!(on(0), on(2));
        assert_ne!(on(0), on(1));
        let generations: Vec<u64> = all.spans.iter().map(|span| span.generation).collect();
        assert_eq!(generations, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(all.bound(), Some(8.0));
        let edges = all.edges.iter().map(|edge| (edge.waits, edge.blocked));
        assert_eq!(edges.collect::<Vec<_>>(), [(9, 15), (3, 5)]);
        let times = all.counters.iter().map(|counter| {
            let samples = counter.samples.iter();
            samples.map(|sample| sample.at).collect::<Vec<_>>()
        });
        assert_eq!(times.collect::<Vec<_>>(), [vec![5, 55, 105], vec![15]]);
        assert_eq!(all.wall, 130);
    }
}
