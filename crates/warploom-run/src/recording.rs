//! What a run records, put together of its attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use warploom_plan::ExecutionPlan;
use warploom_sched::{Plan, StageGraph, Summary as Schedule};
use warploom_watch::Recording;
use warploom_watch::recording::{
    Bound, Clock, Counter, Device, DeviceNo, Edge, Lane, LaneNo, Mark, Occasion, Outcome as Ending,
    Place, Record, RecordNo, Sample, Span, Thumbnail, Unit,
};

use crate::course::Course;
use crate::job::Job;
use crate::outcome::{Outcome, Summary};
use crate::recorder::{Seen, Sights};
use crate::unit::units;

/// What the schedule of an attempt said and came to.
#[derive(Debug)]
pub(crate) struct Trail {
    edges: Vec<Edge>,
    /// What was planned. All its resources say how many slots they have.
    graph: StageGraph,
    races_checked: u64,
    /// The stages in order; the queue of each that is on the device.
    stages: Vec<(String, Option<String>)>,
    batch: u64,
}

impl Trail {
    pub(crate) fn new(plan: &Plan, summary: &Schedule, batch: u64) -> Self {
        let edges = plan.edge_ids().map(|(id, edge)| {
            let count = summary.edge(id);
            Edge {
                name: edge.name().to_owned(),
                guards: edge.guards().to_owned(),
                device: None,
                waits: count.waits,
                blocked: nanos(count.blocked),
            }
        });
        let stages = plan.graph().stages();
        let stages = stages.iter().enumerate().map(|(at, stage)| {
            let mut queues = plan.queues().iter();
            let own = queues.find(|queue| queue.stages.iter().any(|id| id.index() == at));
            (stage.name.clone(), own.map(|queue| queue.name.clone()))
        });
        Self {
            edges: edges.filter(|edge| edge.waits > 0).collect(),
            graph: plan.graph().clone(),
            races_checked: summary.checked,
            stages: stages.collect(),
            batch,
        }
    }
}

impl Trail {
    pub(crate) fn races_checked(&self) -> u64 {
        self.races_checked
    }

    /// Generations a second at best and what limits them, if every stage takes as long as it took. Before
    /// a run nobody knows what files take, so what was planned with says little.
    fn bound(&self, seen: &[Seen]) -> Option<(f64, String)> {
        let mut graph = StageGraph::new();
        for resource in self.graph.resources() {
            graph.resource(resource.clone());
        }
        for stage in self.graph.stages() {
            let own = seen.iter().filter(|seen| seen.stage == stage.name);
            // A device without a clock says when it was given work, not when it did it.
            if !stage.is_host() && own.clone().any(|seen| seen.clock == Clock::Host) {
                graph.stage(stage.clone());
                continue;
            }
            let (mut took, mut units) = (Duration::ZERO, 0);
            for one in own {
                took += one.end.saturating_sub(one.begin);
                units += one.batch.records;
            }
            // The last generation may be a small one.
            let time = took.as_secs_f64() / units.max(1) as f64 * self.batch as f64;
            let time = Duration::try_from_secs_f64(time).unwrap_or_default();
            graph.stage(stage.clone().taking(time));
        }
        let plan = warploom_sched::plan(&graph, &warploom_sched::Options::default()).ok()?;
        let period = plan.period().filter(|period| period.nanos() > 0.0)?;
        let limit = plan.limit().map(ToString::to_string);
        Some((1e9 / period.nanos(), limit.unwrap_or_default()))
    }
}

