//! What was typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Image-processing pipelines on whatever GPUs are there.
#[derive(Parser, Debug)]
#[command(name = "warploom", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 asked for something that makes no sense, \
                        3 some records failed or were not started, 130 interrupted."
)]
pub(crate) struct Args {
    /// Say more on stderr; repeat for even more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Apply(Apply),
    Calibrate(Calibrate),
    Detect(Detect),
    Ops(Ops),
    Plan(Plan),
    Run(Run),
    Status(Status),
    /// Work for a fleet, which starts this.
    #[command(hide = true)]
    Worker,
    Check(Check),
    Explain(Explain),
    Top(Top),
}

/// Compile a pipeline: where it would run, what is copied, where every byte goes, and why.
///
/// Nothing is read but the file, its constants and the kind of one record; nothing runs. A pipeline
/// that cannot run is refused with every reason at once.
#[derive(ClapArgs, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command line are what they are"
)]
pub(crate) struct Plan {
    /// The pipeline, a TOML file.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub(crate) file: Option<PathBuf>,
    /// Records, for their extents and type: a file, a folder or a pattern (`{well}_{channel}.tif`).
    /// The first decides, and no pixel is read.
    #[arg(short, long, value_name = "INPUT")]
    pub(crate) input: Option<String>,
    /// What records look like, instead of one: extents, type, channels (`40x1024x1024:u16:1,2`).
    #[arg(long, value_name = "RECORD", conflicts_with = "input")]
    pub(crate) record: Option<String>,
    /// Only these cards (`gpu0`) or ways to reach them (`cuda:0`).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// Memory the plan may use on its card (`4GiB`).
    #[arg(long, value_name = "BYTES")]
    pub(crate) budget: Option<String>,
    /// Records in flight; as many as pay and fit if nothing is said.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) depth: Option<u32>,
    /// Which card, if several can.
    #[arg(long, value_name = "POLICY")]
    pub(crate) placement: Option<Placement>,
    /// What was measured of the devices, as `warploom calibrate --output` wrote it; without it,
    /// what `warploom calibrate` kept.
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Every decision and why, and where every byte lies.
    #[arg(long, conflicts_with_all = ["json", "dot"])]
    pub(crate) explain: bool,
    /// The plan as JSON.
    #[arg(long, conflicts_with = "dot")]
    pub(crate) json: bool,
    /// The plan as a graph for Graphviz.
    #[arg(long)]
    pub(crate) dot: bool,
    /// The format of plans as a JSON schema.
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
}

/// Run a pipeline over images: a file, a folder, or what fits a pattern.
///
/// Every record ends as ok, failed or not started, and the exit code says whether all are ok. What is
/// wrong with one record does not stop the others. Files appear when they are complete; `--resume`
/// leaves out what an earlier run has done.
#[derive(ClapArgs, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "flags of a command line are what they are"
)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// The pipeline, a TOML file.
    #[arg(value_name = "PIPELINE", required_unless_present = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// The images: a file, a folder, a glob, or a pattern such as `plate/{well}_{channel}.tif`.
    /// Fields called channel (or c), z and time (or t) are gathered into one record.
    #[arg(short, long, value_name = "INPUT", required_unless_present = "resume")]
    pub(crate) input: Option<String>,
    /// The folder for results.
    #[arg(short, long, value_name = "FOLDER", required_unless_present = "resume")]
    pub(crate) output: Option<PathBuf>,
    /// Only this card (`gpu0`), or way to reach it (`cuda:0`).
    #[arg(long, value_name = "NAME", conflicts_with = "devices")]
    pub(crate) device: Option<String>,
    /// Several devices at once, each with a worker process of its own: names with commas, or `all`
    /// GPUs of this machine.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// Worker processes on each of several devices; if nothing is said, one on the processor, and on
    /// others two if their memory can be leased to both.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers_per_device: Option<u16>,
    /// How images get to several devices; guided if nothing is said.
    #[arg(long, value_name = "HOW")]
    pub(crate) split: Option<Split>,
    /// Memory the run may use on its card (`4GiB`).
    #[arg(long, value_name = "BYTES")]
    pub(crate) budget: Option<String>,
    /// Images in flight; as many as pay and fit if nothing is said.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) depth: Option<u32>,
    /// Images that are handed over together; several if they are small, and two on the processor, if nothing
    /// is said. Several devices keep to it: one without room for so many ends the run.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(crate) batch: Option<u64>,
    /// Threads that read images before their turn, where one is too slow; as many as there are cores for, up
    /// to four, if nothing is said. A disk across a network may gain by more.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub(crate) readers: Option<u16>,
    /// Which card, if several can.
    #[arg(long, value_name = "POLICY")]
    pub(crate) placement: Option<Placement>,
    /// Speeds of devices as this file says, instead of those that `warploom calibrate` keeps.
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave out records that an earlier run has done, from the same pixels with the same steps,
    /// on one device or several; however it ended: by Ctrl-C, a crash or (on Linux) a power cut. With the folder of
    /// a run or of results, pipeline, input, results and several devices are those of that run, as far as
    /// nothing else is said.
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    #[expect(
        clippy::option_option,
        reason = "a switch, and a folder behind it or not"
    )]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// Stop when a device is lost, instead of going on with another that gives the same bits.
    #[arg(long)]
    pub(crate) no_failover: bool,
    /// Check every use of every slot of memory against all before it.
    #[arg(long)]
    pub(crate) check_races: bool,
    /// Give up when nothing happens for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,
    /// End a worker whose batch takes longer than so many seconds, even if it gets on; what it had is tried
    /// elsewhere, in smaller parts.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub(crate) batch_limit: Option<u64>,
    /// Write what happened when, for Perfetto: a track for each queue and thread.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write a page to look at: lanes over time, throughput, memory, pictures, failures.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Tell on stdout as JSON what became of every record.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress; the same as `--progress none`.
    #[arg(short, long, conflicts_with = "progress")]
    pub(crate) quiet: bool,
    /// How progress is shown, on stderr.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: Progress,
    /// Keep metrics for Prometheus in this file, replaced every few seconds and at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
}

