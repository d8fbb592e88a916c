//! What is emulated: read once from the environment, refused as a whole when a part is wrong.
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `WARPLOOM_EMU_DEVICES` | `2` | how many devices, or a list of them: see [`DeviceSpec`] |
//! | `CUDA_VISIBLE_DEVICES` | all | which of them, by index or UUID, as CUDA reads it |
//! | `WARPLOOM_EMU_SEED` | `0` | seed of delays and of the order in which blocks and threads run |
//! | `WARPLOOM_EMU_JITTER` | `100` | longest delay before a job of a stream, in microseconds |
//! | `WARPLOOM_EMU_FAIL` | none | calls that fail: see [`Failure`] |
//! | `WARPLOOM_EMU_LOSE` | none | devices that die: see [`Loss`] |
//! | `WARPLOOM_EMU_LOG` | `faults` | `quiet`, `faults` or `calls`, on standard error |
//! | `WARPLOOM_EMU_PINNED` | `4GiB` | how much host memory can be page-locked |
//! | `WARPLOOM_EMU_DRIVER` | newest | CUDA version the driver claims, which limits the PTX it takes |
//! | `WARPLOOM_EMU_WORKERS` | cores, at most 4 | host threads that run the blocks of one kernel |

mod device;
mod failure;
mod size;
#[cfg(test)]
mod tests;
mod visible;

use std::time::Duration;

pub use self::device::{DeviceSpec, PciAddress, Uuid};
pub use self::failure::{Failure, Loss};
pub use self::size::parse_size;

/// CUDA version that is claimed when none is asked for.
const NEWEST: (u32, u32) = (13, 4);

/// Everything that can be set from outside.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All devices of the machine.
    pub machine: Vec<DeviceSpec>,
    /// Those the process sees, in its order, by their place in `machine`.
    pub visible: Vec<usize>,
    /// Seed of all chance.
    pub seed: u64,
    /// Longest delay before a job.
    pub jitter: Duration,
    /// Calls that fail.
    pub failures: Vec<Failure>,
    /// Devices that die.
    pub losses: Vec<Loss>,
    /// What is told on standard error.
    pub log: Log,
    /// Bytes of host memory that can be page-locked.
    pub pinned: u64,
    /// CUDA version of the driver, major and minor.
    pub driver: (u32, u32),
    /// Whether the version was asked for, so that newer PTX is refused.
    pub driver_is_limit: bool,
    /// Host threads of one kernel.
    pub workers: usize,
}

/// How much is told on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// Nothing.
    Quiet,
    /// Faults of kernels, misuse of calls, and calls that are not implemented, once each.
    Faults,
    /// Every call with its answer.
    Calls,
}

/// A variable that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}=`{value}`: {why}")]
pub struct PlanError {
    /// Which.
    pub variable: &'static str,
    /// What it holds.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
}

impl Plan {
    /// Reads all variables. `known` tells the names of driver calls, so that a plan that would
    /// never fire is refused.
    ///
    /// # Errors
    /// The first variable that cannot be understood.
    pub fn read(
        variable: impl Fn(&'static str) -> Option<String>,
        known: &dyn Fn(&str) -> bool,
    ) -> Result<Self, PlanError> {
        let reader = Reader { variable };
        let machine = reader.value("WARPLOOM_EMU_DEVICES", device::parse_list)?;
        let machine = machine.unwrap_or_else(|| device::usual(device::USUAL_COUNT));
        let mask = (reader.variable)("CUDA_VISIBLE_DEVICES");
        let visible = visible::choose(mask.as_deref(), &machine);
        let driver = reader.value("WARPLOOM_EMU_DRIVER", parse_version)?;
        let losses = reader.value("WARPLOOM_EMU_LOSE", |text| {
            failure::parse_losses(text, machine.len())
        })?;
        let failures = reader.value("WARPLOOM_EMU_FAIL", |text| {
            failure::parse_failures(text, known)
        })?;
        Ok(Self {
            visible,
            machine,
            seed: reader
                .value("WARPLOOM_EMU_SEED", parse_number)?
                .unwrap_or(0),
            jitter: Duration::from_micros(
                reader
                    .value("WARPLOOM_EMU_JITTER", parse_number)?
                    .unwrap_or(100),
            ),
            failures: failures.unwrap_or_default(),
            losses: losses.unwrap_or_default(),
            log: reader
                .value("WARPLOOM_EMU_LOG", parse_log)?
                .unwrap_or(Log::Faults),
            pinned: reader
                .value("WARPLOOM_EMU_PINNED", parse_size)?
                .unwrap_or(4 << 30),
            driver: driver.unwrap_or(NEWEST),
            driver_is_limit: driver.is_some(),
            workers: reader
                .value("WARPLOOM_EMU_WORKERS", parse_workers)?
                .unwrap_or_else(usual_workers),
        })
    }
}

/// Looks variables up and puts their names into errors.
struct Reader<F> {
    variable: F,
}

impl<F: Fn(&'static str) -> Option<String>> Reader<F> {
    /// `None` when it is unset or empty.
    fn value<T>(
        &self,
        variable: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, PlanError> {
        let Some(value) = (self.variable)(variable) else {
            return Ok(None);
        };
        if value.trim().is_empty() {
            return Ok(None);
        }
        match parse(value.trim()) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(why) => Err(PlanError {
                variable,
                value,
                why,
            }),
        }
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "expected a whole number, not negative".to_owned())
}

fn parse_log(text: &str) -> Result<Log, String> {
    match text {
        "quiet" => Ok(Log::Quiet),
        "faults" => Ok(Log::Faults),
        "calls" => Ok(Log::Calls),
        _ => Err("expected `quiet`, `faults` or `calls`".to_owned()),
    }
}

fn parse_version(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed
        .filter(|(major, minor)| (11..100).contains(major) && *minor < 100)
        .ok_or_else(|| "expected a CUDA version such as `12.0`, from 11.0 on".to_owned())
}

fn parse_workers(text: &str) -> Result<usize, String> {
    let parsed = text.parse().ok().filter(|count| (1..=64).contains(count));
    parsed.ok_or_else(|| "expected a number of threads, 1 to 64".to_owned())
}

fn usual_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(4))
}
