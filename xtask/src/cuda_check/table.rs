//! What kernels took of a card when somebody last looked, and what they take now.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::ptxas::Usage;

/// Which machine code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Where it is from, and its name.
    pub(super) kernel: String,
    /// `strict` or `fast`.
    pub(super) math: String,
    /// The major version of the NVRTC that made its PTX.
    pub(super) nvrtc: u32,
    /// The architecture it was assembled for.
    pub(super) architecture: u32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} math, NVRTC {}, sm_{})",
            self.kernel, self.math, self.nvrtc, self.architecture
        )
    }
}

/// What was measured, in order.
pub(super) type Measured = BTreeMap<Key, Usage>;

/// What is kept of it: spills are never allowed, so there is nothing to compare them with.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    registers: u32,
    shared: u32,
    constant: u32,
}

/// The table in the repository.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Table {
    /// The line that says what made it.
    made_by: String,
    rows: BTreeMap<Key, Kept>,
}

const TITLE: &str =
    "# What every CUDA kernel takes; rewritten by `cargo xtask cuda-check --bless`.";
const COLUMNS: [&str; 7] = [
    "kernel",
    "math",
    "nvrtc",
    "arch",
    "registers",
    "shared",
    "constant",
];

/// By how much registers and shared memory may grow, in percent.
const GROWTH: u32 = 20;

impl Table {
    pub(super) fn of(measured: &Measured, versions: &str) -> Self {
        let rows = measured.iter().map(|(key, usage)| {
            let kept = Kept {
                registers: usage.registers,
                shared: usage.shared,
                constant: usage.constant,
            };
            (key.clone(), kept)
        });
        Self {
            made_by: versions.to_owned(),
            rows: rows.collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![COLUMNS.map(String::from).to_vec()];
        // The heading is a comment.
        lines[0][0].insert_str(0, "# ");
        for (key, kept) in &self.rows {
            lines.push(vec![
                key.kernel.clone(),
                key.math.clone(),
                key.nvrtc.to_string(),
                format!("sm_{}", key.architecture),
                kept.registers.to_string(),
                kept.shared.to_string(),
                kept.constant.to_string(),
            ]);
        }
        format!("{TITLE}\n# {}\n{}", self.made_by, aligned(&lines))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut table = Self::default();
        for (number, line) in text.lines().enumerate() {
            let place = || format!("line {} of the table: `{line}`", number + 1);
            if let Some(remark) = line.strip_prefix('#') {
                if number == 1 {
                    remark.trim().clone_into(&mut table.made_by);
                }
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let (key, kept) = row(line).with_context(place)?;
            if table.rows.insert(key, kept).is_some() {
                bail!("{} is there twice", place());
            }
        }
        Ok(table)
    }

    /// What is wrong with what was measured.
    pub(super) fn complaints(&self, measured: &Measured, versions: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        for (key, usage) in measured {
            if usage.spill_stores > 0 || usage.spill_loads > 0 {
                complaints.push(format!(
                    "{key} spills: {} bytes stored, {} bytes loaded; give its threads less to hold",
                    usage.spill_stores, usage.spill_loads
                ));
            }
            let Some(kept) = self.rows.get(key) else {
                complaints.push(format!("{key} is not in the table"));
                continue;
            };
            for (what, before, now) in [
                ("registers", kept.registers, usage.registers),
                ("bytes of shared memory", kept.shared, usage.shared),
            ] {
                if grew(before, now) {
                    complaints.push(format!(
                        "{key} takes {now} {what}, and took {before}: more than {GROWTH} % more"
                    ));
                }
            }
        }
        for key in self.rows.keys().filter(|key| !measured.contains_key(key)) {
            complaints.push(format!("{key} is in the table and no longer anywhere else"));
        }
        if !complaints.is_empty() && self.made_by != versions {
            complaints.push(format!(
                "the compilers are not those of the table: {versions} now, {} then",
                self.made_by
            ));
        }
        complaints
    }
}

/// Whether it grew by more than may be; from nothing to something always is more.
fn grew(before: u32, now: u32) -> bool {
    u64::from(now) * 100 > u64::from(before) * u64::from(100 + GROWTH)
}

fn row(line: &str) -> Result<(Key, Kept)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        kernel,
        math,
        nvrtc,
        architecture,
        registers,
        shared,
        constant,
    ] = words.as_slice()
    else {
        bail!("{} columns instead of {}", words.len(), COLUMNS.len());
    };
    let number = |text: &str| {
        text.parse()
            .with_context(|| format!("`{text}` is no number"))
    };
    let key = Key {
        kernel: (*kernel).to_owned(),
        math: (*math).to_owned(),
        nvrtc: number(nvrtc)?,
        architecture: number(architecture.strip_prefix("sm_").unwrap_or(architecture))?,
    };
    let kept = Kept {
        registers: number(registers)?,
        shared: number(shared)?,
        constant: number(constant)?,
    };
    Ok((key, kept))
}

