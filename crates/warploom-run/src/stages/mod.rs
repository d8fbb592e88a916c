//! From a plan to stages, resources and what each stage does.

mod by_errand;
mod in_place;
mod with_copies;

use std::sync::Arc;
use std::time::Duration;

use warploom_core::{CheckedDevice, Registry, Slice};
use warploom_plan::ExecutionPlan;
use warploom_plan::plan::Pool;
use warploom_sched::{Batch, Fill, Payloads, Plan, ResourceId, StageError, StageId};

use crate::agenda::Agenda;
use crate::course::Item;
use crate::error::RunFailure;
use crate::journal::Keeper;
use crate::reading::{Arrival, Reading};
use crate::recorder::{Ahead, DeviceLane};
use crate::rooms::{Constants, Faces, kind};
use crate::script::{Script, is_scriptable};
use crate::writing::{Leaving, Writing};

/// Units that may be read, worked on and written at the same time.
const AT_ONCE: u32 = 3;
/// The most units of a generation, if nobody asks for more.
const MOST: u64 = 32;
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

/// How many units a pool holds at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    /// Generations in flight.
    pub(crate) depth: u32,
    /// Units of a generation.
    pub(crate) batch: u64,
    /// Bytes of a unit.
    pub(crate) stride: u64,
}

impl Size {
    /// Of a pool that device and host both see, units are read and written while others are worked
    /// on; of others as many as the plan says. Small units go several at a time: handing over costs
    /// the same for each generation. All of it fits the pool's budget.
    pub(crate) fn of(pool: &Pool, planned: u32, wishes: &Wishes, items: u64) -> Self {
        const ENOUGH: u64 = 1 << 20;
        let stride = pool.slot.max(4).next_multiple_of(256);
        let common = pool.shared + pool.loaded;
        let budget = pool.budget.unwrap_or(u64::MAX).saturating_sub(common);
        let room = budget / stride;
        let depth = if pool.memory == "host" {
            AT_ONCE
        } else {
            planned
        };
        let depth = wishes.depth.unwrap_or(depth).max(1);
        let depth = depth.min(u32::try_from(room).unwrap_or(u32::MAX)).max(1);
        let items = items.max(1);
        let wish = wishes.batch.unwrap_or_else(|| {
            // A few generations there should be, or nothing overlaps.
            let share = items.div_ceil(u64::from(AT_ONCE) * 2);
            (ENOUGH / stride).clamp(1, MOST).min(share)
        });
        Self {
            depth,
            batch: wish.min(room / u64::from(depth)).clamp(1, items),
            stride,
        }
    }

    /// Bytes of the pool in all, with what all units share.
    pub(crate) fn bytes(self, pool: &Pool) -> u64 {
        let units = u64::from(self.depth) * self.batch;
        self.stride * units + pool.shared + pool.loaded
    }
}

/// Bytes that a run takes of a card's memory.
pub(crate) fn footprint(
    plan: &ExecutionPlan,
    faces: &[String],
    wishes: &Wishes,
    items: u64,
) -> u64 {
    let own = plan
        .memory
        .pools
        .iter()
        .filter(|pool| faces.contains(&pool.device));
    let is_scripted = is_scriptable(plan);
    let bytes = own.map(|pool| {
        if is_scripted {
            Size::of(pool, plan.memory.depth, wishes, items).bytes(pool)
        } else {
            pool.total
        }
    });
    bytes.sum()
}

/// Units of a generation on a card.
#[cfg(all(feature = "fleet", target_os = "linux"))]
pub(crate) fn generation(
    plan: &ExecutionPlan,
    faces: &[String],
    wishes: &Wishes,
    items: u64,
) -> u64 {
    if !is_scriptable(plan) {
        return 1;
    }
    let pools = plan.memory.pools.iter();
    let own = pools.filter(|pool| faces.contains(&pool.device));
    let sizes = own.map(|pool| Size::of(pool, plan.memory.depth, wishes, items).batch);
    sizes.max().unwrap_or(1)
}

/// Everything that stages are made of.
pub(crate) struct Parts<'a> {
    pub(crate) agenda: &'a Arc<Agenda>,
    pub(crate) keeper: &'a Keeper,
    pub(crate) faces: &'a Faces,
    pub(crate) constants: &'a Constants,
    pub(crate) registry: &'a Registry,
    pub(crate) wishes: &'a Wishes,
}

