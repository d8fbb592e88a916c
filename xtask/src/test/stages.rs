//! The stages, in the order in which they are cheapest to fail.
//!
//! Builds are most of the time on a small machine, so as many stages as possible share one: all
//! that can builds the default members with all targets, in the dev profile, with default features.
//! The ones that cannot share say why; the emulator of a CUDA driver is one of these.

use anyhow::{Context, Result, bail};

use super::checks::Checks;
use super::{Session, Stage, answers, cuda, files, oracle, page, surroundings};
use crate::artifacts::{Artifacts, Sort};
use crate::process::{Task, Variables};
use crate::project::Package;
use crate::{detect, setup, stand_ins, tidy};

pub(super) const STAGES: &[Stage] = &[
    Stage {
        name: "stand-ins",
        about: "the software devices the tests run on",
        quick: false,
        run: stand_ins_stage,
    },
    Stage {
        name: "fmt",
        about: "formatting",
        quick: true,
        run: fmt,
    },
    Stage {
        name: "tidy",
        about: "edges, sizes, names, docs",
        quick: true,
        run: tidy_stage,
    },
    Stage {
        name: "clippy",
        about: "lints, as errors",
        quick: true,
        run: clippy,
    },
    Stage {
        name: "docs",
        about: "rustdoc, warnings as errors",
        quick: false,
        run: docs,
    },
    Stage {
        name: "tests",
        about: "unit, integration and conformance tests on the stand-ins",
        quick: true,
        run: tests,
    },
    Stage {
        name: "doctests",
        about: "the examples in the docs",
        quick: false,
        run: doctests,
    },
    Stage {
        name: "custom-backend",
        about: "the conformance suite on a backend from outside",
        quick: false,
        run: custom_backend,
    },
    Stage {
        name: "cuda-check",
        about: "every CUDA kernel through NVIDIA's compilers, against a table",
        quick: false,
        run: cuda::kernels,
    },
    Stage {
        name: "cuda",
        about: "the CUDA backend on emulated devices; with --real-gpu on real ones",
        quick: false,
        run: cuda::backend,
    },
    Stage {
        name: "oracle",
        about: "operations against numpy, scipy and scikit-image, devices against the processor",
        quick: false,
        run: oracle::stage,
    },
    Stage {
        name: "files",
        about: "image files of other programs in ours, and ours in theirs",
        quick: false,
        run: files::stage,
    },
    Stage {
        name: "report",
        about: "the demo, on every device and in time; reports of runs in a browser: drawn, silent, steered",
        quick: false,
        run: page::stage,
    },
    Stage {
        name: "no-gpu",
        about: "detection and whole-system tests where drivers are missing or broken",
        quick: false,
        run: no_gpu,
    },
    Stage {
        name: "features",
        about: "the facade with no feature, each feature, all features",
        quick: false,
        run: features,
    },
    Stage {
        name: "shuttle",
        about: "leases and the scheduler's threads under the interleavings a model checker tries",
        quick: false,
        run: shuttle,
    },
    Stage {
        name: "release",
        about: "the scheduler as it is shipped: races are found without debug assertions",
        quick: false,
        run: release,
    },
    Stage {
        name: "abort",
        about: "detection in a program built with panic = \"abort\"",
        quick: false,
        run: abort,
    },
    Stage {
        name: "deny",
        about: "licences and banned crates",
        quick: false,
        run: deny,
    },
];

fn stand_ins_stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    if session.flags.real_gpu {
        checks.skip("stand-ins", "--real-gpu uses this machine's own drivers");
        return Ok(());
    }
    match setup::ensure()?.complaint() {
        None => checks.pass("PoCL and lavapipe are installed"),
        Some(complaint) if session.ci => checks.fail("stand-ins", &complaint),
        Some(complaint) => checks.skip("stand-ins", &complaint),
    }
    Ok(())
}

fn fmt(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let task = Task::cargo(session.project, ["fmt", "--all", "--", "--check"]);
    checks.run(&task).map(drop)
}

fn tidy_stage(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let report = tidy::inspect(session.project)?;
    print!("{}", report.text());
    checks.tally.passed += report.clean_rules();
    for finding in report.failures() {
        checks.tally.failed += 1;
        checks.failures.push(finding);
    }
    Ok(())
}

fn clippy(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let args = ["clippy", "--all-targets", "--", "-D", "warnings"];
    checks.run(&Task::cargo(session.project, args)).map(drop)
}

