//! `warploom detect` as people and scripts meet it: real processes, real drivers where there are
//! some, and drivers that are missing, broken or lying where there are not.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is meant"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot run says why")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// A command in a known environment: no drivers are hidden, none of our variables are set.
fn warploom(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.args(args);
    for name in ["WARPLOOM_CPU_ONLY", "WARPLOOM_BACKENDS", "WARPLOOM_LOG"] {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        status.code().expect("it was not killed by a signal"),
        text(stdout),
        text(stderr),
    )
}

/// Runs `detect --json`; it must end well whatever the machine looks like.
fn answer(command: &mut Command) -> Value {
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}:\n{stdout}"))
}

fn backend<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let all = answer["backends"].as_array().unwrap();
    all.iter()
        .find(|b| b["id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {all:?}"))
}

/// Devices with a face of this backend.
fn devices<'a>(answer: &'a Value, id: &str) -> Vec<&'a Value> {
    let has = |d: &&Value| {
        d["faces"]
            .as_array()
            .unwrap()
            .iter()
            .any(|f| f["backend"] == id)
    };
    answer["devices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(has)
        .collect()
}

/// A shared library made of these lines of C, or `None` with a printed reason.
fn library(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let (code, lib) = (folder.join("stub.c"), folder.join(name));
    fs::write(&code, source).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&lib)
        .arg(&code)
        .output();
    match built {
        Ok(output) if output.status.success() => Some(lib),
        Ok(output) => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("skipped: no C compiler to make a broken driver with: {error}");
            None
        }
    }
}

#[test]
fn the_json_answer_keeps_its_shape() {
    let answer = answer(&mut warploom(&["detect", "--json"]));
    assert_eq!(answer["schema"], 1);
    let ids: Vec<_> = answer["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["id"].clone())
        .collect();
    assert_eq!(
        ids,
        ["cpu", "cuda", "opencl", "wgpu"],
        "all backends are on by default"
    );
    for backend in answer["backends"].as_array().unwrap() {
        let state = backend["state"].as_str().unwrap();
        assert!(["loaded", "absent", "broken"].contains(&state), "{backend}");
        assert_eq!(backend["reason"].is_null(), state == "loaded", "{backend}");
        assert!(backend["probe_ms"].is_number());
    }
    for device in answer["devices"].as_array().unwrap() {
        for text in ["name", "label", "kind"] {
            assert!(device[text].is_string(), "{text} of {device}");
        }
        assert!(device["software"].is_boolean());
        assert!(device["total_memory"].is_u64());
        for maybe in ["free_memory", "pci", "uuid"] {
            assert!(
                device.get(maybe).is_some(),
                "{maybe} is there, if only as null"
            );
        }
        for face in device["faces"].as_array().unwrap() {
            let id = format!("{}:{}", face["backend"].as_str().unwrap(), face["ordinal"]);
            assert_eq!(face["id"], id.as_str());
            assert!(face["driver"].is_string());
        }
        let name = device["name"].as_str().unwrap();
        assert!(answer["capacity"]["max_pipelines"][name].as_u64().unwrap() >= 1);
    }
    assert_eq!(answer["capacity"]["policy"], "memory");
    assert!(answer["capacity"]["cpu_threads"].as_u64().unwrap() >= 1);
    assert_eq!(
        devices(&answer, "cpu").len(),
        1,
        "the embedded backend is always there"
    );
}

#[rstest]
#[case::flag(&["--cpu-only"], None)]
#[case::one(&[], Some("1"))]
#[case::word(&[], Some("true"))]
fn c29_the_cpu_only_switch(#[case] flags: &[&str], #[case] variable: Option<&str>) {
    let mut command = warploom(&["detect", "--json"]);
    command.args(flags);
    if let Some(value) = variable {
        command.env("WARPLOOM_CPU_ONLY", value);
    }
    let answer = answer(&mut command);
    assert_eq!(answer["devices"].as_array().unwrap().len(), 1);
    for id in ["cuda", "opencl", "wgpu"] {
        assert_eq!(backend(&answer, id)["state"], "absent");
        assert_eq!(backend(&answer, id)["reason"], "switched off: CPU only");
    }
}

#[test]
fn backends_are_chosen_by_variable_and_the_flag_wins() {
    let mut command = warploom(&["detect", "--json"]);
    let chosen = answer(command.env("WARPLOOM_BACKENDS", "cpu,opencl"));
    assert!(
        backend(&chosen, "wgpu")["reason"]
            .as_str()
            .unwrap()
            .contains("switched off")
    );
    assert_ne!(
        backend(&chosen, "opencl")["reason"],
        backend(&chosen, "wgpu")["reason"],
        "opencl was asked"
    );
    let both = answer(command.args(["--backends", "cpu"]));
    assert!(
        backend(&both, "opencl")["reason"]
            .as_str()
            .unwrap()
            .contains("switched off")
    );
}

#[rstest]
#[case::unknown_verb(&["detekt"], "unrecognized subcommand")]
#[case::unknown_flag(&["detect", "--colour"], "unexpected argument")]
#[case::unknown_backend(&["detect", "--backends", "cudda"], "error[WL0102]: backend `cudda` is not in this build")]
#[case::no_name(&["detect", "--backends", "CUDA!"], "`CUDA!` is not a name")]
#[case::both(&["detect", "--cpu-only", "--backends", "opencl"], "cannot be used with")]
#[case::no_bytes(&["detect", "--footprint", "lots"], "`lots` is not a number of bytes")]
#[case::no_meaning(&["detect", "--capacity", "threads", "--footprint", "1G"], "has no meaning")]
#[case::no_time(&["detect", "--deadline", "0"], "0 is not in 1..=600000")]
#[case::nothing(&[], "Usage: warploom")]
fn bad_usage_ends_with_2_and_says_why(#[case] args: &[&str], #[case] says: &str) {
    let (code, stdout, stderr) = run(&mut warploom(args));
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains(says), "{stderr}");
}