/// How many units were between the beginning of the first stage and the end of the last, over time.
fn in_flight(trail: &Trail, seen: &[Seen]) -> Vec<Sample> {
    let (Some((first, _)), Some((last, _))) = (trail.stages.first(), trail.stages.last()) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for one in seen {
        let units = i64::try_from(one.batch.records).unwrap_or(i64::MAX);
        if one.stage == first {
            changes.push((nanos(one.begin), units));
        }
        if one.stage == last {
            changes.push((nanos(one.end), -units));
        }
    }
    changes.sort_unstable();
    let mut now = 0_i64;
    let told = changes.into_iter().map(|(at, change)| {
        now += change;
        Sample {
            at,
            value: now as f64,
        }
    });
    told.collect()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A recording in the making; nothing when nobody asked for one.
pub(crate) struct Recorded {
    recording: Option<Recording>,
    devices: BTreeMap<String, DeviceNo>,
    begun: BTreeMap<usize, (u64, DeviceNo)>,
    /// Where each attempt left off with generations.
    generations: u64,
}

impl Recorded {
    pub(crate) fn new(job: &Job, plan: &ExecutionPlan, is_wanted: bool) -> Self {
        let folder = job.output().file_name().unwrap_or_default();
        let title = folder.to_string_lossy().into_owned();
        let mut recording = is_wanted.then(|| Recording::new(title, &plan.pipeline));
        if let Some(recording) = &mut recording {
            recording.plan.clone_from(&plan.hash);
            recording.notes.clone_from(&plan.warnings);
            let input = job.input();
            let names = input.records.iter().map(|record| record.id().to_owned());
            let lacking = input.incomplete.iter().map(|record| record.id.clone());
            for name in names.chain(lacking) {
                recording.record(Record::new(name));
            }
        }
        Self {
            recording,
            devices: BTreeMap::new(),
            begun: BTreeMap::new(),
            generations: 0,
        }
    }

    /// What was seen of an attempt.
    pub(crate) fn add(&mut self, course: &Course, mut sights: Sights, trail: Option<Trail>) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        let card = &course.plan.device;
        let device = *self.devices.entry(card.name.clone()).or_insert_with(|| {
            let mut device = Device::new(&card.name, &card.label);
            device.faces.clone_from(&card.faces);
            recording.device(device)
        });
        for (task, at) in std::mem::take(&mut sights.begun) {
            let index = course.tasks[task].index;
            self.begun.insert(index, (nanos(at), device));
        }
        for (task, pictures) in std::mem::take(&mut sights.pictures) {
            let record = RecordNo::at(course.tasks[task].index);
            for (label, after) in pictures.after {
                recording.thumbnails.push(Thumbnail {
                    record,
                    label,
                    before: pictures.before.clone(),
                    after: Some(after),
                });
            }
        }
        let units = course.units.len() as u64;
        let lanes = lanes(recording, device, trail.as_ref());
        let mut last = 0;
        for seen in &sights.spans {
            let lane = lanes.iter().find(|(stage, _)| stage == seen.stage);
            let Some((_, lane)) = lane else {
                continue;
            };
            let (lane, stage) = (*lane, recording.stage(seen.stage));
            last = last.max(seen.batch.generation + 1);
            // A unit may be less than a record, and a generation several records that do not follow
            // each other, when others were done before.
            let task = |unit: u64| usize::try_from(unit / units).ok();
            let first = task(seen.batch.first).and_then(|at| course.tasks.get(at));
            let after = task(seen.batch.first + seen.batch.records.saturating_sub(1));
            let after = after.and_then(|at| course.tasks.get(at));
            let (Some(first), Some(after)) = (first, after) else {
                continue;
            };
            let count = after.index.saturating_sub(first.index) + 1;
            recording.spans.push(Span {
                lane,
                stage,
                generation: self.generations + seen.batch.generation,
                first: RecordNo::at(first.index),
                count: u32::try_from(count).unwrap_or(u32::MAX),
                begin: nanos(seen.begin),
                end: nanos(seen.end),
                clock: seen.clock,
            });
        }
        self.generations += last;
        if sights.guessed > 0 {
            recording.notes.push(format!(
                "incomplete: when {} of {} spans on {} ended is not known, because too many were open at once",
                sights.guessed,
                sights.spans.len(),
                card.name
            ));
        }
        account(recording, device, &course.plan, sights, trail);
    }

    /// A device was given up.
    pub(crate) fn mark(&mut self, at: Duration, text: &str) {
        if let Some(recording) = &mut self.recording {
            recording.marks.push(Mark {
                at: nanos(at),
                device: None,
                occasion: Occasion::Lost,
                text: text.to_owned(),
            });
        }
    }

    /// The recording, with what became of every record.
    pub(crate) fn finish(
        self,
        summary: &Summary,
        took: Duration,
        ended: &BTreeMap<usize, Duration>,
    ) -> Option<Recording> {
        let mut recording = self.recording?;
        recording.wall = nanos(took);
        for (index, (done, record)) in summary
            .records
            .iter()
            .zip(&mut recording.records)
            .enumerate()
        {
            record.outcome = match &done.outcome {
                Outcome::Ok { .. } => Ending::Ok,
                Outcome::Skipped => Ending::Skipped,
                Outcome::NotStarted => Ending::NotStarted,
                Outcome::Failed(failure) => Ending::Failed {
                    reason: failure.reason.clone(),
                    code: failure.code.clone(),
                },
            };
            if let Some((begin, device)) = self.begun.get(&index) {
                record.attempts = 1;
                record.begin = Some(*begin);
                record.device = Some(*device);
                record.end = ended.get(&index).map(|at| nanos(*at).max(*begin));
            }
        }
        recording.notes.extend(summary.changes.iter().cloned());
        // The clocks of devices are compared once; what they say may lie a little behind the end.
        let late = recording.spans.iter().map(|span| span.end).max();
        recording.wall = recording.wall.max(late.unwrap_or(0));
        Some(recording)
    }
}

/// The lanes of stages, in their order; those that are new are added.
fn lanes(
    recording: &mut Recording,
    device: DeviceNo,
    trail: Option<&Trail>,
) -> Vec<(String, LaneNo)> {
    let mut lanes: Vec<(String, LaneNo)> = Vec::new();
    for (stage, queue) in trail.iter().flat_map(|trail| &trail.stages) {
        let (name, place) = match queue {
            Some(queue) => (queue, Place::Queue(device)),
            None => (stage, Place::Host(device)),
        };
        recording.stage(stage);
        let known = recording
            .lanes
            .iter()
            .position(|lane| lane.place == place && lane.name == *name);
        let lane = known.map(LaneNo::at);
        let lane = lane.unwrap_or_else(|| recording.lane(Lane::new(name, place)));
        lanes.push((stage.clone(), lane));
    }
    lanes
}

