//! Every CUDA kernel of the workspace through NVIDIA's own compilers, on machines without a card.
//!
//! NVRTC makes PTX as the backend lets it, `ptxas` makes machine code as a driver would, and what
//! that takes of a card is compared with a table in the repository. No kernel runs here.

mod ptxas;
mod sources;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::artifacts::{Artifacts, Sort};
use crate::flags;
use crate::process::{Task, is_ci};
use crate::project::Project;
use crate::wheels::{self, NVRTC_12, NVRTC_13, PTXAS, Unpacked};
use table::{Key, Measured, Table};

/// The package of the program that compiles, which is its example `nvrtc`.
const COMPILER: &str = "warploom-cuda";

/// The table, below the root.
const TABLE: &str = "xtask/cuda-kernels.txt";

/// For each major version of NVRTC: compile for this capability, assemble for that architecture.
/// NVRTC 12.0 is older than `sm_120`, where its newest PTX has to do, as it has with a driver.
const PAIRS: &[(u32, &[(u32, u32)])] = &[
    (12, &[(75, 75), (90, 90), (90, 120)]),
    (13, &[(75, 75), (90, 90), (120, 120)]),
];

/// Both words of the program that compiles.
const MATHS: [&str; 2] = ["strict", "fast"];

/// The compilers.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) nvrtc_12: Unpacked,
    pub(crate) nvrtc_13: Unpacked,
    ptxas: Unpacked,
}

impl Tools {
    /// From the target directory, or through pip.
    pub(crate) fn fetch(project: &Project) -> Result<Self> {
        Ok(Self {
            nvrtc_12: wheels::fetch(project, NVRTC_12)?,
            nvrtc_13: wheels::fetch(project, NVRTC_13)?,
            ptxas: wheels::fetch(project, PTXAS)?,
        })
    }

    fn versions(&self) -> String {
        let all = [&self.nvrtc_12, &self.nvrtc_13, &self.ptxas];
        let each = all.map(|tool| format!("{} {}", tool.name, tool.version));
        each.join(", ")
    }

    fn nvrtc(&self, major: u32) -> &Unpacked {
        if major == 12 {
            &self.nvrtc_12
        } else {
            &self.nvrtc_13
        }
    }
}

/// What was found out about all kernels.
#[derive(Debug)]
pub(crate) struct Outcome {
    measured: Measured,
    versions: String,
    pub(crate) complaints: Vec<String>,
}

impl Outcome {
    /// One line about it.
    pub(crate) fn summary(&self) -> String {
        let mut kernels: Vec<&str> = self.measured.keys().map(|key| &*key.kernel).collect();
        kernels.dedup();
        let most = self.measured.values().map(|usage| usage.registers).max();
        format!(
            "{} kernels, {} times machine code, at most {} registers ({})",
            kernels.len(),
            self.measured.len(),
            most.unwrap_or(0),
            self.versions
        )
    }

    /// How many pieces of machine code there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.measured.len()).unwrap_or(u32::MAX)
    }
}

