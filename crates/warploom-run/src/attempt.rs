//! One attempt at what is left: a plan's devices leased, its stages started and run to their end.

use std::sync::{Arc, Mutex};

use warploom_core::{Lease, LeaseRequest, Registry};
use warploom_sched::{Pipeline as Stages, Plan, RunOptions, Threads};

use crate::course::Course;
use crate::error::RunFailure;
use crate::journal::Journal;
use crate::recording::Trail;
use crate::rooms::Constants;
use crate::settings::Settings;
use crate::stages::{Parts, Schedule, Wishes, footprint};

/// Works on what is left, on one plan's devices. Answers also what the schedule came to, as far as
/// there was one.
pub(crate) fn attempt(
    course: &Arc<Course>,
    journal: &Arc<Mutex<Journal>>,
    constants: &Constants,
    registry: &Registry,
    settings: &Settings,
) -> (Result<(), RunFailure>, Option<Trail>) {
    let begun = begin(course, journal, constants, registry, settings);
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

/// Leases devices, loads programs, and makes queues and slots.
fn begin(
    course: &Arc<Course>,
    journal: &Arc<Mutex<Journal>>,
    constants: &Constants,
    registry: &Registry,
    settings: &Settings,
) -> Result<Begun, RunFailure> {
    let plan = &course.plan;
    let cards = std::iter::once(&plan.device).chain(&plan.others);
    let wishes = Wishes {
        depth: settings.plan.depth,
        batch: settings.batch,
    };
    let mut leases = Vec::new();
    for card in cards {
        let bytes = footprint(plan, &card.faces, &wishes, course.items());
        let request = LeaseRequest::new(1, bytes)
            .on([card.name.as_str()])
            .within(settings.lease)
            .cancelled_by(&settings.cancel)
            .label(&plan.pipeline);
        leases.push(registry.lease(&request)?);
    }
    let parts = Parts {
        course,
        journal,
        constants,
        registry,
        wishes: &wishes,
    };
    let Schedule {
        plan,
        payloads,
        device,
        batch,
    } = parts.schedule()?;
    tracing::debug!(schedule = %plan.explanation(), "stages");
    let options = RunOptions::of(course.items(), batch)
        .with_patience(settings.patience)
        .with_race_check(settings.check_races)
        .cancelled_by(&settings.cancel);
    let stages = Stages::start(&plan, &device, payloads, Threads::new(), options)?;
    Ok((stages, plan, batch, leases))
}
