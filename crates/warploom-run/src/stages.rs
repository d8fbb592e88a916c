//! From a plan to stages, resources and what each stage does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use warploom_core::{CheckedDevice, QueueClass, Registry, Slice, Space};
use warploom_sched::{
    Options, Payloads, Plan, Resource, ResourceId, Slots, Stage, StageError, StageGraph, plan,
};

use crate::course::Course;
use crate::errand::{Errand, bytes_of, in_a_row};
use crate::error::RunFailure;
use crate::journal::Journal;
use crate::reading::{Arrival, Reading};
use crate::rooms::{Constants, Faces, kind, shared};
use crate::script::{Script, is_scriptable};
use crate::writing::{Leaving, Writing};

/// Units that may be read, worked on and written at the same time.
const AT_ONCE: u32 = 3;
/// Reading and writing are taken to be as fast as this until they were measured, in bytes a second.
const DISK: f64 = 1e9;

/// A schedule and what its stages do.
pub(crate) struct Schedule {
    pub(crate) plan: Plan,
    pub(crate) payloads: Payloads,
    pub(crate) device: CheckedDevice,
    /// Units of a generation.
    pub(crate) batch: u64,
}

pub(crate) struct Wishes {
    /// Units in flight.
    pub(crate) depth: Option<u32>,
    /// Units of a generation.
    pub(crate) batch: Option<u64>,
}

/// Everything that stages are made of.
pub(crate) struct Parts<'a> {
    pub(crate) course: &'a Arc<Course>,
    pub(crate) journal: &'a Arc<Mutex<Journal>>,
    pub(crate) constants: &'a Constants,
    pub(crate) registry: &'a Registry,
    pub(crate) wishes: &'a Wishes,
}