/// All numbers, for people.
pub(super) fn shown(measured: &Measured) -> String {
    let heading = COLUMNS.into_iter().chain(["spill stores", "spill loads"]);
    let mut lines = vec![heading.map(String::from).collect::<Vec<_>>()];
    for (key, usage) in measured {
        let mut line = vec![
            key.kernel.clone(),
            key.math.clone(),
            key.nvrtc.to_string(),
            format!("sm_{}", key.architecture),
        ];
        let numbers = [
            usage.registers,
            usage.shared,
            usage.constant,
            usage.spill_stores,
            usage.spill_loads,
        ];
        line.extend(numbers.map(|number| number.to_string()));
        lines.push(line);
    }
    aligned(&lines)
}

/// All numbers, for programs.
pub(super) fn as_json(measured: &Measured) -> Value {
    let rows = measured.iter().map(|(key, usage)| {
        json!({
            "kernel": key.kernel, "math": key.math, "nvrtc": key.nvrtc,
            "architecture": key.architecture,
            "registers": usage.registers, "shared": usage.shared, "constant": usage.constant,
            "spill_stores": usage.spill_stores, "spill_loads": usage.spill_loads,
        })
    });
    rows.collect()
}

/// Lines whose columns stand below each other: names to the left, numbers to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            0..4 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kernel: &str, architecture: u32) -> Key {
        Key {
            kernel: kernel.into(),
            math: "strict".into(),
            nvrtc: 13,
            architecture,
        }
    }

    fn usage(registers: u32, shared: u32) -> Usage {
        Usage {
            entry: "any".into(),
            registers,
            shared,
            constant: 380,
            ..Usage::default()
        }
    }

    fn measured() -> Measured {
        Measured::from([
            (key("testkit/turn", 75), usage(10, 256)),
            (key("testkit/turn", 120), usage(12, 256)),
            (key("examples/03_launch/saxpy", 75), usage(8, 0)),
        ])
    }

    const VERSIONS: &str = "nvrtc-13 13.4.92, ptxas 13.4.92";

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = Table::of(&measured(), VERSIONS);
        let text = table.text();
        let expected = "\
# What every CUDA kernel takes; rewritten by `cargo xtask cuda-check --bless`.
# nvrtc-13 13.4.92, ptxas 13.4.92
# kernel                  math    nvrtc  arch    registers  shared  constant
examples/03_launch/saxpy  strict  13     sm_75           8       0       380
testkit/turn              strict  13     sm_75          10     256       380
testkit/turn              strict  13     sm_120         12     256       380
";
        assert_eq!(text, expected);
        assert_eq!(Table::parse(&text).unwrap(), table);
    }

    #[test]
    fn a_table_that_makes_no_sense_is_refused() {
        let twice = format!("{0}{0}", "a  strict  13  sm_75  8  0  380\n");
        for text in [
            "a  strict  13  sm_75  8  0",
            "a  strict  13  sm_75  few  0  380",
            &twice,
        ] {
            assert!(Table::parse(text).is_err(), "{text}");
        }
    }

    fn complaints(now: &Measured) -> Vec<String> {
        Table::of(&measured(), VERSIONS).complaints(now, VERSIONS)
    }

    #[test]
    fn the_same_again_and_a_fifth_more_are_fine() {
        assert_eq!(complaints(&measured()), Vec::<String>::new());
        let mut now = measured();
        now.insert(key("testkit/turn", 75), usage(12, 307));
        assert_eq!(complaints(&now), Vec::<String>::new());
    }

    #[test]
    fn growth_is_told_with_its_numbers() {
        let mut now = measured();
        now.insert(key("testkit/turn", 75), usage(13, 308));
        now.insert(key("examples/03_launch/saxpy", 75), usage(8, 4));
        assert_eq!(
            complaints(&now),
            [
                "examples/03_launch/saxpy (strict math, NVRTC 13, sm_75) takes 4 bytes of shared \
                 memory, and took 0: more than 20 % more",
                "testkit/turn (strict math, NVRTC 13, sm_75) takes 13 registers, and took 10: \
                 more than 20 % more",
                "testkit/turn (strict math, NVRTC 13, sm_75) takes 308 bytes of shared memory, \
                 and took 256: more than 20 % more",
            ]
        );
    }

    #[test]
    fn a_spill_is_never_fine() {
        let mut now = measured();
        let spilling = Usage {
            spill_loads: 4,
            ..usage(10, 256)
        };
        now.insert(key("testkit/turn", 75), spilling);
        let blessed = Table::of(&now, VERSIONS).complaints(&now, VERSIONS);
        assert_eq!(blessed.len(), 1);
        assert!(blessed[0].contains("spills: 0 bytes stored, 4 bytes loaded"));
    }

    #[test]
    fn kernels_do_not_come_and_go_unnoticed() {
        let mut now = measured();
        let usage = now.remove(&key("testkit/turn", 120)).unwrap();
        now.insert(key("testkit/turn", 90), usage);
        let said = Table::of(&measured(), "older").complaints(&now, VERSIONS);
        assert_eq!(
            said,
            [
                "testkit/turn (strict math, NVRTC 13, sm_90) is not in the table",
                "testkit/turn (strict math, NVRTC 13, sm_120) is in the table and no longer \
                 anywhere else",
                "the compilers are not those of the table: nvrtc-13 13.4.92, ptxas 13.4.92 now, \
                 older then",
            ]
        );
    }
}