fn docs(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    // Libraries only: the binary `warploom` would overwrite the pages of the crate `warploom`.
    let args = ["doc", "--no-deps", "--lib"];
    let task = Task::cargo(session.project, args).variable("RUSTDOCFLAGS", "-D warnings");
    checks.run(&task).map(drop)
}

fn tests(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let filter = session.flags.filter.as_deref();
    let task = test_task(session, &[], filter, &session.devices()?);
    checks.run(&task).map(drop)
}

fn doctests(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let task = Task::cargo(session.project, ["test", "--doc"]);
    checks.run(&task.variables(&session.devices()?)).map(drop)
}

/// Tests of these packages, or of all default members, by nextest where it is installed.
///
/// Packages are selected after the build, not before it: cargo would otherwise unite the features
/// of fewer packages and build half the dependencies again.
fn test_task(
    session: &Session<'_>,
    packages: &[&str],
    filter: Option<&str>,
    variables: &Variables,
) -> Task {
    let mut args: Vec<String> = Vec::new();
    if session.nextest {
        args.extend(["nextest", "run"].map(String::from));
        if session.ci {
            args.extend(["--profile", "ci"].map(String::from));
        }
        if !packages.is_empty() {
            let each: Vec<String> = packages
                .iter()
                .map(|name| format!("package({name})"))
                .collect();
            args.extend(["--filterset".into(), each.join(" + ")]);
        }
    } else {
        args.push("test".into());
        for package in packages {
            args.extend(["--package".into(), (*package).into()]);
        }
        args.extend(
            ["--lib", "--bins", "--tests", "--examples", "--no-fail-fast"].map(String::from),
        );
    }
    args.extend(filter.map(String::from));
    Task::cargo(session.project, args).variables(variables)
}

fn custom_backend(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let name = "custom-backend";
    match session.project.package(name) {
        None => bail!("this workspace has no package `{name}`"),
        Some(package) if !package.has_target("test", "conformance") => {
            bail!("package `{name}` has no test `conformance`")
        }
        Some(_) => {
            let task = test_task(session, &[name], None, &session.devices()?);
            checks.run(&task).map(drop)
        }
    }
}

fn no_gpu(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let built = Artifacts::build(session.project, ["--all-targets"])?;
    let binary = built.program(detect::CLI, Sort::Bin, "warploom")?;
    surroundings::inspect(session, checks, &binary, &["cpu", "cuda", "opencl", "wgpu"])?;
    let variables = stand_ins::no_drivers(session.project)?;
    let packages = ["warploom-tests", detect::CLI];
    if let Some(name) = packages
        .iter()
        .find(|name| session.project.package(name).is_none())
    {
        bail!("this workspace has no package `{name}`");
    }
    let task = test_task(session, &packages, None, &variables);
    checks.run(&task).map(drop)
}

/// Cannot share a build: which features are on is the question.
fn features(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let facade = session
        .project
        .package("warploom")
        .context("this workspace has no package `warploom`")?;
    let variables = session.devices()?;
    for (set, verb) in feature_runs(facade) {
        let mut task = Task::cargo(session.project, [verb, "--package", &facade.name]).args([
            "--no-default-features",
            "--features",
            &set,
        ]);
        if verb == "test" {
            task = task.args(["--test", "linked"]).variables(&variables);
        }
        checks.run(&task)?;
    }
    Ok(())
}

/// Which features to switch on, and whether to check or to test with them.
///
/// Testing compiles all that checking would, unless tests bring dependencies whose features could
/// hide a missing one. All features together are linked and tested by the stage `tests` already.
fn feature_runs(facade: &Package) -> Vec<(String, &'static str)> {
    let is_tested = facade.has_target("test", "linked");
    let tests_bring_more = facade.dependencies.iter().any(|dependency| dependency.dev);
    let single = facade.features.iter().filter(|name| *name != "default");
    let sets = std::iter::once(String::new()).chain(single.cloned());
    let mut runs = Vec::new();
    for set in sets {
        let is_everything = set == "all-backends";
        if !is_tested || tests_bring_more || is_everything {
            runs.push((set.clone(), "check"));
        }
        if is_tested && !is_everything {
            runs.push((set, "test"));
        }
    }
    runs
}

