//! What users write: the work of one worker.

use std::fmt;

use warploom_core::{DeviceError, DeviceId, DeviceInfo};

use crate::crew::identity;

/// What a worker does to records on its device. It is made once per process and lives as long as that.
pub trait Work: Sized {
    /// Opens the device.
    ///
    /// # Errors
    /// [`Refusal::WrongDevice`] when something else than the assigned device is seen, which
    /// [`Assigned::check`] finds out; [`Refusal::Failed`] for anything else.
    fn init(assigned: &Assigned) -> Result<Self, Refusal>;

    /// Works through a batch, and answers for each record as soon as it can: what has been answered is not
    /// done again when something goes wrong after it.
    ///
    /// # Errors
    /// What goes wrong with the batch or the device as a whole. What goes wrong with one record is said
    /// with [`Batch::failed`].
    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble>;

    /// Finds out whether a device that misbehaved works again, with something small.
    ///
    /// # Errors
    /// Why it does not.
    fn probe(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// The slot and device that a worker is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assigned {
    /// The number of the slot, from 0.
    pub slot: usize,
    /// The device: a UUID, a PCI address, or whatever the fleet's owner called it.
    pub device: String,
    /// The device's model.
    pub model: String,
    /// The device's place among those that a process sees, for drivers without a variable that hides.
    pub ordinal: Option<u32>,
    /// What tells the device from others of its kind, where the fleet got it by
    /// [`FleetDevice::of`](crate::FleetDevice::of).
    pub identity: String,
    /// What the fleet's owner has to say to all workers.
    pub setup: Vec<u8>,
}

impl Assigned {
    /// Does the process see the assigned device and no other?
    ///
    /// # Errors
    /// [`Refusal::WrongDevice`] if not.
    pub fn check(&self, seen: &[String]) -> Result<(), Refusal> {
        if let [only] = seen
            && *only == self.device
        {
            return Ok(());
        }
        Err(Refusal::WrongDevice {
            assigned: self.device.clone(),
            seen: seen.to_vec(),
        })
    }

    /// The assigned device among those that this process sees, if the fleet got it by
    /// [`FleetDevice::of`](crate::FleetDevice::of): the one of its number, or the only one where a variable
    /// hides the others; and the same card in either case.
    ///
    /// # Errors
    /// [`Refusal::WrongDevice`] when it is not there, another one is, or others are that should be hidden.
    pub fn find<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a DeviceInfo>,
    ) -> Result<DeviceId, Refusal> {
        let backend = self.device.split(':').next().unwrap_or_default();
        let seen = seen.into_iter();
        let kind: Vec<&DeviceInfo> = seen
            .filter(|info| info.id.backend.as_str() == backend)
            .collect();
        let found = match self.ordinal {
            Some(ordinal) => kind.iter().find(|info| info.id.ordinal == ordinal),
            None => kind.first().filter(|_| kind.len() == 1),
        };
        match found {
            Some(info) if identity(info) == self.identity => Ok(info.id),
            _ => Err(Refusal::WrongDevice {
                assigned: format!("{} ({})", self.device, self.identity),
                seen: kind
                    .iter()
                    .map(|info| format!("{} ({})", info.id, identity(info)))
                    .collect(),
            }),
        }
    }
}

/// Why a worker cannot work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// It sees other devices than its own, so it would take somebody else's.
    #[error("it was assigned {assigned} and sees {}", seen_text(seen))]
    WrongDevice {
        /// What it should see.
        assigned: String,
        /// What it sees.
        seen: Vec<String>,
    },
    /// Something else.
    #[error("{0}")]
    Failed(String),
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn seen_text(seen: &[String]) -> String {
    match seen {
        [] => "nothing".into(),
        seen => seen.join(", "),
    }
}

/// What goes wrong with a whole batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Trouble {
    /// The device has no room for so many records at once. Smaller batches follow.
    #[error("the device has no room; {asked} bytes were asked for")]
    OutOfMemory {
        /// How many bytes were asked for; 0 when nobody said.
        asked: u64,
    },
    /// The device is lost to this process, which ends after this.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
    /// The batch failed, for the sake of which record nobody knows. Its halves are tried.
    #[error("{0}")]
    Failed(String),
}

impl From<DeviceError> for Trouble {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { asked, .. } => Self::OutOfMemory { asked },
            DeviceError::Lost { .. } => Self::DeviceLost(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Where answers go.
pub(crate) trait Answers {
    fn done(&mut self, record: u64, answer: &[u8]);
    fn failed(&mut self, record: u64, reason: String);
    fn advance(&mut self);
}

/// Records to be worked through together.
pub struct Batch<'a> {
    records: &'a [(u64, Vec<u8>)],
    answered: Vec<bool>,
    answers: &'a mut dyn Answers,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(records: &'a [(u64, Vec<u8>)], answers: &'a mut dyn Answers) -> Self {
        Self {
            records,
            answered: vec![false; records.len()],
            answers,
        }
    }

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Has it none? It always has one.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records: the number of each in the run, and its bytes.
    pub fn records(&self) -> impl ExactSizeIterator<Item = (u64, &'a [u8])> + use<'a> {
        self.records
            .iter()
            .map(|(record, body)| (*record, body.as_slice()))
    }

    /// The record at this place in the batch is done, and this came out.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn done(&mut self, place: usize, answer: &[u8]) {
        let record = self.answer(place);
        self.answers.done(record, answer);
    }

    /// The record at this place in the batch cannot be done.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn failed(&mut self, place: usize, reason: impl fmt::Display) {
        let record = self.answer(place);
        self.answers.failed(record, reason.to_string());
    }

    /// The work gets on: to be called now and then where a record takes long, from the code that sees the
    /// device finish something, so that a device that hangs is noticed and one that is busy is not ended.
    pub fn advance(&mut self) {
        self.answers.advance();
    }

    fn answer(&mut self, place: usize) -> u64 {
        assert!(
            !self.answered[place],
            "the record at place {place} of the batch is answered twice"
        );
        self.answered[place] = true;
        self.records[place].0
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("records", &self.records.len())
            .finish_non_exhaustive()
    }
}
