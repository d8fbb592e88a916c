//! Slots: made once, handed out by generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warploom_core::{Buffer, CheckedDevice, MemoryKind, Slice, Space};

use super::error::{LeaseError, RunError};
use super::lease::{ReadLease, WriteLease};
use super::places::Places;
use super::threads::DRIVER;
use crate::model::{How, Place, Plan, ResourceId, StageId, stride};

/// The slots of all resources of a plan, with what is in each.
///
/// Everything is allocated when the pool is made and nothing later. A resource that the host sees
/// has a buffer for each slot, because buffers are lent to the host as a whole; others share one.
#[derive(Debug)]
pub struct Pool {
    resources: Vec<Ring>,
    stages: Vec<Uses>,
    /// What is in the slots of all resources, one resource after the other.
    states: Vec<State>,
    places: Places,
    bytes: u64,
}

#[derive(Debug)]
struct Ring {
    name: String,
    slots: Vec<Slice>,
    /// Where the states of its slots begin.
    first: usize,
    /// Which bits of a generation number its slot, where there are as many slots as a power of two: every turn
    /// of every stage asks several times, and dividing is the dearest part of it.
    bits: Option<u64>,
    /// How often a generation is written and read.
    writes: u64,
    reads: u64,
    /// Do all stages that use it run, or are enqueued, on one thread?
    has_one_thread: bool,
}

/// What is in a slot, as a word in a line of its own: stages on several threads change their slots all the
/// time.
#[derive(Debug, Default)]
#[repr(align(64))]
struct State(AtomicU64);

/// What is in a slot, as far as the host has handed it out. When the device is done with it is not
/// known here: that is what events are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotState {
    /// The generation, counted from 1; 0 before the first.
    pub generation: u64,
    /// How often it is still to be written.
    pub writes_left: u64,
    /// How often it is still to be read.
    pub reads_left: u64,
    /// How many use it now.
    pub in_use: u64,
}

/// Bits of a count; a generation has the rest.
const COUNT_BITS: u32 = 12;
const COUNT_MOST: u64 = (1 << COUNT_BITS) - 1;
const GENERATION_MOST: u64 = (1 << (64 - 3 * COUNT_BITS)) - 1;
/// One use more or less.
const ONE_USE: u64 = 1;
/// One read that is still to come.
const ONE_READ: u64 = 1 << COUNT_BITS;
/// One writing that is still to come.
const ONE_WRITE: u64 = 1 << (2 * COUNT_BITS);

// Packed into a word, because every turn of every stage looks at it.
impl SlotState {
    fn unpack(word: u64) -> Self {
        Self {
            generation: word >> (3 * COUNT_BITS),
            writes_left: word >> (2 * COUNT_BITS) & COUNT_MOST,
            reads_left: word >> COUNT_BITS & COUNT_MOST,
            in_use: word & COUNT_MOST,
        }
    }

    fn pack(self) -> u64 {
        let counts = self.writes_left << COUNT_BITS | self.reads_left;
        self.generation << (3 * COUNT_BITS) | counts << COUNT_BITS | self.in_use
    }
}

#[derive(Debug)]
struct Uses {
    name: String,
    accesses: Vec<(ResourceId, How)>,
}

fn kind_of(device: &CheckedDevice, space: Space) -> Option<MemoryKind> {
    let info = device.info();
    match space {
        Space::Device => info.local_kind(),
        Space::Pinned | Space::Host => info.staging_kind(),
        other => info.memory.iter().copied().find(|k| k.space() == other),
    }
}

/// Are the slots of a resource taken and given back on one thread? Stages of the device are enqueued by the
/// driver.
fn has_one_thread(plan: &Plan, resource: ResourceId) -> bool {
    let stages = plan.graph().stages().iter();
    let users = stages.filter(|stage| stage.accesses.iter().any(|a| a.resource == resource));
    let mut threads = users.map(|stage| match &stage.place {
        Place::Device { .. } => DRIVER,
        Place::Host { thread } => thread.as_deref().unwrap_or(&stage.name),
    });
    let first = threads.next();
    threads.all(|thread| Some(thread) == first)
}

