//! Several recordings as one.

use super::Recording;
use super::item::{DeviceNo, Lane, LaneNo, Place, RecordNo, StageNo};

impl Recording {
    /// Takes over everything of another recording, which began `later` nanoseconds after this one.
    ///
    /// Devices with the same label are the same device; stages with the same name are the same
    /// stage. Lanes, records and everything else are added behind those that are there, generations
    /// are counted on. A worker whose records are already listed here leaves its own list empty, and
    /// `records` says where each of its record numbers is to be found here; of a batch the first
    /// counts. `None` is for a recording that brings its records.
    pub fn absorb(&mut self, other: Self, later: u64, records: Option<&[RecordNo]>) {
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
        let (lanes_before, records_before) = (self.lanes.len(), self.records.len());
        let record = |number: RecordNo| match records {
            Some(records) => records.get(number.index()).copied().unwrap_or(number),
            None => number.after(records_before),
        };
        self.lanes.extend(other.lanes.into_iter().map(|lane| Lane {
            place: match lane.place {
                Place::Queue(of) => Place::Queue(device(of)),
                Place::Host(of) => Place::Host(device(of)),
                Place::Shared => Place::Shared,
            },
            ..lane
        }));
        let moved = |at: u64| at.saturating_add(later);
        let generations = self
            .spans
            .iter()
            .map(|span| span.generation.saturating_add(1))
            .max();
        let generations = generations.unwrap_or(0);
        self.spans.extend(other.spans.into_iter().map(|mut span| {
            span.lane = LaneNo::after(span.lane, lanes_before);
            span.stage = stages
                .get(span.stage.index())
                .copied()
                .unwrap_or(span.stage);
            span.first = record(span.first);
            span.generation = span.generation.saturating_add(generations);
            (span.begin, span.end) = (moved(span.begin), moved(span.end));
            span
        }));
        self.counters
            .extend(other.counters.into_iter().map(|mut counter| {
                counter.device = counter.device.map(device);
                for sample in &mut counter.samples {
                    sample.at = moved(sample.at);
                }
                counter
            }));
        self.edges.extend(other.edges.into_iter().map(|mut edge| {
            edge.device = edge.device.map(device);
            edge
        }));
        self.bounds
            .extend(other.bounds.into_iter().map(|mut bound| {
                bound.device = bound.device.map(device);
                bound
            }));
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
    use super::super::{
        Bound, Clock, Counter, Device, Edge, Mark, Record, Sample, Span, Thumbnail,
    };
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
}
