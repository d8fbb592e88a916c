//! Every call of the driver fails, at its first, second and third use and from then on.

use rstest::{Context, rstest};
use warploom_core::DeviceError;

use crate::rig::{Kind, backend, kind, round};
use crate::scene::Scene;

/// What callers hear of one failure of a driver call that the device survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    /// One error.
    Once,
    /// Nothing: what the call would have told stays unknown, or what it would have given back
    /// stays with the driver.
    Never,
    /// Either, by what the call was for: nothing hangs on it when handles are let go of, or when
    /// free memory is only shown.
    Perhaps,
}

/// Errors that stand for their sorts.
const ERRORS: &[(&str, Kind)] = &[
    ("UNKNOWN", Kind::Driver),
    ("OUT_OF_MEMORY", Kind::OutOfMemory),
    ("NOT_SUPPORTED", Kind::Unsupported),
    ("LAUNCH_FAILED", Kind::Lost),
];

#[rstest]
#[case::cu_init("cuInit", Heard::Once)]
#[case::cu_driver_get_version("cuDriverGetVersion", Heard::Never)]
#[case::cu_device_get_count("cuDeviceGetCount", Heard::Once)]
#[case::cu_device_get("cuDeviceGet", Heard::Perhaps)]
#[case::cu_device_get_name("cuDeviceGetName", Heard::Never)]
#[case::cu_device_total_mem("cuDeviceTotalMem_v2", Heard::Never)]
#[case::cu_device_get_attribute("cuDeviceGetAttribute", Heard::Never)]
#[case::cu_device_get_uuid("cuDeviceGetUuid", Heard::Never)]
#[case::cu_device_get_uuid_v2("cuDeviceGetUuid_v2", Heard::Never)]
#[case::cu_device_primary_ctx_retain("cuDevicePrimaryCtxRetain", Heard::Once)]
#[case::cu_device_primary_ctx_release("cuDevicePrimaryCtxRelease_v2", Heard::Never)]
#[case::cu_ctx_set_current("cuCtxSetCurrent", Heard::Perhaps)]
#[case::cu_mem_get_info("cuMemGetInfo_v2", Heard::Perhaps)]
#[case::cu_mem_alloc("cuMemAlloc_v2", Heard::Once)]
#[case::cu_mem_free("cuMemFree_v2", Heard::Never)]
#[case::cu_mem_host_alloc("cuMemHostAlloc", Heard::Once)]
#[case::cu_mem_free_host("cuMemFreeHost", Heard::Never)]
#[case::cu_memcpy("cuMemcpyAsync", Heard::Once)]
#[case::cu_memcpy_htod("cuMemcpyHtoDAsync_v2", Heard::Once)]
#[case::cu_memcpy_dtoh("cuMemcpyDtoHAsync_v2", Heard::Once)]
#[case::cu_memcpy_dtod("cuMemcpyDtoDAsync_v2", Heard::Once)]
#[case::cu_stream_create("cuStreamCreate", Heard::Once)]
#[case::cu_stream_synchronize("cuStreamSynchronize", Heard::Once)]
#[case::cu_stream_destroy("cuStreamDestroy_v2", Heard::Never)]
#[case::cu_stream_wait_event("cuStreamWaitEvent", Heard::Once)]
#[case::cu_event_create("cuEventCreate", Heard::Once)]
#[case::cu_event_record("cuEventRecord", Heard::Once)]
#[case::cu_event_query("cuEventQuery", Heard::Perhaps)]
#[case::cu_event_synchronize("cuEventSynchronize", Heard::Once)]
#[case::cu_event_destroy("cuEventDestroy_v2", Heard::Never)]
#[case::cu_event_elapsed_time("cuEventElapsedTime", Heard::Never)]
#[case::cu_module_load_data("cuModuleLoadDataEx", Heard::Once)]
#[case::cu_module_unload("cuModuleUnload", Heard::Never)]
#[case::cu_module_get_function("cuModuleGetFunction", Heard::Once)]
#[case::cu_func_get_attribute("cuFuncGetAttribute", Heard::Once)]
#[case::cu_launch_kernel("cuLaunchKernel", Heard::Once)]
fn a_call_fails(#[context] test: Context, #[case] call: &str, #[case] heard: Heard) {
    for (error, wanted) in ERRORS {
        for nth in 1..=3 {
            // The first start is not the backend's to survive: `codes` has it.
            let nth = if call == "cuInit" { nth + 1 } else { nth };
            Scene::new(&test, format!("{call}#{nth}={error}"))
                .fail(format!("{call}#{nth}={error}"))
                .play(|| once(call, error, *wanted, heard))
                .says(&format!("call {nth}, as planned"))
                .says_only_what_was_planned();
        }
        let from = if call == "cuInit" { 2 } else { 1 };
        Scene::new(&test, format!("{call}#{from}+={error}"))
            .fail(format!("{call}#{from}+={error}"))
            .play(|| for_ever(call, *wanted))
            .says("as planned")
            .says_only_what_was_planned();
    }
}

