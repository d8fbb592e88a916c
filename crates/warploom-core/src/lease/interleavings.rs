//! The local desk under a scheduler that tries interleavings: `--cfg warploom_shuttle`.
//!
//! Deadlines strike at random moments here (see `signal.rs`). A thread that is never woken shows
//! as a deadlock, which shuttle reports with the schedule that led to it.

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::Rng as _;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use super::{CancelToken, DeskDevice, LeaseCapacity, LeaseDesk, LeaseError, LeaseRequest};

const SLOTS: u32 = 2;
const BYTES: u64 = 10;

/// Enough for each test to take a second or two.
const SCHEDULES: usize = 2000;

/// Tries schedules that switch threads at random, and schedules that starve some threads.
fn explore(test: fn()) {
    shuttle::check_random(test, SCHEDULES);
    shuttle::check_pct(test, SCHEDULES, 3);
}

fn desk(devices: usize) -> LeaseDesk {
    let capacity = LeaseCapacity {
        slots: SLOTS,
        bytes: BYTES,
    };
    let device = |at| DeskDevice::new(format!("gpu{at}"), format!("key{at}"), capacity);
    LeaseDesk::local((0..devices).map(device).collect()).expect("two different devices")
}

/// What is held, counted by the holders themselves.
#[derive(Default)]
struct Meter([(AtomicU64, AtomicU64); 2]);

impl Meter {
    /// Uses what `request` gets for a while, and says how it ended.
    fn hold(&self, desk: &LeaseDesk, request: &LeaseRequest) -> Result<(), LeaseError> {
        let lease = desk.lease(request)?;
        let (slots, bytes) = &self.0[usize::from(lease.device() == "gpu1")];
        let held =
            slots.fetch_add(lease.slots().into(), Ordering::SeqCst) + u64::from(lease.slots());
        assert!(held <= SLOTS.into(), "{held} slots");
        let held = bytes.fetch_add(lease.bytes(), Ordering::SeqCst) + lease.bytes();
        assert!(held <= BYTES, "{held} bytes");
        thread::yield_now();
        bytes.fetch_sub(lease.bytes(), Ordering::SeqCst);
        slots.fetch_sub(lease.slots().into(), Ordering::SeqCst);
        Ok(())
    }
}

fn assert_empty(desk: &LeaseDesk) {
    for device in desk.status().expect("a local desk always answers") {
        assert!(device.held.is_empty(), "{device:?}");
        assert!(device.waiting.is_empty(), "{device:?}");
    }
}

#[test]
fn every_lease_is_granted_and_never_too_much() {
    explore(|| {
        let (desk, meter) = (desk(2), Arc::new(Meter::default()));
        let workers = (0..3).map(|_| {
            let (desk, meter) = (desk.clone(), Arc::clone(&meter));
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut rng = shuttle::rand::thread_rng();
                    let request = LeaseRequest::new(rng.gen_range(1..=2), rng.gen_range(0..=10));
                    let request = match rng.gen_range(0..3) {
                        0 => request.on(["gpu0"]),
                        1 => request.on(["gpu1", "gpu0"]),
                        _ => request,
                    };
                    meter.hold(&desk, &request).expect("no deadline, no token");
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.join().expect("no worker panics");
        }
        assert_empty(&desk);
    });
}

#[test]
fn a_deadline_that_races_a_grant_leaves_nothing_behind() {
    explore(|| {
        let (desk, meter) = (desk(1), Arc::new(Meter::default()));
        let workers = (0..3).map(|at| {
            let (desk, meter) = (desk.clone(), Arc::clone(&meter));
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut request = LeaseRequest::new(SLOTS, 4);
                    if at > 0 {
                        request = request.within(Duration::from_secs(1));
                    }
                    match meter.hold(&desk, &request) {
                        Ok(()) => {}
                        Err(LeaseError::Deadline { .. }) => assert!(at > 0, "it had no deadline"),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.join().expect("no worker panics");
        }
        assert_empty(&desk);
    });
}

#[test]
fn a_call_off_that_races_a_grant_leaves_nothing_behind() {
    explore(|| {
        let (desk, meter) = (desk(2), Arc::new(Meter::default()));
        let token = CancelToken::new();
        let first = desk.lease(&LeaseRequest::new(2, 0).on(["gpu0"]));
        let first = first.expect("nobody else is there");
        let workers = (0..3).map(|at| {
            let (desk, meter, token) = (desk.clone(), Arc::clone(&meter), token.clone());
            thread::spawn(move || {
                let mut request = LeaseRequest::new(2, 6).on(["gpu0"]);
                if at < 2 {
                    request = request.cancelled_by(&token);
                }
                match meter.hold(&desk, &request) {
                    Ok(()) => {}
                    Err(LeaseError::Cancelled { .. }) => {
                        assert!(at < 2, "it had no token");
                        assert!(token.is_cancelled());
                    }
                    Err(error) => panic!("{error}"),
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        let canceller = thread::spawn(move || token.cancel());
        drop(first);
        for worker in workers {
            worker.join().expect("no worker panics");
        }
        canceller.join().expect("calling off does not panic");
        assert_empty(&desk);
    });
}

#[test]
fn called_off_is_called_off_even_when_nobody_releases() {
    explore(|| {
        let desk = desk(1);
        let token = CancelToken::new();
        let held = desk.lease(&LeaseRequest::new(2, 0)).expect("it is free");
        let waiter = {
            let request = LeaseRequest::new(1, 0).cancelled_by(&token);
            let desk = desk.clone();
            thread::spawn(move || desk.lease(&request).map(drop))
        };
        token.cancel();
        let answer = waiter.join().expect("no panic");
        assert!(matches!(answer, Err(LeaseError::Cancelled { .. })));
        drop(held);
        assert_empty(&desk);
    });
}

#[test]
fn those_who_came_first_are_served_first() {
    explore(|| {
        let desk = desk(1);
        let held = desk.lease(&LeaseRequest::new(2, 0)).expect("it is free");
        let order = Arc::new(AtomicU64::new(0));
        let mut workers = Vec::new();
        for at in 0..3_u64 {
            let (their_desk, order) = (desk.clone(), Arc::clone(&order));
            workers.push(thread::spawn(move || {
                // Alternating large and small: none may slip past.
                let slots = 1 + u32::from(at % 2 == 0);
                let lease = their_desk.lease(&LeaseRequest::new(slots, 6));
                assert_eq!(order.fetch_add(1, Ordering::SeqCst), at);
                drop(lease.expect("no deadline, no token"));
            }));
            // The next one comes only when this one stands in line.
            let in_line = |desk: &LeaseDesk| desk.status().map(|all| all[0].waiting.len());
            while in_line(&desk) != Ok(workers.len()) {
                thread::yield_now();
            }
        }
        drop(held);
        for worker in workers {
            worker.join().expect("no worker panics");
        }
        assert_empty(&desk);
    });
}
