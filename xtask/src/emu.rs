//! Any command with the CUDA emulator where it looks for the driver.
//!
//! The emulator is a library like any other until it is called `libcuda.so.1` and lies in a folder
//! that the loader searches first. That folder is made here, below the target directory, and is
//! named in `LD_LIBRARY_PATH` of the command and of nothing else. Cargo puts folders of its own in
//! front of that list for the programs it starts; they hold no driver, so ours is still the first.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::artifacts::Artifacts;
use crate::detect::passed_on;
use crate::flags;
use crate::process::{Task, Variables, is_ci};
use crate::project::Project;
use crate::wheels::{self, NVRTC_12, NVRTC_13, Unpacked, Wheel};

/// The package of the emulator.
pub(crate) const EMULATOR: &str = "warploom-cuda-emu";

/// The names under which a CUDA driver is looked for. The first is cudarc's, the second NVRTC's.
const DRIVER_NAMES: &[&str] = &["libcuda.so", "libcuda.so.1"];

/// What is emulated; all that is left out is the emulator's own choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Machine {
    /// A number, or a list of devices.
    pub(crate) devices: Option<String>,
    pub(crate) seed: Option<u64>,
    /// The longest delay before a job, in microseconds.
    pub(crate) jitter: Option<u64>,
    /// Calls that fail.
    pub(crate) fail: Vec<String>,
    /// Devices that die.
    pub(crate) lose: Vec<String>,
    pub(crate) log: Option<String>,
}

impl Machine {
    /// As the emulator reads it.
    pub(crate) fn variables(&self) -> Variables {
        let list = |rules: &[String]| (!rules.is_empty()).then(|| rules.join(";"));
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let all = [
            ("WARPLOOM_EMU_DEVICES", self.devices.clone()),
            ("WARPLOOM_EMU_SEED", number(self.seed)),
            ("WARPLOOM_EMU_JITTER", number(self.jitter)),
            ("WARPLOOM_EMU_FAIL", list(&self.fail)),
            ("WARPLOOM_EMU_LOSE", list(&self.lose)),
            ("WARPLOOM_EMU_LOG", self.log.clone()),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.into())));
        given.collect()
    }
}

/// The wheel of this major version of NVRTC.
pub(crate) fn wheel(major: u32) -> Option<Wheel> {
    match major {
        12 => Some(NVRTC_12),
        13 => Some(NVRTC_13),
        _ => None,
    }
}

/// `cargo xtask emu`.
pub(crate) fn run(project: &Project, flags: &flags::Emu) -> Result<ExitCode> {
    let Some((program, args)) = flags.command.split_first() else {
        bail!("there is nothing to run: put a command behind `--`");
    };
    let mut folders = vec![driver(project, "--lib")?];
    match wheels::fetch(project, flags.nvrtc.unwrap_or(NVRTC_13)) {
        Ok(nvrtc) => folders.push(nvrtc.folder()),
        // Who asked for one version does not want another, and CI wants all there is.
        Err(error) if flags.nvrtc.is_some() || is_ci() => return Err(error),
        Err(error) => eprintln!("warning: {error:#}; unless NVRTC is installed, only PTX runs"),
    }
    let here = std::env::current_dir().context("the current directory is gone")?;
    let task = Task::new(project, program)
        .args(args)
        .inside(here)
        .variables(&flags.machine.variables())
        .variables(&loading(&folders)?);
    Ok(passed_on(task.status()?))
}

/// Builds the emulator, and answers with a folder in which it has the driver's name. `targets` is
/// `--lib`, or `--all-targets` where its tests are built too: their dependencies' features change
/// its own, and this way it is compiled once.
pub(crate) fn driver(project: &Project, targets: &str) -> Result<PathBuf> {
    if !cfg!(target_os = "linux") {
        bail!("the emulator takes a driver's place through LD_LIBRARY_PATH, which only Linux has");
    }
    if project.package(EMULATOR).is_none() {
        bail!("this workspace has no package `{EMULATOR}`");
    }
    let built = Artifacts::build(project, ["--package", EMULATOR, targets])?;
    let library = built.shared_library(EMULATOR)?;
    let folder = project.target.join("emu");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for name in DRIVER_NAMES {
        link(&library, &folder.join(name))?;
    }
    Ok(folder)
}

