//! One attempt at what is left: a plan's devices leased, its stages started and run to their end.

use std::sync::Arc;
use std::time::Duration;

use warploom_core::{Lease, LeaseRequest, Registry};
use warploom_plan::ExecutionPlan;
use warploom_plan::plan::Placed;
use warploom_sched::{Pipeline as Stages, Plan, RunOptions, Threads};

use crate::agenda::Agenda;
use crate::course::Course;
use crate::error::RunFailure;
use crate::journal::Keeper;
use crate::recording::Trail;
use crate::rooms::{Constants, Faces};
use crate::settings::Settings;
use crate::stages::{Parts, Schedule, Wishes, footprint, generation};

/// Works on what is left, on one plan's devices. Answers also what the schedule came to, as far as
/// there was one.
pub(crate) fn attempt(
    course: &Arc<Course>,
    keeper: &Keeper,
    constants: &Constants,
    registry: &Registry,
    settings: &Settings,
) -> (Result<(), RunFailure>, Option<Trail>) {
    let begun = begin(course, keeper, constants, registry, settings);
    let (mut stages, plan, batch, leases) = match begun {
        Ok(begun) => begun,
        Err(failure) => return (Err(failure), None),
    };
    let ran = stages.run().map(drop);
    let trail = Trail::new(&plan, stages.summary(), batch);
    // What the device did is known when its queues were waited for.
    drop(stages);
    drop(leases);
    (ran.map_err(RunFailure::Broken), Some(trail))
}

type Begun = (Stages<Threads>, Plan, u64, Vec<Lease>);

/// Leases devices, opens them, loads programs, and makes queues and slots.
fn begin(
    course: &Arc<Course>,
    keeper: &Keeper,
    constants: &Constants,
    registry: &Registry,
    settings: &Settings,
) -> Result<Begun, RunFailure> {
    let plan = &course.plan;
    let mut leases = Vec::new();
    for request in requests(plan, settings, course.items()) {
        leases.push(registry.lease(&request.cancelled_by(&settings.cancel))?);
    }
    let faces = Faces::open(plan, registry)?;
    let agenda = Arc::new(Agenda::whole(course));
    let devices = (registry, &faces);
    let (stages, plan, batch) = start(&agenda, keeper, constants, devices, settings)?;
    Ok((stages, plan, batch, leases))
}

fn wishes(settings: &Settings) -> Wishes {
    Wishes {
        depth: settings.plan.depth,
        batch: settings.batch,
        readers: settings.readers,
    }
}

/// What has to be leased for a plan: of each card a slot, and the bytes that are taken.
pub(crate) fn requests(plan: &ExecutionPlan, settings: &Settings, items: u64) -> Vec<LeaseRequest> {
    let cards = std::iter::once(&plan.device).chain(&plan.others);
    let request = |card: &Placed| {
        let bytes = footprint(plan, &card.faces, &wishes(settings), items);
        LeaseRequest::new(1, bytes)
            .on([card.name.as_str()])
            .within(settings.lease)
            .label(&plan.pipeline)
    };
    cards.map(request).collect()
}

/// Bytes that a run takes of its card.
pub(crate) fn taken(plan: &ExecutionPlan, settings: &Settings, items: u64) -> u64 {
    footprint(plan, &plan.device.faces, &wishes(settings), items)
}

/// Units that are handed to its card together.
pub(crate) fn at_once(plan: &ExecutionPlan, settings: &Settings, items: u64) -> u64 {
    generation(plan, &plan.device.faces, &wishes(settings), items)
}

/// Loads programs on opened devices, and makes queues and slots.
pub(crate) fn start(
    agenda: &Arc<Agenda>,
    keeper: &Keeper,
    constants: &Constants,
    (registry, faces): (&Registry, &Faces),
    settings: &Settings,
) -> Result<(Stages<Threads>, Plan, u64), RunFailure> {
    let parts = Parts {
        agenda,
        keeper,
        faces,
        constants,
        registry,
        wishes: &wishes(settings),
    };
    let Schedule {
        plan,
        payloads,
        device,
        batch,
    } = parts.schedule()?;
    tracing::debug!(schedule = %plan.explanation(), "stages");
    let options = if let Some(items) = agenda.count() {
        RunOptions::of(items, batch)
            .with_patience(settings.patience)
            .cancelled_by(&settings.cancel)
    } else {
        // Having nothing to do is not hanging; whoever sends work knows how long it may take.
        let mut options = RunOptions::default().with_patience(FOR_EVER);
        options.batch = batch;
        options
    };
    let options = options.with_race_check(settings.check_races);
    let stages = Stages::start(&plan, &device, payloads, Threads::new(), options)?;
    Ok((stages, plan, batch))
}

const FOR_EVER: Duration = Duration::from_hours(100_000);
