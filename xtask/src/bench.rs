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

/// A group's name, a package, and how the examples of that package begin that are in the group.
const GROUPS: &[(&str, &str, &str)] = &[
    ("contract", "warploom-core", "bench_"),
    ("plan", "warploom-plan", "bench_"),
    ("sched", "warploom-sched", "bench_"),
    ("sched", WHOLE, "bench_sched_"),
    (FLEET, "warploom-fleet", "bench_"),
    ("watch", "warploom-watch", "bench_"),
];

/// The group of fleets, and the race that belongs to it.
const FLEET: &str = "fleet";
const POOLS: &str = "pools";

/// The package that sees every backend. Two suffice here, and the others take minutes to build.
const WHOLE: &str = "warploom-tests";

/// The package whose programs take turns with other people's schedulers.
const RACED: &str = "warploom-sched";

/// The longest a single bench program may take.
const DEADLINE: Duration = Duration::from_mins(15);

/// What a number may be at most: promises to users, not readings of one machine.
const TARGETS: &[(&str, f64)] = &[
    ("survey_64_devices_us", 1_000.0),
    ("checked_launch_ns", 200.0),
    ("lease_local_ns", 1_000.0),
    ("lease_local_any_ns", 1_000.0),
    ("lease_shared_ns", 30_000.0),
    ("lease_shared_any_ns", 30_000.0),
    ("lease_shared_beside_ns", 30_000.0),
    ("plan_10_steps_us", 1_000.0),
    ("plan_1000_steps_ms", 100.0),
    ("plan_batch_10000_ms", 1_000.0),
    ("plan_hostile_worst_ms", 1_000.0),
    ("deal_ours_worst_ratio", 1.10),
    ("layout_mean_ratio", 1.05),
    ("layout_worst_ratio", 1.05),
    ("sched_batch_us", 5.0),
    ("sched_task_ns", 100.0),
    ("sched_task_short_ns", 100.0),
    ("sched_slot_ns", 200.0),
    ("sched_batch_allocations_count", 0.0),
    ("sched_slot_allocations_count", 0.0),
    ("sched_wake_ratio", 1.2),
    ("sched_wake_p50_us", 30.0),
    ("sched_wake_p99_us", 200.0),
    ("sched_wake_opencl_ratio", 1.2),
    ("sched_footprint_fake_ratio", 1.3),
    ("sched_footprint_cpu_ratio", 1.3),
    ("sched_footprint_opencl_ratio", 1.3),
    ("sched_footprint_host_stages_ratio", 1.3),
    // Equal, but for a page here and there.
    ("sched_footprint_fake_growth_ratio", 1.02),
    ("sched_footprint_cpu_growth_ratio", 1.02),
    ("sched_footprint_opencl_growth_ratio", 1.02),
    ("sched_footprint_host_stages_growth_ratio", 1.02),
    // 0.97 of the ideal.
    ("sched_overlap_2_slots_ratio", 1.031),
    ("sched_overlap_3_slots_ratio", 1.031),
    ("sched_overlap_4_slots_ratio", 1.031),
    ("sched_overlap_busy_ratio", 1.031),
    ("sched_plan_us", 50_000.0),
    ("sched_deadlock_ms", 50.0),
    ("sched_choice_ns", 1_000.0),
    // Not slower, and not worse, than the peer in the same run.
    ("sched_choice_starpu_ratio", 1.0),
    ("sched_hetero_starpu_ratio", 1.0),
    // What the best known rule of each case takes above the bound.
    ("sched_deal_two_equal_ratio", 1.0095),
    ("sched_deal_speeds_4_2_1_ratio", 1.0225),
    ("sched_deal_mixed_ratio", 1.0572),
    ("sched_deal_mixed_moving_ratio", 1.0596),
    ("sched_deal_locality_ratio", 1.2346),
    ("sched_deal_heavy_tail_ratio", 1.2137),
    ("sched_deal_wrong_model_ratio", 1.1002),
    // 0.90 of the bound.
    ("sched_hetero_real_ratio", 1.1112),
    ("sched_drift_ratio", 1.1112),
    ("sched_drift_real_ratio", 1.1112),
    ("sched_enqueue_ratio", 1.1),
    ("sched_tiny_ratio", 1.5),
    // 0.95 of the ideal.
    ("sched_overlap_real_ratio", 1.0527),
    // Threads with whole frames each, and no scheduler.
    ("sched_overlap_pool_ratio", 1.05),
    // 0.95 of linear.
    ("fleet_2_devices_ratio", 1.0526),
    ("fleet_4_devices_ratio", 1.0526),
    ("fleet_8_devices_ratio", 1.0526),
    ("fleet_16_devices_ratio", 1.0526),
    ("fleet_unequal_guided_ratio", 1.10),
    ("fleet_record_us", 50.0),
    // 3 GB/s, from workers and to them.
    ("fleet_gigabyte_ms", 333.0),
    ("fleet_gigabyte_to_workers_ms", 333.0),
    ("span_collect_ns", 100.0),
    ("trace_100000_spans_ms", 1_000.0),
    ("report_100000_spans_ms", 1_000.0),
    ("notice_update_us", 1_000.0),
];

/// What a number has to be at least: it shows what the number beside it is good for.
const FLOORS: &[(&str, f64)] = &[
    // Parts fixed beforehand wait for the slower device: 2.5 at speeds of 1 and 4.
    ("fleet_unequal_static_ratio", 2.4),
];

/// What a number is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Most(f64),
    Least(f64),
}

/// One measured number; less is better, unless it has to be something at least.
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
        self.target.map(|target| match target {
            Target::Most(most) => self.value <= most,
            Target::Least(least) => self.value >= least,
        })
    }

    fn verdict(&self) -> &'static str {
        match self.met() {
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
    // What a fleet is good for shows beside others.
    let is_alone = flags.base.is_some() || races.iter().any(|race| race == POOLS);
    if groups.iter().any(|group| group == FLEET) && !is_alone {
        races.push(POOLS.to_owned());
    }
    let mut is_met = true;
    // Races take long and need the network, so they run when they are named.
    if races.is_empty() || !groups.is_empty() {
        is_met &= own(project, &groups, flags.base.as_deref(), flags.json)?;
    }
    if flags.groups.is_empty() {
        eprintln!("not raced: `cargo xtask bench {POOLS}` has the fleet beside other pools");
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
    let mut numbers = Vec::new();
    for program in programs {
        program.build(project)?;
        match Load::now() {
            Some(load) => eprintln!("measuring {} ({load})", program.name),
            None => eprintln!("measuring {}", program.name),
        }
        numbers.extend(program.measure(project, &rivals)?);
    }
    if json {
        let all: Vec<Value> = numbers.iter().map(Number::as_json).collect();
        println!("{:#}", Value::Array(all));
    } else {
        print!("{}", table(&numbers));
    }
    Ok(numbers.iter().all(|number| number.met() != Some(false)))
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
