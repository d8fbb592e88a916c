//! What only the inside can tell: how many submits there were, and what is kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_core::memory::{WGPU_DEVICE, WGPU_PINNED};
use warploom_core::{
    Arg, Buffer, DType, Device, DeviceError, Grid, Kernel, KernelSource, Param, Queue, QueueDesc,
    Slice,
};

use crate::context::Context;
use crate::device::WgpuDevice;
use crate::probe;
use crate::timeline::Timeline;

const ADD: &str = "
    struct P { by: u32 }
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @group(0) @binding(1) var<uniform> p: P;
    @compute @workgroup_size(64)
    fn add(@builtin(global_invocation_id) i: vec3<u32>) {
        if (i.x < arrayLength(&a)) { a[i.x] += p.by; }
    }";

/// Runs `test` on the first device, with each way of telling the time.
fn on_a_device(test: impl Fn(&WgpuDevice)) {
    let ways: [fn(&wgpu::Device) -> Timeline; 2] =
        [Timeline::new, |_| Timeline::without_semaphore()];
    for way in ways {
        let Some(found) = probe::find().into_iter().next() else {
            println!("skipped: wgpu finds no device");
            return;
        };
        let context = Context::open_with(found.info, found.adapter, way).unwrap();
        let device = WgpuDevice {
            context: Arc::new(context),
        };
        test(&device);
        let weak = Arc::downgrade(&device.context);
        drop(device);
        assert!(weak.upgrade().is_none(), "something still holds the device");
    }
}

fn add_kernel(device: &WgpuDevice) -> Arc<dyn Kernel> {
    let params = [Param::ReadWrite, Param::Scalar(DType::U32)];
    let source = KernelSource::wgsl("add", ADD, &params, [64, 1, 1]);
    device.kernel(&source).unwrap()
}

fn queue(device: &WgpuDevice) -> Box<dyn Queue> {
    device.queue(&QueueDesc::named("test")).unwrap()
}

fn submits(device: &WgpuDevice) -> u64 {
    device.context.gate.submitted()
}

fn words(queue: &mut dyn Queue, buffer: &Arc<dyn Buffer>) -> Vec<u32> {
    let mut bytes = vec![0; usize::try_from(buffer.bytes()).unwrap()];
    queue.download(&Slice::whole(buffer), &mut bytes).unwrap();
    bytemuck::pod_collect_to_vec(&bytes)
}

#[test]
fn a_thousand_launches_are_one_submit() {
    on_a_device(|device| {
        let kernel = add_kernel(device);
        let buffer = device.alloc(WGPU_DEVICE, 256).unwrap();
        let mut queue = queue(device);
        queue.upload(&[0; 256], &Slice::whole(&buffer)).unwrap();
        let before = submits(device);
        for by in 1..=1000 {
            let args = [Slice::whole(&buffer).into(), Arg::U32(by)];
            queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        }
        assert_eq!(submits(device), before);
        let event = queue.record().unwrap();
        assert_eq!(submits(device), before + 1);
        event.wait(None).unwrap();
        assert_eq!(words(&mut *queue, &buffer), [500_500; 64]);
    });
}

#[test]
fn a_list_is_submitted_before_it_grows_for_ever() {
    on_a_device(|device| {
        let kernel = add_kernel(device);
        let buffer = device.alloc(WGPU_DEVICE, 4).unwrap();
        let mut queue = queue(device);
        queue.upload(&[0; 4], &Slice::whole(&buffer)).unwrap();
        for _ in 0..5000 {
            let args = [Slice::whole(&buffer).into(), Arg::U32(1)];
            queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        }
        assert_eq!(submits(device), 1);
        assert_eq!(words(&mut *queue, &buffer), [5000]);
    });
}

#[test]
fn events_without_work_between_share_a_submit() {
    on_a_device(|device| {
        let kernel = add_kernel(device);
        let buffer = device.alloc(WGPU_DEVICE, 4).unwrap();
        let (mut one, mut two) = (queue(device), queue(device));
        let args = [Slice::whole(&buffer).into(), Arg::U32(1)];
        one.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        let first = one.record().unwrap();
        let count = submits(device);
        let second = one.record().unwrap();
        two.wait(&first).unwrap();
        let third = two.record().unwrap();
        assert_eq!(submits(device), count);
        third.wait(Some(Duration::from_mins(1))).unwrap();
        assert!(first.is_done().unwrap() && second.is_done().unwrap());
        assert_eq!(first.at(), third.at());
        let timed = device.info().caps.contains(warploom_core::Caps::TIMESTAMPS);
        assert_eq!(first.at().is_some(), timed);
    });
}

#[test]
fn lending_submits_the_lists_that_touch_the_buffer_and_no_others() {
    on_a_device(|device| {
        let (a, b) = (
            device.alloc(WGPU_PINNED, 16).unwrap(),
            device.alloc(WGPU_PINNED, 16).unwrap(),
        );
        let (mut one, mut two) = (queue(device), queue(device));
        one.upload(&[1; 16], &Slice::whole(&a)).unwrap();
        two.upload(&[2; 16], &Slice::whole(&b)).unwrap();
        let before = submits(device);
        a.with_host(&mut |bytes| assert_eq!(bytes, [1; 16]))
            .unwrap();
        assert_eq!(submits(device), before + 1);
        b.with_host(&mut |bytes| assert_eq!(bytes, [2; 16]))
            .unwrap();
        assert_eq!(submits(device), before + 2);
    });
}

