//! What is to be run: as it was typed, or as an earlier run was asked for.

use std::path::PathBuf;

use warploom::run::status;

use crate::args;
use crate::report::Problem;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) file: PathBuf,
    pub(super) input: String,
    pub(super) output: PathBuf,
    /// Several devices, by name.
    pub(super) devices: Vec<String>,
    /// Is what an earlier run has done to be left out?
    pub(super) is_resumed: bool,
}

/// What was asked for; where a run is to be resumed, what is not said is that run's.
pub(super) fn of(args: &args::Run) -> Result<Asked, Problem> {
    let mut file = args.file.clone();
    let mut run = args.resume.clone().flatten();
    // `--resume nuclei.toml -i ...` means the switch, and a pipeline behind it.
    if file.is_none() && run.as_ref().is_some_and(|run| run.is_file()) {
        file = run.take();
    }
    let (mut input, mut output) = (args.input.clone(), args.output.clone());
    let mut devices = args.devices.clone();
    if let Some(run) = run {
        let earlier = status::asked(&run)?;
        file.get_or_insert(earlier.file);
        input.get_or_insert(earlier.input);
        output.get_or_insert(earlier.output);
        if devices.is_empty() && args.device.is_none() {
            devices = earlier.devices;
        }
    }
    match (file, input, output) {
        (Some(file), Some(input), Some(output)) => Ok(Asked {
            file,
            input,
            output,
            devices,
            is_resumed: args.resume.is_some(),
        }),
        (file, input, output) => {
            let lacking = [
                (file.is_none(), "the pipeline"),
                (input.is_none(), "the input (`-i`)"),
                (output.is_none(), "the folder of results (`-o`)"),
            ];
            let lacking: Vec<&str> = lacking
                .into_iter()
                .filter_map(|(is_lacking, what)| is_lacking.then_some(what))
                .collect();
            Err(Problem::usage(
                format!("`--resume` alone does not say {}", lacking.join(", ")),
                "name what is missing, or the folder of the run or of its results: `--resume RUN`",
            ))
        }
    }
}