/// How progress is shown.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Bars on a terminal, one for each of several devices; elsewhere lines.
    Auto,
    /// A line every ten seconds.
    Lines,
    /// JSON, a line for each event: what began, ended and changed, and how far it is every second.
    Json,
    /// Nothing.
    None,
}

/// Tell how a run stands: counts, devices, failures with their reasons, and whether its process lives.
///
/// Only what the run wrote down is read; a run that goes on is not disturbed. Runs of one process and
/// runs on several devices are told alike.
#[derive(ClapArgs, Debug)]
#[command(after_help = STATUS_CODES)]
pub(crate) struct Status {
    /// The folder of results, whose newest run is meant, or the folder of a run.
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Look again and again, until the run ends.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Look again after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, requires = "watch", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) every: u64,
    /// Print JSON; with `--watch`, a line for each look.
    #[arg(long)]
    pub(crate) json: bool,
}

const STATUS_CODES: &str = "\
Exit codes: 0 it runs, or ended with every record ok, 3 it ended and some records failed or were not
started, 130 it was interrupted, 1 it was killed or cannot be read, 2 there is no run.";

/// How images get to several devices.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Split {
    /// Devices take what they can, the faster ones more.
    Guided,
    /// Equal parts, whoever is slow.
    Balanced,
    /// Parts of `ceil(images / workers)`.
    Ceil,
}

const RUN_EXAMPLES: &str = "\
Exit codes: 0 every record is ok, 3 some records failed or were not started, 2 refused before anything
ran, 130 interrupted (Ctrl-C), 1 anything else.

Environment: WARPLOOM_CPU_ONLY=1, WARPLOOM_BACKENDS=cpu,opencl, WARPLOOM_LOG=debug, and
WARPLOOM_LEASES=FOLDER, in which runs agree on devices that do not share /tmp.

Examples:
  warploom run nuclei.toml -i cells.tif -o results
  warploom run nuclei.toml -i 'plate/{well}_{site}.tif' -o results --resume
  warploom run two_channels.toml -i 'plate/{well}_{channel}.tif' -o results --device gpu0
  warploom run nuclei.toml -i plate -o results --devices all
  warploom run --resume results
  warploom run nuclei.toml -i plate -o results --dry-run";

/// Which card a pipeline goes to.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Placement {
    /// The first that can.
    First,
    /// The one with the smallest share of its capacity taken.
    Spread,
    /// The one with the most bytes left.
    Fit,
    /// The one that is done first, the processor included.
    Cost,
}

impl From<Placement> for warploom::plan::pipeline::Policy {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::First => Self::First,
            Placement::Spread => Self::Spread,
            Placement::Fit => Self::Fit,
            Placement::Cost => Self::Cost,
        }
    }
}

/// Check pipeline files, for editors and CI: no device is looked for.
#[derive(ClapArgs, Debug)]
pub(crate) struct Check {
    /// Pipeline files.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub(crate) files: Vec<PathBuf>,
    /// What records look like, to check types too: extents, type, channels (`2048x2048:u16`).
    #[arg(long, value_name = "RECORD")]
    pub(crate) record: Option<String>,
    /// Print the findings of all files as one JSON array, with lines and columns.
    #[arg(long)]
    pub(crate) json: bool,
    /// The format of pipeline files as a JSON schema.
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
}

