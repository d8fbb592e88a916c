//! The tests: what processes do to each other, and what must come of it.

use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use warploom_core::{LeaseDesk, LeaseError, LeaseRequest};

use crate::journal::{self, Journal};
use crate::roles::{BYTES, ENOUGH, NAMES, SLOTS, desk};
use crate::troupe::{Actor, Auditor, Cast, until};

const LEASES: usize = 200;

pub(crate) fn all() -> Vec<Trial> {
    let scenes: [(&str, fn()); 6] = [
        ("eight_processes_never_hold_too_much", eight_processes),
        ("killed_at_any_moment_nothing_is_lost", killed_at_any_moment),
        ("a_killed_holder_is_reclaimed_within_a_second", reclaimed),
        (
            "a_stopped_waiter_is_passed_and_keeps_its_place",
            stopped_waiter,
        ),
        ("a_large_request_is_not_overtaken", not_overtaken),
        ("an_aborted_process_leaves_no_files", no_files_left),
    ];
    let trial = |(name, scene): (&str, fn())| {
        Trial::test(name, move || {
            scene();
            Ok(())
        })
    };
    scenes.into_iter().map(trial).collect()
}

/// 8 processes take 200 leases each on two devices.
fn eight_processes() {
    let cast = Cast::new();
    let auditor = Auditor::start(&cast);
    let workers: Vec<_> = (0..8).map(|_| cast.worker(LEASES)).collect();
    let journals: Vec<Journal> = workers
        .into_iter()
        .map(|worker| worker.finish(Duration::from_mins(1)))
        .collect();
    let peaks = auditor.finish();

    for journal in &journals {
        assert_eq!(journal.holds.len(), LEASES, "a lease was lost");
        assert!(journal.holds.iter().all(|hold| hold.released.is_some()));
    }
    journal::check(&journals);
    // There was a crowd, or it would prove nothing.
    assert!(peaks.iter().all(|peak| peak.samples > 20), "{peaks:?}");
    assert!(
        peaks.iter().all(|peak| peak.slots == SLOTS.into()),
        "{peaks:?}"
    );
    assert!(peaks.iter().any(|peak| peak.waiting >= 3), "{peaks:?}");

    // Nobody starved: when the first was done, nobody was far behind.
    let done = journals.iter().filter_map(Journal::ended).min();
    let done = done.expect("all of them ended");
    for journal in &journals {
        let held = journal.holds.iter().filter(|hold| hold.acquired <= done);
        let count = held.count();
        assert!(
            count >= LEASES * 2 / 5,
            "{count} of {LEASES} when another was done"
        );
    }
    let left = desk(&cast.ledgers()).status().expect("the desk answers");
    assert!(left.iter().all(|device| device.held.is_empty()), "{left:?}");
    assert!(
        left.iter().all(|device| device.waiting.is_empty()),
        "{left:?}"
    );
}

/// 40 times, one of six is killed in the middle of whatever it does, and another takes over.
fn killed_at_any_moment() {
    let cast = Cast::new();
    let auditor = Auditor::start(&cast);
    let mut workers: Vec<_> = (0..6).map(|_| cast.worker(usize::MAX)).collect();
    let mut journals = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..40 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(random % 40_000));
        let at = usize::try_from(random >> 32).expect("64 bits") % workers.len();
        let killed = std::mem::replace(&mut workers[at], cast.worker(usize::MAX));
        journals.push(killed.kill());
    }
    // Whoever is left goes on.
    for worker in &workers {
        let before = worker.journal().holds.len();
        let goes_on = || worker.journal().holds.len() >= before + 5;
        until("a survivor goes on", ENOUGH, goes_on);
    }
    journals.extend(workers.into_iter().map(Actor::kill));
    let peaks = auditor.finish();
    journal::check(&journals);
    assert!(peaks.iter().all(|peak| peak.samples > 20), "{peaks:?}");

    // All are dead: everything is free, at once and all of it.
    let desk = desk(&cast.ledgers());
    for name in NAMES {
        let all = LeaseRequest::new(SLOTS, BYTES).on([name]);
        let lease = desk.try_lease(&all).expect("the desk answers");
        assert!(lease.is_some(), "{:?}", desk.status());
    }
    for device in desk.status().expect("the desk answers") {
        assert!(
            device.held.is_empty() && device.waiting.is_empty(),
            "{device:?}"
        );
    }
}

/// From `kill -9` to the next in line.
fn reclaimed() {
    let cast = Cast::new();
    let desk = desk(&cast.ledgers());
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let holder = cast.holder("gpu0", SLOTS);
        let waiter = spawn_lease(&desk, LeaseRequest::new(SLOTS, BYTES).on(["gpu0"]));
        until_waiting(&desk, 1);
        // By now it sleeps as long as it ever does.
        thread::sleep(Duration::from_millis(150));
        let killed = Instant::now();
        holder.kill();
        let (lease, granted) = waiter.join().expect("no panic");
        drop(lease.expect("it was reclaimed"));
        longest = longest.max(granted - killed);
    }
    assert!(longest < Duration::from_secs(1), "{longest:?}");

    // Whoever comes after the death need not wait at all.
    cast.holder("gpu0", SLOTS).kill();
    let all = LeaseRequest::new(SLOTS, BYTES).on(["gpu0"]);
    assert!(desk.try_lease(&all).expect("the desk answers").is_some());
}

