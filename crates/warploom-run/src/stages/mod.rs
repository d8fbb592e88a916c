//! From a plan to stages, resources and what each stage does.

mod by_errand;
mod in_place;
mod with_copies;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use warploom_core::{CheckedDevice, Registry, Slice};
use warploom_sched::{Batch, Payloads, Plan, ResourceId, StageError, StageId};

use crate::course::{Course, Item};
use crate::error::RunFailure;
use crate::journal::Journal;
use crate::reading::{Arrival, Reading};
use crate::recorder::{Ahead, DeviceLane};
use crate::rooms::{Constants, Faces, kind};
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
    pub(super) fn batch(&self, slot: u64, budget: Option<u64>, depth: u32) -> u64 {
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

    pub(super) fn reading(
        &self,
        payloads: Payloads,
        (stage, resource, arrivals): (StageId, ResourceId, Vec<Vec<Arrival>>),
        stride: u64,
    ) -> Payloads {
        let course = Arc::clone(self.course);
        let mut reading = Reading::new(Arc::clone(self.course));
        payloads.host(stage, move |turn| {
            let batch = turn.batch();
            course.recorder.host("read", batch, || {
                turn.write(resource, |bytes| {
                    for (at, number) in numbers(batch) {
                        let variant = course.item(number).unit.variant;
                        reading.fill(number, &arrivals[variant], cut_mut(bytes, at, stride));
                    }
                })
            })
        })
    }

    pub(super) fn writing(
        &self,
        payloads: Payloads,
        (stage, resource, leavings): (StageId, ResourceId, Vec<Vec<Leaving>>),
        stride: u64,
        device: &CheckedDevice,
    ) -> Payloads {
        let device = device.clone();
        let course = Arc::clone(self.course);
        let mut writing = Writing::new(Arc::clone(self.course), Arc::clone(self.journal));
        payloads.host(stage, move |turn| {
            let batch = turn.batch();
            course.recorder.weigh(&device);
            course.recorder.host("write", batch, || {
                turn.read(resource, |bytes| {
                    for (at, number) in numbers(batch) {
                        let variant = course.item(number).unit.variant;
                        writing.take(number, &leavings[variant], cut(bytes, at, stride));
                    }
                })
            })
        })
    }

    /// Whoever notes when a stage on the device was at work.
    fn lane(&self, stage: &'static str, device: &CheckedDevice) -> DeviceLane {
        let recorder = &self.course.recorder;
        DeviceLane::new(recorder, stage, Ahead::measured(device, recorder))
    }

    /// What reading and writing a generation should take.
    pub(super) fn disk_times(&self, batch: u64) -> [Duration; 2] {
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

/// Does something for every unit of a generation whose record is not lost: its place in it, and what
/// it is.
fn each(
    course: &Course,
    batch: Batch,
    mut f: impl FnMut(u64, Item<'_>) -> Result<(), StageError>,
) -> Result<(), StageError> {
    for (at, number) in numbers(batch) {
        let item = course.item(number);
        if !course.is_lost(item) {
            f(at, item)?;
        }
    }
    Ok(())
}

fn no_memory(kind: &str) -> RunFailure {
    RunFailure::Foreign {
        what: format!("its device has no {kind}"),
    }
}

/// The units of a generation: their place in it, and their number among all.
fn numbers(batch: Batch) -> impl Iterator<Item = (u64, u64)> {
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
