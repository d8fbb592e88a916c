//! Stages for a device that works in the host's memory.

use std::sync::Arc;

use warploom_core::{Caps, CheckedDevice, DeviceInfo, QueueClass, Space};
use warploom_plan::plan::Pool;
use warploom_sched::{Options, Payloads, Resource, Slots, Stage, StageGraph, plan};

use super::{Parts, Schedule, Seats, Size, each, no_memory, times};
use crate::error::RunFailure;
use crate::reading::Arrival;
use crate::rooms::{Faces, kind, shared};
use crate::script::Script;
use crate::writing::Leaving;

/// The stages that work side by side, each with its part of a generation, in slots and on a queue of its own.
///
/// Threads that share a kernel wait for the last of them, which may be waiting for a processor that reads or
/// writes a file. With two kernels on the way there is something else to do meanwhile.
const WORKS: [(&str, [&str; 2]); 4] = [
    ("work", ["slot", "compute"]),
    ("work (2)", ["slot (2)", "compute (2)"]),
    ("work (3)", ["slot (3)", "compute (3)"]),
    ("work (4)", ["slot (4)", "compute (4)"]),
];

/// How many of them are worth it.
fn works(batch: u64, info: &DeviceInfo) -> usize {
    if !info.caps.contains(Caps::CONCURRENT_QUEUES) {
        return 1;
    }
    let most = batch.min(u64::from(info.limits.compute_units));
    usize::try_from(most).unwrap_or(1).clamp(1, WORKS.len())
}

/// How many threads each of so many has for itself; 0 is all, with the others. Apart they are never in each
/// other's way, but the last of them does not get what the others no longer need: not for a few units.
fn threads(works: usize, items: u64, info: &DeviceInfo) -> u32 {
    const MANY: u64 = 16;
    let works = works as u64;
    if works == 1 || items < MANY * works {
        return 0;
    }
    let all = u64::from(info.limits.compute_units);
    u32::try_from(all.div_ceil(works)).unwrap_or(0)
}

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
        let works = &WORKS[..works(batch, device.info())];
        let lanes = works.iter().zip(0..).map(|((_, [slot, _]), at)| {
            let units = (batch - at).div_ceil(works.len() as u64);
            let slot = Resource::new(*slot, Space::Host, stride * units);
            graph.resource(slot.with_slots(Slots::Exactly(depth)))
        });
        let seats = Seats::new(lanes.collect(), stride);
        let [read_time, write_time] = self.disk_times(batch);
        let (mut read, mut write) = (Stage::host("read"), Stage::host("write"));
        for slot in seats.resources() {
            (read, write) = (read.writes(*slot), write.reads(*slot));
        }
        let read = graph.stage(read.taking(read_time));
        // Together they have the processor, so each takes as long for its part as one would for all.
        let time = times(seconds[1], batch);
        let threads = threads(works.len(), items, device.info());
        let on_device = works
            .iter()
            .zip(seats.resources())
            .map(|((name, [_, queue]), slot)| {
                let work = Stage::device(*name, QueueClass::Compute).updates(*slot);
                graph.stage(work.on(*queue).on_threads(threads).taking(time))
            });
        let on_device: Vec<_> = on_device.collect();
        let write = graph.stage(write.taking(write_time));
        let arrivals: Vec<Vec<Arrival>> = scripts.iter().map(|s| s.arrivals.clone()).collect();
        let leavings: Vec<Vec<Leaving>> = scripts.iter().map(|s| s.leavings.clone()).collect();
        let payloads = self.reading(Payloads::new(), (read, seats.clone(), arrivals));
        let mut payloads = self.writing(payloads, (write, seats.clone(), leavings), device);
        for (own, (stage, (name, _))) in on_device.into_iter().zip(works).enumerate() {
            let (of, scripts, common) = (Arc::clone(agenda), Arc::clone(&scripts), common.clone());
            let (seats, mut lane) = (seats.clone(), self.lane(name, device));
            payloads = payloads.device(stage, move |turn| {
                lane.around(turn, |turn| {
                    let lease = turn.write(seats.resources()[own])?;
                    each(&of, turn.batch(), |at, item| {
                        let (whose, range) = seats.place(at);
                        if whose != own {
                            return Ok(());
                        }
                        let slot = lease.slice().part(range)?;
                        let script = &scripts[item.unit.variant];
                        Ok(script.work(turn.queue(), None, &slot, common.as_ref())?)
                    })
                })
            });
        }
        Ok(Schedule {
            plan: plan(&graph, &Options::default())?,
            payloads,
            device: device.clone(),
            batch,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use warploom_core::memory::HOST;

    use super::*;

    fn processor(units: u32) -> DeviceInfo {
        let mut info = DeviceInfo::software("cpu:0".parse().unwrap(), "some", &[HOST]);
        info.caps.set(Caps::CONCURRENT_QUEUES, units > 1);
        info.limits.compute_units = units;
        info
    }

    /// Works side by side, and threads of each.
    #[rstest]
    #[case::one_thread_is_not_shared(1, 32, 1000, (1, 0))]
    #[case::one_at_a_time_has_all(8, 1, 1000, (1, 0))]
    #[case::two_large_ones(2, 2, 1000, (2, 1))]
    #[case::every_thread_is_used(3, 2, 1000, (2, 2))]
    #[case::many_small_ones(16, 32, 1000, (4, 4))]
    #[case::few_help_each_other_out(2, 2, 31, (2, 0))]
    fn threads_are_shared_out(
        #[case] units: u32,
        #[case] batch: u64,
        #[case] items: u64,
        #[case] expected: (usize, u32),
    ) {
        let info = processor(units);
        let works = works(batch, &info);
        assert_eq!((works, threads(works, items, &info)), expected);
    }
}
