//! Plans that go back and forth: over several devices, in tiles, or by way of the host. One unit at a
//! time goes through all steps, while others are read and written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use warploom_core::{CheckedQueue, DType, Queue as _, QueueDesc, Registry, Slice};
use warploom_kernels::flow::ValueKind;
use warploom_kernels::program::{Loaded, to_pairs, to_wide};
use warploom_kernels::{Dims, ImageType};
use warploom_plan::ExecutionPlan;
use warploom_plan::plan::{CopyReason, PlanStep, PlanValue, Pool, Role, Variant};

use crate::error::RunFailure;
use crate::rooms::{Constants, Faces, kind, shared};

/// Memory as the plan laid it out for one record.
#[derive(Debug)]
struct Room {
    pool: Pool,
    slot: Slice,
    shared: Option<Slice>,
}

/// The programs of a step: one, or one for each size of tiles.
type Programs = BTreeMap<Option<Dims>, Arc<Loaded>>;

/// Does all steps of a plan, one after the other.
#[derive(Debug)]
pub(crate) struct Errand {
    plan: Arc<ExecutionPlan>,
    rooms: Vec<Room>,
    queues: BTreeMap<String, CheckedQueue>,
    /// `programs[variant][step]`.
    programs: Vec<Vec<Programs>>,
    /// A tile on its way; kept for its memory.
    tile: Vec<u8>,
}

fn foreign(what: String) -> RunFailure {
    RunFailure::Foreign { what }
}

