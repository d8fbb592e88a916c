//! Events.

use crate::Scene;
use crate::rig::*;

const STEADY: &[(&str, &str)] = &[("WARPLOOM_EMU_JITTER", "0")];

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("events_are_reached", events_are_reached).with(STEADY),
    Scene::new(
        "a_wait_means_the_last_recording",
        a_wait_means_the_last_recording,
    )
    .with(STEADY),
    Scene::new("recording_again_starts_anew", recording_again_starts_anew).with(STEADY),
    Scene::new("waits_reach_over_devices", waits_reach_over_devices).with(STEADY),
    Scene::new("time_between_events", time_between_events).with(STEADY),
    Scene::new("events_stay_in_their_context", events_stay_in_their_context),
];

fn events_are_reached() {
    enter(0);
    let (stream, event) = (stream(NON_BLOCKING), event());
    ok!(cuEventQuery(event));
    ok!(cuEventSynchronize(event));
    let gate = Gate::close(stream);
    ok!(cuEventRecord(event, stream));
    assert_eq!(cu!(cuEventQuery(event)), Status::NOT_READY);
    gate.open();
    ok!(cuEventSynchronize(event));
    ok!(cuEventQuery(event));
}

fn a_wait_means_the_last_recording() {
    enter(0);
    let (a, b, event) = (stream(NON_BLOCKING), stream(NON_BLOCKING), event());
    // Never recorded: nothing to wait for.
    ok!(cuStreamWaitEvent(b, event, 0));
    ok!(cuStreamSynchronize(b));
    ok!(cuEventRecord(event, a));
    let first = Gate::close(a);
    ok!(cuStreamWaitEvent(b, event, 0));
    // What is recorded later does not concern the wait.
    ok!(cuEventRecord(event, a));
    ok!(cuStreamSynchronize(b));
    ok!(cuStreamWaitEvent(b, event, 0));
    ok!(cuEventDestroy_v2(event));
    assert_eq!(cu!(cuStreamQuery(b)), Status::NOT_READY);
    first.open();
    ok!(cuStreamSynchronize(b));
}

fn recording_again_starts_anew() {
    enter(0);
    let (a, b, event) = (stream(NON_BLOCKING), stream(NON_BLOCKING), event());
    ok!(cuEventRecord(event, a));
    ok!(cuEventSynchronize(event));
    let gate = Gate::close(b);
    ok!(cuEventRecord(event, b));
    assert_eq!(cu!(cuEventQuery(event)), Status::NOT_READY);
    // The last recording counts, also when it is reached first.
    ok!(cuEventRecordWithFlags(event, a, 0));
    ok!(cuEventSynchronize(event));
    assert_eq!(cu!(cuStreamQuery(b)), Status::NOT_READY);
    gate.open();
    ok!(cuCtxSynchronize());
}

fn waits_reach_over_devices() {
    let first = enter(0);
    let (a, event) = (stream(NON_BLOCKING), event());
    let gate = Gate::close(a);
    ok!(cuEventRecord(event, a));
    enter(1);
    let b = stream(NON_BLOCKING);
    ok!(cuStreamWaitEvent(b, event, 0));
    assert_eq!(cu!(cuStreamQuery(b)), Status::NOT_READY);
    gate.open();
    ok!(cuStreamSynchronize(b));
    ok!(cuCtxSetCurrent(first));
    ok!(cuEventQuery(event));
}

fn time_between_events() {
    enter(0);
    let stream = stream(NON_BLOCKING);
    let (start, end) = (event(), event());
    let mut time = 0.0;
    let elapsed = |time: &mut f32, a, b| cu!(cuEventElapsedTime(Out::from(time), a, b));
    assert_eq!(
        elapsed(&mut time, start, end),
        Status::INVALID_HANDLE,
        "never recorded"
    );
    ok!(cuEventRecord(start, stream));
    let gate = Gate::close(stream);
    ok!(cuEventRecord(end, stream));
    gate.wait();
    assert_eq!(elapsed(&mut time, start, end), Status::NOT_READY);
    std::thread::sleep(std::time::Duration::from_millis(30));
    gate.open();
    ok!(cuEventSynchronize(end));
    assert_eq!(elapsed(&mut time, start, end), Status::SUCCESS);
    assert!((29.0..5000.0).contains(&time), "{time}");
    let mut newer = 0.0;
    ok!(cuEventElapsedTime_v2(Out::from(&mut newer), start, end));
    assert_eq!(newer.to_bits(), time.to_bits());
    let untimed: Handle = made!(cuEventCreate(2));
    ok!(cuEventRecord(untimed, stream));
    ok!(cuEventSynchronize(untimed));
    assert_eq!(elapsed(&mut time, start, untimed), Status::INVALID_HANDLE);
}

fn events_stay_in_their_context() {
    enter(0);
    let event = event();
    enter(1);
    assert_eq!(
        cu!(cuEventRecord(event, stream(BLOCKING))),
        Status::INVALID_HANDLE
    );
    let mut wrong = Handle::NULL;
    assert_eq!(
        cu!(cuEventCreate(Out::new(&raw mut wrong), 4)),
        Status::INVALID_VALUE
    );
    assert_eq!(
        cu!(cuEventCreate(Out::new(&raw mut wrong), 6)),
        Status::NOT_SUPPORTED
    );
}
