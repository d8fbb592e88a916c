//! `cargo xtask arm`: what processors of another kind compute. The engine's own tests, built for
//! `AArch64` and run on an emulated processor, so that the code for NEON is compiled and held against
//! the same expectations as that for AVX.
//!
//! It is no stage of `test`: building for a second processor takes as long as the slowest of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{Task, Variables};
use crate::project::Project;
use crate::setup;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";
/// Where Debian keeps the other processor's C library.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "qemu-user-static"];

/// The crates whose code depends on the processor.
const TESTED: &[&str] = &["warploom-flow", "warploom-native", "warploom-engine"];

/// The longest a download may take.
const DEADLINE: Duration = Duration::from_mins(10);

/// Runs the tests whose names contain `filter`.
pub(crate) fn run(project: &Project, filter: Option<&str>) -> Result<ExitCode> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "this emulates AArch64 on x86-64 Linux; on AArch64 itself `cargo xtask test` is the test"
        );
    }
    for (program, package) in [LINKER, EMULATOR].iter().zip(PACKAGES) {
        if !is_there(program) {
            setup::install_if_allowed(&[package])?;
        }
        if !is_there(program) {
            bail!("`{program}` is missing; on Debian or Ubuntu: sudo apt-get install -y {package}");
        }
    }
    let variables = compiler(project)?;
    let mut task = Task::cargo(project, ["test", "--lib", "--target", TARGET])
        .variables(&variables)
        .variable("CARGO_TARGET_DIR", project.target.join("arm/build"))
        .variable("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .variable(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("{EMULATOR} -L {LIBRARIES}"),
        );
    for package in TESTED {
        task = task.args(["--package", package]);
    }
    let ran = task.args(filter).stream()?;
    match ran.tally {
        Some(tally) if ran.status.success() && tally.passed > 0 => {
            println!("{} tests passed on an emulated {TARGET}", tally.passed);
            Ok(ExitCode::SUCCESS)
        }
        _ => Ok(ExitCode::FAILURE),
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What makes cargo use a compiler that knows the other processor: nothing where rustup has it.
fn compiler(project: &Project) -> Result<Variables> {
    let asked = Task::new(project, "rustc").args(["--print", "target-libdir", "--target", TARGET]);
    if let Ok(answer) = asked.capture(DEADLINE)
        && answer.status.success()
        && Path::new(answer.stdout.trim()).is_dir()
    {
        return Ok(Vec::new());
    }
    let folder = project.target.join("arm/compiler");
    let rustc = folder.join("usr/bin/rustc");
    if !rustc.is_file() {
        unpack(project, &folder).with_context(|| {
            format!(
                "no compiler for {TARGET}: rustup has none here, and Debian's could not be fetched"
            )
        })?;
    }
    let mut libraries = vec![folder.join("usr/lib/x86_64-linux-gnu")];
    // LLVM is in a folder of its version.
    for entry in fs::read_dir(folder.join("usr/lib"))? {
        libraries.push(entry?.path().join("lib"));
    }
    Ok(vec![
        ("RUSTC", rustc.into()),
        ("LD_LIBRARY_PATH", std::env::join_paths(libraries)?),
    ])
}

/// Gets Debian's newest compiler, which is kept for browsers, with the standard library of both
/// processors. It is unpacked and never installed: it would push out rustup's.
fn unpack(project: &Project, folder: &Path) -> Result<()> {
    let base = folder.parent().context("a folder in a folder")?;
    let lists = Lists::new(project, &base.join("apt"))?;
    let library = lists.need("libstd-rust-web-dev", "libstd-rust-web-")?;
    let llvm = lists.need(&library, "libllvm")?;
    let wanted = [
        "rustc-web:amd64".to_owned(),
        "libstd-rust-web-dev:amd64".to_owned(),
        "libstd-rust-web-dev:arm64".to_owned(),
        format!("{library}:amd64"),
        format!("{library}:arm64"),
        format!("{llvm}:amd64"),
    ];
    let packed = base.join("packages");
    fs::create_dir_all(&packed)?;
    lists.download(&wanted, &packed)?;
    let draft = base.join("compiler.part");
    if draft.exists() {
        fs::remove_dir_all(&draft)?;
    }
    for entry in fs::read_dir(&packed)? {
        let task = Task::new(project, "dpkg-deb").args(["-x".as_ref(), entry?.path().as_os_str()]);
        let done = task.args([&draft]).capture(DEADLINE)?;
        if !done.status.success() {
            bail!("dpkg-deb: {}", done.stderr.trim());
        }
    }
    fs::rename(&draft, folder)?;
    Ok(fs::remove_dir_all(&packed)?)
}

/// Lists of packages for both processors, kept apart from the system's own.
struct Lists<'a> {
    project: &'a Project,
    folder: PathBuf,
}

impl<'a> Lists<'a> {
    fn new(project: &'a Project, folder: &Path) -> Result<Self> {
        for part in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let lists = Self {
            project,
            folder: folder.to_owned(),
        };
        println!("fetching a compiler for {TARGET}, once");
        lists.ask("apt-get", &["-q", "update"], None)?;
        Ok(lists)
    }

    fn ask(&self, program: &str, args: &[&str], inside: Option<&Path>) -> Result<String> {
        let mut task = Task::new(self.project, program);
        let dirs = [
            ("State", "state"),
            ("State::lists", "state/lists"),
            ("Cache", "cache"),
        ];
        for (name, dir) in dirs {
            let option = format!("Dir::{name}={}", self.folder.join(dir).display());
            task = task.args(["-o".to_owned(), option]);
        }
        task = task
            .args(["-o", "APT::Architectures=amd64,arm64"])
            .args(args);
        if let Some(inside) = inside {
            task = task.inside(inside.to_owned());
        }
        let done = task.capture(DEADLINE)?;
        if !done.status.success() {
            bail!("{}: {}", task.named(), done.stderr.trim());
        }
        Ok(done.stdout)
    }

    /// The package that another one needs, by how its name begins.
    fn need(&self, package: &str, start: &str) -> Result<String> {
        let told = self.ask("apt-cache", &["depends", package], None)?;
        let needs = told
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        let mut found = needs.filter(|name| name.starts_with(start));
        let name = found
            .next()
            .with_context(|| format!("{package} needs no {start}"))?;
        Ok(name.to_owned())
    }

    fn download(&self, packages: &[String], to: &Path) -> Result<()> {
        let mut args = vec!["download"];
        args.extend(packages.iter().map(String::as_str));
        self.ask("apt-get", &args, Some(to)).map(drop)
    }
}