fn length(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

impl Errand {
    pub(crate) fn new(
        plan: &Arc<ExecutionPlan>,
        faces: &Faces,
        constants: &Constants,
        registry: &Registry,
    ) -> Result<Self, RunFailure> {
        let mut rooms = Vec::new();
        for pool in &plan.memory.pools {
            // Bytes are staged by whoever copies them.
            if is_staging(plan, pool) {
                continue;
            }
            let is_host = pool.memory == "host";
            let device = if is_host {
                faces.host(registry)?
            } else {
                faces.loader(&pool.device)?.device().clone()
            };
            let own = kind(&device, pool).or_else(|| device.info().staging_kind());
            let own = own.ok_or_else(|| foreign(format!("there is no {}", pool.memory)))?;
            rooms.push(Room {
                slot: Slice::whole(&device.alloc(own, pool.slot.max(4))?),
                shared: shared(plan, pool, &device, own, constants)?,
                pool: pool.clone(),
            });
        }
        let mut queues = BTreeMap::new();
        let mut programs = Vec::new();
        for variant in &plan.variants {
            let mut of = Vec::new();
            for (step, done) in variant.steps.iter().enumerate() {
                let face = done.device();
                if !queues.contains_key(face) {
                    let queue = faces
                        .loader(face)?
                        .device()
                        .queue(&QueueDesc::named("errand"))?;
                    queues.insert(face.to_owned(), queue);
                }
                of.push(load(variant, step, faces)?);
            }
            programs.push(of);
        }
        Ok(Self {
            plan: Arc::clone(plan),
            rooms,
            queues,
            programs,
            tile: Vec::new(),
        })
    }

    /// One unit, from its images to its results.
    pub(crate) fn run(
        &mut self,
        at: usize,
        images: &[u8],
        results: &mut [u8],
    ) -> Result<(), RunFailure> {
        let plan = Arc::clone(&self.plan);
        let variant = &plan.variants[at];
        let mut from = 0;
        for source in plan.sources.iter().filter(|source| source.file.is_none()) {
            let bytes = length(source.bytes);
            let image = &images[from..from + bytes];
            from = (from + bytes).next_multiple_of(ALIGN);
            // An image that no step reads has no place, and needs none.
            if let Ok(place) = self.host(at, 0, &source.name, source.bytes) {
                on_host(place.as_ref(), |there| there.copy_from_slice(image))?;
            }
        }
        for (step, done) in variant.steps.iter().enumerate() {
            match done {
                PlanStep::Copy { why, .. } if *why == CopyReason::Constant => {}
                PlanStep::Copy { .. } => self.copy(at, step, done)?,
                PlanStep::Run { .. } => self.work(at, step, done)?,
                PlanStep::Tiled { .. } => self.tiles(at, step, done)?,
            }
        }
        let last = variant.steps.len().saturating_sub(1);
        let mut to = 0;
        for output in &variant.outputs {
            let bytes = bytes_of(variant, &output.value)?;
            let place = self.host(at, last, &output.value, bytes)?;
            let result = &mut results[to..to + length(bytes)];
            to = (to + length(bytes)).next_multiple_of(ALIGN);
            on_host(place.as_ref(), |there| result.copy_from_slice(there))?;
        }
        Ok(())
    }

    fn room(&self, memory: &str, device: &str) -> Result<&Room, RunFailure> {
        self.room_for(false, memory, device)
    }

    /// Memory on a device; tiles on the processor are apart from whole images.
    fn room_for(&self, tiles: bool, memory: &str, device: &str) -> Result<&Room, RunFailure> {
        let mut rooms = self.rooms.iter();
        let here = |room: &&Room| {
            let pool = &room.pool;
            let same = pool.memory == memory && pool.tiles == (tiles && memory == "host");
            same && (memory == "host" || pool.device == device)
        };
        let found = rooms.find(here);
        found.ok_or_else(|| foreign(format!("the plan has no {memory} on {device}")))
    }

    /// Where something is, as long as it says.
    fn place(
        room: &Room,
        at: usize,
        step: usize,
        (role, name): (Role, &str),
    ) -> Result<(Slice, u64), RunFailure> {
        let number = u32::try_from(step + 1).unwrap_or(u32::MAX);
        let found = room.pool.lodging(at, number, role, name);
        let (memory, lodging) = match (found, room.pool.constant(name), &room.shared) {
            (Some(lodging), ..) => (&room.slot, lodging),
            (None, Some(lodging), Some(shared)) => (shared, lodging),
            _ => {
                return Err(foreign(format!(
                    "`{name}` is nowhere in {}",
                    room.pool.memory
                )));
            }
        };
        let bytes = lodging.bytes.next_multiple_of(4).max(4);
        Ok((
            memory.part(lodging.offset..lodging.offset + bytes)?,
            lodging.bytes,
        ))
    }

    /// Where a value is on the host; nothing where it has no bytes.
    fn host(
        &self,
        at: usize,
        step: usize,
        name: &str,
        bytes: u64,
    ) -> Result<Option<Slice>, RunFailure> {
        let room = self.room("host", "")?;
        let (place, _) = Self::place(room, at, step, (Role::Value, name))?;
        Ok((bytes > 0).then(|| place.part(0..bytes)).transpose()?)
    }

    fn copy(&mut self, at: usize, step: usize, done: &PlanStep) -> Result<(), RunFailure> {
        let PlanStep::Copy {
            value,
            from,
            to,
            device,
            pairs,
            bytes,
            ..
        } = done
        else {
            return Ok(());
        };
        let up = from == "host";
        let host = self.host(at, step, value, *bytes)?;
        let room = self.room(if up { to } else { from }, device)?;
        let (place, _) = Self::place(room, at, step, (Role::Value, value))?;
        if *bytes == 0 {
            return Ok(());
        }
        let place = place.part(0..*bytes)?;
        let queue = queue(&mut self.queues, device)?;
        let mut copied = Ok(());
        on_host(host.as_ref(), |there| {
            if up {
                if *pairs {
                    to_pairs(there);
                }
                copied = queue.upload(there, &place);
                if *pairs {
                    // Others may still want it as it was.
                    to_wide(there);
                }
            } else {
                copied = queue.download(&place, there);
                if *pairs {
                    to_wide(there);
                }
            }
        })?;
        Ok(copied?)
    }

    fn work(&mut self, at: usize, step: usize, done: &PlanStep) -> Result<(), RunFailure> {
        let PlanStep::Run { device, memory, .. } = done else {
            return Ok(());
        };
        let room = self.room(memory, device)?;
        let loaded = &self.programs[at][step][&None];
        let slices = |names: &[String]| -> Result<Vec<Slice>, RunFailure> {
            let one = |name: &String| Ok(Self::place(room, at, step, (Role::Value, name))?.0);
            names.iter().map(one).collect()
        };
        let (reads, gives) = (slices(done.reads())?, slices(done.gives())?);
        let scratch = scratch(room, at, step, done, loaded)?;
        let queue = queue(&mut self.queues, device)?;
        loaded.enqueue(queue, &reads, &gives, scratch.as_ref())?;
        // The next step may be on another device, or on the host.
        Ok(queue.record()?.wait(None)?)
    }

    fn tiles(&mut self, at: usize, step: usize, done: &PlanStep) -> Result<(), RunFailure> {
        let PlanStep::Tiled {
            device,
            memory,
            tiles,
            pairs,
            ..
        } = done
        else {
            return Ok(());
        };
        let plan = Arc::clone(&self.plan);
        let variant = &plan.variants[at];
        let kind_of = |name: &String| {
            let value = variant.value(name).map(PlanValue::kind);
            value.ok_or_else(|| foreign(format!("the plan says nothing of `{name}`")))
        };
        let image = |name: &String| {
            let image = kind_of(name)?.image();
            image.ok_or_else(|| foreign(format!("`{name}` is made of tiles and is no image")))
        };
        let reads: Vec<ValueKind> = done.reads().iter().map(kind_of).collect::<Result<_, _>>()?;
        let gives: Vec<ImageType> = done.gives().iter().map(image).collect::<Result<_, _>>()?;
        let in_pairs = |dtype: DType| *pairs && dtype == DType::F64;
        let mut tile = std::mem::take(&mut self.tile);
        for part in tiles.parts(gives.first().map_or([0; 3], |image| image.dims)) {
            let loaded = Arc::clone(&self.programs[at][step][&Some(part.extents())]);
            let mut inputs = Vec::new();
            for (name, kind) in done.reads().iter().zip(&reads) {
                let whole = self.host(at, step, name, kind.bytes())?;
                tile.clear();
                let size = kind.dtype().bytes();
                on_host(whole.as_ref(), |whole| match kind {
                    ValueKind::Image(image) => {
                        for_rows(image.dims, &part.reads, |start, count| {
                            let row = length(start * size)..length((start + count) * size);
                            tile.extend_from_slice(&whole[row]);
                        });
                    }
                    // Every tile gets all numbers.
                    ValueKind::List { .. } => tile.extend_from_slice(whole),
                })?;
                if in_pairs(kind.dtype()) {
                    to_pairs(&mut tile);
                }
                let room = self.room_for(true, memory, device)?;
                let (place, _) = Self::place(room, at, step, (Role::Tile, name))?;
                let to = place.part(0..tile.len() as u64)?;
                queue(&mut self.queues, device)?.upload(&tile, &to)?;
                inputs.push(place);
            }
            let room = self.room_for(true, memory, device)?;
            let one = |name: &String| Ok(Self::place(room, at, step, (Role::Tile, name))?.0);
            let outputs: Result<Vec<Slice>, RunFailure> = done.gives().iter().map(one).collect();
            let outputs = outputs?;
            let scratch = scratch(room, at, step, done, &loaded)?;
            let lane = queue(&mut self.queues, device)?;
            loaded.enqueue(lane, &inputs, &outputs, scratch.as_ref())?;
            for ((name, image), place) in done.gives().iter().zip(&gives).zip(&outputs) {
                let size = image.dtype.bytes();
                let bytes = part.extents().iter().product::<u64>() * size;
                tile.resize(length(bytes), 0);
                let from = place.part(0..bytes)?;
                queue(&mut self.queues, device)?.download(&from, &mut tile)?;
                if in_pairs(image.dtype) {
                    to_wide(&mut tile);
                }
                let inner = [0, 1, 2].map(|axis| {
                    let start = part.reads[axis].start;
                    part.gives[axis].start - start..part.gives[axis].end - start
                });
                let mut rows = Vec::new();
                for_rows(part.extents(), &inner, |start, _| rows.push(start));
                let mut rows = rows.into_iter();
                let whole = self.host(at, step, name, image.bytes())?;
                on_host(whole.as_ref(), |whole| {
                    for_rows(image.dims, &part.gives, |start, count| {
                        let from = rows.next().unwrap_or(0);
                        let row = &tile[length(from * size)..length((from + count) * size)];
                        let to = length(start * size)..length((start + count) * size);
                        whole[to].copy_from_slice(row);
                    });
                })?;
            }
        }
        self.tile = tile;
        Ok(())
    }
}

/// Images and results of a unit follow each other at multiples of this, in the order of the plan.
pub(crate) const ALIGN: usize = 256;

/// Bytes that things of these lengths take one after the other.
pub(crate) fn in_a_row(lengths: impl Iterator<Item = u64>) -> u64 {
    lengths
        .map(|bytes| bytes.next_multiple_of(ALIGN as u64))
        .sum()
}

/// Bytes of a value of a variant.
pub(crate) fn bytes_of(variant: &Variant, name: &str) -> Result<u64, RunFailure> {
    let value = variant.value(name);
    let value = value.ok_or_else(|| foreign(format!("the plan says nothing of `{name}`")))?;
    Ok(value.bytes)
}

fn is_staging(plan: &ExecutionPlan, pool: &Pool) -> bool {
    let steps = plan.variants.iter().flat_map(|variant| &variant.steps);
    let mut stagings = steps.filter_map(|step| match step {
        PlanStep::Copy {
            staging: Some(staging),
            device,
            ..
        } => Some((staging, device)),
        _ => None,
    });
    pool.memory != "host"
        && stagings.any(|(memory, device)| *memory == pool.memory && *device == pool.device)
}

fn load(variant: &Variant, step: usize, faces: &Faces) -> Result<Programs, RunFailure> {
    let mut programs = Programs::new();
    match &variant.steps[step] {
        PlanStep::Copy { .. } => {}
        PlanStep::Run { .. } => {
            programs.insert(None, faces.load(variant, step, None)?);
        }
        PlanStep::Tiled { gives, tiles, .. } => {
            let first = gives.first().and_then(|name| variant.value(name));
            let image = first.and_then(|value| value.kind().image());
            let Some(image) = image else {
                return Err(foreign("tiles of something that is no image".to_owned()));
            };
            for part in tiles.parts(image.dims) {
                if let Entry::Vacant(entry) = programs.entry(Some(part.extents())) {
                    entry.insert(faces.load(variant, step, Some(part.extents()))?);
                }
            }
        }
    }
    Ok(programs)
}

fn queue<'q>(
    queues: &'q mut BTreeMap<String, CheckedQueue>,
    face: &str,
) -> Result<&'q mut CheckedQueue, RunFailure> {
    let found = queues.get_mut(face);
    found.ok_or_else(|| foreign(format!("nobody opened {face}")))
}

