//! Leases among threads, at a desk of one process and at desks that share a ledger. Two desks in
//! one process are as foreign to each other as two processes; `lease_processes.rs` has real ones.
#![cfg(not(warploom_shuttle))]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rstest::rstest;
use tempfile::TempDir;
use warploom_core::{CancelToken, DeskDevice, LeaseCapacity, LeaseDesk, LeaseError, LeaseRequest};

const CAPACITY: LeaseCapacity = LeaseCapacity {
    slots: 4,
    bytes: 1000,
};

/// Long enough for anything that works; so that what does not fails, and does not hang.
const ENOUGH: Duration = Duration::from_secs(30);

/// Where the books are, and how many desks the threads of a test come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Local,
    Shared,
    TwoDesks,
}

/// Desks to ask, in turn.
struct Desks {
    desks: Vec<LeaseDesk>,
    _dir: TempDir,
}

impl Desks {
    fn open(kind: Kind, count: usize) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let devices: Vec<DeskDevice> = (0..count).map(gpu).collect();
        let shared = || LeaseDesk::shared(devices.clone(), dir.path());
        let desks = match kind {
            Kind::Local => vec![LeaseDesk::local(devices.clone())],
            Kind::Shared => vec![shared()],
            Kind::TwoDesks => vec![shared(), shared()],
        };
        let desks = desks.into_iter().map(|desk| desk.expect("a desk opens"));
        Self {
            desks: desks.collect(),
            _dir: dir,
        }
    }

    fn at(&self, index: usize) -> &LeaseDesk {
        &self.desks[index % self.desks.len()]
    }

    fn assert_empty(&self) {
        for desk in &self.desks {
            for device in desk.status().expect("the desk answers") {
                assert!(
                    device.held.is_empty() && device.waiting.is_empty(),
                    "{device:?}"
                );
            }
        }
    }
}

fn gpu(at: usize) -> DeskDevice {
    DeskDevice::new(format!("gpu{at}"), format!("pci-0000-4{at}-00.0"), CAPACITY)
}

/// Until `desk` sees this many waiters at its first device.
fn until_waiting(desk: &LeaseDesk, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while desk.status().expect("the desk answers")[0].waiting.len() != count {
        assert!(Instant::now() < deadline, "{count} never waited");
        thread::sleep(Duration::from_millis(1));
    }
}

#[rstest]
fn a_lease_says_what_it_is_and_ends_with_its_owner(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 2);
    let lease = desks
        .at(0)
        .lease(&LeaseRequest::new(3, 600).on(["gpu1"]).label("denoise"))
        .unwrap();
    assert_eq!(
        (lease.device(), lease.slots(), lease.bytes(), lease.label()),
        ("gpu1", 3, 600, "denoise")
    );
    assert_eq!(
        format!("{lease:?}"),
        "Lease { device: \"gpu1\", slots: 3, bytes: 600, label: \"denoise\", .. }"
    );

    let status = desks.at(1).status().unwrap();
    assert_eq!(status[0].held, []);
    let holder = &status[1].held[0];
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(
        (holder.label.as_str(), holder.slots, holder.bytes),
        ("denoise", 3, 600)
    );
    assert!(holder.since.elapsed().unwrap() < Duration::from_mins(1));

    // Too many slots, too many bytes, and just enough of both.
    let on_gpu1 = |slots, bytes| LeaseRequest::new(slots, bytes).on(["gpu1"]);
    assert!(desks.at(1).try_lease(&on_gpu1(2, 0)).unwrap().is_none());
    assert!(desks.at(1).try_lease(&on_gpu1(1, 401)).unwrap().is_none());
    let beside = desks.at(1).try_lease(&on_gpu1(1, 400)).unwrap();
    assert!(beside.is_some());

    let unwound = thread::spawn(move || {
        let _lease = lease;
        panic!("a lease is released by a panic too");
    });
    assert!(unwound.join().is_err());
    drop(beside);
    desks.assert_empty();
}

