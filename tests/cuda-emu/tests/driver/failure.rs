//! Failures on order.

use crate::Scene;
use crate::kernels::*;
use crate::rig::*;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("the_nth_call_fails", the_nth_call_fails)
        .with(&[(
            "WARPLOOM_EMU_FAIL",
            "cuMemAlloc_v2#2=OUT_OF_MEMORY;cuStreamCreate#1=999",
        )])
        .says(&["cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: call 2, as planned"]),
    Scene::new("all_calls_fail_from_the_nth_on", all_calls_fail)
        .with(&[("WARPLOOM_EMU_FAIL", "cuMemAlloc#3+=OUT_OF_MEMORY")]),
    Scene::new("the_start_fails", the_start_fails)
        .with(&[("WARPLOOM_EMU_FAIL", "cuInit#1=SYSTEM_DRIVER_MISMATCH")]),
    Scene::new("planned_faults_stay", planned_faults_stay)
        .with(&[("WARPLOOM_EMU_FAIL", "cuLaunchKernel#2=ILLEGAL_ADDRESS")])
        .says(&["cuLaunchKernel, call 2, as planned"]),
    Scene::new("a_device_dies", a_device_dies)
        .with(&[("WARPLOOM_EMU_LOSE", "0@2")])
        .says(&["device 0: CUDA_ERROR_ECC_UNCORRECTABLE: lost after 2 launches, as planned"]),
    Scene::new("a_device_dies_of_something_else", a_device_is_dead)
        .with(&[("WARPLOOM_EMU_LOSE", "0@0=DEVICE_UNAVAILABLE")]),
    Scene::new("a_plan_for_no_call", a_plan_for_no_call)
        .with(&[("WARPLOOM_EMU_FAIL", "cuMakeCoffee#1=UNKNOWN")])
        .says(&["there is no driver call `cuMakeCoffee`"]),
];

fn try_alloc() -> Status {
    let mut address = 0;
    cu!(cuMemAlloc_v2(Out::new(&raw mut address), 16))
}

fn the_nth_call_fails() {
    enter(0);
    let answers = [try_alloc(), try_alloc(), try_alloc()];
    let good = Status::SUCCESS;
    assert_eq!(answers, [good, Status::OUT_OF_MEMORY, good]);
    let mut stream = Handle::NULL;
    assert_eq!(
        cu!(cuStreamCreate(Out::new(&raw mut stream), 0)),
        Status::UNKNOWN
    );
    assert_eq!(stream, Handle::NULL);
    assert_eq!(cu!(cuStreamCreate(Out::new(&raw mut stream), 0)), good);
}

fn all_calls_fail() {
    enter(0);
    let answers: Vec<Status> = (0..5).map(|_| try_alloc()).collect();
    assert_eq!(answers[..2], [Status::SUCCESS; 2]);
    assert_eq!(answers[2..], [Status::OUT_OF_MEMORY; 3]);
}

fn the_start_fails() {
    assert_eq!(cu!(cuInit(0)), Status::SYSTEM_DRIVER_MISMATCH);
    ok!(cuInit(0));
}

fn planned_faults_stay() {
    enter(0);
    let count = kernel(c"count");
    let start = || launch(count, (1, 1), 0, DEFAULT, &[]);
    assert_eq!(start(), Status::SUCCESS);
    for _ in 0..3 {
        assert_eq!(start(), Status::ILLEGAL_ADDRESS);
    }
    assert_eq!(cu!(cuCtxSynchronize()), Status::ILLEGAL_ADDRESS);
    assert_eq!(try_alloc(), Status::ILLEGAL_ADDRESS);
}

fn a_device_dies() {
    enter(1);
    enter(0);
    let address = alloc(40);
    let kernel = kernel(c"fill");
    assert_eq!(fill(kernel, address, 10, 1, DEFAULT), Status::SUCCESS);
    assert_eq!(numbers(address, 10), [1; 10]);
    assert_eq!(fill(kernel, address, 10, 2, DEFAULT), Status::SUCCESS);
    let dead = Status::ECC_UNCORRECTABLE;
    assert_eq!(cu!(cuCtxSynchronize()), dead);
    assert_eq!(fill(kernel, address, 10, 3, DEFAULT), dead);
    assert_eq!(cu!(cuMemFree_v2(address)), dead);
    assert_eq!(try_alloc(), dead);
    // A new context does not help, and the other device is well.
    ok!(cuDevicePrimaryCtxReset_v2(0));
    let mut context = Handle::NULL;
    let answer = cu!(cuDevicePrimaryCtxRetain(Out::new(&raw mut context), 0));
    assert_eq!(answer, dead);
    enter(1);
    for _ in 0..5 {
        let address = alloc(40);
        assert_eq!(
            fill(crate::kernels::kernel(c"fill"), address, 10, 1, DEFAULT),
            Status::SUCCESS
        );
        assert_eq!(numbers(address, 10), [1; 10]);
    }
}

fn a_device_is_dead() {
    ok!(cuInit(0));
    assert_eq!(made!(cuDeviceGetCount()), 2, "it is still listed");
    let mut context = Handle::NULL;
    let answer = cu!(cuDevicePrimaryCtxRetain(Out::new(&raw mut context), 0));
    assert_eq!(answer, Status::DEVICE_UNAVAILABLE);
    enter(1);
}

fn a_plan_for_no_call() {
    assert_eq!(cu!(cuInit(0)), Status::INVALID_VALUE);
}
