//! What comes after what, on one queue, between queues, and on the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warploom_core::memory::{WGPU_DEVICE, WGPU_PINNED};
use warploom_core::{Buffer, Caps, CheckedDevice, DeviceError, Event, Queue, Result, Slice};

use crate::rig::{add, backend, content, device, filled, groups_for, queue, run_add};

#[test]
fn waiting_for_an_event_orders_queues() {
    let Some(device) = device() else { return };
    let kernel = add(&device);
    let slow = groups_for(&device, &kernel, Duration::from_millis(20));
    let (mut one, mut two) = (queue(&device), queue(&device));
    let a = filled(&device, &mut one, WGPU_DEVICE, &[0; 4]);
    let b = filled(&device, &mut one, WGPU_DEVICE, &[0; 4]);
    one.record().unwrap().wait(None).unwrap();
    for _ in 0..20 {
        run_add(&mut one, &kernel, &a, 1, slow / 8 + 1);
        let event = one.record().unwrap();
        // Recorded before the wait, submitted after it.
        run_add(&mut two, &kernel, &b, 100, 1);
        two.wait(&event).unwrap();
        two.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
        run_add(&mut two, &kernel, &b, 1, 1);
        let event = two.record().unwrap();
        one.wait(&event).unwrap();
        one.copy(&Slice::whole(&b), &Slice::whole(&a)).unwrap();
    }
    assert_eq!(content(&mut one, &a), 40_u32.to_le_bytes());
}

#[test]
fn the_host_sees_what_was_only_recorded() {
    let Some(device) = device() else { return };
    let kernel = add(&device);
    let mut queue = queue(&device);
    let data = filled(&device, &mut queue, WGPU_DEVICE, &[0; 64]);
    let pinned = device.alloc(WGPU_PINNED, 64).unwrap();
    for round in 1..=5_u8 {
        run_add(&mut queue, &kernel, &data, 0x0101_0101, 1);
        queue
            .copy(&Slice::whole(&data), &Slice::whole(&pinned))
            .unwrap();
        pinned
            .with_host(&mut |bytes| {
                assert_eq!(bytes, [round; 64]);
                bytes.fill(0xff);
            })
            .unwrap();
        pinned
            .with_host(&mut |bytes| assert_eq!(bytes, [0xff; 64]))
            .unwrap();
    }
    queue
        .copy(&Slice::whole(&pinned), &Slice::whole(&data))
        .unwrap();
    assert_eq!(content(&mut queue, &data), [0xff; 64]);
    let error = data.with_host(&mut |_| ()).unwrap_err();
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
}

#[test]
fn a_submit_waits_while_the_host_has_the_buffer() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let pinned = filled(&device, &mut queue, WGPU_PINNED, &[1; 1024]);
    let taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let host = scope.spawn(|| {
            pinned.with_host(&mut |bytes| {
                taken.store(true, Ordering::Release);
                for _ in 0..20 {
                    assert!(bytes.iter().all(|byte| *byte == 1), "changed while lent");
                    std::thread::sleep(Duration::from_millis(2));
                }
            })
        });
        while !taken.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        queue.upload(&[2; 1024], &Slice::whole(&pinned)).unwrap();
        queue.record().unwrap().wait(None).unwrap();
        assert!(host.join().unwrap().is_ok());
    });
    pinned
        .with_host(&mut |bytes| assert_eq!(bytes, [2; 1024]))
        .unwrap();
}

/// The host has one buffer of a list and records on; another thread wants the other buffer.
#[test]
fn recording_goes_on_while_another_thread_waits_for_the_list() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let a = filled(&device, &mut queue, WGPU_PINNED, &[1; 64]);
    let b = filled(&device, &mut queue, WGPU_PINNED, &[2; 64]);
    queue.record().unwrap().wait(None).unwrap();
    std::thread::scope(|scope| {
        let other = &b;
        a.with_host(&mut |_| {
            queue.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
            let waiting = scope.spawn(move || other.with_host(&mut |_| ()));
            for _ in 0..50 {
                std::thread::sleep(Duration::from_micros(200));
                queue.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
            }
            assert!(!waiting.is_finished(), "the copy cannot have run yet");
        })
        .unwrap();
    });
    b.with_host(&mut |bytes| assert_eq!(bytes, [1; 64]))
        .unwrap();
}

#[test]
fn a_wait_ends_when_its_time_is_up_and_the_work_goes_on() {
    let Some(device) = device() else { return };
    let kernel = add(&device);
    let slow = groups_for(&device, &kernel, Duration::from_millis(200));
    let mut queue = queue(&device);
    let buffer = filled(&device, &mut queue, WGPU_DEVICE, &[0; 4]);
    run_add(&mut queue, &kernel, &buffer, 1, slow);
    let event = queue.record().unwrap();
    let begun = Instant::now();
    assert!(!event.is_done().unwrap());
    assert_eq!(event.at(), None);
    let waited = Duration::from_millis(5);
    let error = event.wait(Some(waited)).unwrap_err();
    assert!(
        matches!(error, DeviceError::Timeout { waited: w, .. } if w == waited),
        "{error}"
    );
    assert!(begun.elapsed() >= waited);
    assert!(matches!(
        event.wait(Some(Duration::ZERO)),
        Err(DeviceError::Timeout { .. })
    ));
    event.wait(Some(Duration::from_mins(1))).unwrap();
    assert!(event.is_done().unwrap());
    assert_eq!(content(&mut queue, &buffer), 1_u32.to_le_bytes());
}