/// Late is allowed only when the machine is; early never.
#[rstest]
fn a_deadline_is_kept(#[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind) {
    let desks = Desks::open(kind, 1);
    let held = desks
        .at(0)
        .lease(&LeaseRequest::new(4, 700).label("holder"));
    let held = held.unwrap();
    let mut least_late = Duration::MAX;
    for millis in [0, 1, 30, 77, 150] {
        let asked = Duration::from_millis(millis);
        let request = LeaseRequest::new(1, 0).within(asked);
        let start = Instant::now();
        let error = desks.at(1).lease(&request).unwrap_err();
        let waited = start.elapsed();
        assert!(waited >= asked, "{waited:?} instead of {asked:?}");
        least_late = least_late.min(waited.saturating_sub(asked));
        let LeaseError::Deadline {
            within,
            ahead,
            holders,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((*within, *ahead), (asked, 0));
        assert_eq!((holders.len(), holders[0].label.as_str()), (1, "holder"));
        let pid = std::process::id();
        assert_eq!(
            error.to_string(),
            format!(
                "no lease of 1 slot and 0 B on gpu0 within {asked:?}; 0 waiting ahead, \
                 held by pid {pid} `holder` (4 slots, 700 B)"
            )
        );
    }
    assert!(least_late < Duration::from_millis(50), "{least_late:?}");
    drop(held);
    desks.assert_empty();
}

#[rstest]
fn calling_off_wakes_at_once(#[values(Kind::Local, Kind::Shared)] kind: Kind) {
    let desks = Desks::open(kind, 2);
    let _held: Vec<_> = ["gpu0", "gpu1"]
        .map(|name| desks.at(0).lease(&LeaseRequest::new(4, 0).on([name])))
        .into_iter()
        .collect();
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let token = CancelToken::new();
        let waiter = {
            let (desk, token) = (desks.at(0).clone(), token.clone());
            thread::spawn(move || {
                let answer = desk.lease(&LeaseRequest::new(1, 0).cancelled_by(&token));
                (answer.map(drop), Instant::now())
            })
        };
        until_waiting(desks.at(0), 1);
        // By now it naps as long as it ever does.
        thread::sleep(Duration::from_millis(100));
        let called = Instant::now();
        token.cancel();
        let (answer, woken) = waiter.join().unwrap();
        assert_eq!(
            answer.unwrap_err().to_string(),
            "the wait for a lease on gpu0 or gpu1 was called off"
        );
        quickest = quickest.min(woken - called);
        assert!(desks.at(0).status().unwrap()[0].waiting.is_empty());
    }
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[rstest]
fn those_who_came_first_are_served_first(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 1);
    let held = desks.at(0).lease(&LeaseRequest::new(4, 0)).unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let threads = (0..8).map(|at| {
        let (desk, served) = (desks.at(at).clone(), Arc::clone(&served));
        // All four slots and one slot in turn: the small ones may not slip past the large.
        let slots = if at % 2 == 0 { 4 } else { 1 };
        let thread = thread::spawn(move || {
            let lease = desk
                .lease(&LeaseRequest::new(slots, 300).within(ENOUGH))
                .unwrap();
            served.lock().unwrap().push(at);
            drop(lease);
        });
        until_waiting(desks.at(0), at + 1);
        thread
    });
    let threads: Vec<_> = threads.collect();
    let error = desks
        .at(1)
        .lease(&LeaseRequest::new(1, 0).within(Duration::ZERO));
    assert!(
        matches!(error, Err(LeaseError::Deadline { ahead: 8, .. })),
        "{error:?}"
    );
    drop(held);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    desks.assert_empty();
}

#[rstest]
fn who_gives_up_does_not_block_those_behind(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 1);
    let held = desks.at(0).lease(&LeaseRequest::new(1, 0)).unwrap();
    // The whole card is not to be had; one slot behind it is, once the large request gives up.
    let large = {
        let desk = desks.at(0).clone();
        let request = LeaseRequest::new(4, 0).within(Duration::from_millis(300));
        thread::spawn(move || desk.lease(&request).map(drop))
    };
    until_waiting(desks.at(0), 1);
    let small = desks.at(1).lease(&LeaseRequest::new(1, 0).within(ENOUGH));
    assert!(matches!(
        large.join().unwrap(),
        Err(LeaseError::Deadline { .. })
    ));
    assert!(small.is_ok());
    drop((held, small));
    desks.assert_empty();
}

#[rstest]
fn a_request_for_several_takes_one_and_leaves_the_other_queues(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 2);
    let whole = |name: &str| LeaseRequest::new(4, 0).on([name]);
    let first = desks.at(0).lease(&whole("gpu0")).unwrap();
    let second = desks.at(0).lease(&whole("gpu1")).unwrap();
    let waiter = {
        let desk = desks.at(1).clone();
        let request = LeaseRequest::new(4, 0).on(["gpu0", "gpu1", "gpu0"]);
        thread::spawn(move || desk.lease(&request))
    };
    until_waiting(desks.at(0), 1);
    assert_eq!(desks.at(0).status().unwrap()[1].waiting.len(), 1);
    drop(second);
    let lease = waiter.join().unwrap().unwrap();
    assert_eq!(lease.device(), "gpu1");
    assert!(desks.at(0).status().unwrap()[0].waiting.is_empty());
    drop((first, lease));
    // In order of preference when all are free.
    let lease = desks
        .at(1)
        .lease(&LeaseRequest::new(1, 0).on(["gpu1", "gpu0"]));
    assert_eq!(lease.as_ref().unwrap().device(), "gpu1");
    // Any is the least loaded one.
    let other = desks.at(0).lease(&LeaseRequest::new(1, 0)).unwrap();
    assert_eq!(other.device(), "gpu0");
    let more = desks.at(1).lease(&LeaseRequest::new(2, 0).on(["gpu0"]));
    let another = desks.at(0).lease(&LeaseRequest::new(1, 0)).unwrap();
    assert_eq!(another.device(), "gpu1");
    drop((lease, other, more, another));
    desks.assert_empty();
}

