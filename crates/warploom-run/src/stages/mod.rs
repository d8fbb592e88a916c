//! From a plan to stages, resources and what each stage does.

mod by_errand;
mod in_place;
mod size;
mod with_copies;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use warploom_core::{CheckedDevice, Registry, Slice};
use warploom_sched::{Batch, Fill, Payloads, Plan, ResourceId, StageError, StageId};

use crate::agenda::Agenda;
use crate::course::Item;
use crate::error::RunFailure;
use crate::journal::Keeper;
use crate::reading::{Arrival, Reading};
use crate::recorder::{Ahead, DeviceLane};
use crate::rooms::{Constants, Faces, kind};
use crate::writing::{Leaving, Writing};

/// Reading and writing are taken to be as fast as this before a run, in bytes a second. What a recording
/// says of the bound goes by what they took.
const DISK: f64 = 1e9;

use size::{AT_ONCE, Size};
pub(crate) use size::{footprint, generation};

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
    /// Threads that read ahead.
    pub(crate) readers: Option<usize>,
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
        let alone = faces.only().filter(|_| plan.is_straight());
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
        (stage, seats, arrivals): (StageId, Seats, Vec<Vec<Arrival>>),
    ) -> Payloads {
        let agenda = Arc::clone(self.agenda);
        let mut reading = Reading::new(self.wishes.readers);
        let arrivals: Vec<Arc<[Arrival]>> = arrivals.into_iter().map(Arc::from).collect();
        payloads.source(stage, move |turn| {
            let batch = turn.batch();
            let Some(round) = agenda.next(batch) else {
                return Ok(Fill::End);
            };
            let course = &round.course;
            agenda.recorder.host("read", batch, || {
                for (at, number) in round.numbers() {
                    let variant = course.item(number).unit.variant;
                    reading.look_ahead(course, number + 1, &arrivals);
                    let (resource, range) = seats.bytes(at);
                    turn.write(resource, |bytes| {
                        reading.fill(course, number, &arrivals[variant], &mut bytes[range]);
                    })?;
                }
                Ok::<(), StageError>(())
            })?;
            Ok(Fill::Full)
        })
    }

    pub(super) fn writing(
        &self,
        payloads: Payloads,
        (stage, seats, leavings): (StageId, Seats, Vec<Vec<Leaving>>),
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
                for (at, number) in round.numbers() {
                    let variant = course.item(number).unit.variant;
                    let (resource, range) = seats.bytes(at);
                    turn.read(resource, |bytes| {
                        writing.take(course, number, &leavings[variant], &bytes[range]);
                    })?;
                }
                Ok::<(), StageError>(())
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

/// Where the units of a generation are: one after the other in turn over several resources.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    resources: Arc<[ResourceId]>,
    /// Bytes of a unit.
    stride: u64,
}

impl Seats {
    pub(super) fn new(resources: Vec<ResourceId>, stride: u64) -> Self {
        Self {
            resources: resources.into(),
            stride,
        }
    }

    pub(super) fn resources(&self) -> &[ResourceId] {
        &self.resources
    }

    /// Which resource a unit is in, by its place in the generation, and where.
    pub(super) fn place(&self, at: u64) -> (usize, Range<u64>) {
        let count = self.resources.len() as u64;
        let (which, number) = (at % count, at / count);
        let range = number * self.stride..(number + 1) * self.stride;
        (usize::try_from(which).unwrap_or(0), range)
    }

    /// The same for the host.
    fn bytes(&self, at: u64) -> (ResourceId, Range<usize>) {
        let (which, range) = self.place(at);
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        (self.resources[which], index(range.start)..index(range.end))
    }
}

fn no_memory(kind: &str) -> RunFailure {
    RunFailure::Foreign {
        what: format!("its device has no {kind}"),
    }
}

fn piece(slice: &Slice, at: u64, stride: u64) -> Result<Slice, warploom_core::DeviceError> {
    slice.part(at * stride..(at + 1) * stride)
}

fn times(seconds: f64, batch: u64) -> Duration {
    Duration::try_from_secs_f64(seconds * batch as f64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use warploom_core::Space;
    use warploom_sched::{Resource, StageGraph};

    use super::*;

    /// No two units of a generation have a byte in common, and all resources together have no more than they
    /// need.
    #[test]
    fn units_sit_beside_each_other() {
        let mut graph = StageGraph::new();
        let resources = (0..3).map(|_| graph.resource(Resource::new("slot", Space::Host, 1)));
        let seats = Seats::new(resources.collect(), 256);
        for batch in 1..20_u64 {
            let mut ends = [0; 3];
            for at in 0..batch {
                let (which, range) = seats.place(at);
                assert_eq!((range.start, range.end), (ends[which], ends[which] + 256));
                ends[which] = range.end;
            }
            assert_eq!(ends.iter().sum::<u64>(), batch * 256);
            let rooms = [0, 1, 2].map(|which: u64| batch.saturating_sub(which).div_ceil(3) * 256);
            assert_eq!(ends, rooms);
        }
    }
}
