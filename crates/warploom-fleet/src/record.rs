//! What goes in and what comes out: records, and what became of them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One unit of input. The fleet never looks into it: only the work knows what the bytes say.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What the work is told: a path, a well, or the pixels themselves.
    pub body: Vec<u8>,
}

impl Record {
    /// A record of these bytes.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into() }
    }
}

/// What became of a record. Every record of a run has exactly one (I2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It was done.
    Ok {
        /// How often it was handed to a worker, this time included.
        attempts: u32,
        /// The work's answer, when it was small enough for the journal, or still is at hand.
        result: Answer,
    },
    /// It cannot be done, and was not for want of trying.
    Failed {
        /// Why.
        reason: Reason,
        /// How often it was handed to a worker.
        attempts: u32,
    },
    /// The run ended before it was done. Resuming the run begins with it.
    NotStarted {
        /// How often it was handed to a worker and came back for reasons that are not its own.
        attempts: u32,
    },
}

impl Outcome {
    /// Was it done?
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok { .. })
    }

    /// Did it fail?
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// The work's answer for one record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The bytes.
    Kept(Vec<u8>),
    /// It was delivered, and was too long for the journal to keep.
    Delivered {
        /// Its length in bytes.
        bytes: u64,
        /// The CRC-32 of it, so that whoever has it can tell.
        crc: u32,
    },
}

impl Answer {
    /// The bytes, if they are here.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Kept(bytes) => Some(bytes),
            Self::Delivered { .. } => None,
        }
    }
}

/// Why a record failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// The work said so.
    Work {
        /// In these words.
        text: String,
    },
    /// Its worker died of it, alone with it, as often as was allowed.
    Crashed {
        /// How it died.
        how: String,
        /// The last lines that the worker wrote.
        log: String,
    },
    /// Its worker made no progress with it, alone with it, as often as was allowed.
    Hung {
        /// How long that was waited for.
        after: Duration,
        /// The last lines that the worker wrote.
        log: String,
    },
    /// It does not fit the device even alone.
    OutOfMemory {
        /// What was asked of the device, in bytes; 0 when nobody said.
        asked: u64,
        /// Which model of device.
        model: String,
    },
    /// The device was lost over it, alone with it, as often as was allowed.
    DeviceLost {
        /// What the device said.
        text: String,
        /// The last lines that the worker wrote.
        log: String,
    },
    /// The work ended without a word about it.
    Unanswered,
    /// The answer is longer than one answer can be.
    TooLong {
        /// Its length in bytes.
        bytes: u64,
        /// The longest there can be.
        limit: u64,
    },
    /// It took longer than a batch may, alone, as often as was allowed.
    Late {
        /// How long that is.
        limit: Duration,
        /// The last lines that the worker wrote.
        log: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { text } => f.write_str(text),
            Self::Crashed { how, .. } => write!(f, "the worker died of it: {how}"),
            Self::Hung { after, .. } => write!(f, "the worker made no progress for {after:?}"),
            Self::OutOfMemory { asked: 0, model } => {
                write!(f, "it does not fit {model} even alone")
            }
            Self::OutOfMemory { asked, model } => write!(
                f,
                "it does not fit {model} even alone: {} were asked for",
                warploom_core::Bytes(*asked)
            ),
            Self::DeviceLost { text, .. } => write!(f, "the device was lost over it: {text}"),
            Self::Unanswered => f.write_str("the work ended without a word about it"),
            Self::TooLong { bytes, limit } => write!(
                f,
                "the answer has {bytes} bytes, of which {limit} can be carried"
            ),
            Self::Late { limit, .. } => {
                write!(f, "it took longer than the {limit:?} that a batch may take")
            }
        }
    }
}

/// Records by number, as runs of neighbours: what a batch usually is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// All numbers, in the order they were put in.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0
            .iter()
            .flat_map(|&(first, count)| first..first.saturating_add(count))
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        let counts = self.0.iter().map(|&(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Are they all below `end`? Numbers that were read from a file may be anything.
    pub(crate) fn all_below(&self, end: u64) -> bool {
        let inside = |&(first, count): &(u64, u64)| {
            first.checked_add(count).is_some_and(|beyond| beyond <= end)
        };
        self.0.iter().all(inside)
    }
}

impl FromIterator<u64> for Spans {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match spans.last_mut() {
                Some((first, count)) if *first + *count == number => *count += 1,
                _ => spans.push((number, 1)),
            }
        }
        Self(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_keep_numbers_and_their_order() {
        let numbers = [4, 5, 6, 9, 2, 3, 3];
        let spans: Spans = numbers.into_iter().collect();
        assert_eq!(spans.0, [(4, 3), (9, 1), (2, 2), (3, 1)]);
        assert_eq!(spans.iter().collect::<Vec<_>>(), numbers);
        assert_eq!(spans.len(), 7);
        assert!(spans.all_below(10) && !spans.all_below(9));
        assert!(!Spans(vec![(u64::MAX, 2)]).all_below(u64::MAX));
    }

    #[test]
    fn reasons_are_clauses_with_the_numbers() {
        let asked = Reason::OutOfMemory {
            asked: 3 << 30,
            model: "A4000".into(),
        };
        assert_eq!(
            asked.to_string(),
            "it does not fit A4000 even alone: 3.0 GiB were asked for"
        );
        let hung = Reason::Hung {
            after: Duration::from_secs(5),
            log: String::new(),
        };
        assert_eq!(hung.to_string(), "the worker made no progress for 5s");
        let late = Reason::Late {
            limit: Duration::from_secs(90),
            log: String::new(),
        };
        assert_eq!(
            late.to_string(),
            "it took longer than the 90s that a batch may take"
        );
    }
}