impl Parts<'_> {
    /// Opens devices, loads programs, and puts stages together.
    pub(crate) fn schedule(&self) -> Result<Schedule, RunFailure> {
        let plan = &self.agenda.plan;
        let faces = self.faces;
        let alone = faces.only().filter(|_| is_scriptable(plan));
        let Some(loader) = alone else {
            return self.by_errand(faces);
        };
        let device = loader.device().clone();
        let pool = plan.memory.pools.iter().find(|pool| {
            let own = device.info().local_kind();
            own.is_some_and(|own| own.name() == pool.memory) && kind(&device, pool).is_some()
        });
        let Some(pool) = pool else {
            return self.by_errand(faces);
        };
        if pool.memory == "host" {
            self.in_place(faces, &device, pool)
        } else {
            self.with_copies(faces, &device, pool)
        }
    }

    pub(super) fn reading(
        &self,
        payloads: Payloads,
        (stage, resource, arrivals): (StageId, ResourceId, Vec<Vec<Arrival>>),
        stride: u64,
    ) -> Payloads {
        let agenda = Arc::clone(self.agenda);
        let mut reading = Reading::new();
        payloads.source(stage, move |turn| {
            let batch = turn.batch();
            let Some(round) = agenda.next(batch) else {
                return Ok(Fill::End);
            };
            let course = &round.course;
            agenda.recorder.host("read", batch, || {
                turn.write(resource, |bytes| {
                    for (at, number) in round.numbers() {
                        let variant = course.item(number).unit.variant;
                        let place = cut_mut(bytes, at, stride);
                        reading.fill(course, number, &arrivals[variant], place);
                    }
                })
            })?;
            Ok(Fill::Full)
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
        let agenda = Arc::clone(self.agenda);
        let output = agenda.output().to_owned();
        let mut writing = Writing::new(output, Arc::clone(self.keeper));
        payloads.host(stage, move |turn| {
            let batch = turn.batch();
            let round = agenda.round(batch)?;
            let course = &round.course;
            agenda.recorder.weigh(&device);
            agenda.recorder.host("write", batch, || {
                turn.read(resource, |bytes| {
                    for (at, number) in round.numbers() {
                        let variant = course.item(number).unit.variant;
                        let place = cut(bytes, at, stride);
                        writing.take(course, number, &leavings[variant], place);
                    }
                })
            })?;
            agenda.done(batch);
            Ok(())
        })
    }

    /// Whoever notes when a stage on the device was at work.
    fn lane(&self, stage: &'static str, device: &CheckedDevice) -> DeviceLane {
        let recorder = &self.agenda.recorder;
        DeviceLane::new(recorder, stage, Ahead::measured(device, recorder))
    }

    /// What reading and writing a generation should take.
    pub(super) fn disk_times(&self, batch: u64) -> [Duration; 2] {
        let plan = &self.agenda.plan;
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
    agenda: &Agenda,
    batch: Batch,
    mut f: impl FnMut(u64, Item<'_>) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let round = agenda.round(batch)?;
    for (at, number) in round.numbers() {
        let item = round.course.item(number);
        if !round.course.is_lost(item) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool(memory: &str, slot: u64, budget: Option<u64>) -> Pool {
        Pool {
            memory: memory.to_owned(),
            device: "cpu:0".to_owned(),
            budget,
            slot,
            bound: slot,
            shared: 1000,
            constants: Vec::new(),
            loaded: 24,
            total: slot + 1024,
            fullest: None,
            live: Vec::new(),
            layout: Vec::new(),
        }
    }

    const NO_WISHES: Wishes = Wishes {
        depth: None,
        batch: None,
    };

    #[test]
    fn large_units_go_one_by_one_and_small_ones_together() {
        let large = Size::of(&pool("host", 1 << 24, None), 1, &NO_WISHES, 100);
        assert_eq!((large.depth, large.batch), (AT_ONCE, 1));
        let small = Size::of(&pool("host", 1 << 14, None), 1, &NO_WISHES, 10_000);
        assert_eq!((small.depth, small.batch), (AT_ONCE, 32));
        let few = Size::of(&pool("opencl.device", 1 << 14, None), 2, &NO_WISHES, 12);
        assert_eq!((few.depth, few.batch), (2, 2));
    }

    proptest! {
        #[test]
        fn i1_what_is_taken_fits_the_budget(
            slot in 1_u64..1 << 22,
            room in 1_u64..200,
            depth in proptest::option::of(1_u32..9),
            batch in proptest::option::of(1_u64..100),
            items in 1_u64..1000,
            is_host: bool,
        ) {
            let memory = if is_host { "host" } else { "cuda.device" };
            // At least one unit fits: the plan saw to it.
            let budget = 1024 + slot.max(4).next_multiple_of(256) * room;
            let pool = pool(memory, slot, Some(budget));
            let size = Size::of(&pool, 2, &Wishes { depth, batch }, items);
            prop_assert!(size.depth >= 1 && (1..=items).contains(&size.batch));
            prop_assert!(size.bytes(&pool) <= budget, "{size:?} of {budget}");
        }
    }
}