#[test]
fn times_are_the_devices_own() {
    let Some(device) = device() else { return };
    if !device.info().caps.contains(Caps::TIMESTAMPS) {
        println!("skipped: {} has no clock", device.info().id);
        return;
    }
    let kernel = add(&device);
    let slow = groups_for(&device, &kernel, Duration::from_millis(30));
    let mut queue = queue(&device);
    let buffer = device.alloc(WGPU_DEVICE, 4).unwrap();
    let first = queue.record().unwrap();
    run_add(&mut queue, &kernel, &buffer, 1, slow);
    let begun = Instant::now();
    let second = queue.record().unwrap();
    second.wait(None).unwrap();
    let by_host = begun.elapsed();
    let by_device = second
        .at()
        .unwrap()
        .checked_sub(first.at().unwrap())
        .unwrap();
    // The kernel took at least half of what it took when it was measured.
    assert!(by_device >= Duration::from_millis(10), "{by_device:?}");
    assert!(
        by_device <= by_host * 2 + Duration::from_millis(50),
        "{by_device:?} {by_host:?}"
    );
    // More events than one set of queries has, all still there.
    let events: Vec<_> = (0..600)
        .map(|_| {
            run_add(&mut queue, &kernel, &buffer, 1, 1);
            queue.record().unwrap()
        })
        .collect();
    events[599].wait(None).unwrap();
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].at().unwrap() <= pair[1].at().unwrap())
    );
}

#[test]
fn handles_may_be_dropped_at_once() {
    let Some(device) = device() else { return };
    let kernel = add(&device);
    let slow = groups_for(&device, &kernel, Duration::from_millis(20));
    let mut one = queue(&device);
    let keep = device.alloc(WGPU_PINNED, 4).unwrap();
    let event = {
        let mut two = queue(&device);
        let temporary = filled(&device, &mut two, WGPU_DEVICE, &[5, 0, 0, 0]);
        run_add(&mut two, &kernel, &temporary, 2, slow);
        two.copy(&Slice::whole(&temporary), &Slice::whole(&keep))
            .unwrap();
        drop(temporary);
        two.record().unwrap()
    };
    drop((kernel, device));
    one.wait(&event).unwrap();
    let mut bytes = [0; 4];
    one.download(&Slice::whole(&keep), &mut bytes).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0]);
    drop((one, keep));
    assert!(event.is_done().unwrap());
}

#[test]
fn a_dropped_queue_submits_its_list() {
    let Some(device) = device() else { return };
    let pinned = device.alloc(WGPU_PINNED, 4).unwrap();
    let mut one = queue(&device);
    one.upload(&[9; 4], &Slice::whole(&pinned)).unwrap();
    drop(one);
    let mut two = queue(&device);
    assert_eq!(content(&mut two, &pinned), [9; 4]);
}

/// An event of nobody's device.
#[derive(Debug, Default)]
struct Foreign {
    waited: AtomicBool,
}

impl Event for Foreign {
    fn is_done(&self) -> Result<bool> {
        Ok(self.waited.load(Ordering::Acquire))
    }
    fn wait(&self, _timeout: Option<Duration>) -> Result<()> {
        self.waited.store(true, Ordering::Release);
        Ok(())
    }
    fn at(&self) -> Option<Duration> {
        None
    }
}

#[test]
fn the_host_waits_for_a_strangers_event() {
    let Some(device) = device() else { return };
    let mut one = queue(&device);
    let stranger = Arc::new(Foreign::default());
    let event: Arc<dyn Event> = Arc::clone(&stranger) as _;
    one.wait(&event).unwrap();
    assert!(stranger.waited.load(Ordering::Acquire));
    // Another opening of the same device is a stranger too.
    let again = backend().unwrap().open(device.info().id.ordinal).unwrap();
    let again = CheckedDevice::new(again);
    let mut two = queue(&again);
    let other = filled(&again, &mut two, WGPU_DEVICE, &[3; 4]);
    let event = two.record().unwrap();
    one.wait(&event).unwrap();
    assert!(event.is_done().unwrap());
    // Its buffers are not ours, and saying so costs nothing but the call.
    let mine = filled(&device, &mut one, WGPU_DEVICE, &[4; 4]);
    let error = one
        .copy(&Slice::whole(&other), &Slice::whole(&mine))
        .unwrap_err();
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    assert_eq!(content(&mut one, &mine), [4; 4]);
}

/// Several threads, each with a queue and a buffer of its own, and one buffer that all share.
#[test]
fn threads_do_not_disturb_each_other() {
    let Some(device) = device() else { return };
    let kernel = add(&device);
    let mut first = queue(&device);
    let shared = filled(&device, &mut first, WGPU_PINNED, &[0; 64]);
    first.record().unwrap().wait(None).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (device, kernel, shared) = (&device, &kernel, &shared);
            scope.spawn(move || {
                let mut queue = queue(device);
                let own = filled(device, &mut queue, WGPU_DEVICE, &[0; 256]);
                for round in 1..=60_u32 {
                    run_add(&mut queue, kernel, &own, 1, 2);
                    if round % 4 == thread {
                        launch_copy(&mut queue, &own, shared);
                        shared.with_host(&mut |bytes| bytes.fill(0)).unwrap();
                    }
                    let event = queue.record().unwrap();
                    while let Err(error) = event.wait(Some(Duration::from_micros(50))) {
                        assert!(matches!(error, DeviceError::Timeout { .. }), "{error}");
                    }
                    assert!(event.is_done().unwrap());
                }
                let words: Vec<u32> = bytemuck::pod_collect_to_vec(&content(&mut queue, &own));
                assert_eq!(words, [60; 64]);
            });
        }
    });
}

fn launch_copy(queue: &mut dyn Queue, src: &Arc<dyn Buffer>, dst: &Arc<dyn Buffer>) {
    let src = Slice::new(Arc::clone(src), 0..dst.bytes()).unwrap();
    queue.copy(&src, &Slice::whole(dst)).unwrap();
}
