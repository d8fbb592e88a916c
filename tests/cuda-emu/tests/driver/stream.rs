//! Streams: order, and who waits for whom.

use std::ffi::c_void;
use std::sync::Mutex;
use std::time::Duration;

use crate::Scene;
use crate::rig::*;

const STEADY: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "0")];
const RESTLESS: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "300"), ("WARPLOOM_EMU_SEED", "5")];

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("a_stream_keeps_its_order", a_stream_keeps_its_order).with(RESTLESS),
    Scene::new("streams_run_side_by_side", streams_run_side_by_side).with(STEADY),
    Scene::new("the_default_stream_waits_for_blocking_ones", default_waits).with(STEADY),
    Scene::new("blocking_streams_wait_for_the_default_one", blocking_waits).with(STEADY),
    Scene::new("default_streams_of_threads", default_streams_of_threads).with(STEADY),
    Scene::new("a_destroyed_stream_finishes", a_destroyed_stream_finishes).with(STEADY),
    Scene::new("flags_and_priorities", flags_and_priorities),
    Scene::new(
        "host_functions_must_not_call_back",
        host_functions_must_not_call_back,
    )
    .says(&["cuStreamQuery: CUDA_ERROR_NOT_PERMITTED: host functions must not call the driver"]),
    Scene::new("callbacks_hear_of_failures", callbacks_hear_of_failures),
    Scene::new("many_streams_and_threads", many_streams_and_threads).with(RESTLESS),
    Scene::new("stale_handles_are_refused", stale_handles_are_refused),
];

static SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Notes a number in the order of a stream.
fn note(stream: Handle, number: usize) {
    let data = std::ptr::without_provenance_mut(number);
    ok!(cuLaunchHostFunc(stream, Some(write_down), data));
}

unsafe extern "C" fn write_down(number: *mut c_void) {
    SEEN.lock().unwrap().push(number.addr());
}

fn seen() -> Vec<usize> {
    std::mem::take(&mut SEEN.lock().unwrap())
}

/// Long enough for a stream that could go on to do so.
fn linger() {
    std::thread::sleep(Duration::from_millis(20));
}

fn a_stream_keeps_its_order() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let address = alloc(4);
    for number in 0..100 {
        ok!(cuMemsetD32Async(address, number, 1, stream));
        note(stream, number as usize);
    }
    ok!(cuStreamSynchronize(stream));
    assert_eq!(seen(), (0..100).collect::<Vec<_>>());
    assert_eq!(download(address, 4), 99_u32.to_le_bytes());
}

fn streams_run_side_by_side() {
    enter(0);
    let (a, b) = (stream(NON_BLOCKING), stream(BLOCKING));
    let gate = Gate::close(a);
    note(a, 1);
    note(b, 2);
    ok!(cuStreamSynchronize(b));
    assert_eq!(seen(), [2]);
    assert_eq!(cu!(cuStreamQuery(a)), Status::NOT_READY);
    gate.open();
    ok!(cuStreamSynchronize(a));
    assert_eq!(seen(), [1]);
    ok!(cuStreamQuery(a));
}

fn default_waits() {
    enter(0);
    let (blocking, other) = (stream(BLOCKING), stream(NON_BLOCKING));
    let gates = [Gate::close(blocking), Gate::close(other)];
    note(DEFAULT, 1);
    linger();
    assert_eq!(
        seen(),
        [0; 0],
        "the default stream waits for the blocking one"
    );
    assert_eq!(cu!(cuStreamQuery(DEFAULT)), Status::NOT_READY);
    let [first, second] = gates;
    first.open();
    ok!(cuStreamSynchronize(DEFAULT));
    assert_eq!(seen(), [1], "and not for the other");
    second.open();
    ok!(cuCtxSynchronize());
}

fn blocking_waits() {
    enter(0);
    let (blocking, other) = (stream(BLOCKING), stream(NON_BLOCKING));
    let gate = Gate::close(DEFAULT);
    note(blocking, 1);
    note(other, 2);
    ok!(cuStreamSynchronize(other));
    linger();
    assert_eq!(seen(), [2], "only the non-blocking stream goes on");
    gate.open();
    ok!(cuStreamSynchronize(blocking));
    assert_eq!(seen(), [1]);
}

fn default_streams_of_threads() {
    let context = enter(0);
    let mine = Handle(2);
    let gate = Gate::close(mine);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            ok!(cuCtxSetCurrent(context));
            note(mine, 1);
            ok!(cuStreamSynchronize_ptsz(DEFAULT));
        });
        other.join().unwrap();
    });
    assert_eq!(
        seen(),
        [1],
        "another thread's default stream is another stream"
    );
    note(DEFAULT, 2);
    linger();
    assert_eq!(seen(), [0; 0], "the legacy one waits for it");
    gate.open();
    ok!(cuStreamSynchronize(DEFAULT));
    assert_eq!(seen(), [2]);
    // Twins of calls mean it by a null handle.
    let gate = Gate::close(mine);
    assert_eq!(cu!(cuStreamQuery_ptsz(DEFAULT)), Status::NOT_READY);
    gate.open();
    ok!(cuCtxSynchronize());
}

