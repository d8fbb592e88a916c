//! The messages.

use serde::{Deserialize, Serialize};

use crate::journal::BatchId;

/// Bytes that belong to a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Body {
    /// In it.
    Here(#[serde(with = "whole")] Vec<u8>),
    /// In the sender's stretch of shared memory, until the receiver says that it has read them.
    There { at: u64, bytes: u64 },
}

/// The device that a worker is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) slot: u32,
    pub(crate) device: String,
    pub(crate) model: String,
    pub(crate) ordinal: Option<u32>,
    pub(crate) identity: String,
    pub(crate) ceiling: Option<u32>,
}

/// What a worker keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Milliseconds between signs of life.
    pub(crate) beat: u64,
    /// Bytes of shared memory in each direction.
    pub(crate) arena: u64,
}

/// The first message of a coordinator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The process that the worker belongs to: if its parent is another one, that one has died.
    pub(crate) coordinator: u32,
    pub(crate) assignment: Assignment,
    /// What the work needs to know, whatever that is.
    pub(crate) setup: Vec<u8>,
    /// Has the device to pass a probe before it is used?
    pub(crate) probe: bool,
    pub(crate) limits: Limits,
    /// The variables that say which device may be used, as they have to be: nothing is none.
    pub(crate) environment: Vec<(String, Option<String>)>,
}

/// What a coordinator says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    Start(Start),
    /// The first records of the batch that comes next, which has too many bytes for one message.
    Part {
        records: Vec<(u64, Body)>,
    },
    Batch {
        batch: BatchId,
        records: Vec<(u64, Body)>,
    },
    /// The worker may use these bytes of its stretch again.
    Free {
        at: u64,
    },
    /// End when there is nothing left to do.
    Retire,
    /// Write to the log what you are doing.
    Tell,
}

/// What a worker says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// It has started, sees its device, and passed the probe if there was to be one.
    Ready,
    /// It cannot work.
    Refused {
        why: String,
        wrong_device: bool,
    },
    Begun {
        batch: BatchId,
    },
    Done {
        batch: BatchId,
        record: u64,
        body: Body,
    },
    Failed {
        batch: BatchId,
        record: u64,
        text: String,
    },
    /// An answer is too long to be carried.
    TooLong {
        batch: BatchId,
        record: u64,
        bytes: u64,
        limit: u64,
    },
    Finished {
        batch: BatchId,
    },
    OutOfMemory {
        batch: BatchId,
        asked: u64,
    },
    /// Somebody insists on more at once than there is room for.
    FixedSize {
        batch: BatchId,
        size: u32,
    },
    /// There is room for so many records at once.
    Settled {
        records: u32,
    },
    DeviceLost {
        batch: BatchId,
        text: String,
    },
    BatchFailed {
        batch: BatchId,
        text: String,
    },
    /// It is alive, and so far.
    Beat {
        progress: u64,
    },
}

/// Bytes as a whole: one by one, which is how lists are written, takes ten times as long.
mod whole {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
}
