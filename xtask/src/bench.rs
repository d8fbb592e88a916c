//! Numbers against their targets.
//!
//! A bench program is an example of a library crate whose name starts with `bench_`. It prints one
//! JSON object per number on standard output:
//!
//! ```json
//! {"name": "lease, uncontended", "value": 410.0, "unit": "ns", "target": 1000.0}
//! ```
//!
//! `target` may be left out. Less is better unless the object says `"better": "more"`. Lines that
//! are not JSON objects are remarks and go to standard error.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::flags;
use crate::process::Task;
use crate::project::Project;

/// A group's name and the package whose `bench_*` examples are in it.
const GROUPS: &[(&str, &str)] = &[("contract", "warploom-core")];

/// The longest a single bench program may take.
const DEADLINE: Duration = Duration::from_mins(15);

/// One measured number.
#[derive(Debug, PartialEq)]
struct Number {
    name: String,
    value: f64,
    unit: String,
    target: Option<f64>,
    more_is_better: bool,
}

impl Number {
    /// `None` for a line that is a remark.
    fn from_line(line: &str) -> Result<Option<Self>> {
        if !line.trim_start().starts_with('{') {
            return Ok(None);
        }
        let value: Value = serde_json::from_str(line).context("a line that looks like JSON")?;
        let text = |key: &str| {
            let text = value[key].as_str().map(str::to_owned);
            text.with_context(|| format!("no text `{key}` in {line}"))
        };
        Ok(Some(Self {
            name: text("name")?,
            value: value["value"]
                .as_f64()
                .with_context(|| format!("no number `value` in {line}"))?,
            unit: text("unit")?,
            target: value["target"].as_f64(),
            more_is_better: value["better"].as_str() == Some("more"),
        }))
    }

    fn met(&self) -> Option<bool> {
        self.target.map(|target| {
            if self.more_is_better {
                self.value >= target
            } else {
                self.value <= target
            }
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
        json!({
            "name": self.name, "value": self.value, "unit": self.unit,
            "target": self.target, "verdict": self.verdict(),
            "better": if self.more_is_better { "more" } else { "less" },
        })
    }
}

pub(crate) fn run(project: &Project, flags: &flags::Bench) -> Result<ExitCode> {
    let programs = programs(project, &flags.groups)?;
    let mut numbers = Vec::new();
    for (package, program) in programs {
        eprintln!("measuring {program}");
        numbers.extend(measure(project, package, &program)?);
    }
    if flags.json {
        let all: Vec<Value> = numbers.iter().map(Number::as_json).collect();
        println!("{:#}", Value::Array(all));
    } else {
        print!("{}", table(&numbers));
    }
    let missed = numbers.iter().any(|number| number.met() == Some(false));
    Ok(if missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The programs of the wanted groups, or of all groups.
fn programs(project: &Project, wanted: &[String]) -> Result<Vec<(&'static str, String)>> {
    for group in wanted {
        if !GROUPS.iter().any(|(name, _)| name == group) {
            let known: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
            bail!(
                "there is no bench group `{group}`; known: {}",
                known.join(", ")
            );
        }
    }
    let mut programs = Vec::new();
    for (group, package) in GROUPS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == group) {
            continue;
        }
        let targets = project.package(package).map(|package| &package.targets);
        for target in targets.into_iter().flatten() {
            if target.kind == "example" && target.name.starts_with("bench_") {
                programs.push((*package, target.name.clone()));
            }
        }
    }
    if programs.is_empty() {
        bail!("no bench program found: an example whose name starts with `bench_`");
    }
    Ok(programs)
}

fn measure(project: &Project, package: &str, program: &str) -> Result<Vec<Number>> {
    let select = ["--release", "--package", package, "--example", program];
    let build = Task::cargo(project, ["build", "--quiet"]).args(select);
    if !build.status()?.success() {
        bail!("`{}` failed", build.shown());
    }
    let run = Task::cargo(project, ["run", "--quiet"]).args(select);
    let ran = run.capture(DEADLINE)?;
    eprint!("{}", ran.stderr);
    if !ran.status.success() {
        bail!("`{}` failed ({})", run.shown(), ran.status);
    }
    let mut numbers = Vec::new();
    for line in ran.stdout.lines() {
        match Number::from_line(line)? {
            Some(number) => numbers.push(number),
            None => eprintln!("{line}"),
        }
    }
    Ok(numbers)
}

fn table(numbers: &[Number]) -> String {
    let names = numbers.iter().map(|number| number.name.chars().count());
    let width = names.max().unwrap_or(0).max("name".len());
    let mut text = format!(
        "{:<width$}  {:>12}  {:<8}  {:>12}  verdict\n",
        "name", "value", "unit", "target"
    );
    for number in numbers {
        let target = number.target.map_or_else(|| "-".to_owned(), figures);
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

    #[test]
    fn lines_become_numbers_and_remarks_do_not() {
        let line = r#"{"name": "lease", "value": 410, "unit": "ns", "target": 1000}"#;
        let number = Number::from_line(line).unwrap().unwrap();
        assert_eq!(number.verdict(), "met");
        let line = r#"{"name": "copy", "value": 4, "unit": "GB/s", "target": 9, "better": "more"}"#;
        let number = Number::from_line(line).unwrap().unwrap();
        assert_eq!(number.verdict(), "MISSED");
        assert_eq!(Number::from_line("warming up").unwrap(), None);
        assert!(Number::from_line(r#"{"name": "x"}"#).is_err());
        assert!(Number::from_line("{oops").is_err());
    }

    #[test]
    fn the_table_lines_up() {
        let numbers = [
            Number {
                name: "lease, uncontended".into(),
                value: 410.25,
                unit: "ns".into(),
                target: Some(1000.0),
                more_is_better: false,
            },
            Number {
                name: "free".into(),
                value: 0.5,
                unit: "us".into(),
                target: None,
                more_is_better: false,
            },
        ];
        let expected = "\
name                       value  unit            target  verdict
lease, uncontended         410.2  ns                1000  met
free                       0.500  us                   -  -
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
        assert_eq!(found, [("warploom-core", "bench_lease".to_owned())]);
        let error = programs(&project, &["contracts".into()]).unwrap_err();
        assert!(error.to_string().contains("known: contract"));
    }
}
