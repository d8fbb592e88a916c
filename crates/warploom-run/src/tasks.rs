//! Every record with the files that come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warploom_io::Header;
use warploom_io::records::{OutputNames, Record, RecordError};
use warploom_plan::ExecutionPlan;

use crate::content::Gathered;
use crate::course::Task;
use crate::error::RunFailure;
use crate::unit::units;

/// Every record with the names of its files, which are checked: each has a place of its own, and
/// its format can hold it.
pub(crate) fn tasks(
    plan: &ExecutionPlan,
    records: &[Record],
    output: &Path,
    header: &Header,
) -> Result<Vec<Task>, RunFailure> {
    let units = units(plan);
    let planes = usize::try_from(plan.record.planes.max(1)).unwrap_or(usize::MAX);
    let runs: Vec<_> = units.iter().step_by(planes).copied().collect();
    let mut names: Vec<Vec<OutputNames>> = Vec::new();
    for run in &runs {
        let variant = &plan.variants[run.variant];
        let mut list = Vec::new();
        for output in &variant.outputs {
            let fallback = format!("{{record}}-{}.npy", output.of);
            list.push(OutputNames::new(
                output.file.as_deref().unwrap_or(&fallback),
            )?);
        }
        names.push(list);
    }
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let mut tasks = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let mut files = Vec::new();
        for (run, names) in runs.iter().zip(&names) {
            let channel = run.channel.and_then(|at| plan.record.channels.get(at));
            let words: Vec<(&str, &str)> = channel
                .iter()
                .map(|name| ("channel", name.as_str()))
                .collect();
            let mut list = Vec::new();
            for name in names {
                let path = name.path_with(record, &words)?;
                let key = path.to_string_lossy().to_lowercase();
                if let Some(other) = taken.insert(key, record.id().to_owned()) {
                    let name = path.display().to_string();
                    let quoted = |id: &str| format!("`{id}`");
                    return Err(RecordError::Clash {
                        name,
                        first: quoted(&other),
                        second: quoted(record.id()),
                    }
                    .into());
                }
                list.push(path);
            }
            files.push(list);
        }
        tasks.push(Task {
            index,
            record: record.clone(),
            files,
        });
    }
    spare_inputs(&tasks, output)?;
    // In a folder that is there already, or the question would be about folders.
    let mut there = output.ancestors().filter(|folder| folder.is_dir());
    let there = there.next().unwrap_or(Path::new("."));
    if let Some(task) = tasks.first() {
        for (run, files) in runs.iter().zip(&task.files) {
            let variant = &plan.variants[run.variant];
            for (output, file) in variant.outputs.iter().zip(files) {
                if let Some(value) = variant.value(&output.value) {
                    let spacing = header.spacing;
                    let gathered = Gathered::new(value, plan.record.planes, spacing);
                    let name = file.file_name().unwrap_or_default();
                    gathered.check(&there.join(name))?;
                }
            }
        }
    }
    Ok(tasks)
}

/// No result takes the place of an image: what is overwritten is lost for good.
fn spare_inputs(tasks: &[Task], output: &Path) -> Result<(), RunFailure> {
    let mut folders: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
    // Folders are few, whatever they are called; files are not asked for one by one.
    let mut real = |path: &Path| -> Option<PathBuf> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let known = folders.entry(folder.to_owned());
        let folder = known
            .or_insert_with(|| folder.canonicalize().ok())
            .as_ref()?;
        Some(folder.join(path.file_name()?))
    };
    let mut inputs = BTreeSet::new();
    for task in tasks {
        let members = task.record.members().iter();
        inputs.extend(members.filter_map(|member| real(&member.path)));
    }
    for task in tasks {
        for file in task.files.iter().flatten() {
            if let Some(place) = real(&output.join(file))
                && inputs.contains(&place)
            {
                return Err(RunFailure::Output {
                    path: output.to_owned(),
                    what: format!(
                        "a result of `{}` would replace the image {}",
                        task.record.id(),
                        place.display()
                    ),
                });
            }
        }
    }
    Ok(())
}
