//! A variant of a plan with places instead of names, for plans whose work is on one device.
//!
//! Such a record goes up, is worked on and comes down, each on a queue of its own. Where the device's
//! memory is the host's there is nothing to copy, and the same places serve reader, device and writer.

use std::ops::Range;
use std::sync::Arc;

use warploom_core::{CheckedQueue, DeviceError, Queue as _, Slice};
use warploom_kernels::program::Loaded;
use warploom_plan::ExecutionPlan;
use warploom_plan::plan::{CopyReason, PlanStep, Pool, Role, Variant};

use crate::error::RunFailure;
use crate::reading::Arrival;
use crate::rooms::Faces;
use crate::writing::Leaving;

/// Images and results on the host start at multiples of this.
const ALIGN: u64 = 256;

/// A piece of a slot, or of what all records share.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    is_shared: bool,
    range: Range<u64>,
}

/// Bytes that go from host to device or back.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Transfer {
    host: Range<u64>,
    device: Range<u64>,
}

/// A thing done on the device's own queue.
#[derive(Debug)]
enum Act {
    /// A program runs.
    Run {
        loaded: Arc<Loaded>,
        reads: Vec<Place>,
        gives: Vec<Place>,
        scratch: Option<Place>,
    },
    /// An image comes that is not needed before.
    Fetch(Transfer),
}

/// What is done for one unit of a variant.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) leavings: Vec<Leaving>,
    uploads: Vec<Transfer>,
    acts: Vec<Act>,
    downloads: Vec<Transfer>,
    /// Bytes of images on the host.
    pub(crate) images: u64,
    /// Bytes of results on the host.
    pub(crate) results: u64,
}

fn foreign(what: String) -> RunFailure {
    RunFailure::Foreign { what }
}

/// A step's number as lodgings count, from 1.
fn count(step: usize) -> u32 {
    u32::try_from(step + 1).unwrap_or(u32::MAX)
}

