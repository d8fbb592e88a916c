//! What a test process sees of this machine: several software devices, no driver, broken drivers.
//!
//! All of it is done with variables and small files below the target directory, so nothing
//! installed is touched. What variables cannot do is in [`crate::hide`].

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::Variables;
use crate::project::Project;
use crate::setup::{Parts, library_dirs};

/// The libraries the backends open at run time, by the names they ask for.
pub(crate) const DRIVER_LIBRARIES: &[&str] = &[
    "libcuda.so",
    "libcuda.so.1",
    "libnvrtc.so",
    "libOpenCL.so",
    "libOpenCL.so.1",
    "libvulkan.so",
    "libvulkan.so.1",
];

/// Where a test process keeps what it writes, for every surrounding.
fn private(project: &Project) -> Result<Variables> {
    let base = folder(project)?;
    let runtime = made(base.join("runtime"))?;
    // The specification of that variable asks for a folder nobody else can enter.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700))?;
    }
    let cache = made(base.join("pocl-cache"))?;
    Ok(vec![
        ("XDG_RUNTIME_DIR", runtime.into()),
        ("POCL_CACHE_DIR", cache.into()),
    ])
}

/// A runtime folder where the session has none, which Mesa would complain about.
pub(crate) fn quiet_runtime(project: &Project) -> Result<Variables> {
    let mut variables = private(project)?;
    let has_one = std::env::var_os("XDG_RUNTIME_DIR").is_some();
    variables.retain(|(name, _)| *name == "XDG_RUNTIME_DIR" && !has_one);
    Ok(variables)
}

/// Three OpenCL devices by PoCL and two Vulkan devices by lavapipe, as far as they are installed.
pub(crate) fn several_devices(project: &Project, parts: &Parts) -> Result<Variables> {
    let mut variables = private(project)?;
    // Two that work asynchronously and one that does not: both orders of completion occur.
    variables.push(("POCL_DEVICES", "pthread pthread basic".into()));
    // In GiB: small enough that tests can fill a device without filling this machine.
    variables.push(("POCL_MEMORY_LIMIT", "1".into()));
    if let Some(original) = &parts.lavapipe.found {
        let text = fs::read_to_string(original)
            .with_context(|| format!("{} cannot be read", original.display()))?;
        let base = folder(project)?;
        let mut both = OsString::new();
        for name in ["lavapipe_a.json", "lavapipe_b.json"] {
            let copy = base.join(name);
            fs::write(&copy, &text)?;
            if !both.is_empty() {
                both.push(":");
            }
            both.push(copy);
        }
        variables.extend(vulkan_drivers(&both));
    }
    Ok(variables)
}

/// The loaders are there and list no driver.
pub(crate) fn no_drivers(project: &Project) -> Result<Variables> {
    let base = folder(project)?;
    let mut variables = private(project)?;
    variables.push(("OCL_ICD_VENDORS", made(base.join("no-vendors"))?.into()));
    variables.extend(vulkan_drivers(&base.join("no-such-driver.json").into()));
    variables.push(("CUDA_VISIBLE_DEVICES", OsString::new()));
    Ok(variables)
}

/// Every driver library is a file that is no library.
pub(crate) fn broken_libraries(project: &Project) -> Result<Variables> {
    let dir = made(folder(project)?.join("broken"))?;
    for name in DRIVER_LIBRARIES {
        fs::write(dir.join(name), "this is not a shared library\n")?;
    }
    libraries_from(project, &dir)
}

/// Every driver library loads and has none of the functions: what half an update leaves behind.
/// `None` where no library is found that could play the part.
pub(crate) fn hollow_libraries(project: &Project) -> Result<Option<Variables>> {
    let mut candidates = library_dirs(Path::new("/")).into_iter();
    let Some(actor) = candidates.find_map(|dir| {
        let file = dir.join("libm.so.6");
        file.exists().then_some(file)
    }) else {
        return Ok(None);
    };
    let dir = made(folder(project)?.join("hollow"))?;
    for name in DRIVER_LIBRARIES {
        fs::copy(&actor, dir.join(name))?;
    }
    libraries_from(project, &dir).map(Some)
}

fn libraries_from(project: &Project, dir: &Path) -> Result<Variables> {
    let mut variables = private(project)?;
    variables.push(("LD_LIBRARY_PATH", dir.into()));
    variables.push(("OPENCL_DYLIB_PATH", dir.join("libOpenCL.so.1").into()));
    Ok(variables)
}

/// The loader's old and its new name for the list of drivers; the new one wins where it is known.
fn vulkan_drivers(list: &OsString) -> Variables {
    vec![
        ("VK_ICD_FILENAMES", list.clone()),
        ("VK_DRIVER_FILES", list.clone()),
    ]
}

fn folder(project: &Project) -> Result<PathBuf> {
    made(project.target.join("stand-ins"))
}

fn made(dir: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    Ok(dir)
}

/// The variables for `WARPLOOM_REQUIRE`, backends whose tests may not be skipped, and for
/// `WARPLOOM_TEST_FACES`, how many devices of them fleets have to find.
pub(crate) fn required() -> Variables {
    vec![
        ("WARPLOOM_REQUIRE", "cpu,opencl,wgpu".into()),
        ("WARPLOOM_TEST_FACES", "cpu=1,opencl>=3,wgpu>=2".into()),
    ]
}
