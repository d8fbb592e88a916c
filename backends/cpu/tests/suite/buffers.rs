//! Memory shared between queues and with the host.

use std::sync::Arc;
use std::thread;

use rayon::prelude::*;
use warploom_core::{Arg, KernelSource, Param, Queue, Slice};

use crate::*;

#[test]
fn disjoint_slices_of_one_buffer_are_used_at_once() {
    let device = open();
    let meeting = Arc::new(Meeting::default());
    let slab = buffer(&device, 128);
    let mut queues = ["one", "two"].map(|label| queue(&device, label));
    for (queue, at) in queues.iter_mut().zip(0..) {
        let meeting = Arc::clone(&meeting);
        let kernel = custom(&device, move |bytes| {
            meeting.of(2);
            bytes.fill(u8::try_from(at).unwrap() + 1);
        });
        let own = part(&slab, at * 64..at * 64 + 64);
        queue.launch(&kernel, ONE, &arg(own)).unwrap();
    }
    for queue in &mut queues {
        queue.record().unwrap().wait(Some(PATIENCE)).unwrap();
    }
    assert_eq!(bytes_of(&slab), [[1; 64], [2; 64]].concat());
}

#[test]
fn readers_of_the_same_bytes_run_at_once() {
    let device = open();
    let meeting = Arc::new(Meeting::default());
    let source = KernelSource::host("meet", &[Param::Read], {
        let meeting = Arc::clone(&meeting);
        move |call| {
            assert_eq!(call.read::<u8>(0).len(), 64);
            meeting.of(2);
        }
    });
    let kernel = device.kernel(&source).unwrap();
    let shared = Slice::whole(&buffer(&device, 64));
    let mut queues = ["one", "two"].map(|label| queue(&device, label));
    for queue in &mut queues {
        queue.launch(&kernel, ONE, &arg(shared.clone())).unwrap();
    }
    for queue in &mut queues {
        queue.record().unwrap().wait(Some(PATIENCE)).unwrap();
    }
}

/// Four queues and the host in one buffer, with nothing to order them. What they find is anyone's
/// guess, except that a write is never seen half done: each fills its whole range with one value.
#[test]
fn unordered_access_is_never_a_race() {
    let device = open();
    let slab = buffer(&device, 96);
    let params = [Param::ReadWrite, Param::Scalar(DType::U32)];
    let source = KernelSource::host("fill", &params, |call| {
        let value = call.scalar::<u32>(1).to_le_bytes()[0];
        let bytes = call.write::<u8>(0);
        bytes.par_iter_mut().for_each(|byte| *byte = value);
        assert!(
            bytes.iter().all(|byte| *byte == value),
            "someone else wrote"
        );
    });
    let kernel = device.kernel(&source).unwrap();
    let rounds = if cfg!(miri) { 4 } else { 300 };
    thread::scope(|scope| {
        for seed in 0..4_u64 {
            let (device, slab, kernel) = (&device, &slab, &kernel);
            scope.spawn(move || {
                let mut queue = queue(device, "unordered");
                for round in 0..rounds {
                    // Kernel slices start at multiples of 16.
                    let start = (seed + round) % 4 * 16;
                    let own = part(slab, start..start + 32);
                    let value = u32::try_from(seed * rounds + round).unwrap();
                    let args = [own.clone().into(), Arg::U32(value)];
                    queue.launch(kernel, ONE, &args).unwrap();
                    let (from, to) = (start % 32, 64);
                    let (from, to) = (part(slab, from..from + 32), part(slab, to..to + 32));
                    queue.copy(&from, &to).unwrap();
                    if round % 16 == 0 {
                        let mut out = [0; 32];
                        queue.download(&own, &mut out).unwrap();
                        queue.upload(&out, &own).unwrap();
                    }
                }
                queue.record().unwrap().wait(Some(PATIENCE)).unwrap();
            });
        }
        for _ in 0..rounds {
            slab.with_host(&mut |bytes| {
                bytes.fill(1);
                assert!(bytes.iter().all(|byte| *byte == 1), "someone else wrote");
            })
            .unwrap();
        }
    });
}

#[test]
fn the_host_sees_all_work_that_was_queued() {
    let device = open();
    let mut queues = ["one", "two"].map(|label| queue(&device, label));
    let kernel = step(&device);
    let data = buffer(&device, 32);
    for round in 1..=if cfg!(miri) { 3 } else { 100_u32 } {
        for (queue, at) in queues.iter_mut().zip([0, 16]) {
            let args = [part(&data, at..at + 16).into(), Arg::U32(1)];
            queue.launch(&kernel, ONE, &args).unwrap();
        }
        // No record, no wait: lending the bytes is enough.
        assert_eq!(bytes_of(&data), round.to_ne_bytes().repeat(8));
    }
}

#[test]
fn any_byte_offset_can_be_copied() {
    let device = open();
    let mut queue = queue(&device, "one");
    let (a, b) = (buffer(&device, 40), buffer(&device, 40));
    let pattern: Vec<u8> = (0..40).collect();
    queue.upload(&pattern[..37], &part(&a, 3..40)).unwrap();
    queue.copy(&part(&a, 5..18), &part(&b, 1..14)).unwrap();
    queue.copy(&part(&b, 1..4), &part(&b, 30..33)).unwrap();
    let mut out = [0; 11];
    queue.download(&part(&b, 29..40), &mut out).unwrap();
    assert_eq!(out, [0, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0]);
    queue.download(&part(&b, 3..14), &mut out).unwrap();
    assert_eq!(out, [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
}

#[test]
fn handles_may_be_dropped_at_once() {
    let device = open();
    let mut queue = queue(&device, "one");
    let meeting = Arc::new(Meeting::default());
    let out = buffer(&device, 4);
    {
        let kernel = {
            let meeting = Arc::clone(&meeting);
            custom(&device, move |_| meeting.until(1))
        };
        let data = Slice::whole(&buffer(&device, 4));
        queue.upload(&[1, 2, 3, 4], &data).unwrap();
        queue.launch(&kernel, ONE, &arg(data.clone())).unwrap();
        queue.copy(&data, &Slice::whole(&out)).unwrap();
    }
    assert_eq!(device.memory().unwrap().ours, 8, "the work holds it");
    let event = queue.record().unwrap();
    meeting.of(1);
    event.wait(Some(PATIENCE)).unwrap();
    assert_eq!(device.memory().unwrap().ours, 4, "nothing holds it");
    assert_eq!(bytes_of(&out), [1, 2, 3, 4]);
}

#[test]
fn everything_may_outlive_the_device() {
    let device = open();
    let (mut queue, kernel) = (queue(&device, "one"), step(&device));
    let data = buffer(&device, 4);
    drop(device);
    let args = [Slice::whole(&data).into(), Arg::U32(1)];
    queue.launch(&kernel, ONE, &args).unwrap();
    drop(queue);
    assert_eq!(bytes_of(&data), 1_u32.to_ne_bytes());
}
