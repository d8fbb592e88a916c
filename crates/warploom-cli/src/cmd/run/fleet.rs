//! Several devices at once.

use warploom::Status;
use warploom::fleet::Program;
use warploom::fleet::health::Sentries;
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
        return nobody(args);
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
    let mut crew = Crew::new(Program::this().arg("worker"), names);
    crew.sentries = sentries();
    crew.workers = args.workers_per_device.map(usize::from);
    crew.split = match args.split.unwrap_or(args::Split::Guided) {
        args::Split::Guided => Split::Guided,
        args::Split::Balanced => Split::Balanced,
        args::Split::Ceil => Split::Ceil,
    };
    Ok(Some(crew))
}

/// This process does the work itself; what is said of workers makes no sense then.
fn nobody(args: &args::Run) -> Result<Option<Crew>, Problem> {
    let (said, instead) = if args.batch_limit.is_some() {
        let patience = ", or say `--patience` for how long nothing may happen";
        ("--batch-limit", patience)
    } else if args.workers_per_device.is_some() {
        ("--workers-per-device", "")
    } else if args.split.is_some() {
        ("--split", "")
    } else {
        return Ok(None);
    };
    Err(Problem::usage(
        format!("`{said}` is for workers, and this process does the work itself"),
        format!("name devices with `--devices`{instead}"),
    ))
}

/// Who listens to the management of NVIDIA's cards; of others nothing is heard.
#[cfg(feature = "cuda")]
fn sentries() -> Option<Sentries> {
    use std::time::Duration;
    use warploom::cuda::Xids;
    use warploom::fleet::health::{Sentry, Sign};

    struct Xid(Xids);
    impl Sentry for Xid {
        fn wait(&mut self, within: Duration) -> Result<Option<Sign>, String> {
            let xid = self.0.wait(within).map_err(|error| error.to_string())?;
            Ok(xid.map(Sign::of_xid))
        }
    }
    Some(Sentries::new(|device| {
        // A card is watched by whatever it is reached through.
        let xids = Xids::of(device.pci()?)?;
        Some(Box::new(Xid(xids)))
    }))
}

#[cfg(not(feature = "cuda"))]
fn sentries() -> Option<Sentries> {
    None
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
