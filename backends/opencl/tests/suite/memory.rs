//! Allocating, accounting and looking inside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warploom_core::memory::{OPENCL_DEVICE, OPENCL_PINNED};
use warploom_core::{Buffer, DeviceError, Queue, QueueDesc, Slice};

use crate::rig::{SOON, each, read, values};

fn content(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    let mut seen = Vec::new();
    buffer
        .with_host(&mut |bytes| seen = bytes.to_vec())
        .unwrap();
    seen
}

fn fill(buffer: &Arc<dyn Buffer>, with: u8) {
    buffer.with_host(&mut |bytes| bytes.fill(with)).unwrap();
}

#[test]
fn bytes_are_counted_until_the_last_handle_goes() {
    each(|rig| {
        let ours = || rig.device.memory().unwrap().ours;
        assert_eq!(ours(), 0);
        let device = rig.buffer(1000);
        let pinned = rig.pinned(24);
        assert_eq!(ours(), 1024);
        let second = Arc::clone(&device);
        drop((device, pinned));
        assert_eq!(ours(), 1000);
        drop(second);
        assert_eq!(ours(), 0);
        let told = rig.device.memory().unwrap();
        assert_eq!(told.total, rig.device.info().total_memory);
    });
}

#[test]
fn more_than_there_is_is_refused_with_numbers() {
    each(|rig| {
        let info = rig.device.info();
        let most = info.limits.max_alloc;
        let mut held = Vec::new();
        let error = loop {
            match rig.device.alloc(OPENCL_DEVICE, most) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(held.len() as u64 <= info.total_memory / most);
        };
        let DeviceError::OutOfMemory {
            device,
            kind,
            asked,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((device, kind, asked), (info.id, OPENCL_DEVICE, most));
        let again = rig.device.alloc(OPENCL_DEVICE, most).unwrap_err();
        assert!(matches!(again, DeviceError::OutOfMemory { .. }));
        held.pop();
        rig.device.alloc(OPENCL_DEVICE, most).unwrap();
    });
}

#[test]
fn two_openings_count_apart() {
    each(|rig| {
        let Some(backend) = crate::rig::backend() else {
            return;
        };
        let other =
            warploom_core::GpuBackend::open(&backend, rig.device.info().id.ordinal).unwrap();
        let _held = rig.buffer(4096);
        assert_eq!(other.memory().unwrap().ours, 0);
    });
}

#[test]
fn device_memory_is_closed_to_the_host() {
    each(|rig| {
        let error = rig
            .buffer(16)
            .with_host(&mut |_| panic!("lent"))
            .unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    });
}

#[test]
fn pinned_memory_goes_round() {
    each(|rig| {
        let (first, second) = (rig.pinned(4099), rig.pinned(4099));
        let device = rig.buffer(5000);
        fill(&first, 7);
        let mut queue = rig.queue();
        let part = Slice::new(Arc::clone(&device), 13..13 + 4099).unwrap();
        queue.copy(&Slice::whole(&first), &part).unwrap();
        queue.copy(&part, &Slice::whole(&second)).unwrap();
        // Nothing was submitted by hand: looking inside does it.
        assert_eq!(content(&second), vec![7; 4099]);
    });
}

#[test]
fn looking_inside_waits_for_work_under_way() {
    each(|rig| {
        let slow = rig.filled(&[1.0_f32, 0.0]);
        let pinned = rig.pinned(8);
        fill(&pinned, 0);
        let mut queue = rig.queue();
        rig.churn(&mut queue, &slow);
        queue.copy(&slow, &Slice::whole(&pinned)).unwrap();
        let seen: Vec<f32> = values(&content(&pinned));
        assert_eq!(seen[1], 1.0, "the kernel ran before");
    });
}

#[test]
fn a_queue_dropped_in_mid_work_still_delivers() {
    each(|rig| {
        let slow = rig.filled(&[1.0_f32, 0.0]);
        let pinned = rig.pinned(8);
        fill(&pinned, 0);
        let mut queue = rig.queue();
        rig.churn(&mut queue, &slow);
        queue.copy(&slow, &Slice::whole(&pinned)).unwrap();
        drop((queue, slow));
        let seen: Vec<f32> = values(&content(&pinned));
        assert_eq!(seen[1], 1.0);
    });
}

#[test]
fn work_of_many_queues_is_waited_for() {
    each(|rig| {
        let pinned = rig.pinned(8 * 16);
        fill(&pinned, 0);
        for at in 0..16_u64 {
            let slice = Slice::new(Arc::clone(&pinned), at * 8..at * 8 + 8).unwrap();
            let from = rig.filled(&[at; 1]);
            let mut queue = rig.queue();
            queue.copy(&from, &slice).unwrap();
            if at % 3 == 0 {
                drop(queue.record().unwrap());
            }
        }
        let seen: Vec<u64> = values(&content(&pinned));
        assert_eq!(seen, (0..16).collect::<Vec<u64>>());
    });
}

#[test]
fn pinned_parts_of_one_buffer_copy_among_themselves() {
    each(|rig| {
        let pinned = rig.pinned(64);
        pinned
            .with_host(&mut |bytes| {
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::try_from(at).unwrap();
                }
            })
            .unwrap();
        let part = |range| Slice::new(Arc::clone(&pinned), range).unwrap();
        let mut queue = rig.queue();
        queue.copy(&part(0..10), &part(33..43)).unwrap();
        assert_eq!(content(&pinned)[33..43], *(0..10).collect::<Vec<u8>>());
        queue.upload(&[9; 3], &part(61..64)).unwrap();
        assert_eq!(read::<u8>(&mut queue, &part(60..64)), [60, 9, 9, 9]);
        assert_eq!(content(&pinned)[60..], [60, 9, 9, 9]);
    });
}

#[test]
fn a_panic_in_the_visit_gives_the_buffer_back() {
    each(|rig| {
        let pinned = rig.pinned(32);
        let visit = || {
            pinned.with_host(&mut |bytes| {
                bytes.fill(3);
                panic!("on purpose");
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(visit)).is_err());
        let mut queue = rig.queue();
        assert_eq!(read::<u8>(&mut queue, &Slice::whole(&pinned)), [3; 32]);
        assert_eq!(content(&pinned), [3; 32]);
    });
}

#[test]
fn no_command_runs_while_the_host_looks() {
    each(|rig| {
        let pinned = rig.pinned(4096);
        fill(&pinned, 0);
        let ones = rig.filled(&[1_u8; 4096]);
        let looking = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let copier = scope.spawn(|| {
                let mut queue = rig.queue();
                while !looking.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                queue.copy(&ones, &Slice::whole(&pinned)).unwrap();
                queue.record().unwrap().wait(SOON).unwrap();
            });
            pinned
                .with_host(&mut |bytes| {
                    looking.store(true, Ordering::Release);
                    for _ in 0..50 {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                        assert!(bytes.iter().all(|b| *b == 0), "written under our eyes");
                    }
                })
                .unwrap();
            copier.join().unwrap();
        });
        assert_eq!(content(&pinned), [1; 4096]);
    });
}

#[test]
fn pinned_memory_is_no_kernel_argument_even_unchecked() {
    each(|rig| {
        let pinned = rig.device.alloc(OPENCL_PINNED, 64).unwrap();
        let mut bare = rig.device.bare().queue(&QueueDesc::default()).unwrap();
        let kernel = rig.kernel("scale");
        let args = [Slice::whole(&pinned).into(), 1.0_f32.into(), 16_u32.into()];
        let error = bare
            .launch(&kernel, crate::rig::grid(16), &args)
            .unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    });
}
