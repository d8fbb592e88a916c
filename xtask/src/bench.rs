//! Numbers against their targets.
//!
//! A bench program is an example of a library crate whose name starts with `bench_`. It prints one
//! line per number on standard output, the unit at the end of the name: `checked_launch_ns 41.7`.
//! Other lines are remarks and go to standard error. The targets are here, in one place, because a
//! program that judges itself is too kind.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::flags;
use crate::gate;
use crate::load::Load;
use crate::peers;
use crate::process::{Task, Variables};
use crate::project::Project;
use crate::rivals;
use crate::targets::{FLOORS, TARGETS, wanted};

/// A group's name, a package, and how the examples of that package begin that are in the group.
const GROUPS: &[(&str, &str, &str)] = &[
    ("contract", "warploom-core", "bench_"),
    ("plan", "warploom-plan", "bench_"),
    ("sched", "warploom-sched", "bench_"),
    ("sched", WHOLE, "bench_sched_"),
    (FLEET, "warploom-fleet", "bench_"),
    ("watch", "warploom-watch", "bench_"),
];

const FLEET: &str = "fleet";
const POOLS: &str = "pools";

/// Groups and the races that belong to them: what a fleet is good for shows beside other pools, and what a
/// scheduler costs from files to files.
const WITH_RACES: &[(&str, &str)] = &[(FLEET, POOLS), ("sched", "whole")];

/// The package that sees every backend. Two suffice here, and the others take minutes to build.
const WHOLE: &str = "warploom-tests";

/// The package whose programs take turns with other people's schedulers.
const RACED: &str = "warploom-sched";

/// The longest a single bench program may take.
const DEADLINE: Duration = Duration::from_mins(15);

/// What a number is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Most(f64),
    Least(f64),
}

/// One measured number; less is better, unless it has to be something at least. What was not measured is no
/// number, and meets nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct Number {
    pub(crate) name: String,
    pub(crate) value: f64,
    unit: &'static str,
    target: Option<Target>,
}

const UNITS: &[&str] = &["ns", "us", "ms", "s", "bytes", "percent", "ratio", "count"];

impl Number {
    /// `None` for a line that is a remark.
    fn from_line(line: &str, targets: &[(&str, f64)], floors: &[(&str, f64)]) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?.parse().ok()?);
        if words.next().is_some() {
            return None;
        }
        let (_, unit) = name.rsplit_once('_')?;
        let unit = UNITS.iter().find(|known| **known == unit)?;
        let find = |list: &[(&str, f64)]| {
            let mut list = list.iter();
            list.find(|(of, _)| *of == name).map(|(_, bound)| *bound)
        };
        let most = find(targets).map(Target::Most);
        Some(Self {
            name: name.to_owned(),
            value,
            unit,
            target: most.or_else(|| find(floors).map(Target::Least)),
        })
    }

    /// Is more better?
    pub(crate) fn is_floor(&self) -> bool {
        matches!(self.target, Some(Target::Least(_)))
    }

    fn met(&self) -> Option<bool> {
        if self.value.is_nan() {
            return Some(false);
        }
        self.target.map(|target| match target {
            Target::Most(most) => self.value <= most,
            Target::Least(least) => self.value >= least,
        })
    }

    fn verdict(&self) -> &'static str {
        match self.met() {
            _ if self.value.is_nan() => "MISSING",
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "-",
        }
    }

    fn as_json(&self) -> Value {
        let (bound, is_floor) = match self.target {
            Some(Target::Most(most)) => (Some(most), false),
            Some(Target::Least(least)) => (Some(least), true),
            None => (None, false),
        };
        json!({
            "name": self.name, "value": self.value, "unit": self.unit,
            "target": bound, "at_least": is_floor, "verdict": self.verdict(),
        })
    }
}