/// Memory over time, what was waited for, and how fast it could have been.
fn account(
    recording: &mut Recording,
    device: DeviceNo,
    plan: &ExecutionPlan,
    sights: Sights,
    trail: Option<Trail>,
) {
    let mut pools = plan.memory.pools.iter();
    let pool = pools.find(|pool| plan.device.faces.contains(&pool.device));
    recording.counters.push(Counter {
        name: "memory".to_owned(),
        unit: Unit::Bytes,
        device: Some(device),
        budget: pool
            .and_then(|pool| pool.budget)
            .map(|budget| budget as f64),
        samples: sights.memory,
    });
    let Some(trail) = trail else {
        return;
    };
    recording.counters.push(Counter {
        name: "units in flight".to_owned(),
        unit: Unit::Count,
        device: Some(device),
        budget: None,
        samples: in_flight(&trail, &sights.spans),
    });
    let bound = trail.bound(&sights.spans);
    recording
        .edges
        .extend(trail.edges.into_iter().map(|edge| Edge {
            device: Some(device),
            ..edge
        }));
    if let Some((rate, limit)) = bound {
        let units = units(plan).len().max(1) as f64;
        recording.bounds.push(Bound {
            device: Some(device),
            records_per_second: rate * trail.batch as f64 / units,
            limit,
        });
    }
}

/// What the stages of a worker did. Which records they worked on its coordinator knows.
#[cfg(all(feature = "fleet", target_os = "linux"))]
pub(crate) fn of_stages(plan: &ExecutionPlan, sights: Sights, trail: Trail) -> Recording {
    let mut recording = Recording::default();
    let device = recording.device(Device::new(&plan.device.name, &plan.device.label));
    let lanes = lanes(&mut recording, device, Some(&trail));
    for seen in &sights.spans {
        let lane = lanes.iter().find(|(stage, _)| stage == seen.stage);
        let Some((_, lane)) = lane else {
            continue;
        };
        let (lane, stage) = (*lane, recording.stage(seen.stage));
        recording.spans.push(Span {
            lane,
            stage,
            generation: seen.batch.generation,
            first: RecordNo(0),
            count: 0,
            begin: nanos(seen.begin),
            end: nanos(seen.end),
            clock: seen.clock,
        });
    }
    account(&mut recording, device, plan, sights, Some(trail));
    let ends = recording.spans.iter().map(|span| span.end);
    recording.wall = ends.max().unwrap_or(0);
    recording
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_core::Space;
    use warploom_sched::{Batch, Options, Resource, Slots, Stage, plan};

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// Two stages of the host with two slots between them, planned as if files took no time.
    fn trail(batch: u64) -> Trail {
        let mut graph = StageGraph::new();
        let slots = Slots::Exactly(2);
        let slot = graph.resource(Resource::new("slot", Space::Host, 8).with_slots(slots));
        graph.stage(Stage::host("read").writes(slot).taking(ms(1)));
        graph.stage(Stage::host("write").reads(slot).taking(ms(1)));
        let plan = plan(&graph, &Options::default()).unwrap();
        Trail::new(&plan, &Schedule::default(), batch)
    }

    fn seen(stage: &'static str, generation: u64, records: u64, [begin, end]: [u64; 2]) -> Seen {
        Seen {
            stage,
            batch: Batch {
                generation,
                first: generation * 4,
                records,
            },
            begin: ms(begin),
            end: ms(end),
            clock: Clock::Host,
        }
    }

    #[test]
    fn the_bound_goes_by_what_stages_took() {
        // Reading four took 20 ms, and of the last generation one took 5.
        let all = [
            seen("read", 0, 4, [0, 20]),
            seen("write", 0, 4, [20, 24]),
            seen("read", 1, 1, [20, 25]),
            seen("write", 1, 1, [25, 26]),
        ];
        let (rate, limit) = trail(4).bound(&all).unwrap();
        assert!((rate - 50.0).abs() < 1e-6, "{rate}");
        assert!(limit.contains("read"), "{limit}");
    }

    #[test]
    fn units_are_in_flight_from_the_first_stage_to_the_last() {
        let all = [
            seen("write", 0, 4, [20, 24]),
            seen("read", 0, 4, [0, 20]),
            seen("read", 1, 1, [20, 25]),
            seen("write", 1, 1, [25, 26]),
        ];
        let told = in_flight(&trail(4), &all);
        let told: Vec<_> = told
            .iter()
            .map(|sample| (sample.at / 1_000_000, sample.value))
            .collect();
        assert_eq!(told, [(0, 4.0), (20, 5.0), (24, 1.0), (26, 0.0)]);
    }
}
