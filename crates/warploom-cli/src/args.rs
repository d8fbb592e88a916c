//! What was typed.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Image-processing pipelines on whatever GPUs are there.
#[derive(Parser, Debug)]
#[command(name = "warploom", version, propagate_version = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 asked for something that makes no sense.")]
pub(crate) struct Args {
    /// Say more on stderr; repeat for even more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Detect(Detect),
    Ops(Ops),
}

/// Show every device once, with all the ways to reach it.
///
/// Asks every backend of this build for its devices and unites the answers by PCI address, UUID or
/// LUID. Finding no GPU is no error: it is said on stderr, and the exit code is 0.
#[derive(ClapArgs, Debug)]
#[command(
    after_help = "Environment: WARPLOOM_CPU_ONLY=1, WARPLOOM_BACKENDS=cpu,opencl, \
                        WARPLOOM_LOG=debug. A flag wins over its variable."
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
