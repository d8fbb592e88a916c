//! Stages for a device that works in the host's memory.

use std::sync::Arc;

use warploom_core::{CheckedDevice, QueueClass, Space};
use warploom_plan::plan::Pool;
use warploom_sched::{Options, Payloads, Resource, Slots, Stage, StageGraph, plan};

use super::{Parts, Schedule, Size, each, no_memory, piece, times};
use crate::error::RunFailure;
use crate::reading::Arrival;
use crate::rooms::{Faces, kind, shared};
use crate::script::Script;
use crate::writing::Leaving;

impl Parts<'_> {
    /// The device works in the host's memory: read there, work there, write from there.
    pub(super) fn in_place(
        &self,
        faces: &Faces,
        device: &CheckedDevice,
        pool: &Pool,
    ) -> Result<Schedule, RunFailure> {
        let agenda = self.agenda;
        let plan_of = &agenda.plan;
        let scripts = (0..plan_of.variants.len())
            .map(|at| Script::in_place(plan_of, at, pool, faces))
            .collect::<Result<Vec<_>, _>>()?;
        let scripts = Arc::new(scripts);
        let own = kind(device, pool).ok_or_else(|| no_memory(&pool.memory))?;
        let common = shared(plan_of, pool, device, own, self.constants)?;
        let (items, seconds) = (agenda.items, plan_of.stage_seconds());
        let Size {
            depth,
            batch,
            stride,
        } = Size::of(pool, plan_of.memory.depth, self.wishes, items);
        let mut graph = StageGraph::new();
        let slots = Slots::Exactly(depth);
        let slot = Resource::new("slot", Space::Host, stride * batch).with_slots(slots);
        let slot = graph.resource(slot);
        let [read_time, write_time] = self.disk_times(batch);
        let read = graph.stage(Stage::host("read").writes(slot).taking(read_time));
        let work = Stage::device("work", QueueClass::Compute).updates(slot);
        let work = graph.stage(work.taking(times(seconds[1], batch)));
        let write = graph.stage(Stage::host("write").reads(slot).taking(write_time));
        let arrivals: Vec<Vec<Arrival>> = scripts.iter().map(|s| s.arrivals.clone()).collect();
        let leavings: Vec<Vec<Leaving>> = scripts.iter().map(|s| s.leavings.clone()).collect();
        let payloads = self.reading(Payloads::new(), (read, slot, arrivals), stride);
        let payloads = self.writing(payloads, (write, slot, leavings), stride, device);
        let of = Arc::clone(agenda);
        let mut lane = self.lane("work", device);
        let payloads = payloads.device(work, move |turn| {
            lane.around(turn, |turn| {
                let lease = turn.write(slot)?;
                each(&of, turn.batch(), |at, item| {
                    let slot = piece(lease.slice(), at, stride)?;
                    let script = &scripts[item.unit.variant];
                    Ok(script.work(turn.queue(), None, &slot, common.as_ref())?)
                })
            })
        });
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: device.clone(),
            batch,
        })
    }
}
