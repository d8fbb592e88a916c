//! Several devices at once.

use std::collections::BTreeSet;

use warploom::Status;
use warploom::fleet::Program;
use warploom::plan::{ExecutionPlan, Options};
use warploom::run::Job;
use warploom::run::many::{Crew, Split};

use crate::args;
use crate::report::Problem;

/// The workers that were asked for; none where one device in this process does.
pub(super) fn crew(
    args: &args::Run,
    devices: &[String],
    status: &Status,
    (job, options): (&Job, &Options),
) -> Result<Option<Crew>, Problem> {
    if devices.is_empty() {
        return match args.batch_limit {
            None => Ok(None),
            Some(_) => Err(Problem::usage(
                "`--batch-limit` is for workers, and this process does the work itself",
                "name devices with `--devices`, or say `--patience` for how long nothing may happen",
            )),
        };
    }
    let mut names = Vec::new();
    for name in devices {
        if name == "all" {
            names.extend(all(status, job, options));
        } else {
            status.device(name)?;
            names.push(name.clone());
        }
    }
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    let mut crew = Crew::new(Program::this().arg("worker"), names);
    crew.workers = args.workers_per_device.map(usize::from);
    crew.split = match args.split {
        args::Split::Guided => Split::Guided,
        args::Split::Balanced => Split::Balanced,
        args::Split::Ceil => Split::Ceil,
    };
    Ok(Some(crew))
}

/// Every GPU, or the processor where there is none, and where all steps ask for it or need it.
fn all(status: &Status, job: &Job, options: &Options) -> Vec<String> {
    let gpus: Vec<String> = status.gpus().map(|card| card.name.clone()).collect();
    let mut only = options.clone();
    only.devices.clone_from(&gpus);
    let on_cpu = |plan: ExecutionPlan| plan.device.name == "cpu";
    let refused = !gpus.is_empty() && job.plan(status, &only).is_err();
    if gpus.is_empty() || (refused && job.plan(status, options).is_ok_and(on_cpu)) {
        vec!["cpu".to_owned()]
    } else {
        gpus
    }
}
