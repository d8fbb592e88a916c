//! `warploom detect` where drivers are many, missing, broken or hollow.
//!
//! Whatever a machine is like, detection must end by itself, list the processor's own backend,
//! list nothing that is not there, and never panic: under `panic = "abort"` a panic inside a
//! probe would take the program with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Session;
use super::checks::Checks;
use crate::process::{Captured, Task, Variables};
use crate::{hide, stand_ins};

/// Detection itself takes well under a second; the rest is for a machine that is busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// Which devices detection has to find.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// At least so many of OpenCL and of wgpu, as far as the backend is in the build.
    AtLeast { opencl: usize, wgpu: usize },
    /// The processor's own and no other.
    CpuOnly,
}

/// Runs the binary in every surrounding this machine can offer.
pub(super) fn inspect(
    session: &Session<'_>,
    checks: &mut Checks,
    binary: &Path,
    backends: &[&str],
) -> Result<()> {
    let project = session.project;
    let mut plain: Vec<(&str, Variables, Expect)> = vec![
        (
            "no driver listed",
            stand_ins::no_drivers(project)?,
            Expect::CpuOnly,
        ),
        (
            "broken driver libraries",
            stand_ins::broken_libraries(project)?,
            Expect::CpuOnly,
        ),
    ];
    match stand_ins::hollow_libraries(project)? {
        Some(variables) => plain.push(("hollow driver libraries", variables, Expect::CpuOnly)),
        None => checks.skip("hollow driver libraries", "no library to copy was found"),
    }
    match session.parts.complaint() {
        _ if session.flags.real_gpu => {}
        Some(complaint) if session.ci => checks.fail("several devices", &complaint),
        Some(complaint) => checks.skip("several devices", &complaint),
        None => {
            let is_built =
                |name: &str, count: usize| if backends.contains(&name) { count } else { 0 };
            let expect = Expect::AtLeast {
                opencl: is_built("opencl", 3),
                wgpu: is_built("wgpu", 2),
            };
            plain.push(("several devices", session.devices()?, expect));
        }
    }
    for (name, variables, expect) in plain {
        let task = Task::new(project, binary)
            .args(["detect", "--json"])
            .variables(&variables);
        judge(checks, name, &task, expect);
    }
    let name = "no driver library";
    let command = [binary, Path::new("detect"), Path::new("--json")];
    match hide::without_libraries(project, &command)? {
        Ok(task) => {
            let task = task.variables(&stand_ins::no_drivers(project)?);
            judge(checks, name, &task, Expect::CpuOnly);
        }
        Err(why) => checks.skip(name, &why),
    }
    Ok(())
}

fn judge(checks: &mut Checks, name: &str, task: &Task, expect: Expect) {
    let name = format!("detect, {name}");
    match task.capture(DEADLINE) {
        Err(error) => checks.fail(&name, &format!("{error:#}")),
        Ok(captured) => match verdict(&captured, expect) {
            Ok(devices) => checks.pass(&format!("{name}: {devices}")),
            Err(why) => {
                eprint!("{}", captured.stderr);
                checks.fail(&name, &format!("{why}\n      {}", task.shown()));
            }
        },
    }
}

/// The devices found, or what is wrong with the answer.
fn verdict(captured: &Captured, expect: Expect) -> Result<String, String> {
    // Finding no GPU is an answer, not a failure.
    if !captured.status.success() {
        return Err(format!("ended with {}", captured.status));
    }
    if captured.stderr.contains("panicked at") {
        return Err("a panic was caught on the way".into());
    }
    let devices = devices(&captured.stdout).map_err(|error| format!("{error:#}"))?;
    let count = |backend: &str| {
        let start = format!("{backend}:");
        devices.iter().filter(|id| id.starts_with(&start)).count()
    };
    let listed = devices.iter().cloned().collect::<Vec<_>>().join(" ");
    if count("cpu") != 1 {
        return Err(format!("the processor is not listed once, but: {listed}"));
    }
    let fits = match expect {
        Expect::CpuOnly => devices.len() == 1,
        Expect::AtLeast { opencl, wgpu } => count("opencl") >= opencl && count("wgpu") >= wgpu,
    };
    if fits {
        Ok(listed)
    } else {
        Err(format!("expected {expect:?}, found: {listed}"))
    }
}

/// Every device name, such as `opencl:1`, anywhere in the document.
fn devices(json: &str) -> Result<BTreeSet<String>> {
    let value: Value =
        serde_json::from_str(json).context("standard output is not one JSON document")?;
    let mut found = BTreeSet::new();
    collect(&value, &mut found);
    Ok(found)
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if is_device(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => map.values().for_each(|item| collect(item, found)),
        _ => {}
    }
}

fn is_device(text: &str) -> bool {
    let Some((backend, ordinal)) = text.split_once(':') else {
        return false;
    };
    let known = ["cpu", "cuda", "opencl", "wgpu"];
    known.contains(&backend) && ordinal.parse::<u32>().is_ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn answer(code: i32, stdout: &str, stderr: &str) -> Captured {
        Captured {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn devices_are_found_wherever_they_are() {
        let json = r#"{"physical": [{"faces": [{"id": "cpu:0"}, "opencl:1"]}], "x": "cpu: 4", "y": "a:0"}"#;
        let found: Vec<String> = devices(json).unwrap().into_iter().collect();
        assert_eq!(found, ["cpu:0", "opencl:1"]);
    }

    #[test]
    fn a_lonely_processor_is_an_answer() {
        let lonely = answer(0, r#"["cpu:0"]"#, "");
        assert_eq!(verdict(&lonely, Expect::CpuOnly), Ok("cpu:0".into()));
        let expect = Expect::AtLeast { opencl: 3, wgpu: 0 };
        assert!(verdict(&lonely, expect).unwrap_err().contains("expected"));
        let many = answer(0, r#"["cpu:0", "opencl:0", "opencl:1", "opencl:2"]"#, "");
        assert!(verdict(&many, expect).is_ok());
        assert!(verdict(&many, Expect::CpuOnly).is_err());
    }

    #[test]
    fn what_may_not_happen_is_refused() {
        let refused = |captured: &Captured| verdict(captured, Expect::CpuOnly).unwrap_err();
        assert!(refused(&answer(1, r#"["cpu:0"]"#, "")).contains("ended with"));
        let panicked = answer(
            0,
            r#"["cpu:0"]"#,
            "thread 'main' panicked at src/lib.rs:1:1",
        );
        assert!(refused(&panicked).contains("panic"));
        assert!(refused(&answer(0, "cpu:0", "")).contains("not one JSON document"));
        assert!(refused(&answer(0, "[]", "")).contains("not listed once"));
        let killed = Captured {
            status: ExitStatus::from_raw(6),
            stdout: String::new(),
            stderr: String::new(),
        };
        assert!(refused(&killed).contains("signal"));
    }
}
