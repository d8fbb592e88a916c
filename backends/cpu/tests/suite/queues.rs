//! Order within queues, overlap between them.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rayon::prelude::*;
use rstest::rstest;
use warploom_core::{
    Arg, DeviceError, Event, KernelSource, Param, Queue, QueueDesc, Result, Slice,
};
use warploom_cpu::CpuBackend;

use crate::*;

#[test]
fn two_queues_really_run_at_once() {
    let device = open();
    let meeting = Arc::new(Meeting::default());
    let kernel = {
        let meeting = Arc::clone(&meeting);
        custom(&device, move |_| meeting.of(2))
    };
    let mut events = Vec::new();
    let mut queues = ["one", "two"].map(|label| queue(&device, label));
    for queue in &mut queues {
        let own = Slice::whole(&buffer(&device, 8));
        queue.launch(&kernel, ONE, &arg(own)).unwrap();
        events.push(queue.record().unwrap());
    }
    for event in events {
        event.wait(Some(PATIENCE)).unwrap();
    }
}

#[test]
fn a_copy_overlaps_with_a_kernel() {
    let device = open_with(CpuBackend::with_threads(1));
    let meeting = Arc::new(Meeting::default());
    let kernel = {
        let meeting = Arc::clone(&meeting);
        custom(&device, move |_| meeting.of(2))
    };
    let (mut compute, mut copy) = (queue(&device, "compute"), queue(&device, "copy"));
    let busy = Slice::whole(&buffer(&device, 8));
    compute.launch(&kernel, ONE, &arg(busy)).unwrap();
    let (src, dst) = (buffer(&device, 64), buffer(&device, 64));
    src.with_host(&mut |bytes| bytes.fill(7)).unwrap();
    copy.copy(&Slice::whole(&src), &Slice::whole(&dst)).unwrap();
    let copied = copy.record().unwrap();
    copied.wait(Some(PATIENCE)).unwrap();
    assert_eq!(bytes_of(&dst), [7; 64]);
    // Only now may the kernel end.
    meeting.of(1);
    compute.record().unwrap().wait(Some(PATIENCE)).unwrap();
}

#[test]
fn neither_copy_nor_launch_blocks_the_host() {
    let device = open();
    let meeting = Arc::new(Meeting::default());
    let kernel = {
        let meeting = Arc::clone(&meeting);
        custom(&device, move |_| meeting.until(1))
    };
    let mut queue = queue(&device, "one");
    let (a, b) = (buffer(&device, 64), buffer(&device, 64));
    queue.launch(&kernel, ONE, &arg(Slice::whole(&a))).unwrap();
    for _ in 0..100 {
        queue.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
        queue.launch(&kernel, ONE, &arg(Slice::whole(&b))).unwrap();
    }
    let event = queue.record().unwrap();
    assert_eq!(event.is_done(), Ok(false));
    // The host got here while the first kernel still waits for it.
    meeting.of(1);
    event.wait(Some(PATIENCE)).unwrap();
}

/// Short copies and long ones take different roads between the launches.
#[rstest::rstest]
#[case(16, 1000)]
#[case(100_000, 50)]
fn many_commands_keep_their_order(#[case] bytes: u64, #[case] rounds: u32) {
    let device = open();
    let (mut queue, kernel) = (queue(&device, "one"), step(&device));
    let (a, b) = (buffer(&device, bytes), buffer(&device, bytes));
    let rounds = if cfg!(miri) { rounds / 50 } else { rounds };
    let mut expected = 0_u32;
    for round in 0..rounds {
        let args = [Slice::whole(&a).into(), Arg::U32(round)];
        queue.launch(&kernel, ONE, &args).unwrap();
        queue.copy(&Slice::whole(&a), &Slice::whole(&b)).unwrap();
        queue.copy(&Slice::whole(&b), &Slice::whole(&a)).unwrap();
        expected = expected.wrapping_mul(round).wrapping_add(1);
    }
    let mut all = vec![0; usize::try_from(bytes).unwrap()];
    queue.download(&Slice::whole(&b), &mut all).unwrap();
    assert!(
        all.chunks_exact(4)
            .all(|four| four == expected.to_ne_bytes())
    );
}