impl Pool {
    /// Allocates what `plan` needs on `device`.
    pub(crate) fn new(plan: &Plan, device: &CheckedDevice) -> Result<Self, RunError> {
        let mut bytes = 0;
        let (mut resources, mut states) = (Vec::new(), Vec::new());
        for (at, resource) in plan.graph().resources().iter().enumerate() {
            let count = plan.slots(ResourceId(at));
            let kind = kind_of(device, resource.space).ok_or_else(|| RunError::Memory {
                device: device.info().id,
                space: resource.space,
                resource: resource.name.clone(),
            })?;
            let step = stride(resource.bytes, plan.align);
            let alloc = |size: u64| device.alloc(kind, size);
            let start = |error| RunError::Start {
                error: Box::new(error),
            };
            let mut slots = Vec::new();
            let shared = if resource.space.host_visible() {
                None
            } else {
                Some(alloc(step * u64::from(count)).map_err(start)?)
            };
            for number in 0..u64::from(count) {
                let (buffer, from): (Arc<dyn Buffer>, u64) = match &shared {
                    Some(all) => (Arc::clone(all), number * step),
                    None => (alloc(step).map_err(start)?, 0),
                };
                let range = from..from + resource.bytes.max(1);
                slots.push(Slice::new(buffer, range).map_err(start)?);
            }
            let first = states.len();
            states.resize_with(first + slots.len(), State::default);
            bytes += step * u64::from(count);
            let uses = |wanted: fn(How) -> bool| {
                let stages = plan.graph().stages().iter();
                let all = stages.flat_map(|stage| &stage.accesses);
                let own = all.filter(|a| a.resource.index() == at && wanted(a.how));
                (own.count() as u64).min(COUNT_MOST)
            };
            resources.push(Ring {
                name: resource.name.clone(),
                slots,
                first,
                bits: count.is_power_of_two().then(|| u64::from(count) - 1),
                writes: uses(|how| matches!(how, How::Write | How::Update)),
                reads: uses(|how| !matches!(how, How::Write | How::Update)),
                has_one_thread: has_one_thread(plan, ResourceId(at)),
            });
        }
        let stages = plan.graph().stages().iter().map(|stage| Uses {
            name: stage.name.clone(),
            accesses: stage
                .accesses
                .iter()
                .map(|access| (access.resource, access.how))
                .collect(),
        });
        let rings = resources.iter().enumerate();
        let places = Places::new(rings.flat_map(|(at, ring): (usize, &Ring)| {
            let slots = ring.slots.iter().enumerate();
            slots.map(move |(slot, slice)| (at, slot, slice))
        }));
        Ok(Self {
            stages: stages.collect(),
            places,
            resources,
            states,
            bytes,
        })
    }

    /// What was allocated.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many leases are out; those of the device's stages are counted in debug builds only.
    pub fn held(&self) -> u64 {
        self.states.iter().map(|state| state.look().in_use).sum()
    }

    /// What is in a slot of a resource; `None` where there is no such slot.
    pub fn state(&self, resource: ResourceId, slot: usize) -> Option<SlotState> {
        let ring = self.resources.get(resource.0)?;
        ring.slots.get(slot)?;
        Some(self.states[ring.first + slot].look())
    }

    /// Which slot a use of `resource` in `generation` is about; `None` where there is none yet.
    pub(crate) fn slot_of(&self, resource: ResourceId, how: How, generation: u64) -> Option<usize> {
        let generation = match how {
            How::Previous => generation.checked_sub(1)?,
            _ => generation,
        };
        let ring = &self.resources[resource.0];
        let slot = match ring.bits {
            Some(bits) => generation & bits,
            None => generation % ring.slots.len() as u64,
        };
        usize::try_from(slot).ok()
    }

    pub(crate) fn accesses(&self, stage: StageId) -> &[(ResourceId, How)] {
        &self.stages[stage.0].accesses
    }