pub(crate) fn run(project: &Project, flags: &flags::Bench) -> Result<ExitCode> {
    let is_race = |group: &String| peers::GROUPS.contains(&group.as_str());
    let (mut races, groups): (Vec<String>, Vec<String>) =
        flags.groups.iter().cloned().partition(is_race);
    if flags.base.is_none() {
        add_races(&groups, &mut races);
    }
    let mut is_met = true;
    // Races take long and need the network, so they run when they are named.
    if races.is_empty() || !groups.is_empty() {
        is_met &= own(project, &groups, flags.base.as_deref(), flags.json)?;
    }
    if flags.groups.is_empty() {
        eprintln!(
            "not raced: `cargo xtask bench {POOLS} whole` has the fleet beside other pools, and whole runs \
             beside their kernels"
        );
    }
    for group in &races {
        is_met &= peers::run(project, group, flags)?;
    }
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Adds the races that belong to groups that were named.
fn add_races(groups: &[String], races: &mut Vec<String>) {
    for (group, race) in WITH_RACES {
        let is_named = groups.iter().any(|named| named == group);
        if is_named && !races.iter().any(|named| named == race) {
            races.push((*race).to_owned());
        }
    }
}

/// The groups that need nothing but cargo.
fn own(project: &Project, groups: &[String], base: Option<&str>, json: bool) -> Result<bool> {
    let programs = programs(project, groups)?;
    let is_raced = programs.iter().any(|program| program.package == RACED);
    let rivals = if is_raced {
        rivals::build(project)?
    } else {
        Variables::new()
    };
    if let Some(base) = base {
        return gate::run(project, &programs, base, &rivals);
    }
    let mut numbers: Vec<Number> = Vec::new();
    for program in programs {
        program.build(project)?;
        match Load::now() {
            Some(load) => eprintln!("measuring {} ({load})", program.name),
            None => eprintln!("measuring {}", program.name),
        }
        numbers.extend(program.measure(project, &rivals)?);
    }
    numbers.extend(missing(&numbers, wanted(groups)));
    if json {
        let all: Vec<Value> = numbers.iter().map(Number::as_json).collect();
        println!("{:#}", Value::Array(all));
    } else {
        print!("{}", table(&numbers));
    }
    Ok(numbers.iter().all(|number| number.met() != Some(false)))
}

/// What should have been measured and was not, because a device or a library is not here.
fn missing<'w>(numbers: &[Number], wanted: impl Iterator<Item = &'w str>) -> Vec<Number> {
    let is_there = |name: &str| numbers.iter().any(|number| number.name == name);
    let missing = wanted.filter(|name| !is_there(name));
    let lines = missing.map(|name| format!("{name} NaN"));
    let found = lines.filter_map(|line| Number::from_line(&line, TARGETS, FLOORS));
    found.collect()
}

/// The programs of the wanted groups, or of all groups.
fn programs(project: &Project, wanted: &[String]) -> Result<Vec<Program>> {
    for group in wanted {
        if !GROUPS.iter().any(|(name, ..)| name == group) {
            let own = GROUPS.iter().map(|(name, ..)| *name);
            let mut known: Vec<&str> = own.chain(peers::GROUPS.iter().copied()).collect();
            known.dedup();
            bail!(
                "there is no bench group `{group}`; known: {}",
                known.join(", ")
            );
        }
    }
    let mut programs = Vec::new();
    for (group, package, prefix) in GROUPS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == group) {
            continue;
        }
        let targets = project.package(package).map(|package| &package.targets);
        for target in targets.into_iter().flatten() {
            if target.kind == "example" && target.name.starts_with(prefix) {
                programs.push(Program {
                    package,
                    name: target.name.clone(),
                });
            }
        }
    }
    if programs.is_empty() {
        bail!("no bench program found: an example whose name starts with `bench_`");
    }
    Ok(programs)
}

/// A program that measures.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    package: &'static str,
    pub(crate) name: String,
}

impl Program {
    fn select(&self) -> Vec<&str> {
        let Self { package, name } = self;
        let mut select = vec!["--release", "--package", package, "--example", name];
        if *package == WHOLE {
            select.push("--no-default-features");
        }
        select
    }

    pub(crate) fn build(&self, project: &Project) -> Result<()> {
        let build = Task::cargo(project, ["build", "--quiet"]).args(self.select());
        if !build.status()?.success() {
            bail!("`{}` failed", build.shown());
        }
        Ok(())
    }

    pub(crate) fn measure(&self, project: &Project, rivals: &Variables) -> Result<Vec<Number>> {
        let run = Task::cargo(project, ["run", "--quiet"])
            .args(self.select())
            .variables(rivals);
        let ran = run.capture(DEADLINE)?;
        eprint!("{}", ran.stderr);
        if !ran.status.success() {
            bail!("`{}` failed ({})", run.shown(), ran.status);
        }
        let mut numbers = Vec::new();
        for line in ran.stdout.lines() {
            match Number::from_line(line, TARGETS, FLOORS) {
                Some(number) => numbers.push(number),
                None => eprintln!("{line}"),
            }
        }
        Ok(numbers)
    }
}