impl Parts<'_> {
    /// Opens devices, loads programs, and puts stages together.
    pub(crate) fn schedule(&self) -> Result<Schedule, RunFailure> {
        let plan = &self.course.plan;
        let faces = Faces::open(plan, self.registry)?;
        let alone = faces.only().filter(|_| is_scriptable(plan));
        let Some(loader) = alone else {
            return self.by_errand(&faces);
        };
        let device = loader.device().clone();
        let pool = plan.memory.pools.iter().find(|pool| {
            let own = device.info().local_kind();
            own.is_some_and(|own| own.name() == pool.memory) && kind(&device, pool).is_some()
        });
        let Some(pool) = pool else {
            return self.by_errand(&faces);
        };
        if pool.memory == "host" {
            self.in_place(&faces, &device, pool)
        } else {
            self.with_copies(&faces, &device, pool)
        }
    }

    /// Small units go several at a time: handing over costs the same for each generation.
    fn batch(&self, slot: u64, budget: Option<u64>, depth: u32) -> u64 {
        const ENOUGH: u64 = 1 << 20;
        const MOST: u64 = 32;
        let items = self.course.items().max(1);
        let wish = self.wishes.batch.unwrap_or_else(|| {
            // A few generations there should be, or nothing overlaps.
            let share = items.div_ceil(u64::from(AT_ONCE) * 2);
            (ENOUGH / slot.max(1)).clamp(1, MOST).min(share.max(1))
        });
        let room = budget.map_or(u64::MAX, |budget| {
            budget / (slot.max(1) * u64::from(depth)).max(1)
        });
        wish.min(room).clamp(1, items)
    }

    /// The device works in the host's memory: read there, work there, write from there.
    fn in_place(
        &self,
        faces: &Faces,
        device: &CheckedDevice,
        pool: &warploom_plan::plan::Pool,
    ) -> Result<Schedule, RunFailure> {
        let course = self.course;
        let plan_of = &course.plan;
        let scripts = (0..plan_of.variants.len())
            .map(|at| Script::in_place(plan_of, at, pool, faces))
            .collect::<Result<Vec<_>, _>>()?;
        let scripts = Arc::new(scripts);
        let own = kind(device, pool).ok_or_else(|| no_memory(&pool.memory))?;
        let common = shared(plan_of, pool, device, own, self.constants)?;
        let stride = pool.slot.max(4).next_multiple_of(256);
        // What the plan counted is one unit in flight; more read and write meanwhile, if they fit.
        let left = pool
            .budget
            .map(|budget| budget.saturating_sub(pool.shared + pool.loaded));
        let depth = self.wishes.depth.unwrap_or(AT_ONCE);
        let fitting = left.map_or(depth, |left| {
            u32::try_from(left / stride)
                .unwrap_or(u32::MAX)
                .clamp(1, depth)
        });
        let batch = self.batch(stride, left, fitting);
        let mut graph = StageGraph::new();
        let slots = Slots::Exactly(fitting);
        let slot = Resource::new("slot", Space::Host, stride * batch).with_slots(slots);
        let slot = graph.resource(slot);
        let [read_time, write_time] = self.disk_times(batch);
        let seconds = slowest(&scripts);
        let read = graph.stage(Stage::host("read").writes(slot).taking(read_time));
        let work = Stage::device("work", QueueClass::Compute).updates(slot);
        let work = graph.stage(work.taking(times(seconds[1], batch)));
        let write = graph.stage(Stage::host("write").reads(slot).taking(write_time));
        let arrivals: Vec<Vec<Arrival>> = scripts.iter().map(|s| s.arrivals.clone()).collect();
        let leavings: Vec<Vec<Leaving>> = scripts.iter().map(|s| s.leavings.clone()).collect();
        let payloads = self.ends(
            Payloads::new(),
            (read, slot, arrivals),
            (write, slot, leavings),
            stride,
        );
        let of = Arc::clone(course);
        let payloads = payloads.device(work, move |turn| {
            let lease = turn.write(slot)?;
            for (at, number) in numbers(turn.batch()) {
                let item = of.item(number);
                if !of.is_lost(item) {
                    let slot = piece(lease.slice(), at, stride)?;
                    let script = &scripts[item.unit.variant];
                    script.work(turn.queue(), None, &slot, common.as_ref())?;
                }
            }
            Ok(())
        });
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: device.clone(),
            batch,
        })
    }

    /// The device has memory of its own: up, work and down overlap, each on its queue.
    fn with_copies(
        &self,
        faces: &Faces,
        device: &CheckedDevice,
        pool: &warploom_plan::plan::Pool,
    ) -> Result<Schedule, RunFailure> {
        let course = self.course;
        let plan_of = &course.plan;
        let scripts = (0..plan_of.variants.len())
            .map(|at| Script::with_copies(plan_of, at, pool, faces))
            .collect::<Result<Vec<_>, _>>()?;
        let scripts = Arc::new(scripts);
        let own = kind(device, pool).ok_or_else(|| no_memory(&pool.memory))?;
        let common = shared(plan_of, pool, device, own, self.constants)?;
        let most = |of: fn(&Script) -> u64| scripts.iter().map(of).max().unwrap_or(0).max(256);
        let (up, down) = (most(|script| script.images), most(|script| script.results));
        let stride = pool.slot.max(4).next_multiple_of(256);
        let left = pool
            .budget
            .map(|budget| budget.saturating_sub(pool.shared + pool.loaded));
        let depth = self.wishes.depth.unwrap_or(plan_of.memory.depth).max(1);
        let depth = left.map_or(depth, |left| {
            u32::try_from(left / stride)
                .unwrap_or(u32::MAX)
                .clamp(1, depth)
        });
        let batch = self.batch(stride, left, depth);
        let mut graph = StageGraph::new();
        let host = |name: &str, bytes: u64| {
            let resource = Resource::new(name, Space::Pinned, bytes * batch);
            resource.with_slots(Slots::Exactly(self.wishes.depth.unwrap_or(AT_ONCE)))
        };
        let images = graph.resource(host("images", up));
        let slot = Resource::new("slot", Space::Device, stride * batch);
        let slot = graph.resource(slot.with_slots(Slots::Exactly(depth)));
        let results = graph.resource(host("results", down));
        let [read_time, write_time] = self.disk_times(batch);
        let seconds = slowest(&scripts);
        let read = graph.stage(Stage::host("read").writes(images).taking(read_time));
        let upload = Stage::device("upload", QueueClass::Upload)
            .reads(images)
            .writes(slot);
        let upload = graph.stage(upload.taking(times(seconds[0], batch)));
        let mut work = Stage::device("work", QueueClass::Compute).updates(slot);
        let fetches = scripts.iter().any(Script::fetches);
        if fetches {
            work = work.reads(images);
        }
        let work = graph.stage(work.taking(times(seconds[1], batch)));
        let download = Stage::device("download", QueueClass::Download).reads(slot);
        let download = download.writes(results).taking(times(seconds[2], batch));
        let download = graph.stage(download);
        let write = graph.stage(Stage::host("write").reads(results).taking(write_time));
        let arrivals: Vec<Vec<Arrival>> = scripts.iter().map(|s| s.arrivals.clone()).collect();
        let leavings: Vec<Vec<Leaving>> = scripts.iter().map(|s| s.leavings.clone()).collect();
        let payloads = self.reading(Payloads::new(), (read, images, arrivals), up);
        let payloads = self.writing(payloads, (write, results, leavings), down);
        let (of, own) = (Arc::clone(course), Arc::clone(&scripts));
        let payloads = payloads.device(upload, move |turn| {
            let (from, to) = (turn.read(images)?, turn.write(slot)?);
            for (at, number) in numbers(turn.batch()) {
                let item = of.item(number);
                if !of.is_lost(item) {
                    let (from, to) = (piece(from.slice(), at, up)?, piece(to.slice(), at, stride)?);
                    own[item.unit.variant].upload(turn.queue(), &from, &to)?;
                }
            }
            Ok(())
        });
        let (of, own) = (Arc::clone(course), Arc::clone(&scripts));
        let payloads = payloads.device(work, move |turn| {
            let lease = turn.write(slot)?;
            let late = if fetches {
                Some(turn.read(images)?)
            } else {
                None
            };
            for (at, number) in numbers(turn.batch()) {
                let item = of.item(number);
                if !of.is_lost(item) {
                    let slot = piece(lease.slice(), at, stride)?;
                    let late = late
                        .as_ref()
                        .map(|late| piece(late.slice(), at, up))
                        .transpose()?;
                    let script = &own[item.unit.variant];
                    script.work(turn.queue(), late.as_ref(), &slot, common.as_ref())?;
                }
            }
            Ok(())
        });
        let (of, own) = (Arc::clone(course), scripts);
        let payloads = payloads.device(download, move |turn| {
            let (from, to) = (turn.read(slot)?, turn.write(results)?);
            for (at, number) in numbers(turn.batch()) {
                let item = of.item(number);
                if !of.is_lost(item) {
                    let (from, to) = (
                        piece(from.slice(), at, stride)?,
                        piece(to.slice(), at, down)?,
                    );
                    own[item.unit.variant].download(turn.queue(), &from, &to)?;
                }
            }
            Ok(())
        });
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: device.clone(),
            batch,
        })
    }

    /// A thread of its own goes through all steps of a unit.
    fn by_errand(&self, faces: &Faces) -> Result<Schedule, RunFailure> {
        let course = self.course;
        let plan_of = &course.plan;
        let host = faces.host(self.registry)?;
        let own = plan_of
            .sources
            .iter()
            .filter(|source| source.file.is_none());
        let (mut from, mut arrivals) = (0, Vec::new());
        for source in own.clone() {
            let bytes = usize::try_from(source.bytes).unwrap_or(usize::MAX);
            arrivals.push(Arrival {
                channel: source.channel.clone(),
                range: from..from + bytes,
                pairs: false,
            });
            from = (from + bytes).next_multiple_of(crate::errand::ALIGN);
        }
        let up = in_a_row(own.map(|source| source.bytes)).max(256);
        let (mut down, mut leavings) = (256, Vec::new());
        for variant in &plan_of.variants {
            let (mut to, mut list) = (0, Vec::new());
            for output in &variant.outputs {
                let bytes = usize::try_from(bytes_of(variant, &output.value)?);
                let bytes = bytes.unwrap_or(usize::MAX);
                list.push(Leaving {
                    range: to..to + bytes,
                    pairs: false,
                });
                to = (to + bytes).next_multiple_of(crate::errand::ALIGN);
            }
            down = down.max(to as u64);
            leavings.push(list);
        }
        let mut graph = StageGraph::new();
        let slots = Slots::Exactly(self.wishes.depth.unwrap_or(AT_ONCE));
        let images = graph.resource(Resource::new("images", Space::Host, up).with_slots(slots));
        let results = graph.resource(Resource::new("results", Space::Host, down).with_slots(slots));
        let [read_time, write_time] = self.disk_times(1);
        let read = graph.stage(Stage::host("read").writes(images).taking(read_time));
        let work = Stage::host("work").reads(images).writes(results);
        let units = plan_of.estimate.units.max(1) as f64;
        let work = graph.stage(work.taking(times(plan_of.estimate.seconds / units, 1)));
        let write = graph.stage(Stage::host("write").reads(results).taking(write_time));
        let mut errand = Errand::new(plan_of, faces, self.constants, self.registry)?;
        let of = Arc::clone(course);
        let variants = plan_of.variants.len();
        let arrivals = vec![arrivals; variants];
        let payloads = self.reading(Payloads::new(), (read, images, arrivals), up);
        let payloads = self.writing(payloads, (write, results, leavings), down);
        let payloads = payloads.host(work, move |turn| {
            let item = of.item(turn.batch().first);
            if of.is_lost(item) {
                return Ok(());
            }
            let mut done = Ok(());
            turn.read(images, |images| {
                let lent = turn.write(results, |results| {
                    done = errand.run(item.unit.variant, images, results);
                });
                if let (Err(error), Ok(())) = (lent, &done) {
                    done = Err(RunFailure::Foreign {
                        what: error.to_string(),
                    });
                }
            })?;
            done.map_err(|error| match error {
                RunFailure::Device(error) => StageError::Device(error),
                other => StageError::failed(other),
            })
        });
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: host,
            batch: 1,
        })
    }

    fn ends(
        &self,
        payloads: Payloads,
        read: (warploom_sched::StageId, ResourceId, Vec<Vec<Arrival>>),
        write: (warploom_sched::StageId, ResourceId, Vec<Vec<Leaving>>),
        stride: u64,
    ) -> Payloads {
        let payloads = self.reading(payloads, read, stride);
        self.writing(payloads, write, stride)
    }

    fn reading(
        &self,
        payloads: Payloads,
        (stage, resource, arrivals): (warploom_sched::StageId, ResourceId, Vec<Vec<Arrival>>),
        stride: u64,
    ) -> Payloads {
        let course = Arc::clone(self.course);
        let mut reading = Reading::new(Arc::clone(self.course));
        payloads.host(stage, move |turn| {
            let batch = turn.batch();
            turn.write(resource, |bytes| {
                for (at, number) in numbers(batch) {
                    let variant = course.item(number).unit.variant;
                    reading.fill(number, &arrivals[variant], cut_mut(bytes, at, stride));
                }
            })
        })
    }

    fn writing(
        &self,
        payloads: Payloads,
        (stage, resource, leavings): (warploom_sched::StageId, ResourceId, Vec<Vec<Leaving>>),
        stride: u64,
    ) -> Payloads {
        let course = Arc::clone(self.course);
        let mut writing = Writing::new(Arc::clone(self.course), Arc::clone(self.journal));
        payloads.host(stage, move |turn| {
            let batch = turn.batch();
            turn.read(resource, |bytes| {
                for (at, number) in numbers(batch) {
                    let variant = course.item(number).unit.variant;
                    writing.take(number, &leavings[variant], cut(bytes, at, stride));
                }
            })
        })
    }

    /// What reading and writing a generation should take.
    fn disk_times(&self, batch: u64) -> [Duration; 2] {
        let plan = &self.course.plan;
        let own = plan.sources.iter().filter(|source| source.file.is_none());
        let read: u64 = own.map(|source| source.bytes).sum();
        let written = plan.variants.iter().map(|variant| {
            let outputs = variant.outputs.iter();
            let bytes = outputs.filter_map(|output| variant.value(&output.value));
            bytes.map(|value| value.bytes).sum::<u64>()
        });
        let written = written.max().unwrap_or(0);
        [read, written].map(|bytes| times(bytes as f64 / DISK, batch))
    }
}