    /// Takes everything that `stage` declared, for `generation`. What is held goes back when the
    /// hold is dropped, whatever happened in between, and exactly once.
    pub fn hold(&self, stage: StageId, generation: u64) -> Result<Hold<'_>, LeaseError> {
        self.hold_as(stage, generation, true)
    }

    /// The same for a stage of the device, which the driver holds while it enqueues and not longer. Counting is
    /// most of what holding costs, so only debug builds do, in which tests see that nothing is held any more.
    pub(crate) fn hold_to_enqueue(
        &self,
        stage: StageId,
        generation: u64,
    ) -> Result<Hold<'_>, LeaseError> {
        self.hold_as(stage, generation, cfg!(debug_assertions))
    }

    /// Does this turn hold every slot that the slice has bytes of, and for this? What is written has to be
    /// held for writing; memory that is not the pool's is the payload's own.
    pub(crate) fn covers(
        &self,
        (stage, generation): (StageId, u64),
        slice: &Slice,
        is_written: bool,
    ) -> Result<(), LeaseError> {
        for place in self.places.of(slice) {
            let mut uses = self.stages[stage.0].accesses.iter();
            let is_held = uses.any(|(resource, how)| {
                resource.0 == place.resource
                    && (!is_written || matches!(how, How::Write | How::Update))
                    && self.slot_of(*resource, *how, generation) == Some(place.slot)
            });
            if !is_held {
                return Err(LeaseError::Stray {
                    stage: self.stages[stage.0].name.clone(),
                    verb: if is_written { "writes" } else { "reads" },
                    resource: self.resources[place.resource].name.clone(),
                    slot: place.slot,
                    generation,
                });
            }
        }
        Ok(())
    }

    fn hold_as(
        &self,
        stage: StageId,
        generation: u64,
        is_counted: bool,
    ) -> Result<Hold<'_>, LeaseError> {
        let mut hold = Hold {
            pool: self,
            stage,
            generation,
            taken: 0,
            is_counted,
        };
        let accesses = &self.stages[stage.0].accesses;
        for (resource, how) in accesses {
            self.take(stage, (*resource, *how), generation, is_counted)?;
            hold.taken += 1;
        }
        Ok(hold)
    }

    fn take(
        &self,
        stage: StageId,
        (resource, how): (ResourceId, How),
        generation: u64,
        is_counted: bool,
    ) -> Result<(), LeaseError> {
        let Some(slot) = self.slot_of(resource, how, generation) else {
            return Ok(());
        };
        let ring = &self.resources[resource.0];
        let state = &self.states[ring.first + slot];
        let wanted = match how {
            How::Previous => generation,
            _ => generation + 1,
        } & GENERATION_MOST;
        let one_use = if is_counted { ONE_USE } else { 0 };
        let taken = match how {
            How::Write if state.look().generation != wanted => state.fill(SlotState {
                generation: wanted,
                writes_left: ring.writes,
                reads_left: ring.reads,
                in_use: one_use,
            }),
            How::Write => state.join(one_use, ring, |found| found.generation == wanted),
            _ => state.join(one_use, ring, |found| {
                found.generation == wanted && found.writes_left != ring.writes
            }),
        };
        taken.map_err(|found| LeaseError::Generation {
            stage: self.stages[stage.0].name.clone(),
            resource: ring.name.clone(),
            slot,
            wanted: generation,
            found: found.text(),
        })
    }

    fn give_back(&self, resource: ResourceId, how: How, generation: u64, is_counted: bool) {
        let Some(slot) = self.slot_of(resource, how, generation) else {
            return;
        };
        let ring = &self.resources[resource.0];
        let state = &self.states[ring.first + slot];
        let one = match how {
            How::Write | How::Update => ONE_WRITE,
            _ => ONE_READ,
        };
        state.leave(one, if is_counted { ONE_USE } else { 0 }, ring);
    }
}

impl State {
    fn look(&self) -> SlotState {
        SlotState::unpack(self.0.load(Ordering::Acquire))
    }

    /// A new generation, in a slot that nobody needs any more; else what is there. What nobody needs nobody
    /// changes: the plan has one stage that writes first.
    fn fill(&self, new: SlotState) -> Result<(), SlotState> {
        let found = self.look();
        if found.writes_left + found.reads_left + found.in_use > 0 {
            return Err(found);
        }
        self.0.store(new.pack(), Ordering::Release);
        Ok(())
    }

