//! What a recording is made of.

use serde::{Deserialize, Serialize};

/// Numbers that are places in one of a recording's lists.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The place in its list.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number of a place. A list of more than four billion things ends there.
            pub fn at(place: usize) -> Self {
                Self(u32::try_from(place).unwrap_or(u32::MAX))
            }

            pub(crate) fn last_of<T>(list: &[T]) -> Self {
                Self::at(list.len().saturating_sub(1))
            }

            /// The number so many places further on.
            #[must_use]
            pub fn after(self, others: usize) -> Self {
                Self(self.0.saturating_add(Self::at(others).0))
            }
        }
    };
}

number! {
    /// A place in [`Recording::devices`](super::Recording::devices).
    DeviceNo
}
number! {
    /// A place in [`Recording::stages`](super::Recording::stages).
    StageNo
}
number! {
    /// A place in [`Recording::lanes`](super::Recording::lanes).
    LaneNo
}
number! {
    /// A place in [`Recording::records`](super::Recording::records).
    RecordNo
}

/// A card, or the processor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// What users call it: `gpu0`, `cpu:0`.
    pub label: String,
    /// What its driver calls it.
    pub name: String,
    /// The ways to reach it that the run used: `cuda:0`, `opencl:1`.
    #[serde(default)]
    pub faces: Vec<String>,
    /// Its memory in bytes, where it has one of its own.
    #[serde(default)]
    pub memory: Option<u64>,
}

impl Device {
    /// A device without faces.
    pub fn new(label: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            name: name.into(),
            faces: Vec::new(),
            memory: None,
        }
    }

    /// With one more face.
    #[must_use]
    pub fn face(mut self, face: impl Into<String>) -> Self {
        self.faces.push(face.into());
        self
    }
}

/// Where a lane is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A queue of a device.
    Queue(DeviceNo),
    /// A thread of the host that works for one device.
    Host(DeviceNo),
    /// A thread of the host that works for all: a reader, a writer.
    Shared,
}

impl Place {
    /// The device it belongs to.
    pub fn device(self) -> Option<DeviceNo> {
        match self {
            Self::Queue(device) | Self::Host(device) => Some(device),
            Self::Shared => None,
        }
    }

    /// Is it a queue of a device?
    pub fn is_queue(self) -> bool {
        matches!(self, Self::Queue(_))
    }
}

/// One queue of a device or one thread of the host: what happens on it happens in order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// `compute`, `h2d`, `read 1`.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

impl Lane {
    /// A lane.
    pub fn new(name: impl Into<String>, place: Place) -> Self {
        Self {
            name: name.into(),
            place,
        }
    }
}

/// Who looked at the clock.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The host, when it began and when it heard of the end. For work of a device that is its
    /// time in the queue, at most.
    #[default]
    Host,
    /// The device itself, when it began and ended.
    Device,
}

/// One stage at work on one batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Span {
    /// Where.
    pub lane: LaneNo,
    /// What.
    pub stage: StageNo,
    /// Which pass of all stages. Spans of one generation belong together, wherever they are.
    pub generation: u64,
    /// The first record of the batch; those after it in the list follow.
    pub first: RecordNo,
    /// How many records; 0 for work that belongs to none.
    pub count: u32,
    /// When it began, in nanoseconds since the run began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// Who says so.
    pub clock: Clock,
}

impl Span {
    /// How long it took, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// What a counter counts.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Things.
    #[default]
    Count,
    /// Bytes.
    Bytes,
    /// Records per second.
    RecordsPerSecond,
    /// A share of a whole: 1 is all of it.
    Share,
}

/// A number at a moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Nanoseconds since the run began.
    pub at: u64,
    /// The number from then on, until the next sample.
    pub value: f64,
}

/// A number over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    /// `memory`, `records done`, `slots in use`.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// The device it is about.
    #[serde(default)]
    pub device: Option<DeviceNo>,
    /// What it was not to exceed.
    #[serde(default)]
    pub budget: Option<f64>,
    /// In the order of time.
    pub samples: Vec<Sample>,
}

/// A rule that guards a resource, and what keeping it cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Edge {
    /// `writer -> reader`.
    pub name: String,
    /// What it guards, in words.
    pub guards: String,
    /// The device whose pipeline it belongs to.
    #[serde(default)]
    pub device: Option<DeviceNo>,
    /// How often somebody was told to wait because of it.
    pub waits: u64,
    /// How long nothing else was to be done, in nanoseconds.
    pub blocked: u64,
}

/// How fast it could go if every stage took as long as it took in the run and nothing else held it up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Bound {
    /// Of which device.
    #[serde(default)]
    pub device: Option<DeviceNo>,
    /// Records per second at best.
    pub records_per_second: f64,
    /// What keeps it from being faster: a queue, a circle of stages.
    pub limit: String,
}

/// What a mark is about.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// Something to know.
    #[default]
    Note,
    /// Work began again after a failure.
    Retry,
    /// A worker or device was lost.
    Lost,
    /// A device gets no more work until it has passed a test.
    Quarantine,
    /// A device is back.
    Readmitted,
}

impl Occasion {
    /// `note`, `retry`, `lost`, `quarantine`, `readmitted`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Retry => "retry",
            Self::Lost => "lost",
            Self::Quarantine => "quarantine",
            Self::Readmitted => "readmitted",
        }
    }
}

/// A moment worth a flag.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mark {
    /// Nanoseconds since the run began.
    pub at: u64,
    /// The device it happened to.
    #[serde(default)]
    pub device: Option<DeviceNo>,
    /// What sort of thing happened.
    pub occasion: Occasion,
    /// In words.
    pub text: String,
}
