//! The journal of a run, cut, flipped, locked and taken up again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use warploom_core::Coded as _;
use warploom_fleet::journal::{
    Cause, Durability, Entry, Event, History, Holder, Journal, Tear, look, read,
};
use warploom_fleet::rundir::{self, Identity};
use warploom_fleet::{Answer, FleetError, Reason, Record};

fn events() -> Vec<Event> {
    vec![
        Event::Began { earlier: 0 },
        Event::Attempt {
            batch: 0,
            slot: 1,
            records: [0, 1, 2, 7].into_iter().collect(),
        },
        Event::Ok {
            record: 0,
            attempts: 1,
            result: Answer::Kept(b"forty-two".to_vec()),
        },
        Event::Charged {
            batch: 0,
            cause: Cause::Hung {
                after: Duration::from_millis(1500),
            },
            records: [1, 2, 7].into_iter().collect(),
        },
        Event::Failed {
            record: 7,
            attempts: 3,
            reason: Reason::Crashed {
                how: "signal 11".into(),
                log: "the last words".into(),
            },
        },
        Event::Ceiling {
            plan: "p".into(),
            model: "A4000".into(),
            batch: 16,
        },
        Event::Ended { complete: false },
    ]
}

fn written(path: &Path) -> Vec<u8> {
    let mut journal = Journal::open(path, Durability::Each).unwrap().journal;
    for event in events() {
        journal.push(event).unwrap();
        journal.commit().unwrap();
    }
    drop(journal);
    fs::read(path).unwrap()
}

fn told(entries: &[Entry]) -> Vec<Event> {
    entries.iter().map(|entry| entry.event.clone()).collect()
}

/// Test 6 of the acceptance list.
#[test]
fn i2_a_journal_cut_at_every_byte_opens_and_loses_at_most_its_tail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let bytes = written(&path);
    let all = events();
    let mut whole_before = 0;
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let opened = Journal::open(&path, Durability::Never).unwrap();
        let found = told(&opened.entries);
        assert_eq!(found, all[..found.len()], "cut at {cut}");
        assert!(found.len() >= whole_before, "more was lost by cutting less");
        whole_before = found.len();
        if let Some(torn) = &opened.torn {
            assert_eq!(torn.tear, Tear::Cut);
            assert_eq!(torn.at + torn.bytes, cut as u64);
            assert_eq!(torn.kept_in, None);
        }
        // What is appended after the cut is read back behind what was whole.
        let mut journal = opened.journal;
        journal.push(Event::Began { earlier: 9 }).unwrap();
        journal.commit().unwrap();
        drop(journal);
        let mut expected = found;
        expected.push(Event::Began { earlier: 9 });
        assert_eq!(told(&read(&path).unwrap()), expected, "cut at {cut}");
    }
    assert_eq!(whole_before, all.len());
}

#[test]
fn a_flipped_byte_loses_nothing_before_it_and_what_is_behind_it_is_kept_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let bytes = written(&path);
    let all = events();
    for at in 12..bytes.len() {
        for bit in [0, 3, 7] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            fs::write(&path, &flipped).unwrap();
            let opened = Journal::open(&path, Durability::Never).unwrap();
            let found = told(&opened.entries);
            assert_eq!(found, all[..found.len()], "byte {at}, bit {bit}");
            assert!(found.len() < all.len(), "byte {at}, bit {bit}");
            let torn = opened.torn.expect("the flip is noticed");
            if found.len() + 1 < all.len() {
                let aside = torn.kept_in.expect("whole frames are behind the damage");
                assert_eq!(
                    fs::read(&aside).unwrap(),
                    flipped[usize::try_from(torn.at).unwrap()..]
                );
                fs::remove_file(aside).unwrap();
            }
        }
    }
}

#[test]
fn what_is_no_journal_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    for text in [&b"something else entirely"[..], b"WLJOURNAL\0\0\x01", b"x"] {
        fs::write(&path, text).unwrap();
        let error = Journal::open(&path, Durability::Never).unwrap_err();
        assert_eq!(error.code().to_string(), "WL1001", "{error}");
        assert_eq!(fs::read(&path).unwrap(), text);
    }
}

#[test]
fn a_journal_has_one_writer_and_any_number_of_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut first = Journal::open(&path, Durability::default()).unwrap().journal;
    first.push(Event::Began { earlier: 0 }).unwrap();
    let busy = |holder| FleetError::Busy {
        path: path.clone(),
        holder,
    };
    let second = || Journal::open(&path, Durability::default()).unwrap_err();
    assert_eq!(second(), busy(None));
    assert_eq!(read(&path).unwrap(), [], "not committed yet");
    assert!(look(&path).unwrap().is_held);
    first.commit().unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
    let holder = Holder::this();
    assert_eq!(holder.pid, std::process::id());
    first
        .push(Event::Signed {
            holder: holder.clone(),
            slots: Vec::new(),
        })
        .unwrap();
    first.commit().unwrap();
    assert_eq!(second(), busy(Some(holder.clone())));
    let said = second().to_string();
    assert!(said.contains(&format!("process {}", holder.pid)), "{said}");
    drop(first);
    assert!(!look(&path).unwrap().is_held);
    assert_eq!(
        Journal::open(&path, Durability::Never)
            .unwrap()
            .entries
            .len(),
        2
    );
}