fn no_memory(kind: &str) -> RunFailure {
    RunFailure::Foreign {
        what: format!("its device has no {kind}"),
    }
}

/// The units of a generation: their place in it, and their number among all.
fn numbers(batch: warploom_sched::Batch) -> impl Iterator<Item = (u64, u64)> {
    (0..batch.records).map(move |at| (at, batch.first + at))
}

fn piece(slice: &Slice, at: u64, stride: u64) -> Result<Slice, warploom_core::DeviceError> {
    slice.part(at * stride..(at + 1) * stride)
}

fn cut(bytes: &[u8], at: u64, stride: u64) -> &[u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    &bytes[index(at * stride)..index((at + 1) * stride)]
}

fn cut_mut(bytes: &mut [u8], at: u64, stride: u64) -> &mut [u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    &mut bytes[index(at * stride)..index((at + 1) * stride)]
}

fn times(seconds: f64, batch: u64) -> Duration {
    Duration::try_from_secs_f64(seconds * batch as f64).unwrap_or_default()
}

/// The longest that copies up, work and copies down of any variant take.
fn slowest(scripts: &[Script]) -> [f64; 3] {
    let mut most = [0.0; 3];
    for script in scripts {
        for (most, own) in most.iter_mut().zip(script.seconds) {
            *most = own.max(*most);
        }
    }
    most
}