fn scratch(
    room: &Room,
    at: usize,
    step: usize,
    done: &PlanStep,
    loaded: &Loaded,
) -> Result<Option<Slice>, RunFailure> {
    match (loaded.program().workspace(), done.ops().first()) {
        (0, _) | (_, None) => Ok(None),
        (_, Some(op)) => {
            let (place, _) = Errand::place(room, at, step, (Role::Scratch, &op.name))?;
            Ok(Some(place))
        }
    }
}

/// Lends the bytes of a place on the host.
fn on_host(place: Option<&Slice>, f: impl FnOnce(&mut [u8])) -> Result<(), RunFailure> {
    let Some(place) = place else {
        return Ok(());
    };
    let range: Range<usize> = place.host_range();
    let mut f = Some(f);
    place.buffer().with_host(&mut |bytes| {
        if let Some(f) = f.take() {
            f(&mut bytes[range.clone()]);
        }
    })?;
    Ok(())
}

/// The rows of a box in an image: where each starts, in pixels, and how long it is.
fn for_rows(dims: Dims, of: &[Range<u64>; 3], mut each: impl FnMut(u64, u64)) {
    for z in of[0].clone() {
        for y in of[1].clone() {
            let start = (z * dims[1] + y) * dims[2] + of[2].start;
            each(start, of[2].end - of[2].start);
        }
    }
}