fn a_destroyed_stream_finishes() {
    enter(0);
    let stream = stream(BLOCKING);
    let gate = Gate::close(stream);
    note(stream, 1);
    ok!(cuStreamDestroy_v2(stream));
    assert_eq!(cu!(cuStreamQuery(stream)), Status::INVALID_HANDLE);
    note(DEFAULT, 2);
    linger();
    assert_eq!(seen(), [0; 0]);
    gate.open();
    ok!(cuCtxSynchronize());
    assert_eq!(seen(), [1, 2]);
}

fn flags_and_priorities() {
    let context = enter(1);
    let stream: Handle = made!(cuStreamCreateWithPriority(NON_BLOCKING, -100));
    let (mut flags, mut priority) = (9, 9);
    ok!(cuStreamGetFlags(stream, Out::new(&raw mut flags)));
    ok!(cuStreamGetPriority(stream, Out::new(&raw mut priority)));
    assert_eq!((flags, priority), (NON_BLOCKING, -5));
    let (mut owner, mut device, mut capturing) = (Handle::NULL, 9, 9);
    ok!(cuStreamGetCtx(stream, Out::new(&raw mut owner)));
    ok!(cuStreamGetDevice(stream, Out::new(&raw mut device)));
    ok!(cuStreamIsCapturing(stream, Out::new(&raw mut capturing)));
    assert_eq!((owner, device, capturing), (context, 1, 0));
    let mut wrong = Handle::NULL;
    assert_eq!(
        cu!(cuStreamCreate(Out::new(&raw mut wrong), 2)),
        Status::INVALID_VALUE
    );
}

unsafe extern "C" fn call_back(stream: *mut c_void) {
    let stream = Handle(stream.addr());
    let answer = cu!(cuStreamQuery(stream)).code();
    SEEN.lock().unwrap().push(usize::try_from(answer).unwrap());
}

fn host_functions_must_not_call_back() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let data = std::ptr::without_provenance_mut(stream.0);
    ok!(cuLaunchHostFunc(stream, Some(call_back), data));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(seen(), [800]);
    assert_eq!(
        cu!(cuLaunchHostFunc(stream, None, data)),
        Status::INVALID_VALUE
    );
}

unsafe extern "C" fn hear(_stream: Handle, status: i32, number: *mut c_void) {
    let mut seen = SEEN.lock().unwrap();
    seen.push(usize::try_from(status).unwrap());
    seen.push(number.addr());
}

fn callbacks_hear_of_failures() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let data = std::ptr::without_provenance_mut;
    ok!(cuStreamAddCallback(stream, Some(hear), data(1), 0));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(seen(), [0, 1]);
    let address = alloc(16);
    let bytes = pinned(&[0; 16]);
    let gate = Gate::close(stream);
    ok!(cuMemcpyHtoDAsync_v2(address, bytes, 16, stream));
    note(stream, 7);
    ok!(cuStreamAddCallback(stream, Some(hear), data(2), 0));
    ok!(cuMemFreeHost(bytes));
    gate.open();
    assert_eq!(cu!(cuStreamSynchronize(stream)), Status::ILLEGAL_ADDRESS);
    assert_eq!(
        seen(),
        [700, 2],
        "host functions are dropped, callbacks are told"
    );
}

fn many_streams_and_threads() {
    let context = enter(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(context));
                let streams = [stream(NON_BLOCKING), stream(BLOCKING), stream(BLOCKING)];
                let address = alloc(4);
                for round in 0..20 {
                    let value = thread * 1000 + round;
                    let lane = streams[round as usize % 3];
                    ok!(cuMemsetD32Async(address, value, 1, lane));
                    let done = event();
                    ok!(cuEventRecord(done, lane));
                    let next = streams[(round as usize + 1) % 3];
                    ok!(cuStreamWaitEvent(next, done, 0));
                    ok!(cuEventDestroy_v2(done));
                }
                for lane in streams {
                    ok!(cuStreamSynchronize(lane));
                    ok!(cuStreamDestroy_v2(lane));
                }
                let mut value = [0; 4];
                ok!(cuMemcpyDtoH_v2(host_mut(&mut value), address, 4));
                assert_eq!(u32::from_le_bytes(value), thread * 1000 + 19);
            });
        }
    });
}

fn stale_handles_are_refused() {
    enter(0);
    let (stream, event) = (stream(BLOCKING), event());
    assert_eq!(cu!(cuStreamSynchronize(event)), Status::INVALID_HANDLE);
    assert_eq!(cu!(cuEventQuery(stream)), Status::INVALID_HANDLE);
    ok!(cuStreamDestroy_v2(stream));
    assert_eq!(cu!(cuStreamDestroy_v2(stream)), Status::INVALID_HANDLE);
    ok!(cuEventDestroy_v2(event));
    assert_eq!(cu!(cuEventDestroy_v2(event)), Status::INVALID_HANDLE);
    assert_eq!(cu!(cuStreamDestroy_v2(Handle(1))), Status::INVALID_HANDLE);
    assert_eq!(cu!(cuEventRecord(event, DEFAULT)), Status::INVALID_HANDLE);
}
