//! The shortest runner of plans there can be: one record at a time, in one slot whose bytes are
//! spoilt before.

use std::collections::BTreeMap;

use warploom::kernels::flow::ValueKind;
use warploom::kernels::program::{Loader, Program, to_pairs, to_wide};
use warploom::kernels::{Dims, ImageType};
use warploom::plan::ExecutionPlan;
use warploom::plan::plan::{PlanStep, Pool, Role, Variant};
use warploom::{DType, DeviceId, Math, MemoryKind, Queue, QueueDesc, Slice, registry};

/// Memory as the plan laid it out: one allocation a pool for the slot, one for what is shared.
struct Room {
    pool: Pool,
    slot: Vec<u8>,
    shared: Vec<u8>,
    device: Option<(Slice, Option<Slice>)>,
}

pub(super) struct Runner<'a> {
    plan: &'a ExecutionPlan,
    variant: usize,
    rooms: Vec<Room>,
    loaders: BTreeMap<String, Loader>,
}

pub(super) fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

impl<'a> Runner<'a> {
    pub(super) fn new(plan: &'a ExecutionPlan) -> Self {
        let mut loaders = BTreeMap::new();
        let others = plan.others.iter().flat_map(|card| &card.faces);
        for face in plan.device.faces.iter().chain(others) {
            let id: DeviceId = face.parse().unwrap();
            let device = registry().open(id).unwrap();
            loaders.insert(face.clone(), Loader::new(device, Math::Strict));
        }
        let rooms = plan.memory.pools.iter().map(|pool| {
            // Spoilt, so that nothing works by chance.
            let filled = |bytes: u64| vec![0xA5; length(bytes)];
            let host = pool.memory == "host" && !pool.tiles;
            let device = (!host && !pool.memory.ends_with("pinned")).then(|| {
                let device = loaders[&pool.device].device();
                let kinds = device.info().memory.iter();
                let kind = kinds.copied().find(|kind| kind.name() == pool.memory);
                let kind: MemoryKind = kind.unwrap();
                let mut queue = device.queue(&QueueDesc::named("spoil")).unwrap();
                let mut piece = |bytes: u64| {
                    let slice = Slice::whole(&device.alloc(kind, bytes).unwrap());
                    queue.upload(&filled(bytes), &slice).unwrap();
                    slice
                };
                let shared = (pool.shared > 0).then(|| piece(pool.shared));
                (piece(pool.slot.max(4)), shared)
            });
            Room {
                slot: filled(pool.slot),
                shared: filled(pool.shared),
                pool: pool.clone(),
                device,
            }
        });
        let rooms = rooms.collect();
        Self {
            plan,
            variant: 0,
            rooms,
            loaders,
        }
    }