#[test]
fn a_bad_variable_ends_with_2_and_names_it() {
    let (code, _, stderr) = run(warploom(&["detect"]).env("WARPLOOM_CPU_ONLY", "perhaps"));
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr, @"
    error: WARPLOOM_CPU_ONLY is `perhaps`, which is neither yes nor no
      = help: write 1 or true to switch it on, 0 or false to switch it off
    ");
}

#[test]
fn no_gpu_is_a_warning_on_stderr_and_success() {
    let (code, stdout, stderr) = run(&mut warploom(&["detect", "--cpu-only"]));
    assert_eq!(code, 0);
    assert_eq!(stderr, "warning: no GPU was found; there is cpu\n");
    assert!(stdout.starts_with("no GPU\nsoftware\n  cpu  "), "{stdout}");
    assert!(
        stdout.contains("backends\n  cpu     loaded  1 device in "),
        "{stdout}"
    );
    assert!(
        stdout.contains("\n  opencl  absent  switched off: CPU only\n"),
        "{stdout}"
    );
}

#[test]
fn the_threads_policy_is_there_for_those_who_knew_it() {
    let mut command = warploom(&["detect", "--json", "--cpu-only", "--capacity", "threads"]);
    let answer = answer(&mut command);
    assert_eq!(answer["capacity"]["policy"], "threads");
    let threads = &answer["capacity"]["cpu_threads"];
    assert_eq!(&answer["capacity"]["max_pipelines"]["cpu"], threads);
}

#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    use std::process::Stdio;
    let mut child = warploom(&["detect", "--cpu-only"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_early_closed_pipe_is_no_failure() {
    use std::process::Stdio;
    let mut child = warploom(&["detect", "--json", "--cpu-only"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

// ---- drivers that are missing, broken or lying ----------------------------------------------

/// A `dlopen` in front of the real one that finds no GPU library, as on a machine without any.
const HIDING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int mode) {
    static const char *hidden[] = {"OpenCL", "vulkan", "libcuda", "nvrtc"};
    for (int i = 0; name && i < 4; i++)
        if (strstr(name, hidden[i])) name = "libnot-installed.so";
    void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return real(name, mode);
}"#;

#[cfg(target_os = "linux")]
#[test]
fn on_a_machine_without_any_gpu_library_each_backend_says_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let Some(hiding) = library(folder.path(), "libhiding.so", HIDING) else {
        return;
    };
    let answer = answer(warploom(&["detect", "--json"]).env("LD_PRELOAD", hiding));
    for (id, missing) in [
        ("cuda", "libcuda.so.1"),
        ("opencl", "libOpenCL.so.1"),
        ("wgpu", "libvulkan.so.1"),
    ] {
        assert_eq!(backend(&answer, id)["state"], "absent", "{answer:#}");
        let reason = backend(&answer, id)["reason"].as_str().unwrap();
        assert!(reason.contains(missing), "{reason}");
    }
    assert_eq!(answer["devices"].as_array().unwrap().len(), 1);
}

#[test]
fn without_an_opencl_driver_the_reason_is_told() {
    let empty = TempDir::new().unwrap();
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "opencl,cpu"])
            .env("OCL_ICD_VENDORS", empty.path()),
    );
    assert!(devices(&answer, "opencl").is_empty());
    assert_eq!(backend(&answer, "opencl")["state"], "absent");
    assert!(backend(&answer, "opencl")["reason"].is_string());
}