#[test]
fn plain_slices_keep_their_place_in_the_order() {
    let device = open();
    let (mut queue, kernel) = (queue(&device, "one"), step(&device));
    let data = buffer(&device, 4);
    let all = Slice::whole(&data);
    for round in 0..if cfg!(miri) { 5 } else { 200 } {
        queue.upload(&[round, 0, 0, 0], &all).unwrap();
        for _ in 0..3 {
            let args = [all.clone().into(), Arg::U32(1)];
            queue.launch(&kernel, ONE, &args).unwrap();
        }
        // The upload must not overtake the three launches, nor they the download.
        let mut out = [0; 4];
        queue.download(&all, &mut out).unwrap();
        assert_eq!(out, (u32::from(round) + 3).to_ne_bytes());
    }
}

#[test]
fn an_event_orders_two_queues() {
    let device = open();
    let (mut one, mut two) = (queue(&device, "one"), queue(&device, "two"));
    let kernel = step(&device);
    let data = buffer(&device, 4);
    let all = Slice::whole(&data);
    let rounds = if cfg!(miri) { 5 } else { 300 };
    let mut expected = 0_u32;
    for round in 0..rounds {
        let args = [all.clone().into(), Arg::U32(round)];
        one.launch(&kernel, ONE, &args).unwrap();
        expected = expected.wrapping_mul(round).wrapping_add(1);
        let event = one.record().unwrap();
        two.wait(&event).unwrap();
        std::mem::swap(&mut one, &mut two);
    }
    let mut out = [0; 4];
    one.download(&all, &mut out).unwrap();
    assert_eq!(out, expected.to_ne_bytes());
}

#[test]
fn events_share_one_clock() {
    let device = open();
    let slow = custom(&device, |_| thread::sleep(Duration::from_millis(20)));
    let (mut one, mut two) = (queue(&device, "one"), queue(&device, "two"));
    let data = Slice::whole(&buffer(&device, 4));
    let first = one.record().unwrap();
    one.launch(&slow, ONE, &arg(data)).unwrap();
    let second = one.record().unwrap();
    two.wait(&second).unwrap();
    let third = two.record().unwrap();
    third.wait(Some(PATIENCE)).unwrap();
    let at = [first, second, third].map(|event| event.at().unwrap());
    assert!(at[1] >= at[0] + Duration::from_millis(20), "{at:?}");
    assert!(at[2] >= at[1], "{at:?}");
}

#[test]
fn a_wait_gives_up_in_time_and_the_work_goes_on() {
    let device = open();
    let meeting = Arc::new(Meeting::default());
    let kernel = {
        let meeting = Arc::clone(&meeting);
        custom(&device, move |_| meeting.until(1))
    };
    let mut queue = queue(&device, "one");
    let data = Slice::whole(&buffer(&device, 4));
    queue.launch(&kernel, ONE, &arg(data)).unwrap();
    let event = queue.record().unwrap();
    let error = event.wait(Some(Duration::from_millis(5))).unwrap_err();
    assert!(matches!(error, DeviceError::Timeout { .. }), "{error}");
    assert_eq!(event.at(), None);
    meeting.of(1);
    event.wait(Some(PATIENCE)).unwrap();
    assert!(event.at().is_some());
}

#[test]
fn dropping_a_queue_finishes_its_work() {
    let device = open();
    let data = buffer(&device, 4);
    let kernel = step(&device);
    {
        let (mut one, mut two) = (queue(&device, "one"), queue(&device, "two"));
        for _ in 0..10 {
            let args = [Slice::whole(&data).into(), Arg::U32(1)];
            one.launch(&kernel, ONE, &args).unwrap();
        }
        let event = one.record().unwrap();
        two.wait(&event).unwrap();
        let args = [Slice::whole(&data).into(), Arg::U32(2)];
        two.launch(&kernel, ONE, &args).unwrap();
        // The waiting one first: the other still drains, and its event frees this one.
        drop(two);
    }
    assert_eq!(bytes_of(&data), 21_u32.to_ne_bytes());
}

