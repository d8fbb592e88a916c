//! Several devices at once.

use warploom::Status;
use warploom::fleet::Program;
use warploom::run::many::{Crew, Split};

use crate::args;
use crate::report::Problem;

/// The workers that were asked for; none where one device in this process does.
pub(super) fn crew(args: &args::Run, status: &Status) -> Result<Option<Crew>, Problem> {
    if args.devices.is_empty() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for name in &args.devices {
        if name == "all" {
            names.extend(status.gpus().map(|card| card.name.clone()));
            if names.is_empty() {
                names.push("cpu".to_owned());
            }
        } else {
            status.device(name)?;
            names.push(name.clone());
        }
    }
    names.dedup();
    let mut crew = Crew::new(Program::this().arg("worker"), names);
    crew.workers = args.workers_per_device.map(usize::from);
    crew.split = match args.split {
        args::Split::Guided => Split::Guided,
        args::Split::Balanced => Split::Balanced,
        args::Split::Ceil => Split::Ceil,
    };
    Ok(Some(crew))
}