/// Cannot share a build: the model checker's locks replace those of the standard library.
fn shuttle(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    if !flags.is_empty() {
        flags.push(" ");
    }
    flags.push("--cfg warploom_shuttle");
    // These exist only under the model checker; were it off, none would run.
    let modules = [
        ("warploom-core", "lease::interleavings"),
        ("warploom-sched", "exec::interleavings"),
    ];
    for (package, module) in modules {
        let task = Task::cargo(
            session.project,
            ["test", "--package", package, "--lib", module],
        )
        .variable("RUSTFLAGS", &flags)
        .variable("CARGO_TARGET_DIR", session.project.target.join("shuttle"));
        let before = checks.tally.passed;
        if checks.run(&task)? && checks.tally.passed == before {
            let text = format!("no test of {package} ran under the model checker");
            checks.fail("shuttle", &text);
        }
    }
    Ok(())
}

/// Cannot share a build: what only debug builds check is the question. The scheduler and what it stands on
/// are small.
fn release(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let task = Task::cargo(
        session.project,
        ["test", "--release", "--package", "warploom-sched"],
    );
    let tests = ["mutants", "threads", "padding"];
    let task = task.args(tests.iter().flat_map(|test| ["--test", test]));
    let before = checks.tally.passed;
    if checks.run(&task)? && checks.tally.passed == before {
        checks.fail("release", "no test of the scheduler ran");
    }
    Ok(())
}

/// Cannot share a build: the panic strategy is part of every crate's code. wgpu is left out: it
/// is most of the build, and it answers a missing or broken loader without panicking, where the
/// CUDA bindings panic unless they are asked first.
fn abort(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    let mut backends = vec!["cuda", "opencl"];
    let cli = session
        .project
        .package(detect::CLI)
        .with_context(|| format!("this workspace has no package `{}`", detect::CLI))?;
    if cli.has_feature("cpu") {
        backends.push("cpu");
    }
    let features = backends.join(",");
    let args = [
        "--profile",
        "abort",
        "--package",
        detect::CLI,
        "--no-default-features",
        "--features",
        &features,
    ];
    let built = Artifacts::build(session.project, args)?;
    let binary = built.program(detect::CLI, Sort::Bin, "warploom")?;
    surroundings::inspect(session, checks, &binary, &backends)
}

fn deny(session: &Session<'_>, checks: &mut Checks) -> Result<()> {
    if !answers(session.project, "deny") {
        checks.skip(
            "cargo deny",
            "it is not installed (cargo install cargo-deny)",
        );
        return Ok(());
    }
    let task = Task::cargo(session.project, ["deny", "check", "licenses", "bans"]);
    checks.run(&task).map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flags;
    use crate::project::{Dependency, Project, Target};
    use crate::setup::Parts;

    #[test]
    fn each_feature_is_built_once() {
        let linked = Target {
            name: "linked".into(),
            kind: "test".into(),
        };
        let mut facade = Package {
            name: "warploom".into(),
            features: ["all-backends", "cpu", "default"].map(String::from).into(),
            targets: vec![linked],
            ..Package::default()
        };
        let shown = |facade: &Package| {
            let runs = feature_runs(facade).into_iter();
            let runs = runs.map(|(set, verb)| format!("{verb} {set}"));
            runs.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(&facade), "test , check all-backends, test cpu");
        facade.dependencies.push(Dependency {
            name: "rstest".into(),
            dev: true,
        });
        assert_eq!(
            shown(&facade),
            "check , test , check all-backends, check cpu, test cpu"
        );
        facade.targets.clear();
        assert_eq!(shown(&facade), "check , check all-backends, check cpu");
    }

    #[test]
    fn packages_are_selected_after_the_build() {
        let project = Project {
            root: ".".into(),
            target: "target".into(),
            cargo: "cargo".into(),
            packages: Vec::new(),
        };
        let mut session = Session {
            project: &project,
            parts: Parts::below(Path::new("no such folder")),
            flags: flags::Test::default(),
            ci: true,
            nextest: true,
        };
        let shown = |session: &Session<'_>, packages: &[&str], filter| {
            test_task(session, packages, filter, &Vec::new()).shown()
        };
        assert_eq!(
            shown(&session, &["a", "b"], None),
            "cargo nextest run --profile ci --filterset 'package(a) + package(b)'"
        );
        session.ci = false;
        assert_eq!(
            shown(&session, &[], Some("lease")),
            "cargo nextest run lease"
        );
        session.nextest = false;
        assert_eq!(
            shown(&session, &[], Some("lease")),
            "cargo test --lib --bins --tests --examples --no-fail-fast lease"
        );
    }
}