/// Gives a file a second name, replacing what had it. A process that has the old file open keeps it.
fn link(file: &Path, name: &Path) -> Result<()> {
    let new = name.with_extension(format!("new-{}", std::process::id()));
    drop(fs::remove_file(&new));
    let made = fs::hard_link(file, &new).and_then(|()| fs::rename(&new, name));
    // Renaming to another name of the same file does nothing at all.
    drop(fs::remove_file(&new));
    made.with_context(|| format!("{} cannot be called {}", file.display(), name.display()))
}

/// The variable that makes a loader look into these folders before any other.
pub(crate) fn loading(folders: &[PathBuf]) -> Result<Variables> {
    let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    Ok(vec![("LD_LIBRARY_PATH", in_front(folders, &inherited)?)])
}

fn in_front(folders: &[PathBuf], inherited: &OsStr) -> Result<OsString> {
    // An empty entry means the current directory, which nobody meant.
    let others = std::env::split_paths(inherited).filter(|path| !path.as_os_str().is_empty());
    let others = others.filter(|path| !folders.contains(path));
    std::env::join_paths(folders.iter().cloned().chain(others))
        .with_context(|| format!("{folders:?} cannot be named in a list of folders"))
}

/// All that a process needs to see this machine: the emulator, a compiler, and what is emulated.
pub(crate) fn surroundings(
    driver: &Path,
    nvrtc: &Unpacked,
    machine: &Machine,
) -> Result<Variables> {
    let mut variables = machine.variables();
    variables.extend(loading(&[driver.to_owned(), nvrtc.folder()])?);
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_becomes_variables_and_silence_stays_silent() {
        assert_eq!(Machine::default().variables(), Variables::new());
        let machine = Machine {
            devices: Some("name=A,memory=1GiB;cc=9.0".into()),
            seed: Some(7),
            jitter: Some(0),
            fail: vec![
                "cuMemAlloc_v2#3=OUT_OF_MEMORY".into(),
                "cuInit#1=NO_DEVICE".into(),
            ],
            lose: vec!["1@5".into()],
            log: Some("calls".into()),
        };
        let told: Vec<String> = machine
            .variables()
            .into_iter()
            .map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
            .collect();
        assert_eq!(
            told,
            [
                "WARPLOOM_EMU_DEVICES=name=A,memory=1GiB;cc=9.0",
                "WARPLOOM_EMU_SEED=7",
                "WARPLOOM_EMU_JITTER=0",
                "WARPLOOM_EMU_FAIL=cuMemAlloc_v2#3=OUT_OF_MEMORY;cuInit#1=NO_DEVICE",
                "WARPLOOM_EMU_LOSE=1@5",
                "WARPLOOM_EMU_LOG=calls",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn our_folders_come_first_and_once() {
        let ours = ["t/emu", "t/nvrtc"].map(PathBuf::from);
        let list = |inherited: &str| in_front(&ours, OsStr::new(inherited)).unwrap();
        assert_eq!(list(""), "t/emu:t/nvrtc");
        assert_eq!(list("/a:/b"), "t/emu:t/nvrtc:/a:/b");
        assert_eq!(list("/a::t/nvrtc:"), "t/emu:t/nvrtc:/a");
        let odd = [PathBuf::from("a:b")];
        assert!(in_front(&odd, OsStr::new("")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_name_is_replaced_and_replacing_it_again_is_harmless() {
        let root = std::env::temp_dir().join(format!("xtask-emu-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (file, name) = (root.join("libemu.so"), root.join("libcuda.so.1"));
        fs::write(&name, "old").unwrap();
        fs::write(&file, "new").unwrap();
        link(&file, &name).unwrap();
        link(&file, &name).unwrap();
        let content = fs::read_to_string(&name).unwrap();
        let count = fs::read_dir(&root).unwrap().count();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((content.as_str(), count), ("new", 2));
    }
}