#[test]
fn an_opencl_library_that_only_errors_is_broken() {
    let folder = TempDir::new().unwrap();
    let source = "int clGetPlatformIDs(unsigned n, void *p, unsigned *c) { return -6; }";
    let Some(lib) = library(folder.path(), "libOpenCL.so", source) else {
        return;
    };
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "opencl,cpu"]).env("OPENCL_DYLIB_PATH", lib),
    );
    assert_eq!(backend(&answer, "opencl")["state"], "broken");
    let reason = backend(&answer, "opencl")["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reason.contains("-6"), "{reason}");
}

#[test]
fn without_a_vulkan_driver_there_is_no_device_and_no_failure() {
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "wgpu,cpu"])
            .env("VK_ICD_FILENAMES", "no-such-folder/none.json")
            .env("VK_DRIVER_FILES", "no-such-folder/none.json"),
    );
    assert!(devices(&answer, "wgpu").is_empty());
}

#[rstest]
#[case::lacking_symbols("int nothing(void) { return 0; }", "lacks")]
#[case::failing_start("int cuInit(unsigned f) { return 999; }", "")]
fn a_libcuda_that_is_no_good_is_broken(#[case] source: &str, #[case] says: &str) {
    let folder = TempDir::new().unwrap();
    let Some(_) = library(folder.path(), "libcuda.so.1", source) else {
        return;
    };
    fs::copy(
        folder.path().join("libcuda.so.1"),
        folder.path().join("libcuda.so"),
    )
    .unwrap();
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "cuda,cpu"])
            .env("LD_LIBRARY_PATH", folder.path()),
    );
    assert_eq!(backend(&answer, "cuda")["state"], "broken");
    let reason = backend(&answer, "cuda")["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reason.contains(says), "{reason}");
}

// ---- stand-ins ------------------------------------------------------------------------------

#[test]
fn three_pocl_devices_are_three_software_devices() {
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "opencl"])
            .env("POCL_DEVICES", "pthread pthread basic"),
    );
    let found = devices(&answer, "opencl");
    let pocl = |d: &&&Value| {
        d["faces"][0]["driver"]
            .as_str()
            .is_some_and(|t| t.contains("pocl") || t.contains("PoCL"))
    };
    if !found.iter().any(|d| pocl(&d)) {
        eprintln!("skipped: PoCL is not installed; `cargo xtask setup` installs it");
        return;
    }
    let found: Vec<_> = found.iter().filter(pocl).collect();
    assert_eq!(found.len(), 3);
    for device in found {
        assert_eq!(device["software"], true);
        assert_eq!(device["faces"].as_array().unwrap().len(), 1, "never merged");
    }
}

#[test]
fn two_lavapipe_drivers_are_two_software_devices() {
    let places = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let files = places
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .flatten();
    let lavapipe = files
        .map(|f| f.path())
        .find(|f| f.to_string_lossy().contains("lvp_icd"));
    let Some(lavapipe) = lavapipe else {
        eprintln!("skipped: lavapipe is not installed; `cargo xtask setup` installs it");
        return;
    };
    let folder = TempDir::new().unwrap();
    let second = folder.path().join("second_icd.json");
    fs::copy(&lavapipe, &second).unwrap();
    let both = format!("{}:{}", lavapipe.display(), second.display());
    let answer = answer(
        warploom(&["detect", "--json", "--backends", "wgpu"])
            .env("VK_ICD_FILENAMES", &both)
            .env("VK_DRIVER_FILES", &both)
            .env("XDG_RUNTIME_DIR", folder.path()),
    );
    let found = devices(&answer, "wgpu");
    assert_eq!(found.len(), 2, "{answer:#}");
    for device in found {
        assert_eq!(device["software"], true);
        assert_eq!(device["faces"].as_array().unwrap().len(), 1, "never merged");
    }
}
