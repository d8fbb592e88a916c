//! NVIDIA's compilers, as pip gets them: NVRTC, which makes PTX of CUDA C, and `ptxas`, which makes
//! machine code of PTX.
//!
//! Their licence lets everyone download them and nobody pass them on, so they are fetched to the
//! target directory and never committed. What is there stays there; removing `wheels` from the
//! target directory fetches it again.
//!
//! Each has one version, that of the table in `cuda-kernels.txt`: a compiler that came out overnight
//! would count registers otherwise, and fail every check of code that has not changed. Newer ones are
//! taken by a change here, with `cargo xtask cuda-check --bless` and a look at what moved.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Task;
use crate::project::Project;

/// A package of pip's that holds a compiler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wheel {
    /// What people call it, and where it is kept.
    pub(crate) name: &'static str,
    requirement: &'static str,
    /// The file that matters.
    file: &'static str,
    /// Under which name the backend looks for it first.
    alias: Option<&'static str>,
}

/// The oldest NVRTC we care for. Its PTX is what the oldest drivers take.
pub(crate) const NVRTC_12: Wheel = Wheel {
    name: "nvrtc-12",
    requirement: "nvidia-cuda-nvrtc-cu12==12.0.140",
    file: "libnvrtc.so.12",
    alias: Some("libnvrtc.so"),
};

/// A new NVRTC.
pub(crate) const NVRTC_13: Wheel = Wheel {
    name: "nvrtc-13",
    requirement: "nvidia-cuda-nvrtc==13.4.92",
    file: "libnvrtc.so.13",
    alias: Some("libnvrtc.so"),
};

/// Its assembler, which knows old cards and new ones.
pub(crate) const PTXAS: Wheel = Wheel {
    name: "ptxas",
    requirement: "nvidia-cuda-nvcc==13.4.92",
    file: "ptxas",
    alias: None,
};

/// The longest a download may take.
const DEADLINE: Duration = Duration::from_mins(10);

/// A wheel on this machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unpacked {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// The library or the program.
    pub(crate) file: PathBuf,
}

impl Unpacked {
    /// The folder of the file, for a loader's path.
    pub(crate) fn folder(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new(".")).to_owned()
    }
}

/// The wheel, from the target directory or else through pip.
///
/// # Errors
/// Mostly that there is no pip, or nothing it could reach.
pub(crate) fn fetch(project: &Project, wheel: Wheel) -> Result<Unpacked> {
    let base = project.target.join("wheels");
    let folder = base.join(wheel.name);
    if let Ok(there) = unpacked(wheel, &folder) {
        return Ok(there);
    }
    // Another process may be doing the same: each works in a folder of its own, and renames it.
    let own = base.join(format!(".{}-{}", wheel.name, std::process::id()));
    drop(fs::remove_dir_all(&own));
    fs::create_dir_all(&own).with_context(|| format!("{} cannot be made", own.display()))?;
    eprintln!("fetching {}", wheel.requirement);
    let fetched = download(project, wheel, &own).and_then(|()| prepare(wheel, &own));
    if let Err(error) = fetched {
        drop(fs::remove_dir_all(&own));
        return Err(error.context(format!("{} could not be fetched", wheel.requirement)));
    }
    if fs::rename(&own, &folder).is_err() {
        // Either the other process was faster, or what is there is of no use.
        if unpacked(wheel, &folder).is_err() {
            drop(fs::remove_dir_all(&folder));
            fs::rename(&own, &folder)?;
        }
        drop(fs::remove_dir_all(&own));
    }
    unpacked(wheel, &folder)
}

fn download(project: &Project, wheel: Wheel, to: &Path) -> Result<()> {
    let task = Task::new(project, "python3")
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--no-compile", "--no-deps"])
        .args(["--only-binary", ":all:", "--target"])
        .args([to])
        .args([wheel.requirement])
        // It is no installation into the system, which pip would warn root of.
        .variable("PIP_ROOT_USER_ACTION", "ignore");
    let answer = task.capture(DEADLINE)?;
    if !answer.status.success() {
        bail!("pip says: {}", reason(&answer.stderr));
    }
    Ok(())
}

/// The line of pip's that says why.
pub(crate) fn reason(stderr: &str) -> &str {
    let lines = || stderr.lines().map(str::trim).filter(|it| !it.is_empty());
    let error = lines().rfind(|line| line.starts_with("ERROR:"));
    error.or_else(|| lines().next_back()).unwrap_or("nothing")
}

/// Makes the unpacked wheel usable where it is.
fn prepare(wheel: Wheel, folder: &Path) -> Result<()> {
    let file = unpacked(wheel, folder)?.file;
    if let Some(alias) = wheel.alias {
        fs::hard_link(&file, file.with_file_name(alias))?;
    }
    // Wheels do not always keep that a file is a program.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// What pip left in a folder.
fn unpacked(wheel: Wheel, folder: &Path) -> Result<Unpacked> {
    let lacks = |what: &str| format!("{} has no {what}", folder.display());
    let file = found(folder, wheel.file)?.with_context(|| lacks(wheel.file))?;
    let entries = fs::read_dir(folder)?.flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let version = names.find_map(|name| {
        let (_, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
        Some(version.to_owned())
    });
    Ok(Unpacked {
        name: wheel.name,
        version: version.with_context(|| lacks("version"))?,
        file,
    })
}

/// The file of this name in a folder or below it.
fn found(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(file) = found(&path, name)? {
                return Ok(Some(file));
            }
        } else if path.file_name().is_some_and(|it| it == name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_s_reason_is_told_from_its_chatter() {
        let offline = "\
WARNING: Retrying (Retry(total=0)) after connection broken
ERROR: Could not find a version that satisfies the requirement x
ERROR: No matching distribution found for x

notice: a new release of pip is there
";
        assert_eq!(
            reason(offline),
            "ERROR: No matching distribution found for x"
        );
        let without = "python3: No module named pip\n";
        assert_eq!(reason(without), "python3: No module named pip");
        assert_eq!(reason(""), "nothing");
    }

    #[test]
    fn a_wheel_is_recognised_by_its_file_and_its_version() {
        let root = std::env::temp_dir().join(format!("xtask-wheel-{}", std::process::id()));
        let lib = root.join("nvidia/cuda_nvrtc/lib");
        fs::create_dir_all(&lib).unwrap();
        let missing = unpacked(NVRTC_12, &root).unwrap_err().to_string();
        fs::write(lib.join("libnvrtc.so.12"), "").unwrap();
        let nameless = unpacked(NVRTC_12, &root).unwrap_err().to_string();
        fs::create_dir(root.join("nvidia_cuda_nvrtc_cu12-12.0.140.dist-info")).unwrap();
        prepare(NVRTC_12, &root).unwrap();
        let whole = unpacked(NVRTC_12, &root).unwrap();
        let alias = lib.join("libnvrtc.so").exists();
        fs::remove_dir_all(&root).unwrap();
        assert!(missing.ends_with("has no libnvrtc.so.12"), "{missing}");
        assert!(nameless.ends_with("has no version"), "{nameless}");
        assert_eq!(whole.version, "12.0.140");
        assert_eq!(whole.folder(), lib);
        assert!(alias);
    }
}
