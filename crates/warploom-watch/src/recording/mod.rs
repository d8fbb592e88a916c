//! What a run records: plain data with numbers instead of names where there are many of them.
//!
//! Times are nanoseconds since the run began, on one clock; [`Clock`] says how they were taken.
//! Things refer to each other by their place in the recording's lists, so a [`Span`] is 48 bytes
//! and collecting one is a push. Recordings of several processes become one by
//! [`Recording::absorb`].
//!
//! ```
//! use warploom_watch::Recording;
//! use warploom_watch::recording::{Clock, Device, Lane, Place, Record, Span};
//!
//! let mut recording = Recording::new("plate 7", "nuclei");
//! let gpu = recording.device(Device::new("gpu0", "Radeon PRO W7900").face("opencl:0"));
//! let lane = recording.lane(Lane::new("compute", Place::Queue(gpu)));
//! let blur = recording.stage("blur");
//! let record = recording.record(Record::new("A01").done_at(1_000, 9_000).on(gpu));
//! recording.spans.push(Span {
//!     lane,
//!     stage: blur,
//!     generation: 0,
//!     first: record,
//!     count: 1,
//!     begin: 2_000,
//!     end: 8_000,
//!     clock: Clock::Device,
//! });
//! recording.wall = 10_000;
//! assert!(recording.flaws().is_empty());
//! ```

mod absorb;
mod flaw;
mod item;
mod outcome;
mod picture;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use absorb::Part;
pub use flaw::Flaw;
pub use item::{
    Bound, Clock, Counter, Device, DeviceNo, Edge, Lane, LaneNo, Mark, Occasion, Place, RecordNo,
    Sample, Span, StageNo, Unit,
};
pub use outcome::{Outcome, Record, Tally};
pub use picture::{Picture, Thumbnail};

/// What a run did, from its first moment to its last.
///
/// A field that nothing was recorded for is empty; everything made from a recording leaves it out
/// then, and never shows a zero for it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// What people call this run.
    pub title: String,
    /// The pipeline's name.
    pub pipeline: String,
    /// The plan's fingerprint.
    pub plan: String,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// How long it took, in nanoseconds.
    pub wall: u64,
    /// The devices it used.
    pub devices: Vec<Device>,
    /// The names of stages.
    pub stages: Vec<String>,
    /// Queues and threads that things happened on.
    pub lanes: Vec<Lane>,
    /// What happened on them, in any order.
    pub spans: Vec<Span>,
    /// Numbers over time.
    pub counters: Vec<Counter>,
    /// What stages waited for.
    pub edges: Vec<Edge>,
    /// How fast it could have been, according to the model; of several devices the sum counts.
    pub bounds: Vec<Bound>,
    /// Every record that there was to do, in the order of the input.
    pub records: Vec<Record>,
    /// Small pictures of some records.
    pub thumbnails: Vec<Thumbnail>,
    /// Moments worth a flag.
    pub marks: Vec<Mark>,
    /// What people should know about the whole run: warnings, decisions.
    pub notes: Vec<String>,
}

impl Recording {
    /// An empty recording of a run that begins now.
    pub fn new(title: impl Into<String>, pipeline: impl Into<String>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            title: title.into(),
            pipeline: pipeline.into(),
            started: since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)),
            ..Self::default()
        }
    }

    /// Adds a device.
    pub fn device(&mut self, device: Device) -> DeviceNo {
        self.devices.push(device);
        DeviceNo::last_of(&self.devices)
    }

    /// The number of a stage by its name, which is added if it is new. Meant for the start of a
    /// run: it looks through all names.
    pub fn stage(&mut self, name: &str) -> StageNo {
        if let Some(at) = self.stages.iter().position(|known| known == name) {
            return StageNo::at(at);
        }
        self.stages.push(name.to_owned());
        StageNo::last_of(&self.stages)
    }

    /// Adds a queue or a thread.
    pub fn lane(&mut self, lane: Lane) -> LaneNo {
        self.lanes.push(lane);
        LaneNo::last_of(&self.lanes)
    }

    /// Adds a record.
    pub fn record(&mut self, record: Record) -> RecordNo {
        self.records.push(record);
        RecordNo::last_of(&self.records)
    }

    /// How many records ended how.
    pub fn tally(&self) -> Tally {
        Tally::of(&self.records)
    }

    /// How long it took.
    pub fn wall(&self) -> Duration {
        Duration::from_nanos(self.wall)
    }

    /// Records that went well per second of the whole run; `None` before anything was measured.
    pub fn rate(&self) -> Option<f64> {
        let done = self.tally().ok;
        (self.wall > 0 && done > 0).then(|| done as f64 / self.wall().as_secs_f64())
    }

    /// Records per second that the model says all devices could do together.
    pub fn bound(&self) -> Option<f64> {
        let sum: f64 = self
            .bounds
            .iter()
            .map(|bound| bound.records_per_second)
            .sum();
        (sum.is_finite() && sum > 0.0).then_some(sum)
    }

    /// What users call a device; empty for none, and for a number that is out of range.
    pub fn device_label(&self, device: Option<DeviceNo>) -> &str {
        let device = device.and_then(|at| self.devices.get(at.index()));
        device.map_or("", |device| device.label.as_str())
    }

    /// The name of a stage; a number that is out of range has none.
    pub fn stage_name(&self, stage: StageNo) -> &str {
        self.stages.get(stage.index()).map_or("?", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_small() {
        assert!(size_of::<Span>() <= 48, "{}", size_of::<Span>());
    }

    #[test]
    fn what_was_not_measured_is_not_zero() {
        let recording = Recording::new("t", "p");
        assert_eq!((recording.rate(), recording.bound()), (None, None));
        assert_eq!(recording.tally().total(), 0);
        assert_eq!(recording.stage_name(StageNo(3)), "?");
    }

    #[test]
    fn a_recording_comes_back_from_json() {
        let mut recording = Recording::new("t", "p");
        let gpu = recording.device(Device::new("gpu0", "card").face("cuda:0"));
        recording.lane(Lane::new("q", Place::Queue(gpu)));
        recording.lane(Lane::new("w", Place::Shared));
        recording.record(Record::new("a").failed_at(1, 2, "torn"));
        recording.record(Record::new("b"));
        recording.counters.push(Counter {
            name: "memory".into(),
            unit: Unit::Bytes,
            budget: Some(8.0),
            samples: vec![Sample { at: 1, value: 0.1 }],
            ..Counter::default()
        });
        recording.thumbnails.push(Thumbnail {
            before: Some(Picture(vec![0, 255, 7])),
            ..Thumbnail::default()
        });
        let json = serde_json::to_string(&recording).unwrap();
        assert_eq!(serde_json::from_str::<Recording>(&json).unwrap(), recording);
        // What a later version adds and what an earlier one had not is no obstacle.
        let partial =
            r#"{"title": "x", "records": [{"name": "a", "outcome": {"is": "ok"}}], "new": 1}"#;
        let partial: Recording = serde_json::from_str(partial).unwrap();
        assert_eq!(partial.tally().ok, 1);
        assert!(serde_json::from_str::<Picture>("\"@\"").is_err());
    }
}
