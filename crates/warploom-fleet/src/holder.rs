//! Who else has a device: the processes that have its file open, as far as they can be seen.

use std::fs;
use std::path::Path;

/// The processes that have the device at this PCI address open, by number and name; where the address says
/// nothing about files, those that have any GPU open. `system` is where the file system begins.
pub(crate) fn holders(pci: Option<&str>, system: &Path) -> Vec<String> {
    let files = pci.map_or_else(Vec::new, |pci| device_files(pci, system));
    let is_it = |path: &str| match &files[..] {
        [] => is_gpu(path),
        files => files.iter().any(|file| file == path),
    };
    let processes = fs::read_dir(system.join("proc")).into_iter().flatten();
    let own = std::process::id();
    let mut found: Vec<(u32, String)> = Vec::new();
    for process in processes.flatten() {
        let number = process.file_name().to_string_lossy().parse();
        let Some(number) = number.ok().filter(|number| *number != own) else {
            continue;
        };
        // Those of other users cannot be read.
        let open = fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten();
        let mut open = open
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok());
        if open.any(|path| is_it(&path.to_string_lossy())) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push((number, name.trim().to_owned()));
        }
    }
    found.sort();
    let text = |(number, name)| format!("process {number} ({name})");
    found.into_iter().map(text).collect()
}

/// The files of the card at an address.
fn device_files(pci: &str, system: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let drm = system.join("sys/bus/pci/devices").join(pci).join("drm");
    for file in fs::read_dir(drm).into_iter().flatten().flatten() {
        files.push(format!("/dev/dri/{}", file.file_name().to_string_lossy()));
    }
    let facts = system.join("proc/driver/nvidia/gpus").join(pci);
    let facts = fs::read_to_string(facts.join("information")).unwrap_or_default();
    let mut minors = facts
        .lines()
        .filter_map(|line| line.strip_prefix("Device Minor:"));
    files.extend(
        minors
            .next()
            .map(|minor| format!("/dev/nvidia{}", minor.trim())),
    );
    files
}

/// Is it the file of some GPU?
fn is_gpu(path: &str) -> bool {
    let number = path.strip_prefix("/dev/nvidia");
    let numbered = number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    numbered || path.starts_with("/dev/dri/") || path == "/dev/kfd"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn process(system: &Path, number: u32, name: &str, files: &[&str]) {
        let own = system.join("proc").join(number.to_string());
        fs::create_dir_all(own.join("fd")).expect("a folder");
        fs::write(own.join("comm"), format!("{name}\n")).expect("a file");
        for (at, file) in files.iter().enumerate() {
            symlink(file, own.join("fd").join(at.to_string())).expect("a link");
        }
    }

    #[test]
    fn holders_of_a_card_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = folder.path();
        process(
            system,
            900,
            "python",
            &["/dev/null", "/dev/nvidiactl", "/dev/nvidia1"],
        );
        process(system, 77, "Xorg", &["/dev/dri/card0"]);
        process(system, 78, "bash", &["/dev/null", "/dev/nvidiactl"]);
        process(system, std::process::id(), "itself", &["/dev/nvidia1"]);
        fs::create_dir_all(system.join("proc/irq")).expect("a folder");
        // Of an address that nobody knows anything about: whoever has a GPU.
        let any = ["process 77 (Xorg)", "process 900 (python)"];
        assert_eq!(holders(None, system), any);
        assert_eq!(holders(Some("0000:05:00.0"), system), any);
        let gpu = system.join("proc/driver/nvidia/gpus/0000:01:00.0");
        fs::create_dir_all(&gpu).expect("a folder");
        let facts = "Model: \t\t A4000\nDevice Minor: \t 1\n";
        fs::write(gpu.join("information"), facts).expect("a file");
        assert_eq!(
            holders(Some("0000:01:00.0"), system),
            ["process 900 (python)"]
        );
        let drm = system.join("sys/bus/pci/devices/0000:02:00.0/drm/card0");
        fs::create_dir_all(drm).expect("a folder");
        assert_eq!(holders(Some("0000:02:00.0"), system), ["process 77 (Xorg)"]);
    }
}