    fn variant(&self) -> &'a Variant {
        &self.plan.variants[self.variant]
    }

    fn room(&self, memory: &str, device: &str) -> usize {
        self.room_for(false, memory, device)
    }

    /// Tiles on the processor are apart from whole images.
    fn room_for(&self, tiles: bool, memory: &str, device: &str) -> usize {
        let mut rooms = self.rooms.iter();
        let here = |room: &Room| {
            let pool = &room.pool;
            let same = pool.memory == memory && pool.tiles == (tiles && memory == "host");
            same && (memory == "host" || pool.device == device)
        };
        rooms.position(here).unwrap()
    }

    /// Where something lies: in the slot or in what is shared, from here to there.
    fn find(&self, room: usize, step: usize, role: Role, name: &str) -> (bool, u64, u64) {
        let pool = &self.rooms[room].pool;
        let number = u32::try_from(step + 1).unwrap();
        if let Some(lodging) = pool.lodging(self.variant, number, role, name) {
            return (false, lodging.offset, lodging.bytes);
        }
        let lodging = pool.constant(name);
        let lodging = lodging.unwrap_or_else(|| panic!("{name} is nowhere in {}", pool.memory));
        (true, lodging.offset, lodging.bytes)
    }

    fn host(&mut self, step: usize, name: &str) -> &mut [u8] {
        let room = self.room("host", "");
        let (shared, offset, bytes) = self.find(room, step, Role::Value, name);
        let room = &mut self.rooms[room];
        let memory = if shared {
            &mut room.shared
        } else {
            &mut room.slot
        };
        &mut memory[length(offset)..length(offset + bytes)]
    }

    /// A device's memory of a value, whole words of it.
    fn slice(&self, room: usize, step: usize, role: Role, name: &str) -> Slice {
        let (shared, offset, bytes) = self.find(room, step, role, name);
        let (slot, constants) = self.rooms[room].device.as_ref().unwrap();
        let memory = if shared {
            constants.as_ref().unwrap()
        } else {
            slot
        };
        let bytes = bytes.next_multiple_of(4).max(4);
        memory.part(offset..offset + bytes).unwrap()
    }

    fn copy(&mut self, step: usize, done: &PlanStep) {
        let PlanStep::Copy {
            value,
            from,
            to,
            device,
            staging,
            pairs,
            bytes,
            ..
        } = done
        else {
            unreachable!()
        };
        if let Some(staging) = staging {
            // The place on the way is there, and large enough.
            let room = self.room(staging, device);
            let (_, offset, room_for) = self.find(room, step, Role::Staging, value);
            assert!(room_for == *bytes && offset + bytes <= self.rooms[room].pool.slot);
        }
        let up = from == "host";
        assert!(up || to == "host", "{from} to {to}");
        let memory = if up { to } else { from };
        let room = self.room(memory, device);
        let place = self.slice(room, step, Role::Value, value);
        let place = place.part(0..*bytes).unwrap();
        let queue = QueueDesc::named("copy");
        let mut queue = self.loaders[device].device().queue(&queue).unwrap();
        if up {
            let mut data = self.host(step, value).to_vec();
            if *pairs {
                to_pairs(&mut data);
            }
            queue.upload(&data, &place).unwrap();
        } else {
            let data = self.host(step, value);
            queue.download(&place, data).unwrap();
            if *pairs {
                to_wide(data);
            }
        }
    }

    /// The program of a step, which must be the one that was counted.
    fn program(&self, step: usize, tile: Option<Dims>) -> Program {
        let done = &self.variant().steps[step];
        let info = self.loaders[done.device()].device().info();
        let program = self.variant().program(step, tile, info).unwrap();
        match done {
            PlanStep::Run {
                passes,
                scratch,
                loaded,
                ..
            } => {
                assert_eq!(program.steps().len(), *passes as usize);
                assert_eq!(program.workspace(), *scratch);
                assert_eq!(program.loaded_bytes(), *loaded);
            }
            PlanStep::Tiled { scratch, .. } => assert!(program.workspace() <= *scratch),
            PlanStep::Copy { .. } => unreachable!(),
        }
        program
    }

    fn work(&mut self, step: usize, done: &PlanStep) {
        let PlanStep::Run { device, memory, .. } = done else {
            unreachable!()
        };
        let room = self.room(memory, device);
        let loaded = self.loaders[device].load(self.program(step, None)).unwrap();
        let on_host = self.rooms[room].device.is_none();
        if on_host {
            // Host memory here is bytes of this test: it becomes a buffer for as long as it runs.
            self.lend_host(room);
        }
        let slices = |names: &[String]| -> Vec<Slice> {
            let slice = |name: &String| self.slice(room, step, Role::Value, name);
            names.iter().map(slice).collect()
        };
        let (reads, gives) = (slices(done.reads()), slices(done.gives()));
        let scratch = (loaded.program().workspace() > 0)
            .then(|| self.slice(room, step, Role::Scratch, &done.ops()[0].name));
        let queue = QueueDesc::named("work");
        let mut queue = self.loaders[device].device().queue(&queue).unwrap();
        loaded
            .enqueue(&mut queue, &reads, &gives, scratch.as_ref())
            .unwrap();
        queue.record().unwrap().wait(None).unwrap();
        if on_host {
            self.return_host(room);
        }
    }

    fn lend_host(&mut self, room: usize) {
        let device = self.loaders["cpu:0"].device();
        let kind = device.info().local_kind().unwrap();
        let mut queue = device.queue(&QueueDesc::named("lend")).unwrap();
        let room = &mut self.rooms[room];
        let mut piece = |bytes: &[u8]| {
            let bytes = if bytes.is_empty() { &[0; 4] } else { bytes };
            let slice = Slice::whole(&device.alloc(kind, bytes.len() as u64).unwrap());
            queue.upload(bytes, &slice).unwrap();
            slice
        };
        room.device = Some((piece(&room.slot), Some(piece(&room.shared))));
    }

    fn return_host(&mut self, room: usize) {
        let device = self.loaders["cpu:0"].device();
        let mut queue = device.queue(&QueueDesc::named("return")).unwrap();
        let room = &mut self.rooms[room];
        if let Some((slot, _)) = room.device.take() {
            queue.download(&slot, &mut room.slot).unwrap();
        }
    }

    fn tiles(&mut self, step: usize, done: &PlanStep) {
        let PlanStep::Tiled {
            device,
            memory,
            tiles,
            pairs,
            ..
        } = done
        else {
            unreachable!()
        };
        let room = self.room_for(true, memory, device);
        let kind = |name: &String| self.variant().value(name).unwrap().kind();
        let image = |name: &String| kind(name).image().unwrap();
        let in_pairs = |dtype: DType| *pairs && dtype == DType::F64;
        let reads: Vec<ValueKind> = done.reads().iter().map(kind).collect();
        let gives: Vec<ImageType> = done.gives().iter().map(image).collect();
        let parts = tiles.parts(gives[0].dims);
        assert_eq!(parts.len() as u64, tiles.count);
        for part in parts {
            let loaded = self.program(step, Some(part.extents()));
            let loaded = self.loaders[device].load(loaded).unwrap();
            let queue = QueueDesc::named("tile");
            let mut queue = self.loaders[device].device().queue(&queue).unwrap();
            let mut inputs = Vec::new();
            for (name, kind) in done.reads().iter().zip(&reads) {
                let size = kind.dtype().bytes();
                let whole = self.host(step, name);
                let mut cut = Vec::new();
                match kind {
                    ValueKind::Image(image) => for_rows(image.dims, &part.reads, |start, count| {
                        cut.extend_from_slice(
                            &whole[length(start * size)..length((start + count) * size)],
                        );
                    }),
                    ValueKind::List { .. } => cut.extend_from_slice(whole),
                }
                if in_pairs(kind.dtype()) {
                    to_pairs(&mut cut);
                }
                let slice = self.slice(room, step, Role::Tile, name);
                queue
                    .upload(&cut, &slice.part(0..cut.len() as u64).unwrap())
                    .unwrap();
                inputs.push(slice);
            }
            let tile = |name: &String| self.slice(room, step, Role::Tile, name);
            let outputs: Vec<Slice> = done.gives().iter().map(tile).collect();
            let scratch = (loaded.program().workspace() > 0)
                .then(|| self.slice(room, step, Role::Scratch, &done.ops()[0].name));
            loaded
                .enqueue(&mut queue, &inputs, &outputs, scratch.as_ref())
                .unwrap();
            for ((name, image), slice) in done.gives().iter().zip(&gives).zip(&outputs) {
                let size = image.dtype.bytes();
                let bytes = part.extents().iter().product::<u64>() * size;
                let mut tile = vec![0; length(bytes)];
                queue
                    .download(&slice.part(0..bytes).unwrap(), &mut tile)
                    .unwrap();
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
                let whole = self.host(step, name);
                for_rows(image.dims, &part.gives, |start, count| {
                    let from = rows.next().unwrap();
                    let row = &tile[length(from * size)..length((from + count) * size)];
                    whole[length(start * size)..length((start + count) * size)]
                        .copy_from_slice(row);
                });
            }
        }
    }

    /// One record; gives what is written, by value.
    pub(super) fn run(&mut self, sources: &BTreeMap<&str, Vec<u8>>) -> Vec<(String, Vec<u8>)> {
        let variant = self.variant();
        for source in &self.plan.sources {
            self.host(0, &source.name)
                .copy_from_slice(&sources[source.name.as_str()]);
        }
        for (step, done) in variant.steps.iter().enumerate() {
            match done {
                PlanStep::Copy { .. } => self.copy(step, done),
                PlanStep::Run { .. } => self.work(step, done),
                PlanStep::Tiled { .. } => self.tiles(step, done),
            }
        }
        let last = variant.steps.len().saturating_sub(1);
        let outputs = variant.outputs.iter();
        outputs
            .map(|output| {
                (
                    output.value.clone(),
                    self.host(last, &output.value).to_vec(),
                )
            })
            .collect()
    }
}

/// The rows of a box in an image: where each starts, in pixels, and how long it is.
fn for_rows(dims: Dims, of: &[std::ops::Range<u64>; 3], mut each: impl FnMut(u64, u64)) {
    for z in of[0].clone() {
        for y in of[1].clone() {
            each(
                (z * dims[1] + y) * dims[2] + of[2].start,
                of[2].end - of[2].start,
            );
        }
    }
}
