//! The software devices that stand in for GPUs, and a browser to look at reports with: finding them, and
//! getting them where apt can.
//!
//! Everything is looked for by file, never by loading a library: a driver that crashes when it is
//! loaded must not take this program with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process::is_ci;

/// One thing that has to be installed, and whether it is.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    package: &'static str,
    /// What does not run without it.
    needed_for: &'static str,
    pub(crate) found: Option<PathBuf>,
}

/// All parts, in the order they are shown.
#[derive(Debug, PartialEq)]
pub(crate) struct Parts {
    pub(crate) opencl_loader: Part,
    pub(crate) pocl: Part,
    pub(crate) vulkan_loader: Part,
    pub(crate) lavapipe: Part,
    pub(crate) browser: Part,
}

impl Parts {
    /// Looks below `root`, which is `/` outside tests.
    pub(crate) fn below(root: &Path) -> Self {
        let dirs = library_dirs(root);
        let library = |name: &str| dirs.iter().map(|dir| dir.join(name)).find(|f| f.exists());
        let vulkan_dirs = ["etc", "usr/share", "usr/local/share", "usr/local/etc"];
        let vulkan_dirs = vulkan_dirs.map(|dir| root.join(dir).join("vulkan/icd.d"));
        Self {
            opencl_loader: Part {
                name: "OpenCL loader",
                package: "ocl-icd-libopencl1",
                needed_for: "everything on OpenCL",
                found: library("libOpenCL.so.1"),
            },
            pocl: Part {
                name: "PoCL",
                package: "pocl-opencl-icd",
                needed_for: "OpenCL tests without a GPU",
                found: entry(&root.join("etc/OpenCL/vendors"), "pocl", ".icd"),
            },
            vulkan_loader: Part {
                name: "Vulkan loader",
                package: "libvulkan1",
                needed_for: "everything on wgpu",
                found: library("libvulkan.so.1"),
            },
            lavapipe: Part {
                name: "lavapipe",
                package: "mesa-vulkan-drivers",
                needed_for: "wgpu tests without a GPU",
                found: vulkan_dirs
                    .iter()
                    .find_map(|dir| entry(dir, "lvp", ".json")),
            },
            browser: Part {
                name: "Chromium",
                package: "chromium",
                needed_for: "opening reports in a browser",
                found: browser(root),
            },
        }
    }

    pub(crate) fn installed() -> Self {
        Self::below(Path::new("/"))
    }

    fn all(&self) -> [&Part; 5] {
        let [opencl_loader, pocl, vulkan_loader, lavapipe] = self.stand_ins();
        [opencl_loader, pocl, vulkan_loader, lavapipe, &self.browser]
    }

    /// Those that devices are made of.
    fn stand_ins(&self) -> [&Part; 4] {
        let Self {
            opencl_loader,
            pocl,
            vulkan_loader,
            lavapipe,
            browser: _,
        } = self;
        [opencl_loader, pocl, vulkan_loader, lavapipe]
    }

    fn missing(&self) -> Vec<&Part> {
        let all = self.all().into_iter();
        all.filter(|part| part.found.is_none()).collect()
    }

    /// The stand-ins that are not there, as one clause; `None` when all are.
    pub(crate) fn complaint(&self) -> Option<String> {
        complaint(&self.stand_ins())
    }
}

/// The parts that are not there, as one clause; `None` when all are.
fn complaint(parts: &[&Part]) -> Option<String> {
    let missing = parts.iter().filter(|part| part.found.is_none());
    let names: Vec<&str> = missing.map(|part| part.name).collect();
    (!names.is_empty()).then(|| format!("missing: {}", names.join(", ")))
}

/// A Chromium, under one of the names it has.
fn browser(root: &Path) -> Option<PathBuf> {
    let folders = ["usr/bin", "usr/local/bin", "snap/bin"];
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let mut files = folders
        .iter()
        .flat_map(|folder| names.map(|name| root.join(folder).join(name)));
    files.find(|file| file.is_file())
}

/// Where a dynamic loader looks by itself.
pub(crate) fn library_dirs(root: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for dir in ["usr/lib", "usr/lib64", "usr/local/lib", "lib", "lib64"] {
        let dir = root.join(dir);
        // Debian keeps one folder per architecture.
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().ends_with("-linux-gnu") {
                dirs.push(entry.path());
            }
        }
        dirs.push(dir);
    }
    let real = dirs.iter().filter_map(|dir| dir.canonicalize().ok());
    let mut real: Vec<PathBuf> = real.filter(|dir| dir.is_dir()).collect();
    let mut seen = Vec::new();
    real.retain(|dir| {
        let new = !seen.contains(dir);
        seen.push(dir.clone());
        new
    });
    real
}