#[test]
fn whoever_looks_changes_nothing_and_tells_a_cut_from_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let bytes = written(&path);
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let seen = look(&path).unwrap();
        assert_eq!((seen.is_held, seen.damaged_at), (false, None), "{cut}");
        assert_eq!(told(&seen.entries), events()[..seen.entries.len()]);
        assert_eq!(fs::read(&path).unwrap(), bytes[..cut]);
    }
    // A byte that changed in any frame but the last is damage, wherever it is.
    let last = {
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let torn = Journal::open(&path, Durability::Never).unwrap().torn;
        usize::try_from(torn.unwrap().at).unwrap()
    };
    for at in 12..last {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(&path, &flipped).unwrap();
        let seen = look(&path).unwrap();
        let from = usize::try_from(seen.damaged_at.unwrap()).unwrap();
        assert!(from <= at, "{at} is damaged and {from} was told");
        assert_eq!(fs::read(&path).unwrap(), flipped);
    }
}

#[test]
fn a_writer_that_comes_while_somebody_looks_gets_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    drop(Journal::open(&path, Durability::Never).unwrap());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    look(&path).unwrap();
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..100 {
            let opened = Journal::open(&path, Durability::Never);
            if opened.is_err() {
                over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            drop(opened.unwrap());
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn groups_are_synced_when_they_are_full_or_old() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let groups = Durability::Groups {
        events: 3,
        within: Duration::from_hours(1),
    };
    let mut journal = Journal::open(&path, groups).unwrap().journal;
    assert_eq!(journal.due_in(), None);
    for expected_due in [true, true, false] {
        journal.push(Event::Began { earlier: 0 }).unwrap();
        journal.commit().unwrap();
        assert_eq!(journal.due_in().is_some(), expected_due);
    }
    let at_once = Durability::Groups {
        events: 1000,
        within: Duration::ZERO,
    };
    drop(journal);
    let mut journal = Journal::open(&path, at_once).unwrap().journal;
    journal.push(Event::Began { earlier: 0 }).unwrap();
    journal.commit().unwrap();
    assert_eq!(journal.due_in(), None, "it was old enough at once");
}

#[test]
fn a_run_is_resumed_with_the_same_records_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let records: Vec<Record> = (0..3_u8).map(|n| Record::new(vec![n])).collect();
    let identity = Identity::of("p", &records);
    assert_eq!(
        rundir::open(&run, &identity, Durability::Never)
            .unwrap()
            .history,
        History::new(3)
    );
    let mut open = rundir::open(&run, &identity, Durability::Never).unwrap();
    let busy = rundir::open(&run, &identity, Durability::Never).unwrap_err();
    assert_eq!(busy.code().to_string(), "WL1002");
    open.journal
        .push(Event::Failed {
            record: 2,
            attempts: 1,
            reason: Reason::Unanswered,
        })
        .unwrap();
    open.journal.commit().unwrap();
    drop(open);
    let again = rundir::open(&run, &identity, Durability::Never).unwrap();
    assert_eq!(again.history.open().collect::<Vec<_>>(), [0, 1]);
    drop(again);

    // The same bytes in all, cut into records in another way.
    let regrouped = [
        Record::new(vec![0, 1]),
        Record::new(vec![2]),
        Record::new(vec![]),
    ];
    for other in [
        Identity::of("q", &records),
        Identity::of("p", &records[..2]),
        Identity::of("p", &regrouped),
    ] {
        let error = rundir::open(&run, &other, Durability::Never).unwrap_err();
        assert_eq!(error.code().to_string(), "WL1004", "{error}");
    }
    fs::write(run.join("plan"), b"rubbish").unwrap();
    let error = rundir::open(&run, &identity, Durability::Never).unwrap_err();
    assert_eq!(error.code().to_string(), "WL1003", "{error}");
}

proptest! {
    /// Whatever bytes follow the header: no panic, and what is read is read again.
    #[test]
    fn any_bytes_open(rest in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut bytes = b"WLJOURNAL\0\0\x02".to_vec();
        bytes.extend(rest);
        fs::write(&path, &bytes).unwrap();
        let opened = Journal::open(&path, Durability::Never).unwrap();
        let entries = opened.entries.clone();
        let _ = History::of(4, &entries);
        drop(opened);
        prop_assert_eq!(read(&path).unwrap(), entries);
    }
}
