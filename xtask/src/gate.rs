//! The gate against getting slower: the numbers of the sources as they are and as they were, in turns.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::bench::{Number, Program};
use crate::process::{Task, Variables};
use crate::project::Project;

/// How often each side is measured.
const PAIRS: usize = 5;
/// What counts as slower, of the median: less is noise on any machine.
const SLOWER: f64 = 1.03;

/// What was measured of one number, on both sides.
#[derive(Debug, Default, PartialEq)]
struct Pairs {
    base: Vec<f64>,
    new: Vec<f64>,
    /// More is better.
    is_floor: bool,
}

impl Pairs {
    /// The median of now above the one of before, where less is better; below it, where more is.
    fn ratio(&self) -> f64 {
        let ratio = median(&self.new) / median(&self.base);
        if self.is_floor { 1.0 / ratio } else { ratio }
    }

    /// Worse by more than noise, and than anything that was measured before.
    fn is_worse(&self) -> bool {
        let is_outside = if self.is_floor {
            median(&self.new) < self.base.iter().copied().fold(f64::INFINITY, f64::min)
        } else {
            median(&self.new) > self.base.iter().copied().fold(0.0, f64::max)
        };
        self.ratio() > SLOWER && is_outside
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        even if even.is_multiple_of(2) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Measures programs of these sources and of those of a commit, and answers whether none got worse.
pub(crate) fn run(
    project: &Project,
    programs: &[Program],
    base: &str,
    rivals: &Variables,
) -> Result<bool> {
    let before = checked_out(project, base)?;
    for program in programs {
        program.build(&before)?;
        program.build(project)?;
    }
    let mut all: BTreeMap<String, Pairs> = BTreeMap::new();
    for pair in 0..PAIRS {
        for program in programs {
            eprintln!("{} of {}: {}", pair + 1, PAIRS, program.name);
            // Who goes first has the warmer machine or the colder one, in turns.
            let is_base_first = pair.is_multiple_of(2);
            for is_base in [is_base_first, !is_base_first] {
                let sources = if is_base { &before } else { project };
                for number in program.measure(sources, rivals)? {
                    note(&mut all, &number, is_base);
                }
            }
        }
    }
    print!("{}", table(&all));
    Ok(!all.values().any(Pairs::is_worse))
}

fn note(all: &mut BTreeMap<String, Pairs>, number: &Number, is_base: bool) {
    let pairs = all.entry(number.name.clone()).or_default();
    pairs.is_floor = number.is_floor();
    let side = if is_base {
        &mut pairs.base
    } else {
        &mut pairs.new
    };
    side.push(number.value);
}

/// Numbers that one side does not have are not compared, which is said.
fn table(all: &BTreeMap<String, Pairs>) -> String {
    let width = all.keys().map(String::len).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:<width$}  {:>12}  {:>12}  {:>7}  verdict\n",
        "name", "before", "now", "ratio"
    );
    for (name, pairs) in all {
        let verdict = match (pairs.base.is_empty(), pairs.new.is_empty()) {
            (true, _) => "new",
            (_, true) => "gone",
            _ if pairs.is_worse() => "WORSE",
            _ => "-",
        };
        text.push_str(&format!(
            "{name:<width$}  {:>12.3}  {:>12.3}  {:>7.3}  {verdict}\n",
            median(&pairs.base),
            median(&pairs.new),
            pairs.ratio(),
        ));
    }
    text
}

/// The sources of a commit, in a tree of their own below the target directory.
fn checked_out(project: &Project, base: &str) -> Result<Project> {
    let root = project.target.join("bench-base");
    let git = |words: &[&str]| -> Result<()> {
        let task = Task::new(project, "git").args(words).args([&root]);
        let task = if words.contains(&"add") {
            task.args([base])
        } else {
            task
        };
        if !task.status()?.success() {
            bail!("`{}` failed", task.shown());
        }
        Ok(())
    };
    if root.exists() {
        git(&["worktree", "remove", "--force"])?;
    }
    git(&["worktree", "add", "--detach"])?;
    Ok(Project {
        target: project.target.join("bench-base-target"),
        cargo: project.cargo.clone(),
        packages: project.packages.clone(),
        root,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(base: &[f64], new: &[f64], is_floor: bool) -> Pairs {
        Pairs {
            base: base.to_vec(),
            new: new.to_vec(),
            is_floor,
        }
    }

    #[test]
    fn worse_is_more_than_noise_and_outside_of_what_was_measured() {
        let base = [100.0, 101.0, 99.0, 100.0, 104.0];
        let now = |value: f64| [value; 5];
        for (value, is_worse) in [(90.0, false), (102.9, false), (103.5, false), (105.0, true)] {
            assert_eq!(
                pairs(&base, &now(value), false).is_worse(),
                is_worse,
                "{value}"
            );
        }
        // One bad measurement of five is no verdict.
        let once = [100.0, 100.0, 180.0, 100.0, 100.0];
        assert!(!pairs(&base, &once, false).is_worse());
        assert!(pairs(&base, &now(90.0), true).is_worse());
        assert!(!pairs(&base, &now(105.0), true).is_worse());
        // Nothing stays nothing.
        assert!(!pairs(&now(0.0), &now(0.0), false).is_worse());
        assert!(pairs(&now(0.0), &now(1.0), false).is_worse());
    }

    #[test]
    fn numbers_of_one_side_are_shown_and_not_judged() {
        let mut all = BTreeMap::new();
        all.insert("gone_ns".to_owned(), pairs(&[1.0], &[], false));
        all.insert("new_ns".to_owned(), pairs(&[], &[1.0], false));
        all.insert("task_ns".to_owned(), pairs(&[1.0], &[2.0], false));
        let table = table(&all);
        let verdicts: Vec<&str> = table
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        assert_eq!(verdicts, ["gone", "new", "WORSE"]);
        let worse: Vec<bool> = all.values().map(Pairs::is_worse).collect();
        assert_eq!(worse, [false, false, true]);
    }
}