/// The first file of a folder whose name starts and ends so.
fn entry(dir: &Path, start: &str, end: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(start) && name.ends_with(end)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// `cargo xtask setup`.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let parts = if check { Parts::installed() } else { ensure()? };
    report(&parts);
    match complaint(&parts.all()) {
        Some(complaint) if check || is_ci() || can_install() => {
            eprintln!("error: {complaint}");
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Installs what is missing where that can be done without asking; says what is missing elsewhere.
pub(crate) fn ensure() -> Result<Parts> {
    let parts = Parts::installed();
    let missing = parts.missing();
    if missing.is_empty() {
        return Ok(parts);
    }
    let packages: Vec<&str> = missing.iter().map(|part| part.package).collect();
    if can_install() {
        println!("installing {}", packages.join(" "));
        // One by one where not all can be had: none is to be missing because of another.
        if !install(&packages)? {
            for package in &packages {
                install(&[package])?;
            }
        }
        return Ok(Parts::installed());
    }
    for part in &missing {
        println!("{} is missing: {} is skipped", part.name, part.needed_for);
    }
    println!(
        "on Debian or Ubuntu:\n    sudo apt-get install -y {}",
        packages.join(" ")
    );
    Ok(parts)
}

/// Installs packages where nobody has to be asked; elsewhere nothing happens.
pub(crate) fn install_if_allowed(packages: &[&str]) -> Result<()> {
    if can_install() {
        println!("installing {}", packages.join(" "));
        if !install(packages)? {
            println!("apt-get could not install {}", packages.join(" "));
        }
    }
    Ok(())
}

fn install(packages: &[&str]) -> Result<bool> {
    // The package lists may be there already; fetching them takes longer than the installation.
    if apt_get(&["install", "-y", "--no-install-recommends"], packages)? {
        return Ok(true);
    }
    println!("apt-get could not do it with the lists it has; fetching new ones");
    apt_get(&["update"], &[])?;
    apt_get(&["install", "-y", "--no-install-recommends"], packages)
}

fn apt_get(verb: &[&str], packages: &[&str]) -> Result<bool> {
    let mut command = Command::new("apt-get");
    command
        .args(["-q", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=2"])
        .args(verb)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.status().context("apt-get could not be started")?;
    Ok(status.success())
}

/// As root where there is apt-get: nobody has to be asked, and failing is a failure.
fn can_install() -> bool {
    let id = Command::new("id").arg("-u").output();
    let is_root = id.is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    is_root && Path::new("/usr/bin/apt-get").exists()
}

fn report(parts: &Parts) {
    for part in parts.all() {
        match &part.found {
            Some(file) => println!(
                "{:<14}  {:<18}  {}",
                part.name,
                version(part.package, file),
                file.display()
            ),
            None => println!("{:<14}  {:<18}  {}", part.name, "missing", part.package),
        }
    }
}

/// The package's version, or what the file's real name says about it.
fn version(package: &str, file: &Path) -> String {
    let asked = Command::new("dpkg-query")
        .args(["-W", "-f=${Version}", package])
        .output();
    if let Ok(answer) = asked
        && answer.status.success()
        && !answer.stdout.is_empty()
    {
        return String::from_utf8_lossy(&answer.stdout).into_owned();
    }
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    match name.split_once(".so.") {
        Some((_, number)) => number.to_owned(),
        None => "unknown version".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of empty files, removed when dropped.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            for file in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            fs::create_dir_all(&root).unwrap();
            Self(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn everything_is_found_where_debian_puts_it() {
        let tree = Tree::new(
            "full",
            &[
                "usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
                "usr/lib/x86_64-linux-gnu/libvulkan.so.1",
                "etc/OpenCL/vendors/pocl.icd",
                "usr/share/vulkan/icd.d/intel_icd.x86_64.json",
                "usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
                "usr/bin/chromium",
            ],
        );
        let parts = Parts::below(&tree.0);
        assert_eq!(parts.complaint(), None);
        assert_eq!(complaint(&parts.all()), None);
        let lavapipe = parts.lavapipe.found.unwrap();
        assert!(lavapipe.ends_with("lvp_icd.x86_64.json"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let tree = Tree::new(
            "half",
            &[
                "usr/lib64/libvulkan.so.1",
                "etc/OpenCL/vendors/intel.icd",
                "etc/vulkan/icd.d/lvp_icd.json",
            ],
        );
        let parts = Parts::below(&tree.0);
        let stand_ins = parts.complaint().unwrap();
        assert_eq!(stand_ins, "missing: OpenCL loader, PoCL");
        let all = complaint(&parts.all()).unwrap();
        assert_eq!(all, "missing: OpenCL loader, PoCL, Chromium");
    }

    #[test]
    fn a_folder_reached_twice_is_listed_once() {
        let tree = Tree::new("merged", &["usr/lib/aarch64-linux-gnu/libc.so.6"]);
        #[cfg(unix)]
        std::os::unix::fs::symlink("usr/lib", tree.0.join("lib")).unwrap();
        let dirs = library_dirs(&tree.0);
        assert_eq!(dirs.len(), 2, "{dirs:?}");
        assert!(dirs[0].ends_with("usr/lib/aarch64-linux-gnu"));
    }
}