/// One failure: it is told once or not at all, and then everything works.
fn once(call: &str, error: &str, wanted: Kind, heard: Heard) {
    let backend = backend();
    let answers: Vec<_> = (0..4).filter_map(|_| round(&backend, 0).err()).collect();
    for answer in &answers {
        assert_right(call, wanted, answer);
    }
    let told = answers.len();
    match heard {
        // Memory that is not found is looked for again, and uploads do without memory to lock.
        _ if error == "OUT_OF_MEMORY" && is_allocation(call) => assert_eq!(told, 0),
        // After a fault somebody must hear of it, unless it was met in the last moment of a context
        // or outside of any.
        _ if wanted == Kind::Lost => assert!(told > 0 || heard != Heard::Once, "nobody heard"),
        Heard::Once => assert_eq!(told, 1, "{answers:?}"),
        Heard::Never => assert_eq!(answers, []),
        Heard::Perhaps => assert!(told <= 1, "{answers:?}"),
    }
    round(&backend, 1).expect("the other device works");
}

/// Failures without end: every answer is right, and nothing hangs or crashes.
fn for_ever(call: &str, wanted: Kind) {
    let backend = backend();
    for ordinal in [0, 1, 0] {
        if let Err(answer) = round(&backend, ordinal) {
            assert_right(call, wanted, &answer);
        }
    }
}

fn is_allocation(call: &str) -> bool {
    matches!(call, "cuMemAlloc_v2" | "cuMemHostAlloc")
}

/// Is this how such an error of this call is told?
fn assert_right(call: &str, wanted: Kind, answer: &DeviceError) {
    // What concerns no device yet has one sort of error.
    let wanted = match call {
        "cuInit" | "cuDeviceGetCount" => Kind::Probe,
        _ => wanted,
    };
    assert_eq!(kind(answer), wanted, "{answer}");
    let text = answer.to_string();
    match wanted {
        Kind::OutOfMemory => assert!(text.contains("no room"), "{text}"),
        // A fault may be told by any later call.
        Kind::Lost => assert!(text.contains("CUDA_ERROR_LAUNCH_FAILED (719)"), "{text}"),
        _ => assert!(text.contains(call), "{text}"),
    }
}

#[test]
fn every_call_of_the_backend_is_in_the_table() {
    let table = include_str!("calls.rs");
    let source = include_str!("../../src/driver.rs");
    let (_, list) = source.split_once("\nentry_points! {").expect("the list");
    let names = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("fn "))
        .filter_map(|line| line.split_once('(').map(|(name, _)| name))
        .filter(|name| name.starts_with("cu"));
    // These two tell of errors, and are in `codes`; the third is for Windows.
    let elsewhere = ["cuGetErrorName", "cuGetErrorString", "cuDeviceGetLuid"];
    let names: Vec<&str> = names.filter(|name| !elsewhere.contains(name)).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(table.contains(&format!("(\"{name}\", Heard::")), "{name}");
    }
}
