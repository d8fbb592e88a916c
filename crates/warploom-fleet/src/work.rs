//! What users write: the work of one worker.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use warploom_core::{DeviceError, DeviceId, DeviceInfo};

use crate::crew::{identity, pci};
use crate::holder::holders;
use crate::journal::BatchId;
use crate::worker::Batches;

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
    /// with [`Batch::failed`]. Work that has its own [`stream`](Self::stream) needs none of this.
    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble> {
        let count = batch.len();
        let text = format!("nobody says what is done to a batch of {count} records");
        Err(Trouble::Failed(text))
    }

    /// Works through batches until there are none, each of them over before the next is begun.
    ///
    /// Work with stages of its own has its own way instead: it takes batches while earlier ones are under
    /// way, so that none of its stages has to wait at the end of each. Answers and ends may come in any
    /// order then, and from any thread.
    ///
    /// # Errors
    /// What ends the worker, which is above all the loss of its device: [`Load::over`] gives it back.
    fn stream(&mut self, batches: Batches) -> Result<(), Trouble> {
        for load in batches {
            let ended = self.process(&mut load.batch());
            load.over(ended)?;
        }
        Ok(())
    }

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
    /// The most records at once that this model is known to have room for, if that had a say.
    pub ceiling: Option<u32>,
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
    /// [`FleetDevice::of`](crate::FleetDevice::of): the only one where a variable hides the others; else the
    /// one at its PCI address or with its UUID, and among those that these do not tell apart the one of its
    /// number. It is the same card in any case.
    ///
    /// # Errors
    /// [`Refusal::WrongDevice`] when another one is in its place, or others are seen that should be hidden;
    /// [`Refusal::Failed`] when none of its kind is seen.
    pub fn find<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a DeviceInfo>,
    ) -> Result<DeviceId, Refusal> {
        let backend = self.device.split(':').next().unwrap_or_default();
        let seen = seen.into_iter();
        let kind: Vec<&DeviceInfo> = seen
            .filter(|info| info.id.backend.as_str() == backend)
            .collect();
        let same: Vec<&DeviceInfo> = kind
            .iter()
            .copied()
            .filter(|info| identity(info) == self.identity)
            .collect();
        let found = match (&same[..], self.ordinal) {
            (_, None) => same.first().filter(|_| kind.len() == 1),
            ([one], Some(_)) if one.key.pci.is_some() || one.key.uuid.is_some() => same.first(),
            (_, Some(ordinal)) => same.iter().find(|info| info.id.ordinal == ordinal),
        };
        match found {
            Some(info) => Ok(info.id),
            // Nobody else's device is in danger, and a driver that did not answer may do so the next time.
            _ if kind.is_empty() => Err(Refusal::Failed(format!(
                "it was assigned {} ({}) and sees no device of {backend}",
                self.device, self.identity
            ))),
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

impl Assigned {
    /// Waits until a device has as much memory free as the work would like: what a worker had that has died
    /// comes back after a while. `free` asks the device; a device that does not tell is taken to have enough.
    ///
    /// # Errors
    /// [`Refusal::NoRoom`] when after `limit` there is less than the work can do with.
    pub fn wait_for_room(
        &self,
        wanted: u64,
        least: u64,
        limit: Duration,
        mut free: impl FnMut() -> Option<u64>,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            let Some(free) = free().filter(|free| *free < wanted) else {
                return Ok(());
            };
            if begun.elapsed() >= limit {
                if free >= least {
                    return Ok(());
                }
                return Err(Refusal::NoRoom {
                    device: self.device.clone(),
                    free,
                    least,
                    after: limit,
                    holders: holders(self.pci(), Path::new("/")),
                });
            }
            if !is_told {
                let device = &self.device;
                tracing::warn!(device, free, wanted, "its memory is not free yet");
                is_told = true;
            }
            thread::sleep(LOOK);
        }
    }

    /// The device's PCI address, if it is known.
    fn pci(&self) -> Option<&str> {
        pci(&self.identity)
    }
}

/// How often it is looked whether memory is free.
const LOOK: Duration = Duration::from_millis(20);

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
    /// Its device has too little memory free, because of somebody else or of a worker that died.
    #[error(
        "{device} has {free} bytes free after {after:?}, and {least} are the least that will do; {}",
        holders_text(holders)
    )]
    NoRoom {
        /// Which device.
        device: String,
        /// What it has.
        free: u64,
        /// What is needed.
        least: u64,
        /// For how long it was waited.
        after: Duration,
        /// The processes that have the device open, as far as they can be seen.
        holders: Vec<String>,
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

fn holders_text(holders: &[String]) -> String {
    match holders {
        [] => "no other process can be seen that has it open".into(),
        [one] => format!("{one} has it open"),
        several => format!("{} have it open", several.join(", ")),
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
    /// The device has no room for as many at once as somebody insists on. The run ends, and says so.
    #[error("the device has no room for {size} at once, which is the size that was asked for")]
    FixedSize {
        /// The size that was asked for.
        size: u32,
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
pub(crate) trait Answers: Send + Sync {
    fn done(&self, batch: BatchId, record: u64, answer: &[u8]);
    fn failed(&self, batch: BatchId, record: u64, reason: String);
    fn over(&self, batch: BatchId, ended: &Result<(), Trouble>);
    fn advance(&self);
    /// Memory that nobody needs any more.
    fn give(&self, bodies: &mut dyn Iterator<Item = Vec<u8>>);
    fn settled(&self, records: u32);
}

/// A batch that [`Work::stream`] has taken. Whoever has it answers for its records, and says at last that it
/// is over.
#[must_use = "a batch that is never over keeps its coordinator waiting"]
pub struct Load {
    batch: BatchId,
    records: Vec<(u64, Vec<u8>)>,
    answered: Vec<AtomicBool>,
    answers: Arc<dyn Answers>,
}

impl Load {
    pub(crate) fn new(
        batch: BatchId,
        records: Vec<(u64, Vec<u8>)>,
        answers: Arc<dyn Answers>,
    ) -> Self {
        Self {
            batch,
            answered: records.iter().map(|_| AtomicBool::new(false)).collect(),
            records,
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
    pub fn records(&self) -> impl ExactSizeIterator<Item = (u64, &[u8])> {
        let records = self.records.iter();
        records.map(|(record, body)| (*record, body.as_slice()))
    }

    /// The record at this place is done, and this came out.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn done(&self, place: usize, answer: &[u8]) {
        let record = self.answer(place);
        self.answers.done(self.batch, record, answer);
    }

    /// The record at this place cannot be done.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn failed(&self, place: usize, reason: impl fmt::Display) {
        let record = self.answer(place);
        let reason = reason.to_string();
        self.answers.failed(self.batch, record, reason);
    }

    /// The work gets on, as [`Batch::advance`] says.
    pub fn advance(&self) {
        self.answers.advance();
    }

    /// The device has room for so many records at once and for no more, as the work found out by itself. It
    /// is told and remembered, batches for this model are no larger from now on, and whoever starts on it
    /// finds the number in [`Assigned`].
    pub fn settled(&self, records: u32) {
        self.answers.settled(records);
    }

    /// It is over, for better or worse.
    ///
    /// # Errors
    /// The loss of the device, with which the worker has to end.
    pub fn over(self, ended: Result<(), Trouble>) -> Result<(), Trouble> {
        self.answers.over(self.batch, &ended);
        match ended {
            Err(Trouble::DeviceLost(_)) => ended,
            _ => Ok(()),
        }
    }

    /// The same as [`Work::process`] has it.
    pub fn batch(&self) -> Batch<'_> {
        Batch { load: self }
    }

    fn answer(&self, place: usize) -> u64 {
        assert!(
            !self.answered[place].swap(true, Ordering::AcqRel),
            "the record at place {place} of the batch is answered twice"
        );
        self.records[place].0
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let mut bodies = self.records.drain(..).map(|(_, body)| body);
        self.answers.give(&mut bodies);
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load")
            .field("batch", &self.batch)
            .field("records", &self.records.len())
            .finish_non_exhaustive()
    }
}

/// Records to be worked through together.
pub struct Batch<'a> {
    load: &'a Load,
}

impl<'a> Batch<'a> {
    /// How many records it has.
    pub fn len(&self) -> usize {
        self.load.len()
    }

    /// Has it none? It always has one.
    pub fn is_empty(&self) -> bool {
        self.load.is_empty()
    }

    /// The records: the number of each in the run, and its bytes.
    pub fn records(&self) -> impl ExactSizeIterator<Item = (u64, &'a [u8])> + use<'a> {
        self.load.records()
    }

    /// The record at this place in the batch is done, and this came out.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn done(&mut self, place: usize, answer: &[u8]) {
        self.load.done(place, answer);
    }

    /// The record at this place in the batch cannot be done.
    ///
    /// # Panics
    /// When there is no such place, or it has been answered for.
    pub fn failed(&mut self, place: usize, reason: impl fmt::Display) {
        self.load.failed(place, reason);
    }

    /// The work gets on: to be called now and then where a record takes long, from the code that sees the
    /// device finish something, so that a device that hangs is noticed and one that is busy is not ended.
    pub fn advance(&mut self) {
        self.load.advance();
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("records", &self.load.len())
            .finish_non_exhaustive()
    }
}
