//! Machines with other drivers than this one, played by child processes.

use std::path::{Path, PathBuf};
use std::process::Command;

use warploom_core::memory::WGPU_DEVICE;
use warploom_core::{CheckedDevice, DeviceKind, Language};

use crate::rig::{backend, content, filled, listed, queue};

/// What a child process is asked to run: lists what it finds, and uses all of it at once.
#[test]
fn lists_and_uses_every_device() {
    let Some(backend) = backend() else { return };
    let listed = backend.probe().unwrap();
    assert_eq!(
        listed,
        backend.probe().unwrap(),
        "a second probe tells something else"
    );
    println!("found {} devices", listed.len());
    let devices: Vec<_> = listed
        .iter()
        .map(|info| CheckedDevice::new(backend.open(info.id.ordinal).unwrap()))
        .collect();
    for (ordinal, device) in (0..).zip(&devices) {
        assert_eq!(device.info().id.ordinal, u32::from(ordinal));
        let mut queue = queue(device);
        let buffer = filled(device, &mut queue, WGPU_DEVICE, &[ordinal; 9]);
        assert_eq!(content(&mut queue, &buffer), [ordinal; 9]);
        println!("used {}", device.info().id);
    }
}

/// Where Vulkan drivers announce themselves.
const PLACES: [&str; 3] = [
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
];

/// The file that announces lavapipe, Mesa's driver without a GPU.
fn lavapipe() -> Option<PathBuf> {
    let files = PLACES
        .iter()
        .filter_map(|place| Path::new(place).read_dir().ok());
    let mut files = files.flatten().filter_map(|file| Some(file.ok()?.path()));
    let found = files.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("lvp_icd"))
    });
    if found.is_none() {
        println!("skipped: lavapipe is not installed");
    }
    found
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("warploom-wgpu-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the test above where only `drivers` are installed, and returns what it prints.
fn child(drivers: &str, scratch: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "adapters::lists_and_uses_every_device",
            "--exact",
            "--nocapture",
        ])
        .env("VK_ICD_FILENAMES", drivers)
        .env("VK_DRIVER_FILES", drivers)
        .env("XDG_RUNTIME_DIR", scratch)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert!(!err.contains("panicked"), "{err}");
    out
}

#[test]
fn without_a_driver_the_list_is_empty() {
    if backend().is_none() {
        return;
    }
    let scratch = scratch("none");
    let nothing = scratch.join("not-there.json");
    let out = child(nothing.to_str().unwrap(), &scratch);
    assert!(out.contains("found 0 devices"), "{out}");
    let nonsense = scratch.join("nonsense.json");
    std::fs::write(&nonsense, "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"libnonsense-not-there.so\", \"api_version\": \"1.3.0\"}}").unwrap();
    let out = child(nonsense.to_str().unwrap(), &scratch);
    assert!(out.contains("found 0 devices"), "{out}");
    std::fs::remove_dir_all(&scratch).unwrap();
}

#[test]
fn two_equal_adapters_are_two_devices() {
    let Some(file) = lavapipe().filter(|_| backend().is_some()) else {
        return;
    };
    let scratch = scratch("two");
    let copy = scratch.join("second.json");
    std::fs::copy(&file, &copy).unwrap();
    let both = format!("{}:{}", file.display(), copy.display());
    let out = child(&both, &scratch);
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(out.contains("found 2 devices"), "{out}");
    assert!(
        out.contains("used wgpu:0") && out.contains("used wgpu:1"),
        "{out}"
    );
}

#[test]
fn a_probe_tells_what_is_needed_to_plan() {
    for info in listed() {
        assert_eq!(info.languages, [Language::Wgsl]);
        assert_eq!(info.software, info.kind == DeviceKind::Cpu);
        assert!(!info.name.is_empty() && !info.driver.is_empty());
        let limits = info.limits;
        assert!(limits.max_alloc >= limits.max_binding && limits.max_binding >= 1 << 27);
        assert!(limits.max_alloc.is_multiple_of(4) && limits.max_binding.is_multiple_of(4));
        assert!(limits.slice_align.is_power_of_two());
        if info.driver.starts_with("vulkan") {
            assert!(info.total_memory > 0);
            assert!(info.key.uuid.is_some());
        }
    }
}

#[test]
fn a_device_that_is_not_listed_cannot_be_opened() {
    let Some(backend) = backend() else { return };
    let error = backend.open(99).unwrap_err();
    assert!(error.to_string().contains("wgpu:99"), "{error}");
}
