//! What happens after something went wrong.

use std::sync::Arc;

use warploom_core::{
    Arg, DeviceError, GpuBackend, KernelSource, Param, Queue, QueueDesc, Slice, UsageError, host,
};
use warploom_cpu::CpuBackend;

use crate::*;

fn failing(device: &CheckedDevice) -> Arc<dyn Kernel> {
    custom(device, |_| panic!("on purpose"))
}

#[test]
fn a_panicking_kernel_fails_its_queue_for_good() {
    let device = open();
    let mut queue = queue(&device, "one");
    let (data, other) = (buffer(&device, 4), buffer(&device, 4));
    let (all, kernel) = (Slice::whole(&data), step(&device));
    let meeting = Arc::new(Meeting::default());
    let gate = {
        let meeting = Arc::clone(&meeting);
        custom(&device, move |_| meeting.until(1))
    };
    let one = [all.clone().into(), Arg::U32(1)];
    queue.launch(&gate, ONE, &arg(all.clone())).unwrap();
    queue.launch(&kernel, ONE, &one).unwrap();
    let before = queue.record().unwrap();
    queue
        .launch(&failing(&device), ONE, &arg(all.clone()))
        .unwrap();
    queue.launch(&kernel, ONE, &one).unwrap();
    queue.copy(&all, &Slice::whole(&other)).unwrap();
    let after = queue.record().unwrap();
    meeting.of(1);

    let error = after.wait(Some(PATIENCE)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, DeviceError::Driver { .. }), "{text}");
    assert_eq!(
        text,
        "custom failed on cpu:0: the kernel panicked: on purpose"
    );
    before.wait(Some(PATIENCE)).unwrap();
    assert_eq!((after.is_done(), after.at()), (Err(error.clone()), None));

    assert_eq!(queue.upload(&[9; 4], &all), Err(error.clone()));
    assert_eq!(queue.download(&all, &mut [0; 4]), Err(error.clone()));
    assert_eq!(queue.copy(&all, &Slice::whole(&other)), Err(error.clone()));
    assert_eq!(queue.launch(&kernel, ONE, &one), Err(error.clone()));
    assert_eq!(queue.record().map(|_| ()), Err(error.clone()));
    assert_eq!(queue.wait(&before), Err(error));
    // What came before the failure was done, what came after was not, and nothing is stuck.
    assert_eq!(bytes_of(&data), 1_u32.to_ne_bytes());
    assert_eq!(bytes_of(&other), [0; 4]);
}

#[test]
fn other_queues_go_on_unless_they_wait_for_the_failure() {
    let device = open();
    let mut queues = ["bad", "good", "waiting"].map(|label| queue(&device, label));
    let [bad, good, waiting] = &mut queues;
    let data = [(); 3].map(|()| Slice::whole(&buffer(&device, 4)));
    bad.launch(&failing(&device), ONE, &arg(data[0].clone()))
        .unwrap();
    // The record may already be refused, when the kernel was quick to fail.
    match bad.record() {
        Ok(event) => {
            waiting.wait(&event).unwrap();
            let args = [data[2].clone().into(), Arg::U32(1)];
            waiting.launch(&step(&device), ONE, &args).ok();
            let error = event.wait(Some(PATIENCE)).unwrap_err();
            assert_eq!(waiting.download(&data[2], &mut [0; 4]), Err(error));
        }
        Err(error) => assert!(error.to_string().contains("on purpose"), "{error}"),
    }
    let args = [data[1].clone().into(), Arg::U32(1)];
    good.launch(&step(&device), ONE, &args).unwrap();
    let mut out = [0; 4];
    good.download(&data[1], &mut out).unwrap();
    assert_eq!(out, 1_u32.to_ne_bytes());
}

#[test]
fn a_destructor_that_panics_does_not_take_the_thread_along() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor, on purpose");
        }
    }
    let device = open();
    let mut queue = queue(&device, "one");
    let data = Slice::whole(&buffer(&device, 4));
    let meeting = Arc::new(Meeting::default());
    let kernel = {
        let (bomb, meeting) = (Bomb, Arc::clone(&meeting));
        custom(&device, move |_| {
            let _captured = &bomb;
            meeting.until(1);
        })
    };
    queue.launch(&kernel, ONE, &arg(data.clone())).unwrap();
    let event = queue.record().unwrap();
    drop(kernel);
    meeting.of(1);
    let error = event.wait(Some(PATIENCE)).unwrap_err();
    assert!(matches!(error, DeviceError::Driver { .. }), "{error}");
    assert_eq!(bytes_of(data.buffer()), [0; 4]);
}

