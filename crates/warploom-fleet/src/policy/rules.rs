//! How a fleet decides.

use std::time::Duration;

/// How records get to slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Slots take from one pile, less and less of it, each as much as it is fast.
    #[default]
    Guided,
    /// Each slot has its own part, and parts differ by one record at most.
    Balanced,
    /// Each slot has its own part of ceil(records / slots), the last ones less or nothing.
    Ceil,
}

/// How a fleet decides.
#[derive(Clone, PartialEq, Debug)]
pub struct Rules {
    /// How records get to slots.
    pub schedule: Schedule,
    /// Does each slot go on where it was, as long as there are neighbours of its last records? What neighbours
    /// share is then read once. Without it all slots take the first ones that there are, which is also what a
    /// fleet does that delivers in the order of records: others would have to wait in memory.
    pub neighbours: bool,
    /// The largest batch.
    pub max_batch: u32,
    /// How long a batch should take at most, on a slot whose speed is known: whoever turns out slower, dies or is
    /// drained has no more than that at hand.
    pub batch_time: Duration,
    /// The size of every batch, if somebody insists: then running out of memory ends the run.
    pub fixed_batch: Option<u32>,
    /// How many batches a worker has at once: one it works on, the others wait with it.
    pub credits: usize,
    /// How often a record may bring a worker to grief that has nothing else, until it fails.
    pub alone: u32,
    /// How often in a row a device may fail fresh work, until it is put into quarantine.
    pub strikes: u32,
    /// How often in a row it may fail any work: looking for a bad record is not the device's fault, but
    /// must end somewhere.
    pub griefs: u32,
    /// How often in a row a device may be lost over fresh work.
    pub losses: u32,
    /// How often in a row workers may fail to start on a device.
    pub false_starts: u32,
    /// How long a quarantine is, the first time; twice as long each time after it.
    pub quarantine: Duration,
    /// How many probes in a row a device may fail, until it is given up.
    pub probes: u32,
    /// How long a worker may take to start.
    pub start_limit: Duration,
    /// How long a batch may take, from when its worker has begun with it and is done with the one before.
    pub batch_limit: Option<Duration>,
    /// How long a worker with a batch may show no progress. After three quarters of this or of the limit for a
    /// batch it is asked what it is doing, which it writes to its log.
    pub silence_limit: Duration,
    /// How long after being asked to end a worker is killed.
    pub grace: Duration,
    /// How long after being killed a worker that is still there is given up.
    pub patience: Duration,
    /// How long a device's management may take to answer, until the device counts as lost.
    pub management_limit: Duration,
    /// How long to wait before a worker is started again after the first crash in a row; twice as long
    /// after each further one.
    pub back_off: Duration,
    /// How often a record may have been under way when a coordinator died, until it is run by itself, after
    /// all others.
    pub interruptions: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            schedule: Schedule::Guided,
            neighbours: true,
            max_batch: 128,
            batch_time: Duration::from_secs(2),
            fixed_batch: None,
            credits: 2,
            alone: 3,
            strikes: 3,
            griefs: 12,
            losses: 2,
            false_starts: 2,
            quarantine: Duration::from_secs(30),
            probes: 3,
            start_limit: Duration::from_mins(2),
            batch_limit: None,
            silence_limit: Duration::from_mins(5),
            grace: Duration::from_secs(5),
            patience: Duration::from_secs(10),
            management_limit: Duration::from_secs(10),
            back_off: Duration::from_millis(100),
            interruptions: 3,
        }
    }
}
