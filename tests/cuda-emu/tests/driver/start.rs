//! Start, versions, errors and symbols.

use std::ffi::{CStr, c_char};

use crate::Scene;
use crate::rig::*;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("nothing_works_before_init", nothing_works_before_init),
    Scene::new("init_twice_and_from_threads", init_twice_and_from_threads),
    Scene::new("no_devices", no_devices).with(&[("WARPLOOM_EMU_DEVICES", "0")]),
    Scene::new("hidden_devices", no_devices).with(&[("CUDA_VISIBLE_DEVICES", "")]),
    Scene::new("a_plan_that_is_not_understood", bad_plan)
        .with(&[
            ("WARPLOOM_EMU_JITTER", "soon"),
            ("WARPLOOM_EMU_LOG", "quiet"),
        ])
        .says(&[
            "WARPLOOM_EMU_JITTER=`soon`: expected a whole number",
            "CUDA will not start",
        ]),
    Scene::new("versions", versions).with(&[("WARPLOOM_EMU_DRIVER", "12.4")]),
    Scene::new("functions_are_found_by_name", functions_are_found_by_name),
    Scene::new(
        "every_symbol_is_found_and_unique",
        every_symbol_is_found_and_unique,
    ),
    Scene::new("what_is_not_emulated_says_so", what_is_not_emulated_says_so)
        .says(&["cuGraphLaunch is not emulated"]),
    Scene::new(
        "a_forked_child_must_not_go_on",
        a_forked_child_must_not_go_on,
    ),
    Scene::new("errors_have_names", errors_have_names),
    Scene::new("calls_are_written_down", calls_are_written_down)
        .with(&[("WARPLOOM_EMU_LOG", "calls")])
        .says(&[
            "cuInit: CUDA_SUCCESS",
            "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE",
        ]),
];

fn nothing_works_before_init() {
    let mut count = 0;
    assert_eq!(
        cu!(cuDeviceGetCount(Out::new(&raw mut count))),
        Status::NOT_INITIALIZED
    );
    let mut address = 0;
    assert_eq!(
        cu!(cuMemAlloc_v2(Out::new(&raw mut address), 1)),
        Status::NOT_INITIALIZED
    );
    assert_eq!(cu!(cuCtxSynchronize()), Status::NOT_INITIALIZED);
    assert_eq!(cu!(cuStreamSynchronize(DEFAULT)), Status::NOT_INITIALIZED);
    assert!(made!(cuDriverGetVersion()) >= 12_000);
    assert_eq!(cu!(cuInit(1)), Status::INVALID_VALUE);
    assert_eq!(
        cu!(cuDeviceGetCount(Out::new(&raw mut count))),
        Status::NOT_INITIALIZED
    );
    ok!(cuInit(0));
    assert_eq!(made!(cuDeviceGetCount()), 2);
}

fn init_twice_and_from_threads() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| ok!(cuInit(0)));
        }
    });
    ok!(cuInit(0));
}

fn no_devices() {
    assert_eq!(cu!(cuInit(0)), Status::NO_DEVICE);
    assert_eq!(cu!(cuInit(0)), Status::NO_DEVICE);
    let mut count = 0;
    assert_eq!(
        cu!(cuDeviceGetCount(Out::new(&raw mut count))),
        Status::NOT_INITIALIZED
    );
}

fn bad_plan() {
    assert_eq!(cu!(cuInit(0)), Status::INVALID_VALUE);
    assert_eq!(cu!(cuInit(0)), Status::INVALID_VALUE);
}

fn versions() {
    assert_eq!(made!(cuDriverGetVersion()), 12_040);
}

/// What `cuGetProcAddress` answers, and its own status.
fn find(name: &CStr, version: i32, flags: u64) -> (Status, *const (), i32) {
    let (mut address, mut status) = (std::ptr::null(), -1);
    let answer = cu!(cuGetProcAddress_v2(
        Text::new(name),
        Out::new(&raw mut address),
        version,
        flags,
        Out::new(&raw mut status),
    ));
    (answer, address, status)
}