/// `cargo xtask cuda-check`.
pub(crate) fn run(project: &Project, flags: &flags::CudaCheck) -> Result<ExitCode> {
    let tools = match Tools::fetch(project) {
        Ok(tools) => tools,
        Err(error) if is_ci() => return Err(error),
        Err(error) => {
            println!("skipped: no kernel was compiled: {error:#}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut args = vec!["--package", COMPILER];
    for (package, _) in sources::writers(project) {
        if !args.contains(&package) {
            args.extend(["--package", package]);
        }
    }
    args.push("--examples");
    let built = Artifacts::build(project, args)?;
    let mut outcome = measure(project, &tools, &built)?;
    if flags.bless {
        let table = Table::of(&outcome.measured, &outcome.versions);
        fs::write(project.root.join(TABLE), table.text())?;
        // What is left cannot be blessed.
        outcome.complaints = table.complaints(&outcome.measured, &outcome.versions);
    }
    if flags.json {
        let document = json!({
            "compilers": outcome.versions,
            "machine_code": table::as_json(&outcome.measured),
            "complaints": outcome.complaints,
        });
        println!("{document:#}");
    } else {
        print!("{}", table::shown(&outcome.measured));
        println!("\n{}", outcome.summary());
    }
    for complaint in &outcome.complaints {
        eprintln!("error: {complaint}");
    }
    Ok(if outcome.complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!("help: when this is meant to be, `cargo xtask cuda-check --bless`");
        ExitCode::FAILURE
    })
}

/// Compiles, assembles and compares, with programs that are built.
pub(crate) fn measure(project: &Project, tools: &Tools, built: &Artifacts) -> Result<Outcome> {
    let compiler = built.program(COMPILER, Sort::Example, "nvrtc")?;
    let writers = sources::writers(project)
        .into_iter()
        .map(|(package, name)| built.program(package, Sort::Example, name))
        .collect::<Result<Vec<PathBuf>>>()?;
    let work = project.target.join("cuda-check");
    // Nothing of an earlier run may pass for something of this one.
    drop(fs::remove_dir_all(&work));
    let folder = sources::collect(project, &writers, &work)?;
    compile(project, tools, &compiler, &folder, &work)?;
    let measured = assemble(project, tools, &folder, &work)?;
    let versions = tools.versions();
    let table = match fs::read_to_string(project.root.join(TABLE)) {
        Ok(text) => Table::parse(&text).with_context(|| format!("in {TABLE}"))?,
        // Without one, everything is new.
        Err(_) => Table::default(),
    };
    Ok(Outcome {
        complaints: table.complaints(&measured, &versions),
        measured,
        versions,
    })
}

/// Makes PTX of all sources, with both versions of NVRTC at once.
fn compile(
    project: &Project,
    tools: &Tools,
    compiler: &Path,
    sources: &Path,
    work: &Path,
) -> Result<()> {
    thread::scope(|scope| {
        let mut running = Vec::new();
        for (major, pairs) in PAIRS {
            let out = ptx_folder(work, *major);
            fs::create_dir_all(&out)?;
            let mut capabilities: Vec<String> = pairs.iter().map(|it| it.0.to_string()).collect();
            capabilities.dedup();
            let task = Task::new(project, compiler)
                .args([&tools.nvrtc(*major).file, sources, out.as_path()])
                .args(capabilities);
            running.push(scope.spawn(move || task.stdout()));
        }
        for thread in running {
            match thread.join() {
                Ok(said) => eprint!("{}", said?),
                Err(_) => bail!("a thread that compiled has panicked"),
            }
        }
        Ok(())
    })
}

fn ptx_folder(work: &Path, nvrtc: u32) -> PathBuf {
    work.join(format!("nvrtc-{nvrtc}"))
}

/// A piece of PTX and what it is assembled for.
#[derive(Debug)]
struct Job {
    ptx: PathBuf,
    origin: String,
    math: &'static str,
    nvrtc: u32,
    architecture: u32,
}

/// Makes machine code of all PTX.
fn assemble(project: &Project, tools: &Tools, sources: &Path, work: &Path) -> Result<Measured> {
    let jobs = Mutex::new(jobs(sources, work)?.into_iter());
    let measured = Mutex::new(Measured::new());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(job) = next() {
            let usages = ptxas::assemble(project, &tools.ptxas.file, &job.ptx, job.architecture)?;
            let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
            for usage in usages {
                if usage.entry.starts_with("_Z") {
                    bail!(
                        "{}: `{}` is not `extern \"C\"`, so nobody finds it by its name",
                        job.origin,
                        usage.entry
                    );
                }
                let key = Key {
                    kernel: format!("{}/{}", job.origin, usage.entry),
                    math: job.math.to_owned(),
                    nvrtc: job.nvrtc,
                    architecture: job.architecture,
                };
                if measured.contains_key(&key) {
                    bail!("two kernels are called {}", key.kernel);
                }
                measured.insert(key, usage);
            }
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        for thread in running {
            match thread.join() {
                Ok(ended) => ended?,
                Err(_) => bail!("a thread that assembled has panicked"),
            }
        }
        Ok(())
    })?;
    Ok(measured
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}

/// Everything there is to assemble. A file that is not there will be missed by the assembler.
fn jobs(sources: &Path, work: &Path) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for entry in fs::read_dir(sources)? {
        let stem = sources::stem(&entry?.path());
        for (nvrtc, pairs) in PAIRS {
            for (capability, architecture) in *pairs {
                for math in MATHS {
                    let file = format!("{stem}.{math}.compute_{capability}.ptx");
                    jobs.push(Job {
                        ptx: ptx_folder(work, *nvrtc).join(file),
                        origin: sources::origin(&stem),
                        math,
                        nvrtc: *nvrtc,
                        architecture: *architecture,
                    });
                }
            }
        }
    }
    Ok(jobs)
}
