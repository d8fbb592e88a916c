//! What decisions are made on, and what they are.

use crate::health::Sign;
use crate::journal::{BatchId, Cause};
use crate::record::Reason;

/// Something that happened at a slot, or was asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The slot's worker has started and sees its device; a probe has passed.
    Ready {
        /// Which slot.
        slot: usize,
    },
    /// The slot's worker waits for its turn on the device: that is not slow starting.
    Held {
        /// Which slot.
        slot: usize,
    },
    /// The slot's worker cannot work, and will end.
    Refused {
        /// Which slot.
        slot: usize,
        /// Why.
        why: String,
        /// Does it see another device than its own? Then trying again is dangerous.
        wrong_device: bool,
    },
    /// A worker began with a batch.
    Begun {
        /// Which slot.
        slot: usize,
        /// Which batch.
        batch: BatchId,
    },
    /// A record was done.
    Done {
        /// Which slot.
        slot: usize,
        /// In which batch.
        batch: BatchId,
        /// Which record.
        record: u64,
    },
    /// The work gave a record up.
    Failed {
        /// Which slot.
        slot: usize,
        /// In which batch.
        batch: BatchId,
        /// Which record.
        record: u64,
        /// Why.
        reason: Reason,
    },
    /// A batch is over.
    Over {
        /// Which slot.
        slot: usize,
        /// Which batch.
        batch: BatchId,
        /// In which way.
        end: End,
    },
    /// A worker is alive, and has got this far.
    Beat {
        /// Which slot.
        slot: usize,
        /// A number that grows with the work.
        progress: u64,
    },
    /// A worker found out how many records at once its device has room for.
    Settled {
        /// Which slot.
        slot: usize,
        /// How many.
        records: u32,
    },
    /// A worker said something that makes no sense.
    Nonsense {
        /// Which slot.
        slot: usize,
        /// What was wrong with it.
        text: String,
    },
    /// A worker's process is gone.
    Gone {
        /// Which slot.
        slot: usize,
        /// How it ended.
        how: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// A device's management reported something.
    Sign {
        /// Which device.
        device: usize,
        /// What.
        sign: Sign,
    },
    /// Begin nothing new; end when what is under way is done.
    Drain,
    /// End now.
    Stop,
    /// Time has passed.
    Tick,
}

/// How a batch ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// All of it was worked through.
    Finished,
    /// The device has no room for so many records at once.
    OutOfMemory {
        /// What was asked of it, in bytes; 0 when nobody said.
        asked: u64,
    },
    /// The device has no room for as many at once as somebody insists on.
    FixedSize {
        /// How many that is.
        size: u32,
    },
    /// The device is lost to this worker, which will end.
    DeviceLost {
        /// In the device's words.
        text: String,
    },
    /// The work failed for the batch as a whole.
    Failed {
        /// In these words.
        text: String,
    },
}

/// Something to do, in this order.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Start the slot's worker.
    Spawn {
        /// Which slot.
        slot: usize,
        /// Has it to pass a probe first?
        probe: bool,
    },
    /// Send a batch. That it is an attempt has to be in the journal before.
    Dispatch {
        /// To which slot.
        slot: usize,
        /// Which batch.
        batch: BatchId,
        /// With which records.
        records: Vec<u64>,
    },
    /// The record that was just done is: deliver its answer.
    Accept {
        /// Which one.
        record: u64,
        /// How often it was handed to a worker.
        attempts: u32,
    },
    /// A record has failed for good.
    Fail {
        /// On which device.
        device: usize,
        /// Which one.
        record: u64,
        /// How often it was handed to a worker.
        attempts: u32,
        /// Why.
        reason: Reason,
    },
    /// A worker came to grief with these records under way.
    Charge {
        /// On which device.
        device: usize,
        /// In which batch.
        batch: BatchId,
        /// How.
        cause: Cause,
        /// Which records.
        records: Vec<u64>,
    },
    /// Records of a batch go back, and are not to blame.
    Return {
        /// Of which batch.
        batch: BatchId,
        /// Which records.
        records: Vec<u64>,
    },
    /// From now on batches for this model are at most so large.
    Ceiling {
        /// Which model.
        model: String,
        /// How large.
        batch: u32,
    },
    /// Ask a worker to end when it has nothing to do.
    Retire {
        /// Which slot.
        slot: usize,
    },
    /// Ask a worker to write to its log what it is doing.
    Ask {
        /// Which slot.
        slot: usize,
    },
    /// Ask a worker's processes to end.
    Terminate {
        /// Which slot.
        slot: usize,
    },
    /// End a worker's processes.
    Kill {
        /// Which slot.
        slot: usize,
    },
    /// Wait no longer for a process that will not die.
    Abandon {
        /// Which slot.
        slot: usize,
    },
    /// A device gets no more work for now.
    Quarantine {
        /// Which device.
        device: usize,
        /// Why.
        why: String,
    },
    /// A device's management reported something that people should know of.
    Report {
        /// Which device.
        device: usize,
        /// What.
        text: String,
    },
    /// A device works again.
    Readmit {
        /// Which device.
        device: usize,
    },
    /// A device is given up.
    GiveUp {
        /// Which device.
        device: usize,
        /// Why.
        why: String,
    },
    /// The size that the user fixed does not fit: the run drains, and ends in an error.
    FixedBatch {
        /// Which device had no room.
        device: usize,
        /// The size.
        batch: u32,
    },
}