fn functions_are_found_by_name() {
    let ok = |address: *const ()| (Status::SUCCESS, address, 0);
    assert_eq!(
        find(c"cuMemAlloc", 12_000, 0),
        ok(api::cuMemAlloc_v2 as *const ())
    );
    assert_eq!(find(c"cuInit", 12_000, 0), ok(api::cuInit as *const ()));
    assert_eq!(
        find(c"cuDeviceGetUuid", 11_030, 0),
        ok(api::cuDeviceGetUuid as *const ())
    );
    assert_eq!(
        find(c"cuDeviceGetUuid", 12_000, 0),
        ok(api::cuDeviceGetUuid_v2 as *const ())
    );
    assert_eq!(
        find(c"cuLaunchKernel", 12_000, 0),
        ok(api::cuLaunchKernel as *const ())
    );
    assert_eq!(
        find(c"cuLaunchKernel", 12_000, 2),
        ok(api::cuLaunchKernel_ptsz as *const ())
    );
    assert_eq!(
        find(c"cuMemcpyHtoD", 12_000, 2),
        ok(api::cuMemcpyHtoD_v2_ptds as *const ())
    );
    assert_eq!(
        find(c"cuGraphLaunch", 12_000, 0),
        ok(api::cuGraphLaunch as *const ())
    );
    let missing = (Status::NOT_FOUND, std::ptr::null(), 1);
    assert_eq!(find(c"cuMakeCoffee", 12_000, 0), missing);
    let mut table = std::ptr::null();
    let answer = cu!(cuGetExportTable(Out::new(&raw mut table), std::ptr::null()));
    assert_ne!(answer, Status::SUCCESS);
    assert!(table.is_null());
}

fn every_symbol_is_found_and_unique() {
    let mut names: Vec<&str> = api::symbols().map(|symbol| symbol.name).collect();
    assert!(names.len() > 500, "{}", names.len());
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    for symbol in api::symbols() {
        assert!(!symbol.address.is_null());
    }
}

fn what_is_not_emulated_says_so() {
    for _ in 0..3 {
        assert_eq!(cu!(cuGraphLaunch()), Status::NOT_SUPPORTED);
        assert_eq!(cu!(cuMemAllocManaged()), Status::NOT_SUPPORTED);
    }
}

fn a_forked_child_must_not_go_on() {
    ok!(cuInit(0));
    // SAFETY: this process has one thread so far, so the child can do what any process can.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a process can be made");
    if child == 0 {
        let mut count = 0;
        let answer = cu!(cuDeviceGetCount(Out::new(&raw mut count)));
        let again = cu!(cuInit(0));
        let refused = answer == Status::NOT_INITIALIZED && again == Status::NOT_INITIALIZED;
        // SAFETY: ends the child at once, without what the parent has to do at its end.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above; the place for its status is ours.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    assert_eq!(made!(cuDeviceGetCount()), 2, "the parent goes on");
}

fn errors_have_names() {
    let text = |at: *const c_char| {
        // SAFETY: the driver gives texts that live forever.
        let text = unsafe { CStr::from_ptr(at) };
        text.to_str().unwrap()
    };
    let (mut name, mut words) = (std::ptr::null(), std::ptr::null());
    ok!(cuGetErrorName(700, Out::new(&raw mut name)));
    ok!(cuGetErrorString(700, Out::new(&raw mut words)));
    assert_eq!(text(name), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(text(words), "an illegal memory access was encountered");
    let unknown = cu!(cuGetErrorName(12_345, Out::new(&raw mut name)));
    assert_eq!(unknown, Status::INVALID_VALUE);
    assert!(name.is_null());
}

fn calls_are_written_down() {
    ok!(cuInit(0));
    let mut device = 0;
    assert_eq!(
        cu!(cuDeviceGet(Out::new(&raw mut device), 7)),
        Status::INVALID_DEVICE
    );
}