fn table(numbers: &[Number]) -> String {
    let names = numbers.iter().map(|number| number.name.chars().count());
    let width = names.max().unwrap_or(0).max("name".len());
    let mut text = format!(
        "{:<width$}  {:>12}  {:<8}  {:>12}  verdict\n",
        "name", "value", "unit", "target"
    );
    for number in numbers {
        let target = match number.target {
            Some(Target::Most(most)) => figures(most),
            Some(Target::Least(least)) => format!(">= {}", figures(least)),
            None => "-".to_owned(),
        };
        text.push_str(&format!(
            "{:<width$}  {:>12}  {:<8}  {:>12}  {}\n",
            number.name,
            figures(number.value),
            number.unit,
            target,
            number.verdict()
        ));
    }
    text
}

/// Four figures: more would only show noise.
fn figures(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{Package, Target};

    const SAMPLE: &[(&str, f64)] = &[("lease_ns", 1000.0), ("survey_us", 5.0)];
    const FLOOR: &[(&str, f64)] = &[("straggler_ratio", 2.4)];

    #[test]
    fn lines_become_numbers_and_remarks_do_not() {
        let number = |line| Number::from_line(line, SAMPLE, FLOOR);
        assert_eq!(number("straggler_ratio 2.5").unwrap().verdict(), "met");
        assert_eq!(number("straggler_ratio 1.0").unwrap().verdict(), "MISSED");
        assert_eq!(number("lease_ns 410.2").unwrap().verdict(), "met");
        assert_eq!(number("survey_us 5.1").unwrap().verdict(), "MISSED");
        assert_eq!(number("other_ns 5.1").unwrap().verdict(), "-");
        for remark in ["warming up", "lease_ns 1 2", "lease 4", "lease_ns fast", ""] {
            assert_eq!(number(remark), None, "{remark}");
        }
    }

    #[test]
    fn the_table_lines_up() {
        let lines = [
            "lease_ns 410.25",
            "a_longer_name_ms 0.5",
            "straggler_ratio 2.51",
        ];
        let numbers = lines.map(|line| Number::from_line(line, SAMPLE, FLOOR).unwrap());
        let expected = "\
name                     value  unit            target  verdict
lease_ns                 410.2  ns                1000  met
a_longer_name_ms         0.500  ms                   -  -
straggler_ratio          2.510  ratio         >= 2.400  met
";
        assert_eq!(table(&numbers), expected);
    }

    /// Without a library or a device numbers were not printed, and nobody missed them.
    #[test]
    fn what_was_not_measured_is_missing_and_not_met() {
        let measured = ["sched_batch_us 3.5", "sched_extra_ns 1"];
        let numbers = measured.map(|line| Number::from_line(line, TARGETS, FLOORS).unwrap());
        let wanted = [
            "sched_batch_us",
            "sched_choice_starpu_ratio",
            "sched_task_tbb_ratio",
        ];
        let missing = missing(&numbers, wanted.into_iter());
        let [number, peer] = &missing[..] else {
            panic!("{missing:?}");
        };
        assert_eq!(number.name, "sched_choice_starpu_ratio");
        assert_eq!((number.verdict(), number.met()), ("MISSING", Some(false)));
        assert_eq!(number.as_json()["value"], Value::Null);
        let line = "sched_choice_starpu_ratio             -  ratio            1.000  MISSING";
        assert_eq!(table(&missing).lines().nth(1), Some(line));
        // Nothing is demanded of that one but to be there.
        assert_eq!((peer.verdict(), peer.met()), ("MISSING", Some(false)));
        // A floor that is missing is not met either.
        let floor = Number::from_line("straggler_ratio NaN", SAMPLE, FLOOR).unwrap();
        assert_eq!((floor.verdict(), floor.met()), ("MISSING", Some(false)));
    }

    #[test]
    fn a_group_brings_its_race_unless_that_was_named() {
        let races = |groups: &[&str], named: &[&str]| {
            let groups: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
            let mut races: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            add_races(&groups, &mut races);
            races.join(" ")
        };
        assert_eq!(races(&["sched"], &[]), "whole");
        assert_eq!(races(&["sched", "fleet"], &["pools"]), "pools whole");
        assert_eq!(races(&["plan"], &[]), "");
    }

    #[test]
    fn groups_select_programs() {
        let target = |name: &str| Target {
            name: name.into(),
            kind: "example".into(),
        };
        let core = Package {
            name: "warploom-core".into(),
            targets: vec![target("bench_lease"), target("other")],
            ..Package::default()
        };
        let project = Project {
            root: ".".into(),
            target: "target".into(),
            cargo: "cargo".into(),
            packages: vec![core],
        };
        let found = programs(&project, &["contract".into()]).unwrap();
        let lease = Program {
            package: "warploom-core",
            name: "bench_lease".into(),
        };
        assert_eq!(found, [lease]);
        let error = programs(&project, &["contracts".into()]).unwrap_err();
        assert!(error.to_string().contains("known: contract"));
    }
}
