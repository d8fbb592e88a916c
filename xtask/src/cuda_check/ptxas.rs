//! NVIDIA's assembler, and what it says about a kernel.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Task;
use crate::project::Project;

/// What one kernel takes of a card.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Usage {
    /// The entry point.
    pub(super) entry: String,
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Bytes of shared memory of a block, without what a launch adds.
    pub(super) shared: u32,
    /// Bytes of constant memory, in all banks.
    pub(super) constant: u32,
    /// Bytes written to memory because registers ran out.
    pub(super) spill_stores: u32,
    /// Bytes read back.
    pub(super) spill_loads: u32,
}

/// The longest one file may take; a second is long.
const DEADLINE: Duration = Duration::from_mins(2);

/// Assembles a file for an architecture and answers with its kernels.
pub(super) fn assemble(
    project: &Project,
    ptxas: &Path,
    ptx: &Path,
    architecture: u32,
) -> Result<Vec<Usage>> {
    let object = ptx.with_extension(format!("sm_{architecture}.cubin"));
    let task = Task::new(project, ptxas)
        .args(["-v", &format!("-arch=sm_{architecture}"), "-o"])
        .args([&object, ptx]);
    let answer = task.capture(DEADLINE)?;
    if !answer.status.success() {
        bail!("`{}` failed:\n{}", task.named(), answer.stderr.trim_end());
    }
    // Some versions report on standard output.
    let report = format!("{}\n{}", answer.stderr, answer.stdout);
    let usages = parse(&report).with_context(|| format!("`{}` said:\n{report}", task.named()))?;
    if usages.is_empty() {
        bail!("{} has no kernel", ptx.display());
    }
    Ok(usages)
}

/// Reads the report of `ptxas -v`: some lines for each entry point, of which the last but one has
/// its registers. Functions that are no entry points are reported too and belong to nobody.
fn parse(report: &str) -> Result<Vec<Usage>> {
    let mut usages: Vec<Usage> = Vec::new();
    let mut current: Option<Usage> = None;
    for line in report.lines() {
        let line = line.trim();
        let said = line.split_once(" : ").map_or(line, |(_, said)| said);
        if let Some(rest) = said.strip_prefix("Compiling entry function '") {
            if let Some(open) = &current {
                bail!("no register count for `{}`", open.entry);
            }
            let (entry, _) = rest.split_once('\'').context("a name without an end")?;
            current = Some(Usage {
                entry: entry.to_owned(),
                ..Usage::default()
            });
        } else if let Some(usage) = &mut current {
            if said.contains(" bytes spill stores") {
                // A function that the kernel calls has such a line of its own.
                usage.spill_stores += amount(said, " bytes spill stores")?;
                usage.spill_loads += amount(said, " bytes spill loads")?;
            } else if said.starts_with("Used ") {
                usage.registers = amount(said, " registers")?;
                usage.shared = sum(said, " bytes smem")?;
                usage.constant = sum(said, " bytes cmem")?;
                usages.extend(current.take());
            }
        }
    }
    match current {
        Some(open) => bail!("no register count for `{}`", open.entry),
        None => Ok(usages),
    }
}

/// The number in front of a unit.
fn amount(line: &str, unit: &str) -> Result<u32> {
    let number = numbers(line, unit).next();
    number.with_context(|| format!("no number of{unit} in `{line}`"))?
}

/// The numbers in front of every occurrence of a unit, added up.
fn sum(line: &str, unit: &str) -> Result<u32> {
    numbers(line, unit).sum()
}

fn numbers(line: &str, unit: &str) -> impl Iterator<Item = Result<u32>> {
    line.match_indices(unit).map(move |(at, _)| {
        let before = &line[..at];
        let start = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let digits = &before[start..];
        digits
            .parse()
            .with_context(|| format!("`{digits}` in front of{unit} in `{line}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ptxas 13.4 writes it.
    const REPORT: &str = "\
ptxas info    : 12 bytes gmem, 400 bytes cmem[3]
ptxas info    : Compiling entry function 'turn' for 'sm_75'
ptxas info    : Function properties for turn
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 256 bytes smem, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 1.430 ms
ptxas info    : Compiling entry function 'wide' for 'sm_120'
ptxas info    : Function properties for wide
    48 bytes stack frame, 44 bytes spill stores, 52 bytes spill loads
ptxas info    : Function properties for helper
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 48 bytes cumulative stack size
ptxas info    : Compile time = 1.001 ms
";

    #[test]
    fn every_entry_has_its_numbers() {
        let usages = parse(REPORT).unwrap();
        let turn = Usage {
            entry: "turn".into(),
            registers: 14,
            shared: 256,
            constant: 372,
            ..Usage::default()
        };
        let wide = Usage {
            entry: "wide".into(),
            registers: 255,
            spill_stores: 48,
            spill_loads: 60,
            ..Usage::default()
        };
        assert_eq!(usages, [turn, wide]);
    }

    #[test]
    fn a_report_that_changed_is_not_taken_for_zero() {
        let cut = REPORT.replace("Used 14 registers", "Took 14 registers");
        let error = parse(&cut).unwrap_err();
        assert_eq!(error.to_string(), "no register count for `turn`");
        let cut = REPORT.replace("Used 255 registers", "Took 255 registers");
        let error = parse(&cut).unwrap_err();
        assert_eq!(error.to_string(), "no register count for `wide`");
        let odd = REPORT.replace("14 registers", "some registers");
        assert!(parse(&odd).is_err());
        assert_eq!(parse("ptxas info : 0 bytes gmem\n").unwrap(), []);
    }
}