#[test]
fn a_thread_that_would_wait_for_itself_is_refused() {
    on_a_device(|device| {
        let a = device.alloc(WGPU_PINNED, 16).unwrap();
        let b = device.alloc(WGPU_PINNED, 16).unwrap();
        let mut queue = queue(device);
        let mut errors = Vec::new();
        a.with_host(&mut |bytes| {
            bytes.fill(7);
            errors.extend(a.with_host(&mut |_| ()).err());
            queue.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
            errors.extend(queue.record().err());
            errors.extend(b.with_host(&mut |_| ()).err());
        })
        .unwrap();
        assert_eq!(errors.len(), 3, "{errors:?}");
        // Nothing is lost: the copy runs once the buffer is back.
        b.with_host(&mut |bytes| assert_eq!(bytes, [7; 16]))
            .unwrap();
    });
}

#[test]
fn a_refused_event_does_not_disturb_anothers_time() {
    on_a_device(|device| {
        let a = device.alloc(WGPU_PINNED, 16).unwrap();
        let b = device.alloc(WGPU_PINNED, 16).unwrap();
        let (mut one, mut two) = (queue(device), queue(device));
        let other = device.alloc(WGPU_DEVICE, 4).unwrap();
        let mut told = Vec::new();
        a.with_host(&mut |_| {
            one.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
            assert!(one.record().is_err());
            // More than one set of queries has.
            for _ in 0..300 {
                two.upload(&[1; 4], &Slice::whole(&other)).unwrap();
                let event = two.record().unwrap();
                event.wait(None).unwrap();
                told.push((event.at(), event));
            }
        })
        .unwrap();
        // Now the refused list runs, with the time it was to take.
        one.record().unwrap().wait(None).unwrap();
        assert!(told.iter().all(|(time, event)| event.at() == *time));
    });
}

#[test]
fn bytes_count_until_the_work_is_done_and_groups_do_not_keep_them() {
    on_a_device(|device| {
        let kernel = add_kernel(device);
        let buffer = device.alloc(WGPU_DEVICE, 4001).unwrap();
        assert_eq!(device.memory().unwrap().ours, 4004);
        let mut queue = queue(device);
        let args = [Slice::whole(&buffer).into(), Arg::U32(1)];
        queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        drop((buffer, args));
        assert_eq!(device.memory().unwrap().ours, 4004);
        queue.record().unwrap().wait(None).unwrap();
        assert_eq!(device.memory().unwrap().ours, 0);
        assert!(device.context.groups.is_empty());
    });
}

#[test]
fn losing_the_device_is_told_by_every_call_from_then_on() {
    on_a_device(|device| {
        let kernel = add_kernel(device);
        let buffer = device.alloc(WGPU_DEVICE, 64).unwrap();
        let pinned = device.alloc(WGPU_PINNED, 64).unwrap();
        let mut queue = queue(device);
        queue.upload(&[0; 64], &Slice::whole(&buffer)).unwrap();
        let event = queue.record().unwrap();
        event.wait(None).unwrap();
        let args = [Slice::whole(&buffer).into(), Arg::U32(1)];
        queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        device.context.device.destroy();
        // wgpu tells when it has seen the last submit's end, which may be a moment later.
        let begun = Instant::now();
        while device.memory().is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        let errors = [
            device.memory().err(),
            device.alloc(WGPU_DEVICE, 64).err(),
            device.queue(&QueueDesc::default()).err(),
            queue.record().err(),
            queue.upload(&[0; 64], &Slice::whole(&buffer)).err(),
            queue.launch(&kernel, Grid::groups([1; 3]), &args).err(),
            pinned.with_host(&mut |_| ()).err(),
        ];
        for (at, error) in errors.into_iter().enumerate() {
            assert!(
                matches!(error, Some(DeviceError::Lost { .. })),
                "call {at}: {error:?}"
            );
        }
        assert!(event.is_done().unwrap(), "what was reached stays reached");
    });
}

#[test]
fn a_submit_that_a_dying_device_drops_is_not_waited_for() {
    on_a_device(|device| {
        let buffer = device.alloc(WGPU_DEVICE, 64).unwrap();
        let mut queue = queue(device);
        queue.upload(&[0; 64], &Slice::whole(&buffer)).unwrap();
        device.context.device.destroy();
        match queue.record() {
            Err(error) => assert!(matches!(error, DeviceError::Lost { .. }), "{error}"),
            // Without a semaphore nobody knows, but nobody hangs either.
            Ok(event) => assert!(!matches!(
                event.wait(Some(Duration::from_secs(20))),
                Err(DeviceError::Timeout { .. })
            )),
        }
    });
}
