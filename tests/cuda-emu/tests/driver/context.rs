//! Contexts and what is current.

use crate::Scene;
use crate::rig::*;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("work_needs_a_context", work_needs_a_context),
    Scene::new(
        "each_thread_has_its_own_stack",
        each_thread_has_its_own_stack,
    ),
    Scene::new("primary_contexts_are_counted", primary_contexts_are_counted),
    Scene::new(
        "a_context_takes_its_things_along",
        a_context_takes_its_things_along,
    ),
    Scene::new("own_contexts", own_contexts),
    Scene::new("limits", limits),
];

fn current() -> Handle {
    made!(cuCtxGetCurrent())
}

fn work_needs_a_context() {
    ok!(cuInit(0));
    let mut address = 0;
    assert_eq!(
        cu!(cuMemAlloc_v2(Out::new(&raw mut address), 1)),
        Status::INVALID_CONTEXT
    );
    assert_eq!(cu!(cuCtxSynchronize()), Status::INVALID_CONTEXT);
    assert_eq!(cu!(cuStreamSynchronize(DEFAULT)), Status::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxSetCurrent(Handle(77))), Status::INVALID_CONTEXT);
    assert_eq!(current(), Handle::NULL);
    let context = enter(1);
    assert_eq!(current(), context);
    assert_eq!(made!(cuCtxGetDevice()), 1);
    ok!(cuCtxSetCurrent(Handle::NULL));
    assert_eq!(cu!(cuCtxSynchronize()), Status::INVALID_CONTEXT);
}

fn each_thread_has_its_own_stack() {
    let first = enter(0);
    let second: Handle = made!(cuDevicePrimaryCtxRetain(1));
    ok!(cuCtxPushCurrent_v2(second));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(current(), Handle::NULL);
            ok!(cuCtxSetCurrent(first));
            assert_eq!(current(), first);
        });
    });
    assert_eq!(current(), second);
    assert_eq!(made!(cuCtxPopCurrent_v2()), second);
    assert_eq!(made!(cuCtxPopCurrent_v2()), first);
    let mut context = Handle::NULL;
    let empty = cu!(cuCtxPopCurrent_v2(Out::new(&raw mut context)));
    assert_eq!(empty, Status::INVALID_CONTEXT);
}

fn active(device: i32) -> bool {
    let (mut flags, mut active) = (0, 0);
    ok!(cuDevicePrimaryCtxGetState(
        device,
        Out::new(&raw mut flags),
        Out::new(&raw mut active)
    ));
    active != 0
}

fn primary_contexts_are_counted() {
    ok!(cuInit(0));
    assert!(!active(0));
    assert_eq!(
        cu!(cuDevicePrimaryCtxRelease_v2(0)),
        Status::INVALID_CONTEXT
    );
    let first = enter(0);
    let again: Handle = made!(cuDevicePrimaryCtxRetain(0));
    assert_eq!(first, again);
    ok!(cuDevicePrimaryCtxRelease_v2(0));
    assert!(active(0) && !active(1));
    alloc(16);
    ok!(cuDevicePrimaryCtxRelease_v2(0));
    assert!(!active(0));
    // It is still on the stack, but gone.
    let mut address = 0;
    let gone = cu!(cuMemAlloc_v2(Out::new(&raw mut address), 1));
    assert_eq!(gone, Status::CONTEXT_IS_DESTROYED);
    assert_eq!(cu!(cuCtxSetCurrent(first)), Status::INVALID_CONTEXT);
    let fresh = enter(0);
    assert_ne!(fresh, first);
    alloc(16);
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(
        Out::new(&raw mut free),
        Out::new(&raw mut total)
    ));
    free
}

fn a_context_takes_its_things_along() {
    enter(0);
    let before = free_bytes();
    let address = alloc(1 << 20);
    let (stream, event) = (stream(NON_BLOCKING), event());
    let page_locked = pinned(&[1; 100]);
    ok!(cuMemcpyHtoDAsync_v2(address, page_locked, 100, stream));
    ok!(cuDevicePrimaryCtxReset_v2(0));
    enter(0);
    assert_eq!(free_bytes(), before);
    assert_eq!(cu!(cuStreamSynchronize(stream)), Status::INVALID_HANDLE);
    assert_eq!(cu!(cuEventQuery(event)), Status::INVALID_HANDLE);
    assert_eq!(cu!(cuMemFree_v2(address)), Status::INVALID_VALUE);
    assert_eq!(cu!(cuMemFreeHost(page_locked)), Status::INVALID_VALUE);
}

fn own_contexts() {
    let primary = enter(0);
    let before = free_bytes();
    let own: Handle = made!(cuCtxCreate_v2(0, 0));
    assert_eq!(current(), own);
    assert!(free_bytes() < before, "a context costs memory");
    let address = alloc(64);
    ok!(cuCtxDestroy_v2(own));
    assert_eq!(current(), primary);
    assert_eq!(free_bytes(), before);
    assert_eq!(cu!(cuMemFree_v2(address)), Status::INVALID_VALUE);
    assert_eq!(cu!(cuCtxDestroy_v2(own)), Status::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxDestroy_v2(primary)), Status::INVALID_VALUE);
    let modern: Handle = made!(cuCtxCreate_v4(In::null(), 0, 1));
    assert_eq!(made!(cuCtxGetDevice()), 1);
    ok!(cuCtxDestroy_v2(modern));
}

fn limits() {
    enter(0);
    ok!(cuCtxSetLimit(2, 1 << 20));
    assert_eq!(made!(cuCtxGetLimit(2)), 1_usize << 20);
    let mut value = 0;
    let unknown = cu!(cuCtxGetLimit(Out::new(&raw mut value), 99));
    assert_eq!(unknown, Status::UNSUPPORTED_LIMIT);
}