fn length(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn bytes_of(range: &Range<u64>) -> Range<usize> {
    length(range.start)..length(range.end)
}

/// Ranges one after the other.
#[derive(Default)]
struct Tray {
    end: u64,
}

impl Tray {
    fn put(&mut self, bytes: u64) -> Range<u64> {
        let start = self.end;
        self.end = (start + bytes).next_multiple_of(ALIGN);
        start..start + bytes
    }
}

/// Where a pool keeps something at a step.
fn place(
    pool: &Pool,
    variant: usize,
    step: usize,
    role: Role,
    name: &str,
) -> Result<Place, RunFailure> {
    let found = pool.lodging(variant, count(step), role, name);
    let (is_shared, lodging) = match (found, pool.constant(name)) {
        (Some(lodging), _) => (false, lodging),
        (None, Some(lodging)) => (true, lodging),
        (None, None) => return Err(foreign(format!("`{name}` is nowhere in {}", pool.memory))),
    };
    let start = lodging.offset;
    Ok(Place {
        is_shared,
        range: start..start + lodging.bytes,
    })
}

impl Script {
    /// For a device whose memory is the host's: the images are read to where they are needed.
    pub(crate) fn in_place(
        plan: &ExecutionPlan,
        at: usize,
        pool: &Pool,
        faces: &Faces,
    ) -> Result<Self, RunFailure> {
        let variant = &plan.variants[at];
        let last = variant.steps.len().saturating_sub(1);
        let mut arrivals = Vec::new();
        for source in plan.sources.iter().filter(|source| source.file.is_none()) {
            // An image that no step of this variant reads has no place.
            let Ok(place) = place(pool, at, 0, Role::Value, &source.name) else {
                continue;
            };
            arrivals.push(Arrival {
                channel: source.channel.clone(),
                range: bytes_of(&(place.range.start..place.range.start + source.bytes)),
                pairs: false,
            });
        }
        let mut leavings = Vec::new();
        for output in &variant.outputs {
            let place = place(pool, at, last, Role::Value, &output.value)?;
            let bytes = value_bytes(variant, &output.value)?;
            leavings.push(Leaving {
                range: bytes_of(&(place.range.start..place.range.start + bytes)),
                pairs: false,
            });
        }
        let mut script = Self {
            arrivals,
            leavings,
            uploads: Vec::new(),
            acts: Vec::new(),
            downloads: Vec::new(),
            images: 0,
            results: 0,
        };
        for step in 0..variant.steps.len() {
            script.acts.push(run(variant, at, step, pool, faces)?);
        }
        Ok(script)
    }

    /// For a device with memory of its own: images go up, results come down.
    pub(crate) fn with_copies(
        plan: &ExecutionPlan,
        at: usize,
        pool: &Pool,
        faces: &Faces,
    ) -> Result<Self, RunFailure> {
        let variant = &plan.variants[at];
        let mut script = Self {
            arrivals: Vec::new(),
            leavings: Vec::new(),
            uploads: Vec::new(),
            acts: Vec::new(),
            downloads: Vec::new(),
            images: 0,
            results: 0,
        };
        let mut images = Tray::default();
        let mut results = Tray::default();
        let mut results_of: Vec<(&str, Range<u64>, bool)> = Vec::new();
        for (step, done) in variant.steps.iter().enumerate() {
            let PlanStep::Copy {
                value, pairs, why, ..
            } = done
            else {
                script.acts.push(run(variant, at, step, pool, faces)?);
                continue;
            };
            if *why == CopyReason::Constant {
                continue;
            }
            let bytes = value_bytes(variant, value)?;
            let place = place(pool, at, step, Role::Value, value)?;
            let device = place.range.start..place.range.start + bytes;
            if *why == CopyReason::Output {
                let host = results.put(bytes);
                results_of.push((value, host.clone(), *pairs));
                script.downloads.push(Transfer { host, device });
                continue;
            }
            let source = plan.sources.iter().find(|source| source.name == *value);
            let Some(source) = source.filter(|source| source.file.is_none()) else {
                return Err(foreign(format!("`{value}` comes from nowhere")));
            };
            let host = images.put(bytes);
            script.arrivals.push(Arrival {
                channel: source.channel.clone(),
                range: bytes_of(&host),
                pairs: *pairs,
            });
            let transfer = Transfer { host, device };
            // What is needed later may lie where something else is before.
            if script.acts.is_empty() {
                script.uploads.push(transfer);
            } else {
                script.acts.push(Act::Fetch(transfer));
            }
        }
        for output in &variant.outputs {
            let found = results_of.iter().find(|(name, ..)| *name == output.value);
            let Some((_, host, pairs)) = found else {
                return Err(foreign(format!("`{}` never comes down", output.value)));
            };
            script.leavings.push(Leaving {
                range: bytes_of(host),
                pairs: *pairs,
            });
        }
        (script.images, script.results) = (images.end, results.end);
        Ok(script)
    }

    /// Does work begin before all images are there?
    pub(crate) fn fetches(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Fetch(_)))
    }

    /// Copies images up.
    pub(crate) fn upload(
        &self,
        queue: &mut CheckedQueue,
        images: &Slice,
        slot: &Slice,
    ) -> Result<(), DeviceError> {
        self.uploads
            .iter()
            .try_for_each(|one| fetch(queue, one, images, slot))
    }

    /// Runs everything that is on the device.
    pub(crate) fn work(
        &self,
        queue: &mut CheckedQueue,
        images: Option<&Slice>,
        slot: &Slice,
        shared: Option<&Slice>,
    ) -> Result<(), DeviceError> {
        for act in &self.acts {
            match (act, images) {
                (Act::Fetch(transfer), Some(images)) => fetch(queue, transfer, images, slot)?,
                (Act::Fetch(_), None) => {}
                (
                    Act::Run {
                        loaded,
                        reads,
                        gives,
                        scratch,
                    },
                    _,
                ) => {
                    let slice = |place: &Place| part(place, slot, shared);
                    let reads = reads.iter().map(slice).collect::<Result<Vec<_>, _>>()?;
                    let gives = gives.iter().map(slice).collect::<Result<Vec<_>, _>>()?;
                    let scratch = scratch.as_ref().map(slice).transpose()?;
                    loaded.enqueue(queue, &reads, &gives, scratch.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Copies results down.
    pub(crate) fn download(
        &self,
        queue: &mut CheckedQueue,
        slot: &Slice,
        results: &Slice,
    ) -> Result<(), DeviceError> {
        for Transfer { host, device } in &self.downloads {
            if !host.is_empty() {
                queue.copy(&slot.part(device.clone())?, &results.part(host.clone())?)?;
            }
        }
        Ok(())
    }
}

fn fetch(
    queue: &mut CheckedQueue,
    transfer: &Transfer,
    images: &Slice,
    slot: &Slice,
) -> Result<(), DeviceError> {
    if transfer.host.is_empty() {
        return Ok(());
    }
    let (host, device) = (transfer.host.clone(), transfer.device.clone());
    queue.copy(&images.part(host)?, &slot.part(device)?)
}

/// Whole words, as kernels take them.
fn part(place: &Place, slot: &Slice, shared: Option<&Slice>) -> Result<Slice, DeviceError> {
    let bytes = (place.range.end - place.range.start)
        .next_multiple_of(4)
        .max(4);
    let of = if place.is_shared {
        shared.unwrap_or(slot)
    } else {
        slot
    };
    of.part(place.range.start..place.range.start + bytes)
}

fn value_bytes(variant: &Variant, name: &str) -> Result<u64, RunFailure> {
    let value = variant.value(name);
    let value = value.ok_or_else(|| foreign(format!("the plan says nothing of `{name}`")))?;
    Ok(value.bytes)
}

/// A step that runs, with all its places.
fn run(
    variant: &Variant,
    at: usize,
    step: usize,
    pool: &Pool,
    faces: &Faces,
) -> Result<Act, RunFailure> {
    let done = &variant.steps[step];
    let loaded = faces.load(variant, step, None)?;
    let places = |names: &[String]| -> Result<Vec<Place>, RunFailure> {
        let one = |name: &String| place(pool, at, step, Role::Value, name);
        names.iter().map(one).collect()
    };
    let scratch = match (loaded.program().workspace(), done.ops().first()) {
        (0, _) | (_, None) => None,
        (_, Some(op)) => Some(place(pool, at, step, Role::Scratch, &op.name)?),
    };
    Ok(Act::Run {
        reads: places(done.reads())?,
        gives: places(done.gives())?,
        loaded,
        scratch,
    })
}