/// Ctrl-Z on a waiter must not stop the machine.
fn stopped_waiter() {
    let cast = Cast::new();
    let desk = desk(&cast.ledgers());
    let all = LeaseRequest::new(SLOTS, 0).on(["gpu0"]);
    let held = desk.lease(&all).expect("it is free");
    let first = cast.waiter("gpu0", SLOTS);
    until_waiting(&desk, 1);
    first.signal("STOP");
    let behind = spawn_lease(&desk, LeaseRequest::new(1, 0).on(["gpu0"]));
    until_waiting(&desk, 2);
    let released = Instant::now();
    drop(held);
    let (lease, granted) = behind.join().expect("no panic");
    let passed = granted - released;
    assert!(
        passed > Duration::from_millis(500),
        "passed too soon: {passed:?}"
    );
    assert!(
        passed < Duration::from_secs(10),
        "passed too late: {passed:?}"
    );

    // It wakes up and is the first in line again.
    let third = spawn_lease(&desk, LeaseRequest::new(SLOTS, 0).on(["gpu0"]));
    until_waiting(&desk, 2);
    first.signal("CONT");
    thread::sleep(Duration::from_millis(300));
    drop(lease);
    first.until_it_holds(Duration::from_secs(10));
    assert!(!third.is_finished(), "it was overtaken again");
    first.kill();
    let (lease, _) = third.join().expect("no panic");
    drop(lease.expect("its turn came"));
}

/// Who came after a request for everything is served after it, in every process.
fn not_overtaken() {
    let cast = Cast::new();
    let desk = desk(&cast.ledgers());
    let onlooker = LeaseDesk::clone(&desk);
    let workers: Vec<_> = (0..3).map(|_| cast.small_worker()).collect();
    for worker in &workers {
        let started = || worker.journal().holds.len() > 3;
        until("a worker starts", ENOUGH, started);
    }
    let mut rounds = Vec::new();
    for _ in 0..12 {
        let all = LeaseRequest::new(SLOTS, 0).on(["gpu0"]).label("all");
        let all = all.within(ENOUGH);
        let waiter = {
            let desk = desk.clone();
            thread::spawn(move || {
                let lease = desk.lease(&all).expect("it does not starve");
                thread::sleep(Duration::from_millis(2));
                let release = journal::now();
                drop(lease);
                release
            })
        };
        // A moment at which it was certainly in line: whoever asks later came later.
        let mut in_line = None;
        while !waiter.is_finished() && in_line.is_none() {
            let status = onlooker.status().expect("the desk answers").remove(0);
            let mut waiting = status.waiting.iter();
            let seen = waiting.any(|holder| holder.label == "all");
            in_line = seen.then(journal::now);
        }
        let release = waiter.join().expect("no panic");
        rounds.extend(in_line.map(|in_line| (in_line, release)));
    }
    let journals: Vec<Journal> = workers.into_iter().map(Actor::kill).collect();
    journal::check(&journals);
    assert!(rounds.len() > 3, "it was never seen waiting");
    for (in_line, release) in rounds {
        for hold in journals.iter().flat_map(|journal| &journal.holds) {
            let overtook = hold.asked > in_line && hold.acquired < release;
            assert!(!overtook, "{hold:?} between {in_line} and {release}");
        }
    }
}

/// A crash leaves files behind, and the next desk sweeps them out.
fn no_files_left() {
    let cast = Cast::new();
    for _ in 0..3 {
        cast.holder("gpu1", 1).kill();
    }
    let desks = cast.ledgers().join("desks");
    let count = || std::fs::read_dir(&desks).expect("it is there").count();
    assert!(count() >= 2, "the dead leave an announcement and a share");
    let desk = desk(&cast.ledgers());
    assert_eq!(count(), 1, "only the living are announced");
    assert!(desk.status().expect("the desk answers")[1].held.is_empty());
    drop(desk);
    assert_eq!(count(), 0);
}

type Answer = (Result<warploom_core::Lease, LeaseError>, Instant);

fn spawn_lease(desk: &LeaseDesk, request: LeaseRequest) -> thread::JoinHandle<Answer> {
    let (desk, request) = (desk.clone(), request.within(ENOUGH));
    thread::spawn(move || (desk.lease(&request), Instant::now()))
}

fn until_waiting(desk: &LeaseDesk, count: usize) {
    until("enough wait", ENOUGH, || {
        desk.status().expect("the desk answers")[0].waiting.len() == count
    });
}