#[test]
fn a_bare_queue_refuses_what_would_alias() {
    let device = CpuBackend::with_threads(1).open(0).unwrap();
    let mut queue = device.queue(&QueueDesc::named("bare")).unwrap();
    let source = KernelSource::host("two", &[Param::Read, Param::Write], |call| {
        let from = call.read::<u8>(0);
        call.write::<u8>(1)[..4].copy_from_slice(&from[..4]);
    });
    let kernel = device.kernel(&source).unwrap();
    let data = device.alloc(HOST, 16).unwrap();
    let args = [part(&data, 0..8).into(), part(&data, 4..12).into()];
    let error = queue.launch(&kernel, ONE, &args).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cpu:0 does not support overlapping arguments 0 and 1 of kernel `two`"
    );
    // It was refused, so the queue is still sound, and nothing is left pending.
    assert_eq!(bytes_of(&data), [0; 16]);
    queue.upload(&[5; 8], &part(&data, 0..8)).unwrap();
    let args = [part(&data, 0..8).into(), part(&data, 8..16).into()];
    queue.launch(&kernel, ONE, &args).unwrap();
    // Copies onto themselves and unequal lengths stay inside the buffer, too.
    queue
        .copy(&part(&data, 0..12), &part(&data, 4..16))
        .unwrap();
    queue
        .copy(&part(&data, 0..2), &part(&data, 13..16))
        .unwrap();
    queue.upload(&[9; 100], &part(&data, 0..1)).unwrap();
    let mut out = [1; 20];
    queue.download(&part(&data, 0..16), &mut out).unwrap();
    let expected = [9, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 1, 1, 1, 1];
    assert_eq!(out, expected);
}

#[test]
fn a_bare_queue_refuses_strangers() {
    let device = CpuBackend::with_threads(1).open(0).unwrap();
    let mut queue = device.queue(&QueueDesc::named("bare")).unwrap();
    let id = device.info().id;
    let stranger = host::HostBuffer::zeroed(id, HOST, 8).unwrap();
    let stranger: Arc<dyn Buffer> = Arc::new(stranger);
    let foreign = Slice::whole(&stranger);
    let own = Slice::whole(&device.alloc(HOST, 8).unwrap());
    let source = KernelSource::host("two", &[Param::Read, Param::Write], |_| ());
    let kernel = device.kernel(&source).unwrap();
    let args = [own.clone().into(), foreign.clone().into()];
    for outcome in [
        queue.upload(&[0; 8], &foreign),
        queue.download(&foreign, &mut [0; 8]),
        queue.copy(&own, &foreign),
        queue.copy(&foreign, &own),
        queue.launch(&kernel, ONE, &args),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    }
    // None of the refused calls left its claim behind.
    assert_eq!(bytes_of(own.buffer()), [0; 8]);
}

#[test]
fn arguments_that_do_not_fit_are_an_error_even_on_a_bare_queue() {
    let device = CpuBackend::with_threads(1).open(0).unwrap();
    let mut queue = device.queue(&QueueDesc::named("bare")).unwrap();
    let source = KernelSource::host("one", &[Param::Write], |call| call.write::<u32>(0)[0] = 1);
    let kernel = device.kernel(&source).unwrap();
    let data = Slice::whole(&device.alloc(HOST, 8).unwrap());
    // Sent as they are: the kernel's own look at its arguments fails.
    queue.launch(&kernel, ONE, &[]).unwrap();
    let error = queue.download(&data, &mut [0; 8]).unwrap_err();
    assert!(matches!(error, DeviceError::Driver { .. }), "{error}");
}

#[test]
fn memory_has_a_limit_with_numbers() {
    let backend = CpuBackend::with_threads(1).with_memory_limit(1000);
    let device = backend.open(0).unwrap();
    let first = device.alloc(HOST, 600).unwrap();
    let use_now = device.memory().unwrap();
    assert_eq!((use_now.total, use_now.ours), (1000, 600));
    assert!(use_now.free.is_none_or(|free| free <= 400), "{use_now:?}");
    let error = device.alloc(HOST, 401).unwrap_err();
    let expected = DeviceError::OutOfMemory {
        device: device.info().id,
        kind: HOST,
        asked: 401,
        free: Some(400),
    };
    assert_eq!(error, expected);
    drop(first);
    device.alloc(HOST, 1000).unwrap();
    // Above the largest allocation it is a mistake of the caller, and the checks say so.
    let error = CheckedDevice::new(device).alloc(HOST, 1001).unwrap_err();
    let size = matches!(error, DeviceError::Usage(UsageError::Size { .. }));
    assert!(size, "{error}");
}
