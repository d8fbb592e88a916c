//! The same tests in processes with other drivers, or none.
//!
//! A driver reads its settings once, so each setting needs a process of its own.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs this test binary again, without the tests of this file.
fn child(name: &str, value: impl AsRef<Path>, filter: &[&str]) -> Output {
    let me = std::env::current_exe().unwrap();
    Command::new(me)
        .args(["--skip", "children", "--nocapture", "--test-threads", "2"])
        .args(filter)
        .env(name, value.as_ref())
        .output()
        .unwrap()
}

/// The child's output, after making sure that it passed.
fn passed(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn three_devices_pass_too() {
    let text = passed(&child("POCL_DEVICES", "pthread pthread basic", &[]));
    if text.contains("PoCL") || text.contains("basic") {
        assert!(text.contains("on opencl:2"), "{text}");
    } else {
        println!("skipped: no PoCL to make devices");
    }
}

#[test]
fn a_driver_without_devices_is_an_empty_list() {
    let text = passed(&child("POCL_DEVICES", "", &[]));
    if text.contains("skipped: the drivers list no device") {
        assert!(!text.contains("on opencl:0"), "{text}");
    } else {
        println!("skipped: there are other devices than PoCL's");
    }
}

#[test]
fn without_a_driver_everything_is_skipped() {
    let empty = tempfile::tempdir().unwrap();
    let text = passed(&child("OCL_ICD_VENDORS", empty.path(), &[]));
    let driver = text.contains("skipped: no OpenCL driver (ICD) is installed");
    let library = text.contains("skipped: libOpenCL.so.1 is not installed");
    assert!(driver || library, "{text}");
    assert!(!text.contains("on opencl:0"), "{text}");
}

#[test]
fn without_the_library_everything_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    // A file that is no library comes before the real one.
    std::fs::write(dir.path().join("libOpenCL.so.1"), b"").unwrap();
    let text = passed(&child("LD_LIBRARY_PATH", dir.path(), &[]));
    assert!(
        text.contains("skipped: libOpenCL.so.1 is not installed"),
        "{text}"
    );
    assert!(!text.contains("on opencl:0"), "{text}");
}

#[test]
fn a_library_without_the_functions_is_broken_and_not_a_crash() {
    // Any library that is surely there and surely not OpenCL.
    let output = child("OPENCL_DYLIB_PATH", "libm.so.6", &["loading_works"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text + &String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("clGetPlatformIDs: the OpenCL library lacks this function (-2001)"),
        "{text}"
    );
    assert!(output.status.code().is_some(), "no signal: {text}");
}