/// Show what this machine is doing: devices, leases, running plans.
///
/// Refreshed every second, until q. Where the output is no terminal a table is printed once.
#[derive(ClapArgs, Debug)]
pub(crate) struct Top {
    /// Print a table once.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON once.
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) json: bool,
    /// Print metrics for Prometheus once.
    #[arg(long)]
    pub(crate) metrics: bool,
    /// Look again after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) every: u64,
    /// The directory in which processes agree on leases, if not that of `WARPLOOM_LEASES` or the usual one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) leases: Option<PathBuf>,
}

/// Measure the devices: how fast each moves bytes, computes, copies and launches.
///
/// Takes a second or so for each device, best while nothing else runs. What is found is kept in the
/// user's cache directory, by the identity of the device and its driver; `plan` and `apply` go by it.
#[derive(ClapArgs, Debug)]
pub(crate) struct Calibrate {
    /// Only these cards (`gpu0`) or ways to reach them (`cuda:0`).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// Keep it in this file instead.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure nothing, tell what is known.
    #[arg(long)]
    pub(crate) show: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell what an error code means and what usually helps.
#[derive(ClapArgs, Debug)]
pub(crate) struct Explain {
    /// The code, such as `WL0331`; without it, all of them.
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show every device once, with all the ways to reach it.
///
/// Asks every backend of this build for its devices and unites the answers by PCI address, UUID or
/// LUID. Finding no GPU is no error: it is said on stderr, and the exit code is 0.
#[derive(ClapArgs, Debug)]
#[command(
    after_help = "Environment: WARPLOOM_CPU_ONLY=1, WARPLOOM_BACKENDS=cpu,opencl, \
                        WARPLOOM_LEASES=FOLDER, WARPLOOM_LOG=debug. A flag wins over its variable."
)]
pub(crate) struct Detect {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask no backend but the CPU's.
    #[arg(long, conflicts_with = "backends")]
    pub(crate) cpu_only: bool,
    /// Ask only these backends.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) backends: Option<Vec<String>>,
    /// How the number of pipelines per device is counted.
    #[arg(long, value_name = "POLICY", default_value = "memory")]
    pub(crate) capacity: CapacityName,
    /// Memory of one pipeline, for the `memory` policy, such as 2GiB.
    #[arg(long, value_name = "BYTES")]
    pub(crate) footprint: Option<String>,
    /// Give a backend this many milliseconds to answer.
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(crate) deadline: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CapacityName {
    /// As many as the device's memory holds.
    Memory,
    /// CPU threads shared evenly between the devices.
    Threads,
}

/// List the image operations, or tell all about one.
///
/// A page has the formula, the parameters with their limits, the element types, what becomes of
/// NaN, the least memory traffic, the accuracy, and the call of numpy, scipy or scikit-image that
/// gives the same numbers.
#[derive(ClapArgs, Debug)]
pub(crate) struct Ops {
    /// The operation to tell about, such as `gaussian`.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Apply one operation to images in files.
///
/// Files are named by what they hold: .npy, .tif and .png for images; .npy, .json and .csv for
/// numbers; .csv and .json for tables. A file appears when it is complete. Which device computes,
/// and how long it took, is said on stderr.
#[derive(ClapArgs, Debug)]
#[command(after_help = APPLY_EXAMPLES)]
pub(crate) struct Apply {
    /// The operation; `warploom ops` lists them.
    #[arg(value_name = "OP", required_unless_present = "batch")]
    pub(crate) op: Option<String>,
    /// Its parameters; `warploom ops OP` tells about them.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    /// An image; for operations on several, repeat it in their order.
    #[arg(short, long = "input", value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where the result goes.
    #[arg(short, long, value_name = "FILE", required_unless_present = "batch")]
    pub(crate) output: Option<PathBuf>,
    /// The device: a card (`gpu0`) or one way to reach it (`cuda:0`). Without it the first GPU
    /// computes, or the processor where there is none.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// The same bits on every strict device; this is what holds if nothing is said.
    #[arg(long, conflicts_with = "fast")]
    pub(crate) strict: bool,
    /// Let the device round as is fastest.
    #[arg(long)]
    pub(crate) fast: bool,
    /// What was measured of the devices, as `warploom calibrate --output` wrote it; without it,
    /// what `warploom calibrate` kept.
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Tell on stdout as JSON what was done.
    #[arg(long)]
    pub(crate) json: bool,
    /// Do what the lines of a file say, one JSON object each: {"op", "args", "inputs", "output"}.
    /// Each is answered with a line on stdout, {"ok": true} or {"error": "…"}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["op", "params", "inputs", "output", "json"])]
    pub(crate) batch: Option<PathBuf>,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  warploom apply gaussian sigma=2 -i cells.tif -o smooth.tif
  warploom apply gaussian sigma=1,2,2 boundary=reflect -i stack.npy -o smooth.npy --device cpu:0
  warploom apply threshold_otsu -i smooth.tif -o mask.png
  warploom apply label_statistics -i labels.tif -i cells.tif -o cells.csv
  warploom apply totals -i cells.tif -o totals.json";