/// The queue is dropped by its kernel as it runs, or with it when the command is over.
#[rstest::rstest]
fn a_queue_may_die_of_its_own_work(#[values(false, true)] while_running: bool) {
    struct Tell(Arc<Meeting>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.of(1);
        }
    }
    let device = open();
    let (gate, gone) = (Arc::new(Meeting::default()), Arc::new(Meeting::default()));
    let slot = Arc::new(Mutex::new(None));
    let kernel = {
        // Fields are dropped in order, so the telling one goes last.
        let owned = (Arc::clone(&slot), Tell(Arc::clone(&gone)));
        let gate = Arc::clone(&gate);
        custom(&device, move |_| {
            gate.until(1);
            if while_running {
                drop(owned.0.lock().unwrap().take());
            }
        })
    };
    let mut queue = queue(&device, "one");
    let data = Slice::whole(&buffer(&device, 4));
    queue.launch(&kernel, ONE, &arg(data)).unwrap();
    *slot.lock().unwrap() = Some(queue);
    // From here on only the command owns the kernel, which owns the queue.
    drop((kernel, slot));
    gate.of(1);
    gone.until(1);
}

#[test]
fn kernels_use_the_threads_of_the_device() {
    let device = open_with(CpuBackend::with_threads(3));
    let params = [Param::Read, Param::Write];
    let source = KernelSource::host("sum", &params, |call| {
        let threads = u32::try_from(rayon::current_num_threads()).unwrap();
        let sum: u32 = call.read::<u32>(0).par_iter().sum();
        call.write::<u32>(1).copy_from_slice(&[sum, threads]);
    });
    let kernel = device.kernel(&source).unwrap();
    let (data, sums) = (buffer(&device, 4000), buffer(&device, 64));
    let mut queues = ["one", "two", "three", "four"].map(|label| queue(&device, label));
    let ones: Vec<u8> = [1, 0, 0, 0].repeat(1000);
    queues[0].upload(&ones, &Slice::whole(&data)).unwrap();
    // More queues than threads, all of them inside rayon at the same time.
    for _ in 0..if cfg!(miri) { 1 } else { 50 } {
        for (queue, at) in queues.iter_mut().zip(0..) {
            let out = part(&sums, at * 16..at * 16 + 8);
            let args = [Slice::whole(&data).into(), out.into()];
            queue.launch(&kernel, ONE, &args).unwrap();
        }
    }
    for queue in &mut queues {
        queue.record().unwrap().wait(Some(PATIENCE)).unwrap();
    }
    let expected: Vec<u8> = [1000_u32, 3, 0, 0]
        .iter()
        .flat_map(|n| n.to_ne_bytes())
        .collect();
    assert_eq!(bytes_of(&sums), expected.repeat(4));
}

/// A queue that may not use all threads has some of its own; more than there are is all of them.
#[rstest]
#[case(0, 3)]
#[case(1, 1)]
#[case(2, 2)]
#[case(3, 3)]
#[case(7, 3)]
fn a_queue_uses_no_more_threads_than_it_may(#[case] asked: u32, #[case] used: u32) {
    let device = open_with(CpuBackend::with_threads(3));
    let source = KernelSource::host("count", &[Param::Write], |call| {
        let threads = u32::try_from(rayon::current_num_threads()).unwrap();
        call.write::<u32>(0).copy_from_slice(&[threads]);
    });
    let kernel = device.kernel(&source).unwrap();
    let count = buffer(&device, 4);
    let desc = QueueDesc::named("some").with_threads(asked);
    let mut queue = device.queue(&desc).unwrap();
    queue
        .launch(&kernel, ONE, &arg(Slice::whole(&count)))
        .unwrap();
    queue.record().unwrap().wait(Some(PATIENCE)).unwrap();
    assert_eq!(bytes_of(&count), used.to_ne_bytes());
}

/// An event of another backend, which the host has to wait for.
#[derive(Debug)]
struct Stranger(Result<()>);

impl Event for Stranger {
    fn is_done(&self) -> Result<bool> {
        self.0.clone().map(|()| true)
    }
    fn wait(&self, _timeout: Option<Duration>) -> Result<()> {
        self.0.clone()
    }
    fn at(&self) -> Option<Duration> {
        None
    }
}

#[test]
fn a_strangers_event_is_waited_for_by_the_host() {
    let device = open();
    let mut queue = queue(&device, "one");
    let reached: Arc<dyn Event> = Arc::new(Stranger(Ok(())));
    queue.wait(&reached).unwrap();
    let error = DeviceError::lost(device.info().id, "a test", "on purpose");
    let failed: Arc<dyn Event> = Arc::new(Stranger(Err(error.clone())));
    assert_eq!(queue.wait(&failed), Err(error.clone()));
    // The queue has met the failure as if the event were its own.
    let data = Slice::whole(&buffer(&device, 4));
    assert_eq!(queue.upload(&[1; 4], &data), Err(error));
}
