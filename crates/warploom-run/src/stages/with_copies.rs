//! Stages for a device with memory of its own.

use std::sync::Arc;

use warploom_core::{CheckedDevice, QueueClass, Slice, Space};
use warploom_plan::plan::Pool;
use warploom_sched::{
    Options, Payloads, Resource, ResourceId, Slots, Stage, StageGraph, StageId, plan,
};

use super::{AT_ONCE, Parts, Schedule, Seats, Size, each, no_memory, piece, times};
use crate::error::RunFailure;
use crate::reading::Arrival;
use crate::rooms::{Faces, kind, shared};
use crate::script::Script;
use crate::writing::Leaving;

/// Stages on the device and what they work with: images, slots and results, with the bytes of a unit
/// in each.
struct OnDevice {
    stages: [StageId; 3],
    resources: [ResourceId; 3],
    strides: [u64; 3],
    scripts: Arc<Vec<Script>>,
    common: Option<Slice>,
}

impl Parts<'_> {
    /// The device has memory of its own: up, work and down overlap, each on its queue.
    pub(super) fn with_copies(
        &self,
        faces: &Faces,
        device: &CheckedDevice,
        pool: &Pool,
    ) -> Result<Schedule, RunFailure> {
        let agenda = self.agenda;
        let plan_of = &agenda.plan;
        let scripts = (0..plan_of.variants.len())
            .map(|at| Script::with_copies(plan_of, at, pool, faces))
            .collect::<Result<Vec<_>, _>>()?;
        let scripts = Arc::new(scripts);
        let own = kind(device, pool).ok_or_else(|| no_memory(&pool.memory))?;
        let common = shared(plan_of, pool, device, own, self.constants)?;
        let most = |of: fn(&Script) -> u64| scripts.iter().map(of).max().unwrap_or(0).max(256);
        let (up, down) = (most(|script| script.images), most(|script| script.results));
        let (items, seconds) = (agenda.items, plan_of.stage_seconds());
        let Size {
            depth,
            batch,
            stride,
        } = Size::of(pool, plan_of.memory.depth, self.wishes, items);
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
        let read = graph.stage(Stage::host("read").writes(images).taking(read_time));
        let upload = Stage::device("upload", QueueClass::Upload)
            .reads(images)
            .writes(slot);
        let upload = graph.stage(upload.taking(times(seconds[0], batch)));
        let mut work = Stage::device("work", QueueClass::Compute).updates(slot);
        if scripts.iter().any(Script::fetches) {
            work = work.reads(images);
        }
        let work = graph.stage(work.taking(times(seconds[1], batch)));
        let download = Stage::device("download", QueueClass::Download).reads(slot);
        let download = download.writes(results).taking(times(seconds[2], batch));
        let download = graph.stage(download);
        let write = graph.stage(Stage::host("write").reads(results).taking(write_time));
        let arrivals: Vec<Vec<Arrival>> = scripts.iter().map(|s| s.arrivals.clone()).collect();
        let leavings: Vec<Vec<Leaving>> = scripts.iter().map(|s| s.leavings.clone()).collect();
        let payloads = self.reading(
            Payloads::new(),
            (read, Seats::new(vec![images], up), arrivals),
        );
        let out = Seats::new(vec![results], down);
        let payloads = self.writing(payloads, (write, out, leavings), device);
        let on_device = OnDevice {
            stages: [upload, work, download],
            resources: [images, slot, results],
            strides: [up, stride, down],
            scripts,
            common,
        };
        let payloads = self.on_device(payloads, on_device, device);
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: device.clone(),
            batch,
        })
    }

    /// What the stages on the device enqueue.
    fn on_device(&self, payloads: Payloads, of: OnDevice, device: &CheckedDevice) -> Payloads {
        let agenda = self.agenda;
        let OnDevice {
            stages: [upload, work, download],
            resources: [images, slot, results],
            strides: [up, stride, down],
            scripts,
            common,
        } = of;
        let fetches = scripts.iter().any(Script::fetches);
        let (of, own) = (Arc::clone(agenda), Arc::clone(&scripts));
        let mut lane = self.lane("upload", device);
        let payloads = payloads.device(upload, move |turn| {
            lane.around(turn, |turn| {
                let (from, to) = (turn.read(images)?, turn.write(slot)?);
                each(&of, turn.batch(), |at, item| {
                    let (from, to) = (piece(from.slice(), at, up)?, piece(to.slice(), at, stride)?);
                    Ok(own[item.unit.variant].upload(turn.queue(), &from, &to)?)
                })
            })
        });
        let (of, own) = (Arc::clone(agenda), Arc::clone(&scripts));
        let mut lane = self.lane("work", device);
        let payloads = payloads.device(work, move |turn| {
            lane.around(turn, |turn| {
                let lease = turn.write(slot)?;
                let late = if fetches {
                    Some(turn.read(images)?)
                } else {
                    None
                };
                each(&of, turn.batch(), |at, item| {
                    let slot = piece(lease.slice(), at, stride)?;
                    let late = late
                        .as_ref()
                        .map(|late| piece(late.slice(), at, up))
                        .transpose()?;
                    let script = &own[item.unit.variant];
                    Ok(script.work(turn.queue(), late.as_ref(), &slot, common.as_ref())?)
                })
            })
        });
        let (of, own) = (Arc::clone(agenda), scripts);
        let mut lane = self.lane("download", device);
        payloads.device(download, move |turn| {
            lane.around(turn, |turn| {
                let (from, to) = (turn.read(slot)?, turn.write(results)?);
                each(&of, turn.batch(), |at, item| {
                    let (from, to) = (
                        piece(from.slice(), at, stride)?,
                        piece(to.slice(), at, down)?,
                    );
                    Ok(own[item.unit.variant].download(turn.queue(), &from, &to)?)
                })
            })
        })
    }
}