/// Many threads, random requests, some of which give up: what is held never exceeds the capacity,
/// everybody else is served, and the books are empty afterwards.
#[rstest]
fn many_threads_never_hold_too_much(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 2);
    let held: Arc<[(AtomicU64, AtomicU64); 2]> = Arc::default();
    let served = Arc::new(AtomicU64::new(0));
    let rounds = if kind == Kind::Local { 500 } else { 60 };
    thread::scope(|scope| {
        for at in 0..6_usize {
            let (held, served, desk) = (&held, &served, desks.at(at));
            scope.spawn(move || {
                let mut random = at as u64 + 1;
                let mut dice = |sides: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random % sides
                };
                for _ in 0..rounds {
                    let slots = u32::try_from(dice(4) + 1).unwrap();
                    let mut request = LeaseRequest::new(slots, dice(700)).within(ENOUGH);
                    if dice(2) == 0 {
                        request = request.on([["gpu0", "gpu1"][at % 2]]);
                    }
                    let hasty = dice(5) == 0;
                    if hasty {
                        request = request.within(Duration::from_micros(dice(3000)));
                    }
                    let lease = match desk.lease(&request) {
                        Ok(lease) => lease,
                        Err(LeaseError::Deadline { .. }) if hasty => continue,
                        Err(error) => panic!("{error}"),
                    };
                    let (slots, bytes) = &held[usize::from(lease.device() == "gpu1")];
                    let now = slots.fetch_add(lease.slots().into(), Ordering::SeqCst);
                    assert!(now + u64::from(lease.slots()) <= 4, "{now} slots before");
                    let now = bytes.fetch_add(lease.bytes(), Ordering::SeqCst);
                    assert!(now + lease.bytes() <= 1000, "{now} bytes before");
                    if dice(4) == 0 {
                        thread::yield_now();
                    }
                    bytes.fetch_sub(lease.bytes(), Ordering::SeqCst);
                    slots.fetch_sub(lease.slots().into(), Ordering::SeqCst);
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert!(served.load(Ordering::SeqCst) >= 6 * rounds / 2);
    desks.assert_empty();
}

/// A large request among small ones that never stop coming is served.
#[rstest]
fn a_large_request_does_not_starve(
    #[values(Kind::Local, Kind::Shared, Kind::TwoDesks)] kind: Kind,
) {
    let desks = Desks::open(kind, 1);
    let done = CancelToken::new();
    thread::scope(|scope| {
        for at in 0..4 {
            let (desk, done) = (desks.at(at), &done);
            scope.spawn(move || {
                // Overlapping leases, so that the card is never empty of its own accord.
                let mut held = VecDeque::new();
                while !done.is_cancelled() {
                    let one = LeaseRequest::new(1, 100).within(ENOUGH);
                    held.push_back(desk.lease(&one).unwrap());
                    thread::sleep(Duration::from_millis(2));
                    held.pop_front();
                }
            });
        }
        thread::sleep(Duration::from_millis(50));
        for _ in 0..5 {
            let request = LeaseRequest::new(4, 1000).within(ENOUGH);
            drop(desks.at(1).lease(&request).unwrap());
        }
        done.cancel();
    });
    desks.assert_empty();
}

/// Waiting costs next to no processor time, however long it takes.
#[cfg(target_os = "linux")]
#[rstest]
fn waiting_is_sleeping(#[values(Kind::Local, Kind::Shared)] kind: Kind) {
    fn on_cpu() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanos = text.split_whitespace().next().unwrap().parse().unwrap();
        Duration::from_nanos(nanos)
    }
    let desks = Desks::open(kind, 1);
    let _held = desks.at(0).lease(&LeaseRequest::new(4, 0)).unwrap();
    let request = LeaseRequest::new(1, 0).within(Duration::from_secs(1));
    let before = on_cpu();
    assert!(desks.at(0).lease(&request).is_err());
    let spent = on_cpu().saturating_sub(before);
    assert!(
        spent < Duration::from_millis(100),
        "{spent:?} of one second"
    );
}