    /// One more use, if what is there is right; else what is there. What is there stays while uses of it are
    /// still to come, so nothing can be wrong between looking and counting that was right before.
    fn join(
        &self,
        one_use: u64,
        ring: &Ring,
        is_right: impl Fn(SlotState) -> bool,
    ) -> Result<(), SlotState> {
        let found = self.look();
        if !is_right(found) {
            return Err(found);
        }
        if one_use > 0 {
            self.change(found.pack(), one_use, ring);
        }
        Ok(())
    }

    /// One use less, if it was counted, and one read or writing less to come. Giving back is always allowed.
    fn leave(&self, one: u64, one_use: u64, ring: &Ring) {
        let found = self.look();
        debug_assert!(found.in_use >= one_use, "given back twice");
        let left = if one == ONE_WRITE {
            found.writes_left
        } else {
            found.reads_left
        };
        // Whoever holds a slot twice in a generation has nothing left to count.
        let one = if left > 0 { one } else { 0 };
        self.change(found.pack(), (one + one_use).wrapping_neg(), ring);
    }

    /// Adds to what was found. Where only one thread changes it, nothing is locked: that is most of what a
    /// turn costs otherwise.
    fn change(&self, found: u64, by: u64, ring: &Ring) {
        if ring.has_one_thread {
            self.0.store(found.wrapping_add(by), Ordering::Release);
        } else {
            self.0.fetch_add(by, Ordering::AcqRel);
        }
    }
}

impl SlotState {
    fn text(self) -> String {
        match self.generation {
            0 => "nothing was written there".to_owned(),
            generation => format!(
                "it holds generation {}, still to be written {} and read {} times",
                generation - 1,
                self.writes_left,
                self.reads_left
            ),
        }
    }
}

/// Everything one stage uses in one generation.
#[derive(Debug)]
pub struct Hold<'p> {
    pool: &'p Pool,
    stage: StageId,
    generation: u64,
    taken: usize,
    is_counted: bool,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let accesses = &self.pool.stages[self.stage.0].accesses;
        for (resource, how) in &accesses[..self.taken] {
            let pool = self.pool;
            pool.give_back(*resource, *how, self.generation, self.is_counted);
        }
    }
}

impl<'p> Hold<'p> {
    /// The slice behind a declared use, if `wanted` takes that sort of use.
    fn find(&self, resource: ResourceId, wanted: fn(How) -> bool) -> Option<(&'p Slice, How)> {
        let uses = &self.pool.stages[self.stage.0].accesses;
        let (_, how) = uses
            .iter()
            .find(|(known, how)| *known == resource && wanted(*how))?;
        let slot = self.pool.slot_of(resource, *how, self.generation)?;
        let slice = self.pool.resources[resource.0].slots.get(slot)?;
        Some((slice, *how))
    }

    fn undeclared(&self, resource: ResourceId, verb: &'static str) -> LeaseError {
        LeaseError::Undeclared {
            stage: self.pool.stages[self.stage.0].name.clone(),
            verb,
            resource: resource.0,
        }
    }

    pub(crate) fn read(&self, resource: ResourceId) -> Result<ReadLease<'p>, LeaseError> {
        let reads = |how| matches!(how, How::Read | How::Update | How::Look);
        let (slice, _) = self
            .find(resource, reads)
            .ok_or_else(|| self.undeclared(resource, "reads"))?;
        Ok(ReadLease { slice })
    }

    pub(crate) fn previous(&self, resource: ResourceId) -> Option<ReadLease<'p>> {
        let (slice, _) = self.find(resource, |how| how == How::Previous)?;
        Some(ReadLease { slice })
    }

    pub(crate) fn write(&self, resource: ResourceId) -> Result<WriteLease<'p>, LeaseError> {
        let writes = |how| matches!(how, How::Write | How::Update);
        let (slice, _) = self
            .find(resource, writes)
            .ok_or_else(|| self.undeclared(resource, "writes"))?;
        Ok(WriteLease { slice })
    }
}

#[cfg(test)]
mod tests;
